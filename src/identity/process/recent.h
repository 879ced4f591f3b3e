/*
 * The last processes, remembered for a while after they are gone. Bounded by number, bytes and age:
 * the oldest goes first. Not thread-safe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "model/sample.h"

enum { RECENT_PROCESSES_MAX = 4096, RECENT_PROCESSES_BYTES_MAX = 4 << 20 };

struct recent_slot {
    uint32_t pid; /* a search reads nothing else */
    struct recent_process *process;
};

struct recent_processes {
    uint64_t keep_us;
    struct recent_slot *ring; /* RECENT_PROCESSES_MAX of them */
    size_t oldest, count;
    size_t used_bytes;
};

/* 0 or -ENOMEM. */
int recent_processes_init(struct recent_processes *recent, uint64_t keep_us);
/* Accepts a zeroed struct. */
void recent_processes_done(struct recent_processes *recent);

/* Copies it; it replaces what was known of that pid. 0, -ENOMEM, or -E2BIG: its texts are larger
 * than the whole ring may be. */
int recent_processes_add(struct recent_processes *recent, uint64_t now_us,
                         const struct sample_process *process);

/* With texts in the arena. 0, -ESRCH: not known (any more), or -ENOMEM. */
int recent_processes_find(const struct recent_processes *recent, uint64_t now_us, uint32_t pid,
                          struct arena *arena, struct sample_process *ret_process);
