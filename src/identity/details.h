/*
 * Details of a workload beyond its owner, read from one of its processes: a job's name and account,
 * a VM's name and uuid, a user's name. For display; nothing is charged by it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/span.h"
#include "core/table.h"
#include "host/host.h"
#include "model/workload.h"

enum { DETAILS_MAX = 65536 };

struct details {
    struct table_entry entry; /* of the store */
    enum workload_kind kind;
    char *id;
    uint64_t used_us;
    char *texts[WORKLOAD_TEXTS]; /* the name of a VM, and USER to UUID; NULL: unknown */
    bool job_id_unverified;
    bool complete; /* another process of the owner would not add to it */
};

/* A store is a table of them by kind and id. Not thread-safe. */
void details_store_done(struct table *store);

/* NULL if there is none. Valid until it expires. */
struct details *details_find(const struct table *store, enum workload_kind kind, const char *id);

/* Takes over the texts of `details`. They are freed where there is no room, or where as much is
 * known already. */
void details_add(struct table *store, struct details *details);
void details_expire(struct table *store, uint64_t before_us);
void details_done(struct details *details);

/* Reads the details of this owner from its process, unless the pid belongs to another by now. Waits
 * up to `timeout_ms` for a process that blocks its readers (memory_read.h); then they are not
 * complete. 0, -ESRCH, or -ENODATA: there are none for this kind. */
int details_read(const struct host *host, uint32_t pid, const struct workload_owner *owner,
                 uint32_t timeout_ms, struct details *ret_details);

/*
 * Pure. Set malloc'ed texts that are NULL before. Absent, invalid and too long ones stay NULL.
 *
 * From /proc/PID/environ of a batch job (workload_is_job): its id, if the cgroups of its scheduler
 * may have another, name and account. Its user can write anything there, so it never decides what
 * is charged, and is shown as unverified.
 */
void details_parse_environ(enum workload_kind kind, struct span environment,
                           char *texts[WORKLOAD_TEXTS]);

/* From /proc/PID/cmdline of QEMU: name and uuid. libvirt writes it, not the guest. */
void details_parse_cmdline(struct span cmdline, char *texts[WORKLOAD_TEXTS]);

/* Pure. The name of this uid in the text of /etc/passwd; no network lookups, which can hang. False
 * if there is none, or it is too long. */
bool passwd_find(struct span text, uint32_t uid, char *ret_name, size_t size_bytes);
