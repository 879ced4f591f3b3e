/* core/base64: the vectors of RFC 4648, and bytes beyond ASCII. */
#include "unit.h"

#include <string.h>

#include "core/base64.h"
#include "core/macros.h"

static void every_length_is_padded_to_four_digits(void **state)
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
        base64_write(&out, span_of(cases[i].bytes));
        buffer_char(&out, '\0');
        assert_false(buffer_failed(&out));
        assert_string_equal(out.data, cases[i].text);
        buffer_done(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_length_is_padded_to_four_digits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
