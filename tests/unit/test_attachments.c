/* identity/gpus/attachments: the GPUs of containers by source, and for how long they count. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "core/macros.h"
#include "identity/gpus/attachments.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static struct attachments *attachments;

static int setup(void **state)
{
    (void)state;
    return attachments_new(&attachments);
}

static int teardown(void **state)
{
    (void)state;
    attachments_free(attachments);
    return 0;
}

/* One letter for each container. */
static void list_running(unsigned source, const char *letters, uint64_t now_us)
{
    struct container_list list;

    container_list_init(&list);
    for (; *letters; letters++) {
        char id[65] = {0};

        memset(id, *letters, 64);
        assert_int_equal(container_list_add(&list, &(struct container){.id = id}), 0);
    }
    attachments_list(attachments, source, &list, now_us);
    container_list_done(&list);
}

static void set_gpu(unsigned source, const char *id, uint32_t index, uint64_t now_us)
{
    struct gpu_access_list gpus = {.count = 0};

    gpu_access_add(&gpus, &(struct gpu_access){.kind = ALLOCATION_INDEX, .index = index});
    attachments_set(attachments, source, attachment_container(id), &gpus, now_us);
}

static void note(void *context, const struct attachment *attachment)
{
    char *text = context;

    assert_true(strlen(text) < 4000);
    sprintf(text + strlen(text), "%s%c:%u", text[0] ? " " : "", attachment->owner_id[0],
            attachment->index);
}

static void assert_attached(uint64_t since_us, const char *expected)
{
    char text[4096] = "";

    attachments_each(attachments, since_us, note, text);
    assert_string_equal(text, expected);
}

static void a_container_is_inspected_once(void **state)
{
    (void)state;
    assert_false(attachments_is_due(attachments, 0, attachment_container(A), UINT64_MAX, 5));
    list_running(0, "ab", 5);
    assert_true(attachments_is_due(attachments, 0, attachment_container(A), UINT64_MAX, 5));
    assert_false(
        attachments_is_due(attachments, 1, attachment_container(A), UINT64_MAX, 5)); /* another's */
    assert_attached(0, "");
    set_gpu(0, A, 3, 6);
    assert_false(attachments_is_due(attachments, 0, attachment_container(A), UINT64_MAX, 1000000));
    assert_attached(0, "a:3");
    list_running(0, "ab", 7);
    assert_false(attachments_is_due(attachments, 0, attachment_container(A), UINT64_MAX, 1000000));
    assert_true(attachments_is_due(attachments, 0, attachment_container(B), UINT64_MAX, 7));
    assert_attached(0, "a:3");
}

static void one_that_may_change_is_due_again_after_its_time(void **state)
{
    (void)state;
    list_running(0, "a", 5);
    set_gpu(0, A, 3, 100);
    assert_false(attachments_is_due(attachments, 0, attachment_container(A), 60, 159));
    assert_true(attachments_is_due(attachments, 0, attachment_container(A), 60, 160));
    attachments_set(attachments, 0, attachment_container(A), &(struct gpu_access_list){.count = 0},
                    160);
    assert_attached(0, "");
}

static void what_is_listed_no_more_is_forgotten(void **state)
{
    (void)state;
    list_running(0, "ab", 5);
    set_gpu(0, A, 0, 5);
    set_gpu(0, B, 1, 5);
    assert_attached(0, "a:0 b:1");
    list_running(0, "b", 5);
    assert_attached(0, "b:1");
    list_running(0, "ab", 6); /* another container now, for all we know */
    assert_true(attachments_is_due(attachments, 0, attachment_container(A), UINT64_MAX, 6));
    assert_attached(0, "b:1");
    list_running(0, "", 7);
    assert_attached(0, "");
    set_gpu(0, A, 0, 8); /* it ended while it was looked into */
    assert_attached(0, "");
}

static void a_source_that_lists_nothing_for_too_long_does_not_count(void **state)
{
    (void)state;
    list_running(0, "a", 100);
    list_running(1, "b", 200);
    set_gpu(0, A, 0, 100);
    set_gpu(1, B, 1, 200);
    assert_attached(100, "a:0 b:1");
    assert_attached(101, "b:1");
    assert_attached(201, "");
    list_running(0, "a", 300);
    assert_attached(201, "a:0"); /* and was not looked into again */
}

static void sources_do_not_take_from_each_other(void **state)
{
    (void)state;
    list_running(0, "a", 5);
    list_running(1, "a", 5);
    set_gpu(0, A, 0, 5);
    set_gpu(1, A, 7, 5);
    assert_attached(0, "a:0 a:7");
    list_running(1, "", 6);
    assert_attached(0, "a:0");
}

static void failures_are_repeated_ever_more_seldom(void **state)
{
    uint64_t now_us = 1000;

    (void)state;
    list_running(0, "a", now_us);
    for (int i = 1; i < 20; i++) {
        uint64_t pause_us = USEC_PER_SEC << MIN(i, ATTACHMENTS_TRIES_MAX);

        assert_true(
            attachments_is_due(attachments, 0, attachment_container(A), UINT64_MAX, now_us));
        attachments_note_failure(attachments, 0, attachment_container(A), now_us);
        assert_false(attachments_is_due(attachments, 0, attachment_container(A), UINT64_MAX,
                                        now_us + pause_us - 1));
        now_us += pause_us;
    }
    set_gpu(0, A, 2, now_us);
    assert_attached(0, "a:2");
}

/* Twice as many come and go as there are at once: slots are used again. */
static void thousands_of_containers_come_and_go(void **state)
{
    enum { COUNT = 5000 };
    struct container_list list;
    char id[65];

    (void)state;
    for (unsigned round = 0; round < 3; round++) {
        container_list_init(&list);
        for (unsigned i = 0; i < COUNT; i++) {
            snprintf(id, sizeof(id), "%064x", round * COUNT / 2 + i);
            assert_int_equal(container_list_add(&list, &(struct container){.id = id}), 0);
        }
        attachments_list(attachments, 0, &list, round + 1);
        for (unsigned i = 0; i < COUNT; i++) {
            bool is_new = round == 0 || i >= COUNT / 2;

            assert_int_equal(attachments_is_due(attachments, 0,
                                                attachment_container(list.items[i].id), UINT64_MAX,
                                                round + 1),
                             is_new);
            set_gpu(0, list.items[i].id, i, round + 1);
        }
        container_list_done(&list);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_container_is_inspected_once, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_may_change_is_due_again_after_its_time, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_is_listed_no_more_is_forgotten, setup, teardown),
        cmocka_unit_test_setup_teardown(a_source_that_lists_nothing_for_too_long_does_not_count,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(sources_do_not_take_from_each_other, setup, teardown),
        cmocka_unit_test_setup_teardown(failures_are_repeated_ever_more_seldom, setup, teardown),
        cmocka_unit_test_setup_teardown(thousands_of_containers_come_and_go, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
