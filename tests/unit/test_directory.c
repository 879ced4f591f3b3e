/* identity/directory: what runtimes say of containers, and when they are asked. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "core/macros.h"
#include "identity/directory.h"

#define A      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B      "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define SECOND USEC_PER_SEC
#define T0     (1000 * SECOND)

enum { HINTS = 15 }; /* the number of who gives hints; 0 is a runtime */

static struct directory *new_directory(void)
{
    struct directory *directory;

    assert_int_equal(directory_new(&directory), 0);
    return directory;
}

static void learn(struct directory *directory, struct container container, uint64_t now_us)
{
    const struct container_list list = {.items = &container, .count = 1};

    directory_learn(directory, &list, now_us);
}

static void hint(struct directory *directory, struct container container, uint64_t now_us)
{
    const struct container_list list = {.items = &container, .count = 1};

    directory_hint(directory, HINTS, &list, now_us);
}

static struct container named(const char *id, const char *name)
{
    return (struct container){id, name, "", "", "", "", false};
}

static void an_id_is_asked_for_at_once_and_then_ever_less_often(void **state)
{
    static const uint64_t expected_s[] = {1, 2, 4, 8};
    struct directory *directory = new_directory();
    uint64_t t = T0;

    (void)state;
    assert_int_equal(directory_next_ask_us(directory, 0), UINT64_MAX);
    directory_want(directory, A, false, t);
    assert_int_equal(directory_next_ask_us(directory, 0), t);
    for (size_t i = 0; i < ARRAY_SIZE(expected_s); i++) {
        directory_note_asked(directory, 0, t);
        assert_int_equal(directory_next_ask_us(directory, 0), t + expected_s[i] * SECOND);
        t += expected_s[i] * SECOND;
    }
    directory_note_asked(directory, 0, t);
    assert_int_equal(directory_next_ask_us(directory, 0), UINT64_MAX);
    assert_int_equal(directory_next_ask_us(directory, 1), T0); /* another one was not asked yet */
    directory_want(directory, A, false, t);                    /* is no new question */
    assert_int_equal(directory_next_ask_us(directory, 0), UINT64_MAX);
    directory_free(directory);
}

static void an_answer_that_was_on_its_way_does_not_count_for_a_later_question(void **state)
{
    struct directory *directory = new_directory();

    (void)state;
    directory_want(directory, A, false, T0 + 10);
    directory_note_asked(directory, 0, T0);
    assert_int_equal(directory_next_ask_us(directory, 0), T0 + 10);
    directory_free(directory);
}

static void what_is_known_is_not_asked_for(void **state)
{
    struct directory *directory = new_directory();
    struct container found;
    struct arena arena;

    (void)state;
    arena_init(&arena, 1 << 16);
    directory_want(directory, A, false, T0);
    assert_false(directory_find(directory, A, T0, &arena, &found));
    learn(directory, named(A, "web"), T0);
    learn(directory, named(B, "db"), T0); /* nobody has asked for it yet */
    assert_int_equal(directory_next_ask_us(directory, 0), UINT64_MAX);
    directory_want(directory, B, false, T0);
    assert_int_equal(directory_next_ask_us(directory, 0), UINT64_MAX);
    assert_true(directory_find(directory, A, T0, &arena, &found));
    assert_string_equal(found.id, A);
    assert_string_equal(found.name, "web");
    assert_string_equal(found.pod, "");
    arena_done(&arena);
    directory_free(directory);
}

static void two_runtimes_that_know_a_container_complete_each_other(void **state)
{
    struct directory *directory = new_directory();
    struct container found;
    struct arena arena;

    (void)state;
    arena_init(&arena, 1 << 16);
    learn(directory, (struct container){A, "c", "ns", "pod", "uid", "", true}, T0);
    learn(directory, (struct container){A, "c", "", "", "", "image", false}, T0);
    assert_true(directory_find(directory, A, T0, &arena, &found));
    assert_string_equal(found.namespace, "ns");
    assert_string_equal(found.image, "image");
    arena_done(&arena);
    directory_free(directory);
}

static void nobody_waits_for_names_that_cannot_come(void **state)
{
    struct directory *directory = new_directory();

    (void)state;
    directory_want(directory, A, false, T0);
    assert_false(directory_may_learn(directory, A)); /* no runtime is here */
    directory_set_present(directory, 3, true);
    assert_true(directory_may_learn(directory, A));
    assert_false(directory_may_learn(directory, B)); /* nobody was asked for that */
    for (int i = 0; i < DIRECTORY_TRIES_MAX; i++)
        directory_note_asked(directory, 3, T0);
    assert_false(
        directory_may_learn(directory, A)); /* it said often enough that it does not know */
    directory_set_present(directory, 4, true);
    assert_true(directory_may_learn(directory, A));
    directory_set_present(directory, 4, false);
    assert_false(directory_may_learn(directory, A));
    directory_free(directory);
}

static void a_container_is_found_by_its_names_if_it_has_processes(void **state)
{
    struct directory *directory = new_directory();
    char id[65];

    (void)state;
    learn(directory, (struct container){A, "worker", "ml", "train-0", "", "", true}, T0);
    assert_false(directory_find_by_name(directory, "ml", "train-0", "worker", T0, id));
    directory_want(directory, A, false, T0);
    assert_true(directory_find_by_name(directory, "ml", "train-0", "worker", T0, id));
    assert_string_equal(id, A);
    assert_false(directory_find_by_name(directory, "ml", "train-0", "other", T0, id));
    assert_false(directory_find_by_name(directory, "", "train-0", "worker", T0, id));
    /* It is restarted under another id. */
    learn(directory, (struct container){B, "worker", "ml", "train-0", "", "", true}, T0 + 1);
    directory_want(directory, B, false, T0 + 1);
    assert_true(directory_find_by_name(directory, "ml", "train-0", "worker", T0, id));
    assert_string_equal(id, B);
    assert_false(directory_find_by_name(directory, "ml", "train-0", "worker", T0 + 2, id));
    directory_free(directory);
}

static void what_nobody_uses_is_forgotten_and_its_place_is_used_again(void **state)
{
    struct directory *directory = new_directory();
    struct container found;
    struct arena arena;

    (void)state;
    arena_init(&arena, 1 << 20);
    for (uint64_t round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 1000; i++) {
            char id[65];

            snprintf(id, sizeof(id), "%064x", i);
            if (i % 2)
                learn(directory, named(id, "x"), T0 + round);
            else
                directory_want(directory, id, false, T0 + round);
        }
        directory_want(directory, A, false, T0 + round);
        directory_want(directory, B, false, T0 + round + 1);
        directory_expire(directory, T0 + round + 1);
        assert_false(directory_find(directory, A, T0, &arena, &found));
        assert_int_equal(directory_next_ask_us(directory, 0), T0 + 1); /* B, of the first round */
    }
    arena_done(&arena);
    directory_free(directory);
}

static void ids_beyond_the_limit_have_no_names_and_break_nothing(void **state)
{
    struct directory *directory = new_directory();
    char id[65];

    (void)state;
    for (unsigned i = 0; i < DIRECTORY_ENTRIES_MAX + 100; i++) {
        snprintf(id, sizeof(id), "%064x", i);
        directory_want(directory, id, false, T0);
    }
    directory_set_present(directory, 0, true);
    assert_false(directory_may_learn(directory, id)); /* so nobody waits for it */
    snprintf(id, sizeof(id), "%064x", 5);
    assert_true(directory_may_learn(directory, id));
    directory_want(directory, "short", false, T0);
    assert_false(directory_may_learn(directory, "short"));
    directory_free(directory);
}

static struct container of_pod(const char *id, const char *pod)
{
    return (struct container){id, "worker", "ml", pod, "", "", false};
}

static void assert_pod(struct directory *directory, const char *id, const char *pod)
{
    struct container found;
    struct arena arena;

    arena_init(&arena, 1 << 16);
    assert_true(directory_find(directory, id, T0, &arena, &found));
    assert_string_equal(found.pod, pod);
    arena_done(&arena);
}

static void a_hint_names_what_no_runtime_names(void **state)
{
    struct directory *directory = new_directory();
    char id[65];

    (void)state;
    directory_set_present(directory, HINTS, true);
    directory_want(directory, A, false, T0);
    assert_true(directory_may_learn(directory, A));
    hint(directory, of_pod(A, "train-0"), T0);
    assert_pod(directory, A, "train-0");
    assert_false(directory_may_learn(directory, A)); /* nobody else is here */
    assert_true(directory_find_by_name(directory, "ml", "train-0", "worker", T0, id));
    hint(directory, of_pod(A, "train-1"), T0);
    assert_pod(directory, A, "train-1");
    directory_free(directory);
}

static void a_runtime_is_waited_for_once_and_wins_over_a_hint_whole(void **state)
{
    struct directory *directory = new_directory();

    (void)state;
    directory_set_present(directory, 0, true);
    directory_want(directory, A, false, T0);
    directory_want(directory, B, false, T0);
    hint(directory, of_pod(A, "pod-of-a"), T0);
    hint(directory, of_pod(B, "pod-of-b"), T0);
    assert_true(directory_may_learn(directory, A));
    assert_int_equal(directory_next_ask_us(directory, 0), T0);
    learn(directory, named(A, "web"), T0); /* which is in no pod */
    directory_note_asked(directory, 0, T0);
    assert_pod(directory, A, "");
    assert_false(directory_may_learn(directory, A));
    assert_pod(directory, B, "pod-of-b");
    assert_false(directory_may_learn(directory, B)); /* it was asked and does not know */
    hint(directory, of_pod(A, "pod-of-a"), T0);
    assert_pod(directory, A, "");
    directory_free(directory);
}

static void what_is_only_hinted_is_asked_for_when_a_process_is_seen_in_it(void **state)
{
    struct directory *directory = new_directory();

    (void)state;
    hint(directory, of_pod(A, "train-0"), T0);
    assert_int_equal(directory_next_ask_us(directory, 0), UINT64_MAX);
    directory_note_asked(directory, 0, T0 + 1);
    directory_want(directory, A, false, T0 + 2);
    assert_int_equal(directory_next_ask_us(directory, 0), T0 + 2);
    directory_free(directory);
}

static void hints_cannot_fill_the_directory(void **state)
{
    struct directory *directory = new_directory();
    struct container found;
    struct arena arena;
    char id[65];

    (void)state;
    arena_init(&arena, 1 << 16);
    directory_want(directory, A, false, T0);
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < DIRECTORY_UNASKED_MAX + 1; i++) {
            snprintf(id, sizeof(id), "%064x", i);
            hint(directory, named(id, "x"), T0 + round);
        }
        assert_false(directory_find(directory, id, T0, &arena, &found)); /* the last one */
        snprintf(id, sizeof(id), "%064x", 0);
        assert_true(directory_find(directory, id, T0, &arena, &found));
        hint(directory, of_pod(A, "train-0"), T0);
        assert_pod(directory, A, "train-0"); /* a process was seen in that one */
        directory_want(directory, A, false, T0 + round + 1);
        directory_expire(directory, T0 + round + 1); /* makes room for other hints */
    }
    arena_done(&arena);
    directory_free(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_is_asked_for_at_once_and_then_ever_less_often),
        cmocka_unit_test(an_answer_that_was_on_its_way_does_not_count_for_a_later_question),
        cmocka_unit_test(what_is_known_is_not_asked_for),
        cmocka_unit_test(two_runtimes_that_know_a_container_complete_each_other),
        cmocka_unit_test(nobody_waits_for_names_that_cannot_come),
        cmocka_unit_test(a_container_is_found_by_its_names_if_it_has_processes),
        cmocka_unit_test(what_nobody_uses_is_forgotten_and_its_place_is_used_again),
        cmocka_unit_test(ids_beyond_the_limit_have_no_names_and_break_nothing),
        cmocka_unit_test(a_hint_names_what_no_runtime_names),
        cmocka_unit_test(a_runtime_is_waited_for_once_and_wins_over_a_hint_whole),
        cmocka_unit_test(what_is_only_hinted_is_asked_for_when_a_process_is_seen_in_it),
        cmocka_unit_test(hints_cannot_fill_the_directory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
