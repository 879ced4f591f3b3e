/*
 * Identity: the owners and names of what runs on this node. It scans processes and polls runtimes
 * on threads of its own, and caches what it learns; its callers only look things up.
 *
 *   processes -> owners (pure, owner.h) -> container ids -> names from the runtimes
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/clock.h"
#include "core/error.h"
#include "host/host.h"
#include "identity/gpus/attachments.h"
#include "identity/runtime.h"
#include "identity/status.h"
#include "model/sample.h"
#include "model/snapshot.h"
#include "model/workload.h"

struct identity;

struct identity_options {
    const struct host *host;
    const char *rootfs_path; /* above the default paths of sockets */
    const struct clock *clock;
    uint64_t scan_interval_us;
    bool kubernetes;            /* poll CRI and the kubelet */
    bool expects_fetched_names; /* identity_add_names will be called */
    bool attachments;           /* find out which workloads have which GPUs */
    /* NULL: the default paths, "": disabled. */
    const char *const *runtime_sockets; /* as runtime_table; NULL: the default paths of all */
    const char *pod_resources_socket;
};

/* Starts the threads. The options' strings, host and clock must outlive it. */
int identity_open(const struct identity_options *options, struct identity **ret_identity,
                  struct error *err);

/* Accepts NULL. Cancels calls to sockets; waits for a scan in progress, and procfs may block. */
void identity_close(struct identity *identity);

/* The owner of a process. Pure. */
void identity_find_owner(const struct sample_process *process, struct workload_owner *ret_owner);

/* A process was seen on a device: its owner's names are fetched at once instead of with the next
 * scan. Up to 256 wait; the scan finds the others. */
void identity_note_process(struct identity *identity, uint32_t pid,
                           const struct workload_owner *owner);

/* Names of containers and pods from outside the node (the API server, through its fetcher). The
 * answer of a runtime of this node replaces them. */
void identity_add_names(struct identity *identity, const struct container_list *list);

/* Whether such names may still come, so that they are waited for. */
void identity_expect_names(struct identity *identity, bool expected);

/* The API server answered (0) or failed (-errno); `duration_us` is that of its last list, or 0. */
void identity_note_api_server(struct identity *identity, int result, uint64_t duration_us);

/* As pipeline_find_names; `context` is the identity. The names live until the next call. Takes
 * locks, but never waits for a runtime. */
bool identity_find_names(void *context, const struct workload_owner *owner,
                         struct workload_names *ret_names);

/* The virtual machine with this UUID, of those whose QEMU runs on this node. False: there is none,
 * or it was not found yet. `context` is the identity. */
bool identity_find_vm(void *context, const char *vm, bool is_uuid,
                      struct workload_owner *ret_owner);

/* As pipeline_await_names: a runtime that works has not answered for the container yet. */
bool identity_awaits_names(void *context, const struct workload_owner *owner);

/*
 * Visits the GPUs that running workloads can use, by the kubelet, the runtimes and the host; those
 * of ALLOCATED_BY_ENVIRONMENT by the workload's own word alone. Nothing, unless enabled in the
 * options. A GPU of a workload comes once from each source, perhaps by another name. `visit` must
 * not call identity.
 */
void identity_each_attachment(struct identity *identity, attachments_visit *visit, void *context);

/* Has the node more processes, containers, pods or jobs than are kept? The names of some are then
 * missing. */
bool identity_is_full(struct identity *identity);

/* Adds what is known of the snapshot's workloads and sources. Call it last. */
int identity_describe(struct identity *identity, struct snapshot *snapshot);

/* The status of everything that is present, by index from 0; false after the last. */
bool identity_get_status(struct identity *identity, size_t index,
                         struct identity_status *ret_status);
