/*
 * Details: what is read of a workload beyond its owner, from one of its processes: a job's name
 * and account, a VM's uuid, a user's name. For people; nothing is booked by it.
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

/*
 * What the environment of a batch job's process says of the job. The user can write whatever they
 * like there, so it never decides who pays: it is shown as unverified. Pure.
 */
struct job {
    char id[32]; /* a number; only where the scheduler's cgroups may have another */
    char name[256];
    char account[256];
};

/* From /proc/PID/environ: texts separated by NUL. What is not there, or too long, is "". `kind` is
 * that of a job (workload_is_job). */
void job_parse_environ(enum workload_kind kind, struct span environment, struct job *ret_job);

/* What QEMU's command line says of a virtual machine. libvirt writes it, not the guest. Pure. */
struct vm {
    char name[256];
    char uuid[37];
};

/* From /proc/PID/cmdline: arguments separated by NUL. What is not there, or no good, is "". */
void vm_parse_cmdline(struct span cmdline, struct vm *ret_vm);

/* The name of this uid in the text of /etc/passwd: no look-ups in a network, those can hang. False
 * if there is none, or it is too long. Pure. */
bool passwd_find(struct span text, uint32_t uid, char *ret_name, size_t size_bytes);
