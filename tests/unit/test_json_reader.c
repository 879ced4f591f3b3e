/* core/json_reader: what others write, read without trust. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/json_reader.h"
#include "core/macros.h"

static struct json *read_text(const char *text)
{
    struct json *value = NULL;

    if (json_read(span_of(text), &value) != 0)
        fail_msg("refused: %s", text);
    return value;
}

static void a_tree_is_read_by_keys_and_indices(void **state)
{
    struct json *root =
        read_text(" {\"list\": [1, \"two\", true, {\"deep\": \"3\"}], \"n\": -7} \n");
    const struct json *list = json_get(root, "list");
    int64_t number = 0;

    (void)state;
    assert_int_equal(json_length(list), 4);
    assert_true(json_int64(json_at(list, 0), &number));
    assert_int_equal(number, 1);
    assert_string_equal(json_text(json_at(list, 1)), "two");
    assert_true(json_is_true(json_at(list, 2)));
    assert_string_equal(json_text(json_get(json_at(list, 3), "deep")), "3");
    assert_true(json_int64(json_get(root, "n"), &number));
    assert_int_equal(number, -7);
    assert_null(json_at(list, 4));
    assert_null(json_get(root, "other"));
    json_free(root);
}

static void a_text_that_cannot_be_costs_itself_and_not_its_document(void **state)
{
    static const struct {
        const char *text, *read;
    } cases[] = {
        {"\\u0000", "\xef\xbf\xbd"},
        {"a\\u0000b", "a\xef\xbf\xbd"
                      "b"},
        {"\\ud800", "\xef\xbf\xbd"},
        {"\\uDFFFx", "\xef\xbf\xbdx"},
        {"\\ud83d\\ude00", "\xf0\x9f\x98\x80"},
        {"\\ud83d\\ude00\\u0000", "\xf0\x9f\x98\x80\xef\xbf\xbd"},
        {"\\ud83d\\ud83d\\ude00", "\xef\xbf\xbd\xf0\x9f\x98\x80"},
        {"\\\\u0000\\u0000", "\\u0000\xef\xbf\xbd"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[128];
        struct json *value;

        snprintf(text, sizeof(text), "[{\"%s\": 1}, \"%s\", 7]", cases[i].text, cases[i].text);
        value = read_text(text);
        assert_string_equal(json_text(json_at(value, 1)), cases[i].read);
        assert_int_equal(json_length(value), 3);
        json_free(value);
    }
}

static void every_getter_answers_for_every_type(void **state)
{
    static const struct {
        const char *text;
        bool is_text, is_integer, is_true;
        size_t length;
    } cases[] = {
        {"\"x\"", true, false, false, 0},   {"\"\"", true, false, false, 0},
        {"1", false, true, false, 0},       {"1.0", false, false, false, 0},
        {"1e3", false, false, false, 0},    {"true", false, false, true, 0},
        {"false", false, false, false, 0},  {"null", false, false, false, 0},
        {"[null]", false, false, false, 1}, {"{\"a\":true}", false, false, false, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct json *value = read_text(cases[i].text);
        int64_t number = 77;
        double real;

        assert_int_equal(json_text(value) != NULL, cases[i].is_text);
        assert_int_equal(json_int64(value, &number), cases[i].is_integer);
        assert_int_equal(number, cases[i].is_integer ? 1 : 77);
        assert_int_equal(json_double(value, &real),
                         cases[i].text[0] == '1'); /* reals and integers */
        assert_int_equal(json_is_true(value), cases[i].is_true);
        assert_int_equal(json_length(value), cases[i].length);
        assert_int_equal(json_at(value, 0) != NULL, cases[i].length > 0);
        json_free(value);
    }
}

static void nothing_is_nothing_to_every_getter(void **state)
{
    int64_t number = 77;

    (void)state;
    assert_null(json_get(NULL, "key"));
    assert_null(json_at(NULL, 0));
    assert_null(json_text(NULL));
    assert_int_equal(json_length(NULL), 0);
    assert_false(json_is_true(NULL));
    assert_false(json_int64(NULL, &number));
    assert_false(json_double(NULL, &(double){0}));
    assert_int_equal(number, 77);
    json_free(NULL);
}

static void what_is_not_json_is_refused(void **state)
{
    static const struct {
        const char *text;
        size_t len; /* 0: up to the NUL */
    } cases[] = {
        {"", 0},
        {" ", 0},
        {"{", 0},
        {"]", 0},
        {"}}", 0},
        {"[1,]", 0},
        {"{\"a\":}", 0},
        {"{\"a\" 1}", 0},
        {"{1:1}", 0},
        {"'a'", 0},
        {"nul", 0},
        {"True", 0},
        {"01", 0},
        {"+1", 0},
        {"1 2", 0},
        {"[] []", 0},
        {"[]x", 0},
        {"NaN", 0},
        {"\"open", 0},
        {"\"\\\"", 0},
        {"\"\n\"", 0},
        {"\"\\x\"", 0},
        {"\"\xff\"", 0},
        {"\"\xc0\x80\"", 0},
        {"\"\xed\xa0\x80\"", 0},
        {"\"cut\xe2\x82\"", 0},
        {"\xef\xbb\xbf{}", 0},
        {"99999999999999999999", 0},
        {"1e999", 0},
        {"\"a\0b\"", 5},
        {"[]\0", 3},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct span text = {cases[i].text, cases[i].len ? cases[i].len : strlen(cases[i].text)};
        struct json *value = (struct json *)state;
        int r = json_read(text, &value);

        if (r != -EBADMSG)
            fail_msg("case %zu, %s: %d", i, cases[i].text, r);
        assert_ptr_equal(value, state); /* untouched */
    }
}

static void integers_have_64_bits(void **state)
{
    struct json *list = read_text("[9223372036854775807,-9223372036854775808,-0]");
    int64_t number = 1;

    (void)state;
    assert_true(json_int64(json_at(list, 0), &number) && number == INT64_MAX);
    assert_true(json_int64(json_at(list, 1), &number) && number == INT64_MIN);
    assert_true(json_int64(json_at(list, 2), &number) && number == 0);
    json_free(list);
}

static void of_equal_keys_the_last_wins(void **state)
{
    struct json *value = read_text("{\"Id\":\"first\",\"x\":1,\"Id\":\"last\"}");

    (void)state;
    assert_string_equal(json_text(json_get(value, "Id")), "last");
    json_free(value);
}

static void escapes_become_utf8(void **state)
{
    struct json *value = read_text("\"\\u00e9\\ud83d\\ude00\\/\\n\\\"\"");

    (void)state;
    assert_string_equal(json_text(value), "\xc3\xa9\xf0\x9f\x98\x80/\n\"");
    json_free(value);
}

/* `depth` times `open`, a 0, and `depth` times `close`. */
static int read_nested(const char *open, const char *close, size_t depth)
{
    _cleanup_free_ char *text = calloc(depth, strlen(open) + strlen(close) + 1);
    struct json *value = NULL;
    int r;

    assert_non_null(text);
    for (size_t i = 0; i < depth; i++)
        strcat(text, open);
    strcat(text, "0");
    for (size_t i = 0; i < depth; i++)
        strcat(text, close);
    r = json_read(span_of(text), &value);
    json_free(value);
    return r;
}

static void sixty_four_levels_are_read_and_no_more(void **state)
{
    (void)state;
    assert_int_equal(read_nested("[", "]", 64), 0);
    assert_int_equal(read_nested("[", "]", 65), -EBADMSG);
    assert_int_equal(read_nested("{\"a\":", "}", 64), 0);
    assert_int_equal(read_nested("{\"a\":", "}", 65), -EBADMSG);
    assert_int_equal(read_nested("[{\"[\":", "}]", 32), 0);
    assert_int_equal(read_nested("[{\"[\":", "}]", 33), -EBADMSG);
    assert_int_equal(read_nested("[", "]", 2000), -EBADMSG); /* jansson would take it */
}

static void brackets_in_texts_are_no_levels(void **state)
{
    char text[512] = "[\"\\\\\",\"\\\"";

    (void)state;
    for (int i = 0; i < 100; i++)
        strcat(text, "[{");
    strcat(text, "\"]");
    json_free(read_text(text));
}

/* Whoever looks further than the first page dies here. */
static void a_reply_of_nothing_but_brackets_is_refused_at_its_beginning(void **state)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), len = 16 << 20;
    char *text = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct json *value = NULL;

    (void)state;
    assert_ptr_not_equal(text, MAP_FAILED);
    memset(text, '[', page);
    assert_int_equal(mprotect(text + page, len - page, PROT_NONE), 0);
    assert_int_equal(json_read((struct span){text, len}, &value), -EBADMSG);
    munmap(text, len);
}

/* "[0,0,...]" with `count` commas and opening brackets, if the value has none. */
typedef int reader(struct span text, struct json **ret_value);

static int read_many_by(reader *read, const char *value_text, size_t count)
{
    size_t len = strlen(value_text) + 1;
    _cleanup_free_ char *text = malloc(count * len + 2);
    struct json *value = NULL;
    char *p = text;
    int r;

    assert_non_null(text);
    *p++ = '[';
    for (size_t i = 0; i < count; i++, p += len) {
        memcpy(p, value_text, len - 1);
        p[len - 1] = ',';
    }
    p[-1] = ']';
    r = read((struct span){text, (size_t)(p - text)}, &value);
    if (r == 0)
        assert_int_equal(json_length(value), count);
    json_free(value);
    return r;
}

static int read_many(const char *value_text, size_t count)
{
    return read_many_by(json_read, value_text, count);
}

static void half_a_million_parts_are_read_and_no_more(void **state)
{
    (void)state;
    assert_int_equal(read_many("0", 524288), 0);
    assert_int_equal(read_many("0", 524289), -EBADMSG);
    assert_int_equal(read_many("\",,,,,{[\"", 524288), 0);
    assert_int_equal(read_many("{}", 262144), 0);
    assert_int_equal(read_many("{}", 262145), -EBADMSG);
    assert_int_equal(read_many("\"\"", 8000000), -EBADMSG);
}

static void two_million_parts_of_a_large_document_are_read_and_no_more(void **state)
{
    (void)state;
    assert_int_equal(read_many_by(json_read_large, "0", 2097152), 0);
    assert_int_equal(read_many_by(json_read_large, "0", 2097153), -EBADMSG);
}

static void a_text_that_breaks_off_is_refused_wherever_it_does(void **state)
{
    static const char whole[] =
        "[{\"Id\":\"a\\u00e9\\\\\",\"N\":[-1.5e3,null,true],\"L\":{\"k\":\"\xc3\xa9\"}}]";

    (void)state;
    json_free(read_text(whole));
    for (size_t len = 0; len < strlen(whole); len++) {
        _cleanup_free_ char *cut = malloc(len + 1); /* no byte behind it that may be read */
        struct json *value = NULL;

        assert_non_null(cut);
        memcpy(cut + 1, whole, len);
        assert_int_equal(json_read((struct span){cut + 1, len}, &value), -EBADMSG);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tree_is_read_by_keys_and_indices),
        cmocka_unit_test(a_text_that_cannot_be_costs_itself_and_not_its_document),
        cmocka_unit_test(every_getter_answers_for_every_type),
        cmocka_unit_test(nothing_is_nothing_to_every_getter),
        cmocka_unit_test(what_is_not_json_is_refused),
        cmocka_unit_test(integers_have_64_bits),
        cmocka_unit_test(of_equal_keys_the_last_wins),
        cmocka_unit_test(escapes_become_utf8),
        cmocka_unit_test(sixty_four_levels_are_read_and_no_more),
        cmocka_unit_test(brackets_in_texts_are_no_levels),
        cmocka_unit_test(a_reply_of_nothing_but_brackets_is_refused_at_its_beginning),
        cmocka_unit_test(half_a_million_parts_are_read_and_no_more),
        cmocka_unit_test(two_million_parts_of_a_large_document_are_read_and_no_more),
        cmocka_unit_test(a_text_that_breaks_off_is_refused_wherever_it_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
