/* core/json: any bytes become one quoted string of valid UTF-8. */
#include "unit.h"

#include <string.h>

#include "core/json.h"
#include "core/utf8.h"

enum { CAP_BYTES = 1 << 20 };

static void strings_are_quoted(void **state)
{
    static const struct {
        const char *text, *json;
    } cases[] = {
        {"", "\"\""},
        {"plain", "\"plain\""},
        {"a b/c'd", "\"a b/c'd\""},
        {"say \"no\"", "\"say \\\"no\\\"\""},
        {"C:\\x", "\"C:\\\\x\""},
        {"a\nb\tc\rd", "\"a\\u000ab\\u0009c\\u000dd\""},
        {"\x01\x1f\x7f", "\"\\u0001\\u001f\\u007f\""},
        {"\x1b[31mred", "\"\\u001b[31mred\""},
        {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
         "\"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\""},
        {"a\xff"
         "b",
         "\"a" UTF8_REPLACEMENT "b\""},
        {"\xc0\x80", "\"" UTF8_REPLACEMENT UTF8_REPLACEMENT "\""},
        {"cut\xe2\x82", "\"cut" UTF8_REPLACEMENT UTF8_REPLACEMENT "\""},
        /* A broken character must not swallow the quote behind it. */
        {"\xc3\"x", "\"" UTF8_REPLACEMENT "\\\"x\""},
        {"\xc3\\", "\"" UTF8_REPLACEMENT "\\\\\""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct buffer out;

        buffer_init(&out, CAP_BYTES);
        json_string(&out, cases[i].text);
        if (out.len != strlen(cases[i].json) || memcmp(out.data, cases[i].json, out.len) != 0)
            fail_msg("expected %s, got %.*s", cases[i].json, (int)out.len, out.data);
        buffer_done(&out);
    }
}

/* All bytes but NUL, once: inside the quotes there is no control byte and no bare quote. */
static void every_byte_leaves_a_valid_string(void **state)
{
    char all[256];
    struct buffer out;
    struct span rest;

    (void)state;
    for (int i = 0; i < 255; i++)
        all[i] = (char)(i + 1);
    all[255] = '\0';
    buffer_init(&out, CAP_BYTES);
    json_string(&out, all);
    assert_false(buffer_failed(&out));
    assert_int_equal(out.data[0], '"');
    assert_int_equal(out.data[out.len - 1], '"');
    rest = (struct span){out.data + 1, out.len - 2};
    while (rest.len > 0) {
        size_t len = utf8_char_len(rest);

        assert_true(len > 0);
        assert_true((unsigned char)rest.data[0] >= 0x20 && rest.data[0] != 0x7f);
        assert_int_not_equal(rest.data[0], '"');
        if (rest.data[0] == '\\')
            len = rest.data[1] == 'u' ? 6 : 2;
        rest.data += len;
        rest.len -= len;
    }
    buffer_done(&out);
}

static void members_are_separated_by_commas(void **state)
{
    static const char expected[] = "{\"k\":\"{\",\"n\":18446744073709551615,\"o\":{\"x\":0}}";
    struct buffer out;

    (void)state;
    buffer_init(&out, CAP_BYTES);
    buffer_str(&out, "{");
    json_member(&out, "k", "{");
    json_member_u64(&out, "n", UINT64_MAX);
    json_key(&out, "o");
    buffer_char(&out, '{');
    json_member_u64(&out, "x", 0);
    buffer_str(&out, "}}");
    assert_int_equal(out.len, strlen(expected));
    assert_memory_equal(out.data, expected, out.len);
    buffer_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_are_quoted),
        cmocka_unit_test(every_byte_leaves_a_valid_string),
        cmocka_unit_test(members_are_separated_by_commas),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
