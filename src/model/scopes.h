/*
 * Scopes: how many workloads tenants have named themselves ("SCOPE/ID", model/workload.h), so that
 * none of them takes the room of others. One scope has at most a sixteenth of all room, which is
 * more containers than a user runs; all together have half.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/table.h"
#include "model/workload.h"

enum { SCOPES_ALL_PART = 2, SCOPES_ONE_PART = 16 };

struct scope {
    struct table_entry entry;
    size_t count;       /* of workloads */
    uint64_t tidied_us; /* for the caller; 0 at first */
    size_t len;
    char text[];
};

/* Zeroed but for the maximum, it is empty. */
struct scopes {
    struct table table; /* of struct scope, those with workloads */
    size_t count;       /* workloads of all */
    size_t workloads_max;
};

void scopes_done(struct scopes *scopes);

/* NULL: no workload has this scope, or the id has none. Valid until its last one is removed. */
struct scope *scopes_find(const struct scopes *scopes, const char *id);

/* For one more workload of this id. Always true if it has no scope. */
bool scopes_have_room(const struct scopes *scopes, const char *id);

/* Count a workload, if its id has a scope. The first returns 0 or -ENOMEM. */
int scopes_add(struct scopes *scopes, const char *id);
void scopes_remove(struct scopes *scopes, const char *id);

bool scope_has(const struct scope *scope, const char *id);

/*
 * Pure. Whose scope an id is in: the user, machine, job or container that named it. A container may
 * be one of a pod (WORKLOAD_POD), which its id does not tell. False: it has none.
 */
bool scope_find_owner(const char *id, struct workload_owner *ret_owner);
