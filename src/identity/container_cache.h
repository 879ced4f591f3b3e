/*
 * The directory: what the runtimes say of containers, by container id.
 *
 * Ids are wanted as soon as a process is seen in a container, runtimes are asked on threads of
 * their own (runtime_poller.h), and what they say is kept for as long as somebody uses it: also of
 * a container that has ended before anybody could answer. Thread-safe; no call blocks for longer
 * than a map takes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "identity/runtime.h"

enum {
    CONTAINER_CACHE_ENTRIES_MAX = 65536,
    CONTAINER_CACHE_RUNTIMES_MAX = 16,
    CONTAINER_CACHE_HINTS = CONTAINER_CACHE_RUNTIMES_MAX - 1, /* the number of who gives hints */
    CONTAINER_CACHE_TRIES_MAX =
        5, /* how often a runtime is asked for an id that it does not know */
    CONTAINER_CACHE_IMAGE_TRIES_MAX = 3,
    CONTAINER_CACHE_UNASKED_MAX =
        4096, /* entries for hints at containers that nobody was seen in */
};

struct container_cache;

int container_cache_new(struct container_cache **ret_directory);
void container_cache_free(struct container_cache *cache);

/* Each runtime has a number below CONTAINER_CACHE_RUNTIMES_MAX. One that is absent is not waited
 * for. */
void container_cache_set_present(struct container_cache *cache, unsigned runtime, bool present);

/*
 * A process was seen in this container: asks for it, unless that was done before. `pod_uid` is what
 * its cgroup says, "" if nothing. A claim comes from somebody who may be lying, and is believed
 * only as long as nobody else is in the container.
 */
void container_cache_want(struct container_cache *cache, const char *container_id,
                          const char *pod_uid, bool is_claim, uint64_t now_us);

/* Takes what a runtime says, and keeps it where there is room. A node may have thousands of
 * containers that have ended: of those only who is wanted counts, and the pod that is. */
void container_cache_learn(struct container_cache *cache, unsigned runtime,
                           const struct container_list *list, uint64_t now_us);

/*
 * A wanted container whose image is known by its digest alone, if the runtime that said so is to be
 * asked for its name by now; false if there is none. Then what it answered, NULL: it has no name.
 * After some failures the digest has to do.
 */
bool container_cache_next_image(struct container_cache *cache, unsigned runtime, uint64_t now_us,
                                char ret_id[RUNTIME_ID_BYTES]);
void container_cache_set_image(struct container_cache *cache, const char *container_id,
                               const char *image);
void container_cache_note_image_failure(struct container_cache *cache, const char *container_id,
                                        uint64_t now_us);

/*
 * Takes what somebody says who is trusted less than the node's own runtimes. A hint never replaces
 * what a runtime said, yields to it as soon as it says something, and whoever gives hints cannot
 * fill the directory. Without an id it is one at a pod.
 */
void container_cache_hint(struct container_cache *cache, const struct container_list *list,
                          uint64_t now_us);

/* The runtime was asked at this time, and has answered: what is still missing was asked for in
 * vain. Or it failed, and nobody should wait for it for long. */
void container_cache_note_asked(struct container_cache *cache, unsigned runtime, uint64_t asked_us);
void container_cache_note_failure(struct container_cache *cache, unsigned runtime);

/* What is known of the id, copied into the arena. False if nothing is. */
bool container_cache_find(struct container_cache *cache, const char *container_id, uint64_t now_us,
                          struct arena *arena, struct container *ret_container);

/* The pod's name and namespace, as a runtime says them of its sandbox or of any container in it, or
 * else as a hint does. Labels that anybody can give a container do not count. False if nobody has
 * said it. */
bool container_cache_find_pod(struct container_cache *cache, const char *pod_uid, uint64_t now_us,
                              struct arena *arena, const char **ret_namespace,
                              const char **ret_pod);

/* Was a process seen in the container by other than a claim? */
bool container_cache_is_taken(struct container_cache *cache, const char *container_id);

/* The id of a pod's container, by name: the one in which a process was last seen, and not before
 * `since_us`. False if there is none. */
bool container_cache_find_by_name(struct container_cache *cache, const char *namespace,
                                  const char *pod, const char *container, uint64_t since_us,
                                  char ret_id[65]);

/* May an answer still come, or a better one than a hint or a digest? False too where no runtime is
 * present. */
bool container_cache_may_learn(struct container_cache *cache, const char *container_id);

/* Has a runtime that did not fail yet to answer a question for this id? */
bool container_cache_is_awaited(struct container_cache *cache, const char *container_id);

/*
 * When the runtime is to be asked next: UINT64_MAX if nothing is missing that it could know.
 * An id is asked for at once, and again after 1, 2, 4 and 8 s.
 */
uint64_t container_cache_next_ask_us(struct container_cache *cache, unsigned runtime);

/* Is an id missing for which the runtime is to be asked by now? */
bool container_cache_is_missing(struct container_cache *cache, unsigned runtime, uint64_t now_us);

/* Blocks until that time may have changed (since `generation` was read), or until `until_us` on the
 * monotonic clock. */
void container_cache_wait(struct container_cache *cache, uint64_t generation, uint64_t until_us);
uint64_t container_cache_generation(struct container_cache *cache);
void container_cache_wake(struct container_cache *cache);

/* Forgets what nobody has asked for since `before_us`. */
void container_cache_expire(struct container_cache *cache, uint64_t before_us);
