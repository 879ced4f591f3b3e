/*
 * Details: what is read of a workload beyond its owner, from one of its processes: a job's name
 * and account, a VM's uuid, a user's name. For people; nothing is booked by it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/table.h"
#include "host/host.h"
#include "model/workload.h"

enum { DETAILS_MAX = 65536 };

struct details {
    struct table_entry entry; /* of the store */
    enum workload_kind kind;
    char *id;
    uint64_t used_us;
    char *user, *account, *job_id, *job_name, *uuid, *vm_name; /* NULL: unknown */
    bool job_id_unverified;
    bool complete; /* another process of the owner would not tell more */
};

/* A store is a table of them by kind and id. Not thread-safe. */
void details_store_done(struct table *store);

/* NULL if there is none. Valid until it expires. */
struct details *details_find(const struct table *store, enum workload_kind kind, const char *id);

/* Takes over the texts of `details`. They are freed where there is no room, or where no less is
 * known already. */
void details_add(struct table *store, struct details *details);
void details_expire(struct table *store, uint64_t before_us);
void details_done(struct details *details);

/*
 * Reads the details of this owner from its process: only if the process still belongs to it, for
 * its pid may be another's by now. 0, -ESRCH, or -ENODATA: there are none for this kind.
 */
int details_read(const struct host *host, uint32_t pid, const struct workload_owner *owner,
                 struct details *ret_details);
