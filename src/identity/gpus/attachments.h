/*
 * The containers that run, and their GPUs, by who says so: each runtime, and the host itself.
 *
 * A source lists its containers again and again, and is looked into for each of them once. What it
 * lists no more is forgotten, and all that it said once it has listed nothing for too long.
 * Thread-safe; no call blocks for longer than a map takes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "identity/container_cache.h"
#include "identity/gpu_access.h"
#include "identity/pod_resources.h"
#include "identity/runtime.h"
#include "model/snapshot.h"

/* A GPU that a container can use, as far as somebody says so. */
struct attachment {
    const char *container_id;   /* 64 hex digits */
    const char *container_name; /* "" if unknown */
    enum allocation_kind kind;
    /* Of ALLOCATION_GPU_UUID it may be the front of a uuid alone: users are allowed to cut them. */
    const char *id;
    uint32_t index;
    uint64_t memory_bytes; /* that come with it (a MIG profile); 0: not known */
    /* It can use every device of the node; nobody is known to have given it this one. Agents of the
     * node are such, and hardly ever use the GPUs that they could. */
    bool is_privileged;
};

/* Not MIG devices by their own uuid: only the driver knows whose they are. */
bool attachment_is_of(const struct attachment *attachment, const struct snapshot_gpu *gpu);

enum {
    ATTACHMENTS_SOURCES_MAX = CONTAINER_CACHE_RUNTIMES_MAX,
    ATTACHMENTS_TRIES_MAX = 9, /* how often the pause after a failure is doubled */
};

struct attachments;

int attachments_new(struct attachments **ret_attachments);
void attachments_free(struct attachments *attachments);

/* All that run, by one source. Those of the list that have ended do not count. */
void attachments_list(struct attachments *attachments, unsigned source,
                      const struct container_list *list, uint64_t now_us);

/* Is the container listed, and was it not looked into yet, or `again_us` ago? After failures it is
 * due again after 2, 4, 8, ... s. */
bool attachments_is_due(struct attachments *attachments, unsigned source, const char *container_id,
                        uint64_t again_us, uint64_t now_us);

/* What was found in a container, instead of what was found before; or that it could not be looked
 * into. Nothing happens if it is not listed. */
void attachments_set(struct attachments *attachments, unsigned source, const char *container_id,
                     const struct gpu_access_list *gpus, uint64_t now_us);
void attachments_note_failure(struct attachments *attachments, unsigned source,
                              const char *container_id, uint64_t now_us);

/* Hands out what sources said that have listed something since `since_us`; the same GPU may come
 * from several. `take` must not call back. */
void attachments_each(struct attachments *attachments, uint64_t since_us,
                      void (*take)(void *context, const struct attachment *attachment),
                      void *context);

/* The container that a source is certain of to be this one of a pod. False if there is none. */
bool attachments_find_by_name(struct attachments *attachments, const char *namespace,
                              const char *pod, const char *container, uint64_t since_us,
                              char ret_id[65]);
