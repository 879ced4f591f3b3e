/* core/buffer: exact decimals, and a cap after which nothing is added any more. */
#include "unit.h"

#include <string.h>

#include "core/buffer.h"
#include "core/macros.h"

enum { CAP_BYTES = 1 << 20 };

static void assert_holds(const struct buffer *buffer, const char *expected)
{
    if (buffer->len != strlen(expected) || memcmp(buffer->data, expected, buffer->len) != 0)
        fail_msg("expected '%s', got '%.*s'", expected, (int)buffer->len, buffer->data);
}

static void decimals_are_exact_and_have_no_trailing_zeros(void **state)
{
    static const struct {
        int64_t value;
        unsigned digits;
        const char *text;
    } cases[] = {
        {0, 0, "0"},
        {0, 6, "0"},
        {1, 0, "1"},
        {1, 6, "0.000001"},
        {10, 6, "0.00001"},
        {1500000, 6, "1.5"},
        {1000000, 6, "1"},
        {1000001, 6, "1.000001"},
        {999999, 6, "0.999999"},
        {100, 2, "1"},
        {99, 2, "0.99"},
        {5, 1, "0.5"},
        {123162, 3, "123.162"},
        {700000, 3, "700"},
        {1794725358284932, 6, "1794725358.284932"},
        {9007199254740993, 6, "9007199254.740993"}, /* 2^53 + 1: a double cannot hold it */
        {-1, 0, "-1"},
        {-1, 6, "-0.000001"},
        {-1500000, 6, "-1.5"},
        {-1000000, 6, "-1"},
        {INT64_MAX, 0, "9223372036854775807"},
        {INT64_MAX, 6, "9223372036854.775807"},
        {INT64_MAX, 18, "9.223372036854775807"},
        {INT64_MAX, 19, "0.9223372036854775807"},
        {INT64_MIN, 0, "-9223372036854775808"},
        {INT64_MIN, 6, "-9223372036854.775808"},
        {INT64_MIN, 19, "-0.9223372036854775808"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct buffer buffer;

        buffer_init(&buffer, CAP_BYTES);
        buffer_fixed(&buffer, cases[i].value, cases[i].digits);
        assert_holds(&buffer, cases[i].text);
        assert_false(buffer_failed(&buffer));
        buffer_done(&buffer);
    }
}

static void a_decimal_may_be_more_than_a_number_of_its_last_digits(void **state)
{
    struct buffer buffer;

    (void)state;
    buffer_init(&buffer, CAP_BYTES);
    buffer_decimal(&buffer, UINT64_MAX, 999999999, 9);
    buffer_char(&buffer, ' ');
    buffer_decimal(&buffer, 7, 20, 9);
    buffer_char(&buffer, ' ');
    buffer_decimal(&buffer, 0, 0, 9);
    assert_holds(&buffer, "18446744073709551615.999999999 7.00000002 0");
    buffer_done(&buffer);
}

static void whole_numbers_are_written_to_their_limits(void **state)
{
    struct buffer buffer;

    (void)state;
    buffer_init(&buffer, CAP_BYTES);
    buffer_u64(&buffer, 0);
    buffer_char(&buffer, ' ');
    buffer_u64(&buffer, 10);
    buffer_char(&buffer, ' ');
    buffer_u64(&buffer, UINT64_MAX);
    assert_holds(&buffer, "0 10 18446744073709551615");
    buffer_done(&buffer);
}

static void bytes_of_any_value_are_appended_in_order(void **state)
{
    struct buffer buffer;

    (void)state;
    buffer_init(&buffer, CAP_BYTES);
    for (size_t i = 0; i < 100000; i++) {
        const char bytes[] = {(char)i, 0, (char)(i >> 8)};

        buffer_bytes(&buffer, bytes, sizeof(bytes));
    }
    assert_false(buffer_failed(&buffer));
    assert_int_equal(buffer.len, 300000);
    for (size_t i = 0; i < 100000; i++) {
        assert_int_equal((unsigned char)buffer.data[3 * i], i & 0xff);
        assert_int_equal(buffer.data[3 * i + 1], 0);
        assert_int_equal((unsigned char)buffer.data[3 * i + 2], i >> 8 & 0xff);
    }
    buffer_done(&buffer);
}

/* Whether or not the repetition moves them. */
static void bytes_are_repeated_from_anywhere(void **state)
{
    struct buffer buffer;

    (void)state;
    buffer_init(&buffer, CAP_BYTES);
    buffer_str(&buffer, "abc");
    buffer_repeat(&buffer, 1, 2);
    buffer_repeat(&buffer, 0, 0);
    assert_holds(&buffer, "abcbc");
    while (buffer.len < CAP_BYTES / 2)
        buffer_repeat(&buffer, 0, buffer.len);
    for (size_t i = 0; i < buffer.len; i++)
        assert_int_equal(buffer.data[i], "abcbc"[i % 5]);
    buffer_repeat(&buffer, 0, buffer.len);
    assert_true(buffer_failed(&buffer));
    buffer_done(&buffer);
}

static void a_buffer_can_be_filled_to_its_cap_and_not_beyond(void **state)
{
    struct buffer buffer;

    (void)state;
    buffer_init(&buffer, 10);
    buffer_str(&buffer, "0123456789");
    assert_false(buffer_failed(&buffer));
    buffer_str(&buffer, "");
    assert_false(buffer_failed(&buffer) || buffer.is_full);
    buffer_char(&buffer, 'x');
    assert_true(buffer_failed(&buffer) && buffer.is_full);
    assert_holds(&buffer, "0123456789");
    assert_true(buffer.capacity <= 10);
    buffer_done(&buffer);
}

static void after_a_failure_even_what_would_fit_is_dropped(void **state)
{
    struct buffer buffer;

    (void)state;
    buffer_init(&buffer, 10);
    buffer_str(&buffer, "ab");
    buffer_str(&buffer, "123456789"); /* does not fit: no part of it is taken */
    assert_true(buffer_failed(&buffer));
    buffer_char(&buffer, 'c');
    buffer_u64(&buffer, 1);
    buffer_fixed(&buffer, -15, 1);
    assert_holds(&buffer, "ab");
    buffer_done(&buffer);
}

static void a_buffer_that_is_done_with_starts_empty_under_the_same_cap(void **state)
{
    struct buffer buffer;

    (void)state;
    buffer_init(&buffer, 2);
    buffer_str(&buffer, "abc");
    assert_true(buffer_failed(&buffer));
    buffer_done(&buffer);
    assert_false(buffer_failed(&buffer));
    buffer_str(&buffer, "ab");
    assert_holds(&buffer, "ab");
    buffer_char(&buffer, 'c');
    assert_true(buffer_failed(&buffer));
    buffer_done(&buffer);
}

static void a_buffer_that_is_wiped_starts_empty_too(void **state)
{
    struct buffer buffer;

    (void)state;
    buffer_init(&buffer, 2);
    buffer_wipe(&buffer);
    buffer_str(&buffer, "ab");
    buffer_wipe(&buffer);
    assert_null(buffer.data);
    buffer_str(&buffer, "cd");
    assert_holds(&buffer, "cd");
    buffer_wipe(&buffer);
}

static void base64_pads_every_length_to_four_digits(void **state)
{
    static const struct {
        const char *bytes, *text;
    } cases[] = {
        {"", ""},
        {"f", "Zg=="},
        {"fo", "Zm8="},
        {"foo", "Zm9v"},
        {"foob", "Zm9vYg=="},
        {"fooba", "Zm9vYmE="},
        {"foobar", "Zm9vYmFy"},
        {"\xff\xfe\xfd", "//79"},
        {"\xfb\xef\xbe", "++++"},
        {"jane:p\xc3\xa4ss", "amFuZTpww6Rzcw=="},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct buffer out;

        buffer_init(&out, 64);
        buffer_base64(&out, span_of(cases[i].bytes));
        buffer_char(&out, '\0');
        assert_false(buffer_failed(&out));
        assert_string_equal(out.data, cases[i].text);
        buffer_done(&out);
    }
}

static void what_would_control_a_terminal_is_a_question_mark(void **state)
{
    struct buffer buffer;

    (void)state;
    buffer_init(&buffer, 1024);
    buffer_printable(&buffer, span_of("a\033[31m\n\x7f\xc2\x9b\xc3\xa9\xff\xe2\x82\xac\xe2\x82"));
    buffer_char(&buffer, '\0');
    assert_string_equal(buffer.data, "a?[31m???\xc3\xa9?\xe2\x82\xac??");
    buffer_done(&buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decimals_are_exact_and_have_no_trailing_zeros),
        cmocka_unit_test(a_decimal_may_be_more_than_a_number_of_its_last_digits),
        cmocka_unit_test(whole_numbers_are_written_to_their_limits),
        cmocka_unit_test(bytes_of_any_value_are_appended_in_order),
        cmocka_unit_test(bytes_are_repeated_from_anywhere),
        cmocka_unit_test(a_buffer_can_be_filled_to_its_cap_and_not_beyond),
        cmocka_unit_test(after_a_failure_even_what_would_fit_is_dropped),
        cmocka_unit_test(a_buffer_that_is_done_with_starts_empty_under_the_same_cap),
        cmocka_unit_test(a_buffer_that_is_wiped_starts_empty_too),
        cmocka_unit_test(base64_pads_every_length_to_four_digits),
        cmocka_unit_test(what_would_control_a_terminal_is_a_question_mark),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
