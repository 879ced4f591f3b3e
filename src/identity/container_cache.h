/*
 * Container cache: names of containers by id, and of pods by uid.
 *
 * An id is wanted as soon as a process is seen in the container; runtimes are polled for it on
 * threads of their own (runtime_poller.h). Answers are kept as long as they are used, also for
 * containers that have ended meanwhile. A container that no runtime knows any more still gets the
 * names of the pod in its cgroup. Thread-safe; no call blocks for longer than a map takes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "identity/runtime.h"

enum {
    CONTAINER_CACHE_ENTRIES_MAX = 65536,
    CONTAINER_CACHE_PODS_MAX = 16384,
    CONTAINER_CACHE_UNASKED_MAX = 4096, /* of each, from hints, without a process seen in them */
    CONTAINER_CACHE_RUNTIMES_MAX = 16,
    CONTAINER_CACHE_HINTS = CONTAINER_CACHE_RUNTIMES_MAX - 1, /* the number of the hints' source */
    CONTAINER_CACHE_TRIES_MAX = 5, /* polls of a runtime for an id that it does not know */
    CONTAINER_CACHE_IMAGE_TRIES_MAX = 3,
};

struct container_cache;

int container_cache_new(struct container_cache **ret_cache);
void container_cache_free(struct container_cache *cache);

/* Runtimes have numbers below CONTAINER_CACHE_RUNTIMES_MAX. Absent ones are not waited for. */
void container_cache_set_present(struct container_cache *cache, unsigned runtime, bool present);

/*
 * A process was seen in this container: runtimes are polled for it, unless they were before.
 * `pod_uid` is from its cgroup, or "". A claim comes from a job that may be lying, and counts only
 * as long as no other process is in the container.
 */
void container_cache_want(struct container_cache *cache, const char *container_id,
                          const char *pod_uid, bool is_claim, uint64_t now_us);

/* Adds what a runtime listed, where there is room. Of ended containers, of which a node may have
 * thousands, only wanted ones, and names of wanted pods. */
void container_cache_learn(struct container_cache *cache, unsigned runtime,
                           const struct container_list *list, uint64_t now_us);

/*
 * Adds names from a source that is trusted less than the node's own runtimes. A hint never replaces
 * the answer of a runtime, is replaced by it, and cannot fill the cache. Without an id it is about
 * a pod.
 */
void container_cache_hint(struct container_cache *cache, const struct container_list *list,
                          uint64_t now_us);

/* A wanted container whose image is known by digest only, if the runtime that listed it is due to
 * be polled for the name; false if there is none. */
bool container_cache_next_image(struct container_cache *cache, unsigned runtime, uint64_t now_us,
                                char ret_id[RUNTIME_ID_BYTES]);
/* The answer: a name, "": it has none, or NULL: the poll failed. After some failures the digest is
 * kept. */
void container_cache_note_image(struct container_cache *cache, const char *container_id,
                                const char *image, uint64_t now_us);

/* The runtime was polled at this time. 0: it does not know what is still missing; -errno: it
 * failed, and its answer is not awaited for long. */
void container_cache_note_poll(struct container_cache *cache, unsigned runtime, int result,
                               uint64_t polled_us);

/* Copied into the arena. False if unknown. */
bool container_cache_find(struct container_cache *cache, const char *container_id, uint64_t now_us,
                          struct arena *arena, struct container *ret_container);

/* The pod's name and namespace, by a runtime that is certain of it or by a hint; not by labels,
 * which any container can have. False if unknown. */
bool container_cache_find_pod(struct container_cache *cache, const char *pod_uid, uint64_t now_us,
                              struct arena *arena, const char **ret_namespace,
                              const char **ret_pod);

/* Was a process seen in the container, other than by a claim? */
bool container_cache_is_taken(struct container_cache *cache, const char *container_id);

/* The id of a pod's container: the one in which a process was seen last, and not before `since_us`.
 * `or_listed`: or which a runtime that is certain of its pod listed as running. False if there is
 * none. */
bool container_cache_find_by_name(struct container_cache *cache, const char *namespace,
                                  const char *pod, const char *container, bool or_listed,
                                  uint64_t since_us, char ret_id[RUNTIME_ID_BYTES]);

/* May an answer still come, or a better one than a hint or a digest? False without a runtime. */
bool container_cache_may_learn(struct container_cache *cache, const char *container_id);

/* Is a runtime that works due to answer for this id? */
bool container_cache_is_awaited(struct container_cache *cache, const char *container_id);

/*
 * When to poll the runtime next: UINT64_MAX if nothing is missing that it could know. For an id
 * this is at once, and again after 1, 2, 4 and 8 s.
 */
uint64_t container_cache_next_poll_us(struct container_cache *cache, unsigned runtime);

/* Is the runtime due to be polled for a missing id? */
bool container_cache_is_missing(struct container_cache *cache, unsigned runtime, uint64_t now_us);

/* Blocks until that may have changed (since `generation` was read), or until `until_us` on the
 * monotonic clock. */
void container_cache_wait(struct container_cache *cache, uint64_t generation, uint64_t until_us);
uint64_t container_cache_generation(struct container_cache *cache);
void container_cache_wake(struct container_cache *cache);

/* Is there no room for another container or pod? It gets no names until others expire. */
bool container_cache_is_full(struct container_cache *cache);

/* Removes what was not used since `before_us`. */
void container_cache_expire(struct container_cache *cache, uint64_t before_us);
