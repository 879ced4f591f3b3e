/*
 * The model: power of the machine where no meter measures its processors, from CPU time. Off unless
 * it is asked for, and it gives way to any real meter of them.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "sources/source.h"

struct source_estimate {
    bool is_on;
    bool by_table;             /* the watts are those of the processor, from cpu_power.h */
    uint64_t idle_uw, full_uw; /* else these */
    /* Set when a real meter of the processors was read: from then on nothing is modelled. */
    atomic_bool gives_way;
};

extern const struct source_ops model_source;
