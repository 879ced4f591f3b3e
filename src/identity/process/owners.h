/*
 * The table's own bookkeeping: the owners that have processes, and the texts of /proc/PID/cgroup
 * that lead to them. The processes of a container have the very same text, so it is parsed once for
 * all of them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/span.h"
#include "core/table.h"
#include "identity/process_table.h"

struct process_owner {
    struct table_entry entry;
    struct process_table_owner view; /* what the table's users see */
    bool appeared;                   /* the table's users were told */
};

/* The one with this kind and id, made without processes if there is none. NULL: no room for it. */
struct process_owner *process_owners_intern(struct table *owners, size_t max,
                                            const struct workload_owner *owner);

/* Removes those that have no process. */
void process_owners_sweep(struct table *owners);

/* Texts beyond it are not kept, and parsed whenever they are read. */
enum { CGROUP_TEXTS_BYTES_MAX = 16 << 20 };

struct cgroup_text {
    struct table_entry entry;
    struct process_owner *owner; /* NULL: it depends on the process' user */
    uint32_t processes;          /* that have it; the last one to leave frees it */
    uint32_t len;
    bool outside; /* of our cgroup namespace */
    char bytes[];
};

struct cgroup_texts {
    struct table table;
    size_t used_bytes;
};

struct cgroup_text *cgroup_texts_find(const struct cgroup_texts *texts, struct span bytes);

/* The text must not be there yet. NULL: no room for it. */
struct cgroup_text *cgroup_texts_add(struct cgroup_texts *texts, struct span bytes);

/* One process less has it. Accepts NULL. */
void cgroup_texts_leave(struct cgroup_texts *texts, struct cgroup_text *text);
