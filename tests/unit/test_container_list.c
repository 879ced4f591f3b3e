/* identity/runtimes/container_list: only what is an id gets in, and every text is short and whole.
 */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "identity_checks.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void what_is_added_is_copied(void **state)
{
    char name[] = "web", image[] = "nginx:1";
    struct container_list list;

    (void)state;
    container_list_init(&list);
    assert_int_equal(
        container_list_add(&list,
                           &(struct container){
                               {{ID, name, "ml", "train-0", "uid-1", image}}, false, false, false}),
        0);
    name[0] = image[0] = 'X';
    assert_int_equal(list.count, 1);
    assert_string_equal(list.items[0].id, ID);
    assert_string_equal(list.items[0].name, "web");
    assert_string_equal(list.items[0].namespace, "ml");
    assert_string_equal(list.items[0].pod, "train-0");
    assert_string_equal(list.items[0].pod_uid, "uid-1");
    assert_string_equal(list.items[0].image, "nginx:1");
    container_list_done(&list);
}

static void what_is_not_said_is_empty(void **state)
{
    struct container_list list;

    (void)state;
    container_list_init(&list);
    assert_int_equal(container_list_add(&list, &(struct container){.id = ID}), 0);
    assert_int_equal(list.count, 1);
    assert_true(are_valid_containers(&list));
    assert_string_equal(list.items[0].name, "");
    assert_string_equal(list.items[0].pod_uid, "");
    container_list_done(&list);
}

static void an_entry_without_a_valid_id_is_left_out(void **state)
{
    static const char *const ids[] = {
        NULL,
        "",
        "0123456789ab",
        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde",
        ID "0",
        "0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef",
        "g123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde ",
        "../../../../../../../../../../../../../../../../../../etc/passwd",
    };
    struct container_list list;

    (void)state;
    container_list_init(&list);
    for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
        assert_int_equal(container_list_add(&list, &(struct container){.id = ids[i]}), 0);
    assert_int_equal(list.count, 0);
    container_list_done(&list);
}

static void an_id_that_holds_nul_is_none(void **state)
{
    char id[] = ID;
    struct container_list list;

    (void)state;
    id[10] = '\0';
    container_list_init(&list);
    assert_int_equal(
        container_list_append(
            &list, &(struct container){.id = runtime_text(&list.arena, (struct span){id, 64})}),
        0);
    assert_int_equal(list.count, 0);
    container_list_done(&list);
}

static void the_same_id_may_come_twice(void **state)
{
    struct container_list list;

    (void)state;
    container_list_init(&list);
    container_list_add(&list, &(struct container){.id = ID, .name = "a"});
    container_list_add(&list, &(struct container){.id = ID, .name = "b"});
    assert_int_equal(list.count, 2);
    assert_string_equal(list.items[1].name, "b");
    container_list_done(&list);
}

static void a_long_text_is_truncated_at_a_whole_character(void **state)
{
    static const struct {
        const char *character;
        size_t before; /* bytes in front of them */
        size_t kept;
    } cases[] = {
        {"x", 0, 512},
        {"\xc3\xa9", 0, 512},
        {"\xc3\xa9", 1, 511},
        {"\xe2\x82\xac", 0, 510},
        {"\xe2\x82\xac", 1, 511},
        {"\xe2\x82\xac", 2, 512},
        {"\xf0\x9f\x98\x80", 0, 512},
        {"\xf0\x9f\x98\x80", 1, 509},
        {"\xf0\x9f\x98\x80", 2, 510},
        {"\xf0\x9f\x98\x80", 3, 511},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[1024] = "aaa";
        struct container_list list;

        text[cases[i].before] = '\0';
        while (strlen(text) < 600)
            strcat(text, cases[i].character);
        container_list_init(&list);
        container_list_add(&list, &(struct container){.id = ID, .name = text});
        assert_true(are_valid_containers(&list));
        assert_int_equal(strlen(list.items[0].name), cases[i].kept);
        assert_memory_equal(list.items[0].name, text, cases[i].kept);
        container_list_done(&list);
    }
}

static void a_text_of_exactly_512_bytes_is_whole(void **state)
{
    char text[513];
    struct container_list list;

    (void)state;
    memset(text, 'x', 512);
    text[512] = '\0';
    container_list_init(&list);
    container_list_add(&list, &(struct container){.id = ID, .image = text});
    assert_string_equal(list.items[0].image, text);
    container_list_done(&list);
}

static void a_text_that_is_no_utf8_says_nothing(void **state)
{
    static const struct span texts[] = {
        {"\xff", 1},        {"a\xc0\x80", 3},        {"\xed\xa0\x80", 3},
        {"cut\xe2\x82", 5}, {"\xf4\x90\x80\x80", 4}, {"a\0b", 3},
        {"\0", 1},
    };
    struct container_list list;

    (void)state;
    container_list_init(&list);
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        assert_int_equal(container_list_append(&list,
                                               &(struct container){
                                                   .id = ID,
                                                   .name = runtime_text(&list.arena, texts[i]),
                                                   .namespace = "",
                                                   .pod = "kept",
                                                   .pod_uid = "",
                                                   .image = "",
                                               }),
                         0);
        assert_string_equal(list.items[i].name, "");
        assert_string_equal(list.items[i].pod, "kept");
    }
    container_list_done(&list);
}

static void a_megabyte_costs_no_more_than_what_is_kept(void **state)
{
    size_t len = 1 << 20;
    _cleanup_free_ char *text = malloc(len);
    struct container_list list;

    (void)state;
    assert_non_null(text);
    memset(text, 'n', len);
    container_list_init(&list);
    text[len - 1] = '\0';
    assert_int_equal(container_list_add(&list,
                                        &(struct container){
                                            .id = ID,
                                            .name = text,
                                            .namespace = text,
                                            .pod = text,
                                            .pod_uid = text,
                                            .image = text,
                                        }),
                     0);
    assert_true(are_valid_containers(&list));
    assert_true(list.arena.used_bytes < 4096);
    container_list_done(&list);
}

static void more_than_65536_are_left_out(void **state)
{
    struct container_list list;

    (void)state;
    container_list_init(&list);
    for (int i = 0; i < 100000; i++)
        assert_int_equal(container_list_add(&list, &(struct container){.id = ID, .name = "x"}), 0);
    assert_int_equal(list.count, RUNTIME_CONTAINERS_MAX);
    assert_true(are_valid_containers(&list));
    container_list_done(&list);
}

static void a_list_that_is_full_keeps_what_it_has(void **state)
{
    char text[513];
    struct container_list list;
    size_t count = 0;

    (void)state;
    memset(text, 'x', 512);
    text[512] = '\0';
    container_list_init(&list);
    while (container_list_add(
               &list,
               &(struct container){{{ID, text, text, text, text, text}}, false, false, false}) == 0)
        count++;
    assert_int_equal(
        container_list_add(
            &list, &(struct container){{{ID, text, text, text, text, text}}, false, false, false}),
        -ENOMEM);
    assert_int_equal(list.count, count);
    assert_in_range(count, 10000, 20000);
    assert_true(are_valid_containers(&list));
    container_list_done(&list);
}

static void a_list_can_be_used_again(void **state)
{
    struct container_list list;

    (void)state;
    container_list_init(&list);
    container_list_add(&list, &(struct container){.id = ID});
    container_list_done(&list);
    assert_int_equal(list.count, 0);
    container_list_done(&list);
    assert_int_equal(container_list_add(&list, &(struct container){.id = ID, .name = "x"}), 0);
    assert_int_equal(list.count, 1);
    container_list_done(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_added_is_copied),
        cmocka_unit_test(what_is_not_said_is_empty),
        cmocka_unit_test(an_entry_without_a_valid_id_is_left_out),
        cmocka_unit_test(an_id_that_holds_nul_is_none),
        cmocka_unit_test(the_same_id_may_come_twice),
        cmocka_unit_test(a_long_text_is_truncated_at_a_whole_character),
        cmocka_unit_test(a_text_of_exactly_512_bytes_is_whole),
        cmocka_unit_test(a_text_that_is_no_utf8_says_nothing),
        cmocka_unit_test(a_megabyte_costs_no_more_than_what_is_kept),
        cmocka_unit_test(more_than_65536_are_left_out),
        cmocka_unit_test(a_list_that_is_full_keeps_what_it_has),
        cmocka_unit_test(a_list_can_be_used_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
