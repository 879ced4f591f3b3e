/* Shared by container_cache.c (names) and container_cache_polls.c (when to poll for them). */
#pragma once

#include <pthread.h>

#include "core/table.h"
#include "identity/container_cache.h"
#include "model/workload.h"

/* A container by its id, or a pod by its uid. */
struct entry {
    struct table_entry entry;
    char key[WORKLOAD_POD_UID_BYTES];
    struct container names;
    struct namesakes *namesakes; /* of a pod's container; NULL: none */
    struct entry *previous, *next;
    bool known;         /* from a runtime */
    bool hinted;        /* from a hint, until a runtime knows it */
    bool unasked;       /* added by a hint: no process was seen in it */
    bool taken;         /* wanted, other than by a claim */
    uint64_t wanted_us; /* first */
    uint64_t seen_us;   /* last wanted; 0: never */
    uint64_t listed_us; /* last, as running; 0: never */
    uint64_t used_us;

    /* Of containers: the polls for it. */
    uint8_t tries[CONTAINER_CACHE_RUNTIMES_MAX];
    uint64_t polled_us[CONTAINER_CACHE_RUNTIMES_MAX];
    bool image_pending;     /* the image is a digest, and may still get its name from: */
    unsigned image_runtime; /* the runtime that listed it */
    uint8_t image_tries;
    uint64_t image_due_us;
};

struct entries {
    struct table table;
    size_t unasked_count;
};

/* The containers of a pod that have one name: a restarted one leaves its old id behind. */
struct namesakes {
    struct table_entry entry;
    struct entry *first;
    char key[];
};

struct container_cache {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t generation;
    bool present[CONTAINER_CACHE_RUNTIMES_MAX];
    bool failing[CONTAINER_CACHE_RUNTIMES_MAX]; /* at the last poll */
    struct entries containers, pods;
    struct table by_name; /* of struct namesakes */
    size_t image_cursor;  /* of containers: where the search for images goes on */
    uint64_t visited;     /* entries by the searches, to test that they are not searched in vain */
};

/* NULL: none. Under the lock. */
struct entry *container_cache_entry(const struct container_cache *cache, const char *container_id);
