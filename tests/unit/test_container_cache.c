/* identity/container_cache: names of containers, and when runtimes are polled for them. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "identity/container_cache_private.h"

#define A      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B      "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define SECOND USEC_PER_SEC
#define T0     (1000 * SECOND)

static struct container_cache *new_cache(void)
{
    struct container_cache *cache;

    assert_int_equal(container_cache_new(&cache), 0);
    return cache;
}

static void learn(struct container_cache *cache, struct container container, uint64_t now_us)
{
    const struct container_list list = {.items = &container, .count = 1};

    container_cache_learn(cache, 0, &list, now_us);
}

static void hint(struct container_cache *cache, struct container container, uint64_t now_us)
{
    const struct container_list list = {.items = &container, .count = 1};

    container_cache_hint(cache, &list, now_us);
}

static struct container named(const char *id, const char *name)
{
    return (struct container){
        .id = id, .name = name, .namespace = "", .pod = "", .pod_uid = "", .image = ""};
}

static void an_id_is_polled_for_at_once_and_then_ever_less_often(void **state)
{
    static const uint64_t expected_s[] = {1, 2, 4, 8};
    struct container_cache *cache = new_cache();
    uint64_t t = T0;

    (void)state;
    assert_int_equal(container_cache_next_poll_us(cache, 0), UINT64_MAX);
    container_cache_want(cache, A, "", false, t);
    assert_int_equal(container_cache_next_poll_us(cache, 0), t);
    for (size_t i = 0; i < ARRAY_SIZE(expected_s); i++) {
        container_cache_note_poll(cache, 0, 0, t);
        assert_int_equal(container_cache_next_poll_us(cache, 0), t + expected_s[i] * SECOND);
        t += expected_s[i] * SECOND;
    }
    container_cache_note_poll(cache, 0, 0, t);
    assert_int_equal(container_cache_next_poll_us(cache, 0), UINT64_MAX);
    assert_int_equal(container_cache_next_poll_us(cache, 1), T0); /* another was not polled yet */
    container_cache_want(cache, A, "", false, t);                 /* is no new question */
    assert_int_equal(container_cache_next_poll_us(cache, 0), UINT64_MAX);
    container_cache_free(cache);
}

static void an_answer_that_was_on_its_way_does_not_count_for_a_later_question(void **state)
{
    struct container_cache *cache = new_cache();

    (void)state;
    container_cache_want(cache, A, "", false, T0 + 10);
    container_cache_note_poll(cache, 0, 0, T0);
    assert_int_equal(container_cache_next_poll_us(cache, 0), T0 + 10);
    container_cache_free(cache);
}

static void a_known_container_is_not_polled_for(void **state)
{
    struct container_cache *cache = new_cache();
    struct container found;
    struct arena arena;

    (void)state;
    arena_init(&arena, 1 << 16);
    container_cache_want(cache, A, "", false, T0);
    assert_false(container_cache_find(cache, A, T0, &arena, &found));
    learn(cache, named(A, "web"), T0);
    learn(cache, named(B, "db"), T0); /* not wanted yet */
    assert_int_equal(container_cache_next_poll_us(cache, 0), UINT64_MAX);
    container_cache_want(cache, B, "", false, T0);
    assert_int_equal(container_cache_next_poll_us(cache, 0), UINT64_MAX);
    assert_true(container_cache_find(cache, A, T0, &arena, &found));
    assert_string_equal(found.id, A);
    assert_string_equal(found.name, "web");
    assert_string_equal(found.pod, "");
    arena_done(&arena);
    container_cache_free(cache);
}

static void two_runtimes_that_know_a_container_complete_each_other(void **state)
{
    struct container_cache *cache = new_cache();
    struct container found;
    struct arena arena;

    (void)state;
    arena_init(&arena, 1 << 16);
    learn(cache, (struct container){{{A, "c", "ns", "pod", "uid", ""}}, true, false, false}, T0);
    learn(cache, (struct container){{{A, "c", "", "", "", "image"}}, false, false, false}, T0);
    assert_true(container_cache_find(cache, A, T0, &arena, &found));
    assert_string_equal(found.namespace, "ns");
    assert_string_equal(found.image, "image");
    arena_done(&arena);
    container_cache_free(cache);
}

static void names_that_cannot_come_are_not_waited_for(void **state)
{
    struct container_cache *cache = new_cache();

    (void)state;
    container_cache_want(cache, A, "", false, T0);
    assert_false(container_cache_may_learn(cache, A)); /* no runtime is here */
    container_cache_set_present(cache, 3, true);
    assert_true(container_cache_may_learn(cache, A));
    assert_false(container_cache_may_learn(cache, B)); /* never wanted */
    for (int i = 0; i < CONTAINER_CACHE_TRIES_MAX; i++)
        container_cache_note_poll(cache, 3, 0, T0);
    assert_false(container_cache_may_learn(cache, A)); /* polled often enough */
    container_cache_set_present(cache, 4, true);
    assert_true(container_cache_may_learn(cache, A));
    container_cache_set_present(cache, 4, false);
    assert_false(container_cache_may_learn(cache, A));
    container_cache_free(cache);
}

static void a_container_is_found_by_its_names_if_it_has_processes(void **state)
{
    struct container_cache *cache = new_cache();
    char id[65];

    (void)state;
    learn(cache, (struct container){{{A, "worker", "ml", "train-0", "", ""}}, true, false, false},
          T0);
    assert_false(container_cache_find_by_name(cache, "ml", "train-0", "worker", false, T0, id));
    assert_true(container_cache_find_by_name(cache, "ml", "train-0", "worker", true, T0, id));
    assert_string_equal(id, A);
    assert_false(container_cache_find_by_name(cache, "ml", "train-0", "worker", true, T0 + 1, id));
    container_cache_want(cache, A, "", false, T0);
    assert_true(container_cache_find_by_name(cache, "ml", "train-0", "worker", false, T0, id));
    assert_string_equal(id, A);
    assert_false(container_cache_find_by_name(cache, "ml", "train-0", "other", false, T0, id));
    assert_false(container_cache_find_by_name(cache, "", "train-0", "worker", false, T0, id));
    /* It is restarted under another id. */
    learn(cache, (struct container){{{B, "worker", "ml", "train-0", "", ""}}, true, false, false},
          T0 + 1);
    container_cache_want(cache, B, "", false, T0 + 1);
    assert_true(container_cache_find_by_name(cache, "ml", "train-0", "worker", false, T0, id));
    assert_string_equal(id, B);
    assert_false(container_cache_find_by_name(cache, "ml", "train-0", "worker", false, T0 + 2, id));
    container_cache_free(cache);
}

static void a_container_that_got_another_name_or_expired_is_not_found_by_the_old_one(void **state)
{
    struct container_cache *cache = new_cache();
    char id[65];

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        snprintf(id, sizeof(id), "%064x", i);
        learn(cache,
              (struct container){{{id, "worker", "ml", "train-0", "", ""}}, true, false, false},
              T0 + i);
        container_cache_want(cache, id, "", false, T0 + i);
    }
    /* The second, between two others. */
    snprintf(id, sizeof(id), "%064x", 1);
    learn(cache, (struct container){{{id, "server", "ml", "train-0", "", ""}}, true, false, false},
          T0 + 3);
    container_cache_want(cache, id, "", false, T0 + 3);
    assert_true(container_cache_find_by_name(cache, "ml", "train-0", "server", false, T0, id));
    assert_int_equal(id[63], '1');
    assert_true(container_cache_find_by_name(cache, "ml", "train-0", "worker", false, T0, id));
    assert_int_equal(id[63], '2');
    container_cache_expire(cache, T0 + 1); /* the first */
    assert_true(container_cache_find_by_name(cache, "ml", "train-0", "worker", false, T0, id));
    container_cache_expire(cache, T0 + 3);
    assert_false(container_cache_find_by_name(cache, "ml", "train-0", "worker", false, T0, id));
    assert_true(container_cache_find_by_name(cache, "ml", "train-0", "server", false, T0, id));
    container_cache_expire(cache, T0 + 4);
    assert_false(container_cache_find_by_name(cache, "ml", "train-0", "server", false, T0, id));
    container_cache_free(cache);
}

/* 30,000 of them took two thirds of a CPU when each search went through all. */
static void searches_do_not_slow_down_with_the_number_of_containers(void **state)
{
    enum { CONTAINERS = 30000 };
    struct container_cache *cache = new_cache();
    char id[65], pod[16];

    (void)state;
    for (unsigned i = 0; i < CONTAINERS; i++) {
        snprintf(id, sizeof(id), "%064x", i);
        snprintf(pod, sizeof(pod), "pod-%u", i);
        learn(cache,
              (struct container){{{id, "worker", "ml", pod, "", "sha256:0"}}, true, false, true},
              T0);
        container_cache_want(cache, id, "", false, T0);
    }
    for (unsigned i = 0; i < CONTAINERS; i++) {
        snprintf(pod, sizeof(pod), "pod-%u", i);
        assert_true(container_cache_find_by_name(cache, "ml", pod, "worker", true, T0, id));
        assert_int_equal(strtoul(id, NULL, 16), i);
    }
    assert_int_equal(cache->visited, CONTAINERS);
    for (unsigned i = 0; i < CONTAINERS; i++) {
        assert_true(container_cache_next_image(cache, 0, T0, id));
        container_cache_note_image(cache, id, "img:1", T0);
    }
    assert_int_equal(cache->visited, 2 * CONTAINERS);
    assert_false(container_cache_next_image(cache, 0, T0, id));
    assert_int_equal(cache->visited, 3 * CONTAINERS);
    container_cache_free(cache);
}

static void unused_entries_are_forgotten_and_their_places_reused(void **state)
{
    struct container_cache *cache = new_cache();
    struct container found;
    struct arena arena;

    (void)state;
    arena_init(&arena, 1 << 20);
    for (uint64_t round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 1000; i++) {
            char id[65];

            snprintf(id, sizeof(id), "%064x", i);
            if (i % 2)
                learn(cache, named(id, "x"), T0 + round);
            else
                container_cache_want(cache, id, "", false, T0 + round);
        }
        container_cache_want(cache, A, "", false, T0 + round);
        container_cache_want(cache, B, "", false, T0 + round + 1);
        container_cache_expire(cache, T0 + round + 1);
        assert_false(container_cache_find(cache, A, T0, &arena, &found));
        assert_int_equal(container_cache_next_poll_us(cache, 0),
                         T0 + 1); /* B, of the first round */
    }
    arena_done(&arena);
    container_cache_free(cache);
}

static void ids_beyond_the_limit_have_no_names_and_break_nothing(void **state)
{
    struct container_cache *cache = new_cache();
    char id[65];

    (void)state;
    for (unsigned i = 0; i < CONTAINER_CACHE_ENTRIES_MAX + 100; i++) {
        snprintf(id, sizeof(id), "%064x", i);
        assert_int_equal(container_cache_is_full(cache), i >= CONTAINER_CACHE_ENTRIES_MAX);
        container_cache_want(cache, id, "", false, T0);
    }
    container_cache_set_present(cache, 0, true);
    assert_false(container_cache_may_learn(cache, id)); /* so it is not waited for */
    snprintf(id, sizeof(id), "%064x", 5);
    assert_true(container_cache_may_learn(cache, id));
    container_cache_want(cache, "short", "", false, T0);
    assert_false(container_cache_may_learn(cache, "short"));
    container_cache_free(cache);
}

static struct container of_pod(const char *id, const char *pod)
{
    return (struct container){{{id, "worker", "ml", pod, "", ""}}, false, false, false};
}

static void assert_pod(struct container_cache *cache, const char *id, const char *pod)
{
    struct container found;
    struct arena arena;

    arena_init(&arena, 1 << 16);
    assert_true(container_cache_find(cache, id, T0, &arena, &found));
    assert_string_equal(found.pod, pod);
    arena_done(&arena);
}

static void a_hint_names_what_no_runtime_names(void **state)
{
    struct container_cache *cache = new_cache();
    char id[65];

    (void)state;
    container_cache_set_present(cache, CONTAINER_CACHE_HINTS, true);
    container_cache_want(cache, A, "", false, T0);
    assert_true(container_cache_may_learn(cache, A));
    hint(cache, of_pod(A, "train-0"), T0);
    assert_pod(cache, A, "train-0");
    assert_false(container_cache_may_learn(cache, A)); /* there is no other runtime */
    assert_true(container_cache_find_by_name(cache, "ml", "train-0", "worker", false, T0, id));
    hint(cache, of_pod(A, "train-1"), T0);
    assert_pod(cache, A, "train-1");
    container_cache_free(cache);
}

static void a_runtime_is_waited_for_once_and_replaces_the_whole_hint(void **state)
{
    struct container_cache *cache = new_cache();

    (void)state;
    container_cache_set_present(cache, 0, true);
    container_cache_want(cache, A, "", false, T0);
    container_cache_want(cache, B, "", false, T0);
    hint(cache, of_pod(A, "pod-of-a"), T0);
    hint(cache, of_pod(B, "pod-of-b"), T0);
    assert_true(container_cache_may_learn(cache, A));
    assert_int_equal(container_cache_next_poll_us(cache, 0), T0);
    learn(cache, named(A, "web"), T0); /* which is in no pod */
    container_cache_note_poll(cache, 0, 0, T0);
    assert_pod(cache, A, "");
    assert_false(container_cache_may_learn(cache, A));
    assert_pod(cache, B, "pod-of-b");
    assert_false(container_cache_may_learn(cache, B)); /* it was polled and does not know */
    hint(cache, of_pod(A, "pod-of-a"), T0);
    assert_pod(cache, A, "");
    container_cache_free(cache);
}

static void a_hinted_container_is_polled_for_when_a_process_is_seen_in_it(void **state)
{
    struct container_cache *cache = new_cache();

    (void)state;
    hint(cache, of_pod(A, "train-0"), T0);
    assert_int_equal(container_cache_next_poll_us(cache, 0), UINT64_MAX);
    container_cache_note_poll(cache, 0, 0, T0 + 1);
    container_cache_want(cache, A, "", false, T0 + 2);
    assert_int_equal(container_cache_next_poll_us(cache, 0), T0 + 2);
    container_cache_free(cache);
}

static void hints_cannot_fill_the_directory(void **state)
{
    struct container_cache *cache = new_cache();
    struct container found;
    struct arena arena;
    char id[65];

    (void)state;
    arena_init(&arena, 1 << 16);
    container_cache_want(cache, A, "", false, T0);
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < CONTAINER_CACHE_UNASKED_MAX + 1; i++) {
            snprintf(id, sizeof(id), "%064x", i);
            hint(cache, named(id, "x"), T0 + round);
        }
        assert_false(container_cache_find(cache, id, T0, &arena, &found)); /* the last one */
        snprintf(id, sizeof(id), "%064x", 0);
        assert_true(container_cache_find(cache, id, T0, &arena, &found));
        hint(cache, of_pod(A, "train-0"), T0);
        assert_pod(cache, A, "train-0"); /* a process was seen in that one */
        container_cache_want(cache, A, "", false, T0 + round + 1);
        container_cache_expire(cache, T0 + round + 1); /* makes room for other hints */
    }
    arena_done(&arena);
    container_cache_free(cache);
}

static void assert_pod_of(struct container_cache *cache, const char *uid, const char *namespace,
                          const char *pod)
{
    const char *found_namespace, *found_pod;
    struct arena arena;

    arena_init(&arena, 1 << 16);
    assert_true(container_cache_find_pod(cache, uid, T0, &arena, &found_namespace, &found_pod));
    assert_string_equal(found_namespace, namespace);
    assert_string_equal(found_pod, pod);
    arena_done(&arena);
}

static void assert_no_pod_of(struct container_cache *cache, const char *uid)
{
    const char *namespace, *pod;
    struct arena arena;

    arena_init(&arena, 1 << 16);
    assert_false(container_cache_find_pod(cache, uid, T0, &arena, &namespace, &pod));
    arena_done(&arena);
}

static struct container certain(const char *id, const char *pod, const char *uid)
{
    return (struct container){{{id, "worker", "ml", pod, uid, ""}}, true, false, false};
}

/* Labels are chosen by whoever starts a container. */
static void labels_neither_replace_nor_complete_a_pod_that_is_certain(void **state)
{
    const struct container label = {{{A, "", "label", "label", "label", ""}}, false, false, false};
    const struct container sure = {{{A, "worker", "", "train-0", "", ""}}, true, false, false};
    char id[65];

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct container_cache *cache = new_cache();
        struct container found;
        struct arena arena;

        arena_init(&arena, 4096);
        learn(cache, label, T0);
        assert_false(container_cache_find_by_name(cache, "label", "label", "", true, T0, id));
        learn(cache, sure, T0);
        if (i == 1)
            learn(cache, label, T0);
        assert_true(container_cache_find(cache, A, T0, &arena, &found));
        assert_true(found.is_pod_certain);
        assert_string_equal(found.pod, "train-0");
        assert_string_equal(found.namespace, "");
        assert_string_equal(found.pod_uid, "");
        arena_done(&arena);
        container_cache_free(cache);
    }
}

static void a_pod_has_the_name_that_a_runtime_has_for_any_container_in_it(void **state)
{
    struct container_cache *cache = new_cache();

    (void)state;
    container_cache_want(cache, A, "u-1", false, T0);
    assert_no_pod_of(cache, "u-1");
    learn(cache, certain(B, "train-0", "u-1"), T0);
    assert_pod_of(cache, "u-1", "ml", "train-0");
    assert_no_pod_of(cache, "u-2");
    assert_no_pod_of(cache, "");
    container_cache_free(cache);
}

static void a_label_that_any_container_can_have_names_no_other(void **state)
{
    struct container_cache *cache = new_cache();
    struct container labelled = certain(B, "forged", "u-1");

    (void)state;
    labelled.is_pod_certain = false;
    container_cache_want(cache, A, "u-1", false, T0);
    learn(cache, labelled, T0);
    assert_no_pod_of(cache, "u-1");
    container_cache_free(cache);
}

static void a_hint_at_a_pod_yields_to_a_runtime(void **state)
{
    struct container pod = {{{"", "", "ml", "hinted", "u-1", ""}}, false, false, false};
    struct container_cache *cache = new_cache();

    (void)state;
    hint(cache, pod, T0);
    assert_pod_of(cache, "u-1", "ml", "hinted");
    learn(cache, certain(B, "train-0", "u-1"), T0);
    assert_pod_of(cache, "u-1", "ml", "train-0");
    hint(cache, pod, T0);
    assert_pod_of(cache, "u-1", "ml", "train-0");
    container_cache_free(cache);
}

static void of_ended_containers_only_wanted_ones_are_kept(void **state)
{
    struct container ended = certain(A, "short-0", "u-1"), pause = certain(B, "short-1", "u-2");
    struct container_cache *cache = new_cache();
    struct container found;
    struct arena arena;

    (void)state;
    ended.ended = pause.ended = true;
    arena_init(&arena, 1 << 16);
    learn(cache, ended, T0);
    assert_false(container_cache_find(cache, A, T0, &arena, &found));
    assert_no_pod_of(cache, "u-1");
    container_cache_want(cache, A, "u-1", false, T0);
    learn(cache, ended, T0);
    assert_pod(cache, A, "short-0");
    /* The container of a pod is gone, its sandbox is not. */
    container_cache_want(cache, "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc",
                         "u-2", false, T0);
    learn(cache, pause, T0);
    assert_pod_of(cache, "u-2", "ml", "short-1");
    assert_false(container_cache_find(cache, B, T0, &arena, &found));
    arena_done(&arena);
    container_cache_free(cache);
}

static void unused_pods_are_forgotten_and_hints_cannot_fill_their_places(void **state)
{
    struct container_cache *cache = new_cache();
    char uid[32];

    (void)state;
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < CONTAINER_CACHE_UNASKED_MAX + 1; i++) {
            snprintf(uid, sizeof(uid), "u-%u", i);
            hint(cache, (struct container){{{"", "", "ml", "p", uid, ""}}, false, false, false},
                 T0 + round);
        }
        assert_no_pod_of(cache, uid); /* the last one */
        learn(cache, certain(A, "train-0", uid), T0 + round);
        assert_pod_of(cache, uid, "ml", "train-0"); /* which is for a runtime's */
        container_cache_expire(cache, T0 + round + 1);
        assert_no_pod_of(cache, uid);
    }
    container_cache_free(cache);
}

static struct container of_image(const char *image, bool is_digest)
{
    return (struct container){{{A, "worker", "", "", "", image}}, true, false, is_digest};
}

static void assert_image(struct container_cache *cache, const char *image)
{
    struct container found;
    struct arena arena;

    arena_init(&arena, 1 << 16);
    assert_true(container_cache_find(cache, A, T0, &arena, &found));
    assert_string_equal(found.image, image);
    arena_done(&arena);
}

static void the_name_of_a_digest_is_polled_for_once_the_container_is_wanted(void **state)
{
    struct container_cache *cache = new_cache();
    char id[RUNTIME_ID_BYTES];

    (void)state;
    container_cache_set_present(cache, 0, true);
    learn(cache, of_image("sha256:1", true), T0);
    assert_int_equal(container_cache_next_poll_us(cache, 0), UINT64_MAX);
    container_cache_want(cache, A, "", false, T0);
    assert_true(container_cache_next_poll_us(cache, 0) <= T0);
    assert_int_equal(container_cache_next_poll_us(cache, 1), UINT64_MAX); /* it did not list it */
    assert_false(container_cache_is_missing(cache, 0, T0));               /* no list is needed */
    assert_true(container_cache_may_learn(cache, A));
    assert_true(container_cache_next_image(cache, 0, T0, id));
    assert_string_equal(id, A);
    container_cache_note_image(cache, A, NULL, T0);
    assert_false(container_cache_next_image(cache, 0, T0, id));
    assert_int_equal(container_cache_next_poll_us(cache, 0), T0 + SECOND);
    container_cache_note_image(cache, A, "registry/worker:1", T0);
    assert_image(cache, "registry/worker:1");
    assert_false(container_cache_may_learn(cache, A));
    learn(cache, of_image("sha256:1", true), T0); /* the next list does not undo it */
    assert_image(cache, "registry/worker:1");
    assert_int_equal(container_cache_next_poll_us(cache, 0), UINT64_MAX);
    container_cache_free(cache);
}

static void a_runtime_that_works_is_awaited_until_it_was_polled_or_has_failed(void **state)
{
    struct container_cache *cache = new_cache();

    (void)state;
    container_cache_want(cache, A, "", false, T0);
    assert_false(container_cache_is_awaited(cache, A)); /* no runtime is present */
    container_cache_set_present(cache, CONTAINER_CACHE_HINTS, true);
    assert_false(container_cache_is_awaited(cache, A)); /* a hint may never come */
    container_cache_set_present(cache, 0, true);
    assert_true(container_cache_is_awaited(cache, A));
    container_cache_note_poll(cache, 0, -EIO, T0);
    assert_false(container_cache_is_awaited(cache, A));
    container_cache_note_poll(cache, 0, 0, T0 - 1); /* it works again, but was polled before */
    assert_true(container_cache_is_awaited(cache, A));
    container_cache_note_poll(cache, 0, 0, T0);
    assert_false(container_cache_is_awaited(cache, A));
    assert_true(container_cache_may_learn(cache, A)); /* it is polled some more times */
    assert_false(container_cache_is_awaited(cache, B));
    container_cache_free(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_is_polled_for_at_once_and_then_ever_less_often),
        cmocka_unit_test(an_answer_that_was_on_its_way_does_not_count_for_a_later_question),
        cmocka_unit_test(a_known_container_is_not_polled_for),
        cmocka_unit_test(two_runtimes_that_know_a_container_complete_each_other),
        cmocka_unit_test(names_that_cannot_come_are_not_waited_for),
        cmocka_unit_test(a_container_is_found_by_its_names_if_it_has_processes),
        cmocka_unit_test(a_container_that_got_another_name_or_expired_is_not_found_by_the_old_one),
        cmocka_unit_test(searches_do_not_slow_down_with_the_number_of_containers),
        cmocka_unit_test(unused_entries_are_forgotten_and_their_places_reused),
        cmocka_unit_test(ids_beyond_the_limit_have_no_names_and_break_nothing),
        cmocka_unit_test(a_hint_names_what_no_runtime_names),
        cmocka_unit_test(a_runtime_is_waited_for_once_and_replaces_the_whole_hint),
        cmocka_unit_test(a_hinted_container_is_polled_for_when_a_process_is_seen_in_it),
        cmocka_unit_test(hints_cannot_fill_the_directory),
        cmocka_unit_test(labels_neither_replace_nor_complete_a_pod_that_is_certain),
        cmocka_unit_test(a_pod_has_the_name_that_a_runtime_has_for_any_container_in_it),
        cmocka_unit_test(a_label_that_any_container_can_have_names_no_other),
        cmocka_unit_test(a_hint_at_a_pod_yields_to_a_runtime),
        cmocka_unit_test(of_ended_containers_only_wanted_ones_are_kept),
        cmocka_unit_test(unused_pods_are_forgotten_and_hints_cannot_fill_their_places),
        cmocka_unit_test(the_name_of_a_digest_is_polled_for_once_the_container_is_wanted),
        cmocka_unit_test(a_runtime_that_works_is_awaited_until_it_was_polled_or_has_failed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
