/*
 * What each workload did between two readings of its cgroup. Pure.
 *
 * Counters of a cgroup contain all that is below it. Where a workload is inside of another (a
 * container in a user's slice), what it did is taken from the one around it, so that the sum over
 * all is what was done.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/usage.h"

struct usage_past {
    uint64_t id;
    uint64_t cpu_us;
};

struct usage_delta {
    struct usage_past *past; /* sorted by id; those of the last reading */
    size_t count;
    bool is_started;
};

struct usage_did {
    uint64_t cpu_us;
    uint64_t memory_bytes; /* that it holds now: resident, or all if that is not known */
};

void usage_delta_done(struct usage_delta *delta);

/*
 * Writes what each of the items did since the last call into `did` (room for `count`). The first
 * call, and a counter that went back, count nothing; what appears later counts from its beginning.
 * 0 or -ENOMEM; then the next call counts what this one did not.
 */
int usage_delta_take(struct usage_delta *delta, const struct usage_owner *items, size_t count,
                     struct usage_did *did);
