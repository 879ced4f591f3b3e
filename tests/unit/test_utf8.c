/* core/utf8: what may be passed on, by the table of well-formed sequences (Unicode 15, 3-7). */
#include "unit.h"

#include "core/macros.h"
#include "core/utf8.h"

static void only_well_formed_characters_have_a_length(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *what;
    } cases[] = {
        {"a", 1, "ASCII"},
        {"\x7f", 1, "U+007F"},
        {"\xc2\x80", 2, "U+0080, the least of two bytes"},
        {"\xdf\xbf", 2, "U+07FF, the largest of two bytes"},
        {"\xe0\xa0\x80", 3, "U+0800, the least of three bytes"},
        {"\xed\x9f\xbf", 3, "U+D7FF, before the surrogates"},
        {"\xee\x80\x80", 3, "U+E000, after the surrogates"},
        {"\xef\xbf\xbf", 3, "U+FFFF, the largest of three bytes"},
        {"\xf0\x90\x80\x80", 4, "U+10000, the least of four bytes"},
        {"\xf4\x8f\xbf\xbf", 4, "U+10FFFF, the last"},
        {"\xc0\x80", 0, "overlong U+0000"},
        {"\xc1\xbf", 0, "overlong U+007F"},
        {"\xe0\x80\x80", 0, "overlong U+0000 in three"},
        {"\xe0\x9f\xbf", 0, "overlong U+07FF"},
        {"\xf0\x80\x80\x80", 0, "overlong U+0000 in four"},
        {"\xf0\x8f\xbf\xbf", 0, "overlong U+FFFF"},
        {"\xed\xa0\x80", 0, "U+D800, the first surrogate"},
        {"\xed\xbf\xbf", 0, "U+DFFF, the last surrogate"},
        {"\xf4\x90\x80\x80", 0, "U+110000"},
        {"\xf5\x80\x80\x80", 0, "a first byte that no character has"},
        {"\xf8\x88\x80\x80\x80", 0, "five bytes"},
        {"\xfe", 0, "0xFE"},
        {"\xff", 0, "0xFF"},
        {"\x80", 0, "a continuation alone"},
        {"\xbf\x80", 0, "two continuations"},
        {"\xc3", 0, "cut after one of two"},
        {"\xe2\x82", 0, "cut after two of three"},
        {"\xf0\x9f\x98", 0, "cut after three of four"},
        {"\xc3(", 0, "second byte is ASCII"},
        {"\xe2\x82(", 0, "third byte is ASCII"},
        {"\xf0\x9f\x98(", 0, "fourth byte is ASCII"},
        {"\xc3\xc3", 0, "second byte begins another"},
        {"", 0, "nothing"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (utf8_char_len(span_of(cases[i].bytes)) != cases[i].len)
            fail_msg("%s: %zu", cases[i].what, utf8_char_len(span_of(cases[i].bytes)));
}

static void only_the_first_character_counts(void **state)
{
    (void)state;
    assert_int_equal(utf8_char_len(span_of("a\xff")), 1);
    assert_int_equal(utf8_char_len(span_of("\xc3\xa9\xff")), 2);
    assert_int_equal(utf8_char_len(span_of("\xe2\x82\xac\xe2")), 3);
}

static void a_character_that_the_span_cuts_is_not_valid(void **state)
{
    static const char smile[] = "\xf0\x9f\x98\x80";

    (void)state;
    for (size_t len = 0; len < 4; len++)
        assert_int_equal(utf8_char_len((struct span){smile, len}), 0);
    assert_int_equal(utf8_char_len((struct span){smile, 4}), 4);
}

static void a_nul_byte_is_a_character(void **state)
{
    (void)state;
    assert_int_equal(utf8_char_len((struct span){"\0x", 2}), 1);
}

static void the_replacement_is_one_valid_character(void **state)
{
    (void)state;
    assert_int_equal(utf8_char_len(span_of(UTF8_REPLACEMENT)), 3);
    assert_int_equal(span_of(UTF8_REPLACEMENT).len, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_well_formed_characters_have_a_length),
        cmocka_unit_test(only_the_first_character_counts),
        cmocka_unit_test(a_character_that_the_span_cuts_is_not_valid),
        cmocka_unit_test(a_nul_byte_is_a_character),
        cmocka_unit_test(the_replacement_is_one_valid_character),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
