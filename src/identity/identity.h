/*
 * Identity: who is who on this node. It scans processes, asks runtimes for names and keeps what it
 * learns, all on threads of its own; its callers only look things up and never wait.
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
#include "model/sample.h"
#include "model/snapshot.h"
#include "model/workload.h"

struct identity;

struct identity_options {
    const struct host *host;
    const char *rootfs_path; /* where sockets are looked for */
    const struct clock *clock;
    uint64_t scan_interval_us;
    bool kubernetes;           /* ask CRI and the kubelet */
    bool names_from_elsewhere; /* identity_learn will be called: names may come from there */
    bool attachments;          /* find out which containers have which GPUs */
    /* NULL: looked for where they usually are, "": not asked. */
    const char *const *runtime_sockets; /* as runtime_table; NULL: all are looked for */
    const char *pod_resources_socket;
};

/* A runtime, the kubelet, the API server, or the scan itself. */
struct identity_status {
    char name[128]; /* the `source` label */
    bool asked;     /* at least once */
    bool up;
    uint64_t age_us, duration_us, errors;
    char error[256];     /* why it is down; "" if it is up */
    bool logs_elsewhere; /* who asks it says so in the log */
};

/* Starts the threads. The options' strings, host and clock must outlive it. */
int identity_open(const struct identity_options *options, struct identity **ret_identity,
                  struct error *err);

/* Accepts NULL. Ends within a moment, whatever hangs. */
void identity_close(struct identity *identity);

/* Who pays for a process. Pure. */
void identity_find_owner(const struct sample_process *who, struct workload_owner *ret_owner);

/* A process was seen on a device: what is known of its owner is learned at once, and not with the
 * next scan. */
void identity_note(struct identity *identity, uint32_t pid, const struct workload_owner *owner);

/*
 * What somebody outside of this process knows of containers (the API server, through its fetcher).
 * It fills gaps: what a runtime of the node says counts more. identity_expect_names says that they
 * will not come after all, so that nobody waits for them, or that they may again.
 */
void identity_learn(struct identity *identity, const struct container_list *list);

/* The API server answered (0) or failed (-errno); `duration_us` is that of its last list. */
void identity_note_api(struct identity *identity, int result, uint64_t duration_us);
void identity_expect_names(struct identity *identity, bool expected);

/* As pipeline_find_names; `context` is the identity. The names live until the next call. */
bool identity_find_names(void *context, const struct workload_owner *owner,
                         struct workload_names *ret_names);

/* As pipeline_await_names: a runtime that answers has not answered for its container yet. */
bool identity_awaits_names(void *context, const struct workload_owner *owner);

/*
 * Hands out the GPUs that running containers can use, by the kubelet, the runtimes and the host
 * itself, never by what a container alone says: nothing, unless the options want it. A container
 * has one for each GPU and everybody who says so, perhaps by other names of the same GPU. Does not
 * wait for anybody; `take` must not call identity.
 */
void identity_each_attachment(struct identity *identity,
                              void (*take)(void *context, const struct attachment *attachment),
                              void *context);

/* Adds what is known of the snapshot's workloads, GPUs and sources. Call it last. */
int identity_describe(struct identity *identity, struct snapshot *snapshot);

/* Statuses of everything that is present: index from 0 on, false behind the last. */
bool identity_get_status(struct identity *identity, size_t index,
                         struct identity_status *ret_status);
