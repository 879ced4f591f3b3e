/*
 * Who the last processes were, for a while after they are gone. Not thread-safe.
 *
 * Bounded by number, by bytes and by age: the oldest goes first.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/map.h"
#include "model/sample.h"

enum { RECENT_PROCESSES_MAX = 4096, RECENT_PROCESSES_BYTES_MAX = 4 << 20 };

struct recent_process;

struct recent_processes {
    uint64_t keep_us;
    struct recent_process **ring; /* RECENT_PROCESSES_MAX places */
    size_t oldest, count;
    size_t used_bytes;
    struct map map; /* from the pid to the place of its newest */
};

/* 0 or -ENOMEM. */
int recent_processes_init(struct recent_processes *recent, uint64_t keep_us);
/* Accepts a zeroed struct. */
void recent_processes_done(struct recent_processes *recent);

/* Copies it; it replaces what was known of that pid. 0, -ENOMEM, or -E2BIG: its texts are larger
 * than all that may be held. */
int recent_processes_add(struct recent_processes *recent, uint64_t now_us,
                         const struct sample_process *process);

/* With texts in the arena. 0, -ESRCH: not known (any more), or -ENOMEM. */
int recent_processes_find(const struct recent_processes *recent, uint64_t now_us, uint32_t pid,
                          struct arena *arena, struct sample_process *ret_process);
