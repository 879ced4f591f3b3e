/* The owners that have processes, each once: the table's own bookkeeping. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/map.h"
#include "identity/process/process_table.h"

struct process_owner {
    struct process_table_owner view; /* what the table's users see */
    uint64_t hash;
    uint32_t index;
    bool appeared; /* the table's users were told */
};

struct process_owners {
    struct process_owner **items; /* dense */
    size_t count, capacity, max;
    struct map map; /* from (kind, id) to the index */
};

void process_owners_done(struct process_owners *owners);

/* The one with this kind and id, made if there is none: without processes. NULL: no room for it. */
struct process_owner *process_owners_intern(struct process_owners *owners,
                                            const struct workload_owner *owner);

/* Removes those that have no process. */
void process_owners_sweep(struct process_owners *owners);
