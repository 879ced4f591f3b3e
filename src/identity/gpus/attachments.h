/*
 * GPUs that running workloads can use, by source: each runtime for its containers, and the host
 * itself for containers, and for jobs and units.
 *
 * A source lists its workloads again and again, and inspects each of them once, or from time to
 * time. Those that it no longer lists are forgotten, and all of them once it has listed nothing for
 * too long. Thread-safe; no call blocks for longer than a map takes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "identity/container_cache.h"
#include "identity/gpu_access.h"
#include "identity/pod_resources.h"
#include "identity/runtime.h"
#include "model/snapshot.h"

/* A GPU that a workload can use, according to one source. */
struct attachment {
    /* WORKLOAD_CONTAINER: its id has 64 hex digits, and it may be a pod's. */
    enum workload_kind owner_kind;
    const char *owner_id;
    const char *container_name;  /* identity fills it in; "" if unknown */
    const char *namespace, *pod; /* by the kubelet, which gave it; NULL: not by it */
    enum allocation_source source;
    bool is_unverified; /* the workload could have forged it */
    enum allocation_kind kind;
    /* For ALLOCATION_GPU_UUID it may be the front of a uuid: users may shorten them. */
    const char *id;
    uint32_t index;
    uint64_t memory_bytes; /* that come with it (a MIG profile); 0: not known */
    /* It can use every device of the node, and was not given this one in particular. Node agents
     * are such, and hardly ever use the GPUs that they could. */
    bool is_privileged;
};

#define ATTACHMENT_NO_INSTANCE UINT32_MAX

/* Is it of this GPU, described with its MIG devices? Then writes the GPU instance, or
 * ATTACHMENT_NO_INSTANCE: the whole board, or it is not clear which. */
bool attachment_is_of(const struct attachment *attachment, const struct snapshot_gpu *gpu,
                      uint32_t *ret_instance);

enum {
    ATTACHMENTS_SOURCES_MAX = CONTAINER_CACHE_RUNTIMES_MAX + 1, /* the host is two of them */
    ATTACHMENTS_TRIES_MAX = 9, /* doublings of the pause after a failure */
};

struct attachments;

/* A workload, as in struct attachment. */
struct attachment_key {
    enum workload_kind kind;
    const char *id;
};

static inline struct attachment_key attachment_container(const char *id)
{
    return (struct attachment_key){WORKLOAD_CONTAINER, id};
}

int attachments_new(struct attachments **ret_attachments);
void attachments_free(struct attachments *attachments);

/* All running containers of one source. Ended ones in the list do not count. */
void attachments_list(struct attachments *attachments, unsigned source,
                      const struct container_list *list, uint64_t now_us);

/* The same, one after another: begin, keep each, end. A source has one thread for it. */
void attachments_begin(struct attachments *attachments, unsigned source);
void attachments_keep(struct attachments *attachments, unsigned source, struct attachment_key key);
void attachments_end(struct attachments *attachments, unsigned source, uint64_t now_us);

/* Is the workload listed, and was it not inspected yet, or `again_us` ago? After failures it is due
 * again after 2, 4, 8, ... s. */
bool attachments_is_due(struct attachments *attachments, unsigned source, struct attachment_key key,
                        uint64_t again_us, uint64_t now_us);

/* The result of an inspection, which replaces the last one, or its failure. No-op for a workload
 * that is not listed. */
void attachments_set(struct attachments *attachments, unsigned source, struct attachment_key key,
                     const struct gpu_access_list *gpus, uint64_t now_us);
void attachments_note_failure(struct attachments *attachments, unsigned source,
                              struct attachment_key key, uint64_t now_us);

/* Adds what the last inspection of the workload found, for one that adds to it. */
void attachments_recall(struct attachments *attachments, unsigned source, struct attachment_key key,
                        struct gpu_access_list *gpus);

/* How many GPUs all listed workloads have besides those found, as in struct gpu_access_list. */
uint64_t attachments_count_unknown(struct attachments *attachments);

typedef void attachments_visit(void *context, const struct attachment *attachment);

/* Visits those of sources that have listed something since `since_us`; the same GPU may come from
 * several. `visit` must not call back. */
void attachments_each(struct attachments *attachments, uint64_t since_us, attachments_visit *visit,
                      void *context);
