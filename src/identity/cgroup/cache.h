/*
 * The texts of /proc/PID/cgroup that processes have now, and whose they are: the processes of a
 * container have the very same text, so it is parsed once for all of them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/map.h"
#include "core/span.h"
#include "identity/process/process_owners.h"

/* Texts beyond it are not kept, and parsed whenever they are read. */
enum { CGROUP_CACHE_BYTES_MAX = 16 << 20 };

struct cgroup_text {
    struct process_owner *owner; /* NULL: it depends on the process' user */
    uint64_t hash;
    uint32_t processes; /* that have it; the last one to leave frees it */
    uint32_t index;
    uint32_t len;
    bool outside; /* of our cgroup namespace */
    char bytes[];
};

struct cgroup_cache {
    struct cgroup_text **items; /* dense */
    size_t count, capacity, used_bytes;
    struct map map; /* from the text to the index */
};

void cgroup_cache_done(struct cgroup_cache *cache);

struct cgroup_text *cgroup_cache_find(const struct cgroup_cache *cache, struct span bytes);

/* The text must not be in the cache yet. NULL: no room for it. */
struct cgroup_text *cgroup_cache_add(struct cgroup_cache *cache, struct span bytes);

/* One process less has it. Accepts NULL. */
void cgroup_cache_leave(struct cgroup_cache *cache, struct cgroup_text *text);
