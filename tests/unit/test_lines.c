/* core/lines: lines are the same however the stream was cut, and none is longer than the limit. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "core/lines.h"

/* Lines that came, with "|" behind each. */
struct taken {
    char text[256];
    int refuse; /* what is returned for the line "x" */
};

static int take(void *context, struct span line)
{
    struct taken *taken = context;

    strncat(taken->text, line.data, line.len);
    strcat(taken->text, "|");
    return span_equals(line, "x") ? taken->refuse : 0;
}

static int feed(struct lines *lines, const char *text, struct taken *taken)
{
    return lines_feed(lines, span_of(text), take, taken);
}

static void lines_are_the_same_wherever_the_stream_is_cut(void **state)
{
    static const char stream[] = "one\n\nthree\nfour\r\n\nlast without end";
    size_t len = sizeof(stream) - 1;

    (void)state;
    for (size_t i = 0; i <= len; i++)
        for (size_t j = i; j <= len; j++) {
            struct taken taken = {{0}, 0};
            struct lines lines;

            lines_init(&lines, 64);
            assert_int_equal(lines_feed(&lines, (struct span){stream, i}, take, &taken), 0);
            assert_int_equal(lines_feed(&lines, (struct span){stream + i, j - i}, take, &taken), 0);
            assert_int_equal(lines_feed(&lines, (struct span){stream + j, len - j}, take, &taken),
                             0);
            assert_string_equal(taken.text, "one||three|four\r||");
            lines_done(&lines);
        }
}

static void a_line_of_the_limit_passes_and_a_longer_one_is_refused(void **state)
{
    static const struct {
        const char *pieces[3];
        int r;
    } cases[] = {
        {{"12345678\n", "", ""}, 0},       {{"1234", "5678", "\n"}, 0},
        {{"123456789\n", "", ""}, -EFBIG}, {{"123456789", "", ""}, -EFBIG},
        {{"1234", "56789", ""}, -EFBIG},   {{"1234\n56", "789", "123"}, 0},
        {{"12345678", "9", ""}, -EFBIG},   {{"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "", ""}, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct taken taken = {{0}, 0};
        struct lines lines;
        int r = 0;

        lines_init(&lines, 8);
        for (int j = 0; j < 3 && r == 0; j++)
            r = feed(&lines, cases[i].pieces[j], &taken);
        if (r != cases[i].r)
            fail_msg("case %zu gave %d", i, r);
        lines_done(&lines);
    }
}

static void a_stream_without_lines_never_holds_more_than_the_limit(void **state)
{
    static char piece[4096];
    struct taken taken = {{0}, 0};
    struct lines lines;
    int r = 0;

    (void)state;
    memset(piece, 'a', sizeof(piece));
    lines_init(&lines, 1 << 20);
    for (int i = 0; i < 1000 && r == 0; i++) {
        r = lines_feed(&lines, (struct span){piece, sizeof(piece)}, take, &taken);
        assert_true(lines.begun.capacity <= 1 << 20);
    }
    assert_int_equal(r, -EFBIG);
    assert_string_equal(taken.text, "");
    lines_done(&lines);
}

static void who_takes_the_lines_can_end_it(void **state)
{
    struct taken taken = {{0}, -EBADMSG};
    struct lines lines;

    (void)state;
    lines_init(&lines, 64);
    assert_int_equal(feed(&lines, "a\nx\nb\n", &taken), -EBADMSG);
    assert_string_equal(taken.text, "a|x|");
    lines_done(&lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_the_same_wherever_the_stream_is_cut),
        cmocka_unit_test(a_line_of_the_limit_passes_and_a_longer_one_is_refused),
        cmocka_unit_test(a_stream_without_lines_never_holds_more_than_the_limit),
        cmocka_unit_test(who_takes_the_lines_can_end_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
