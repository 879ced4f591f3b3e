/* Shared by identity.c (threads), identity_lookup.c (names) and allocations.c (GPUs). */
#pragma once

#include <string.h>

#include "core/arena.h"
#include "core/lock.h"
#include "identity/container_cache.h"
#include "identity/details.h"
#include "identity/gpus/attachments.h"
#include "identity/identity.h"
#include "identity/kubernetes/kubelet.h"
#include "identity/process_table.h"
#include "identity/runtimes/runtime_poller.h"

enum {
    IDENTITY_RUNTIMES_MAX = CONTAINER_CACHE_HINTS,
    IDENTITY_HOST_SOURCE = IDENTITY_RUNTIMES_MAX, /* of attachments: after the runtimes */
    IDENTITY_JOB_SOURCE,
    IDENTITY_NOTED_MAX = 256,
    IDENTITY_FOUND_CAP_BYTES = 1 << 20,
};

struct identity_noted {
    uint32_t pid;
    struct workload_owner owner;
};

struct identity {
    struct identity_options options;
    struct container_cache *container_cache;
    struct runtime_poller *runtime_pollers[IDENTITY_RUNTIMES_MAX];
    size_t runtime_poller_count;
    struct kubelet *kubelet;         /* NULL: disabled */
    struct attachments *attachments; /* NULL: disabled */
    struct process_table *processes; /* of the thread alone */
    uint64_t read_us;                /* of it, too: spent on details since the last scan began */
    pthread_t thread;
    bool started;
    struct arena found; /* the names found last; of the caller's thread */

    pthread_mutex_t lock; /* for what is below */
    pthread_cond_t wake;
    bool stop;
    struct identity_noted noted[IDENTITY_NOTED_MAX];
    size_t noted_count;
    struct table details;
    struct process_table_stats stats;
    struct identity_status scan, api;
};

static inline uint64_t identity_now_us(const struct identity *identity)
{
    return identity->options.clock->monotonic_us(identity->options.clock);
}

/* "" for NULL, and where the arena is full. */
static inline const char *identity_copy(struct arena *arena, const char *text)
{
    const char *made = text && text[0] ? arena_copy(arena, text, strlen(text)) : "";

    return made ? made : "";
}

void identity_want_container(struct identity *identity, const struct workload_owner *owner);
