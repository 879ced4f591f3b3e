/*
 * Details: what is read of a workload beyond its owner, from one of its processes: a job's name
 * and account, a VM's uuid, a user's name. For people; nothing is booked by it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/map.h"
#include "host/host.h"
#include "model/workload.h"

enum { DETAILS_MAX = 65536 };

struct details {
    enum workload_kind kind;
    char *id; /* NULL: a free slot */
    uint64_t used_us;
    char *user, *account, *job_id, *job_name, *uuid, *vm_name; /* NULL: unknown */
    bool job_id_unverified;
    bool complete; /* another process of the owner would not tell more */
};

/* By kind and id. Not thread-safe. */
struct details_store {
    struct details *items;
    size_t slots, count;
    struct map map;
};

void details_store_done(struct details_store *store);

/* NULL if there is none. Valid until the next call that adds or expires. */
struct details *details_find(struct details_store *store, enum workload_kind kind, const char *id);

/* Takes over the texts of `details`. They are freed where there is no room, or where no less is
 * known already. */
void details_add(struct details_store *store, struct details *details);
void details_expire(struct details_store *store, uint64_t before_us);
void details_done(struct details *details);

/*
 * Reads the details of this owner from its process: only if the process still belongs to it, for
 * its pid may be another's by now. 0, -ESRCH, or -ENODATA: there are none for this kind.
 */
int details_read(const struct host *host, uint32_t pid, const struct workload_owner *owner,
                 struct details *ret_details);
