/* What container_cache.c (what is known) and container_questions.c (what is to be asked) share. */
#pragma once

#include "core/lock.h"
#include "core/table.h"
#include "identity/container_cache.h"
#include "identity/pod_names.h"

/* What an entry holds of a container; the order of struct container, without the id. */
enum container_text { TEXT_NAME, TEXT_NAMESPACE, TEXT_POD, TEXT_POD_UID, TEXT_IMAGE, TEXT_COUNT };

struct container_entry {
    struct table_entry entry;
    char id[RUNTIME_ID_BYTES];
    bool known;   /* a runtime has told */
    bool hinted;  /* somebody else has, which is good until a runtime tells */
    bool unasked; /* it is here for a hint alone: no process was seen in it yet */
    bool taken;   /* it was wanted by other than a claim */
    bool is_pod_certain;
    bool image_pending;     /* it is a digest, and may still get its name from: */
    unsigned image_runtime; /* who said it */
    uint8_t image_tries;
    uint64_t image_due_us;
    uint8_t tries[CONTAINER_CACHE_RUNTIMES_MAX];
    uint64_t asked_us[CONTAINER_CACHE_RUNTIMES_MAX];
    uint64_t wanted_us; /* first */
    uint64_t seen_us;   /* last wanted; 0: never */
    uint64_t used_us;
    char *texts[TEXT_COUNT]; /* of what is known; NULL: "" */
};

struct container_cache {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t generation;
    bool present[CONTAINER_CACHE_RUNTIMES_MAX];
    bool failing[CONTAINER_CACHE_RUNTIMES_MAX]; /* the last answer was none */
    struct table table;
    size_t unknown_count, unasked_count, pending_count;
    struct pod_names pods;
};

/* Under the lock. NULL: there is none. */
struct container_entry *container_cache_entry(struct container_cache *cache, const char *id);
