/* top/screen: cells that are as wide as they say and control no terminal. */
#include "top_fixture.h"

#include "core/macros.h"
#include "core/utf8.h"

/* What `text` becomes in a row of so many columns. */
static char *put(const char *text, size_t columns, bool is_utf8)
{
    struct screen screen = {.is_utf8 = is_utf8};
    struct buffer out;

    buffer_init(&out, 1 << 16);
    assert_int_equal(screen_resize(&screen, 1, columns), 0);
    assert_true(screen_put(&screen, 0, 0, SIZE_MAX, STYLE_PLAIN, text) <= columns);
    screen_print(&screen, &out);
    out.data[out.len - 1] = '\0'; /* the end of the line */
    screen_done(&screen);
    return out.data;
}

static void text_is_shown_or_replaced(void **state)
{
    static const struct {
        const char *text, *utf8, *ascii;
    } cases[] = {
        {"plain", "plain", "plain"},
        {"", "", ""},
        {"\x1b[31mred\x1b[0m", "?[31mred?[0m", "?[31mred?[0m"},
        {"\x1b]0;title\x07", "?]0;title?", "?]0;title?"},
        {"a\nb\tc\x7f", "a?b?c?", "a?b?c?"},
        {"\xc2\x9b"
         "31m",
         "?31m", "?31m"},         /* C1: another CSI */
        {"\xff\xfe", "??", "??"}, /* no UTF-8 */
        {"\xc3", "?", "?"},       /* cut */
        {"z\xc3\xbcrich", "zürich", "z?rich"},
        {"\xe2\x80\xae"
         "gpj.exe",
         "?gpj.exe", "?gpj.exe"}, /* right to left from here */
        {"a\xe2\x80\x8b"
         "b",
         "a?b", "a?b"},                 /* no width */
        {"x\xef\xb8\x8f", "x?", "x?"},  /* variation selector */
        {"\xf3\xa0\x81\x81", "?", "?"}, /* a tag */
        {"\xe2\x80\xa8"
         "x",
         "?x", "?x"},                               /* line separator */
        {"e\xcc\x81t", "e\xcc\x81t", "e?t"},        /* combining */
        {"\xcc\x81t", "?t", "?t"},                  /* with nothing */
        {"\xe6\xbc\xa2\xe5\xad\x97", "漢字", "??"}, /* wide */
    };

    (void)state;
    use_utf8();
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_free_ char *utf8 = put(cases[i].text, 40, true);
        _cleanup_free_ char *ascii = put(cases[i].text, 40, false);

        assert_string_equal(utf8, cases[i].utf8);
        assert_string_equal(ascii, cases[i].ascii);
    }
}

static void a_text_that_is_too_long_ends_in_an_ellipsis(void **state)
{
    static const struct {
        const char *text;
        size_t columns;
        const char *shown;
    } cases[] = {
        {"workload", 8, "workload"},
        {"workload", 7, "worklo…"},
        {"workload", 1, "…"},
        {"漢字漢字", 8, "漢字漢字"},
        {"漢字漢字", 7, "漢字漢…"},
        {"漢字漢字", 6, "漢字…"},
        {"漢", 1, "…"},
        {"e\xcc\x81", 1, "e\xcc\x81"},
    };

    (void)state;
    use_utf8();
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_free_ char *shown = put(cases[i].text, cases[i].columns, true);

        assert_string_equal(shown, cases[i].shown);
    }
}

static void nothing_is_drawn_beyond_the_screen(void **state)
{
    struct screen screen = {.is_utf8 = true};

    (void)state;
    use_utf8();
    assert_int_equal(screen_resize(&screen, 2, 5), 0);
    assert_int_equal(screen_put(&screen, 2, 0, 9, STYLE_PLAIN, "x"), 0);
    assert_int_equal(screen_put(&screen, 0, 5, 9, STYLE_PLAIN, "x"), 0);
    assert_int_equal(screen_put(&screen, SIZE_MAX, SIZE_MAX, 9, STYLE_PLAIN, "x"), 0);
    assert_int_equal(screen_put(&screen, 0, 3, 9, STYLE_PLAIN, "xyz"), 2);
    assert_int_equal(screen_put(&screen, 0, 0, 0, STYLE_PLAIN, "x"), 0);
    screen_put_right(&screen, 1, 0, 5, STYLE_PLAIN, "123456789");
    screen_put_bar(&screen, 1, 3, 50, 1);
    screen_fill_style(&screen, 9, 9, 9, STYLE_BAND);
    screen_fill_style(&screen, 1, 4, 9, STYLE_BAND);
    assert_int_equal(screen.cells[9].style, STYLE_BAND);
    screen_done(&screen);
}

static void half_of_a_wide_character_is_never_left(void **state)
{
    struct screen screen = {.is_utf8 = true};
    struct buffer out;

    (void)state;
    use_utf8();
    buffer_init(&out, 4096);
    assert_int_equal(screen_resize(&screen, 2, 6), 0);
    screen_put(&screen, 0, 0, 6, STYLE_PLAIN, "漢字漢");
    screen_put(&screen, 0, 1, 1, STYLE_PLAIN, "x"); /* the right half of the first */
    screen_put(&screen, 0, 4, 1, STYLE_PLAIN, "y"); /* the left half of the last */
    screen_put(&screen, 1, 1, 4, STYLE_PLAIN, "ab");
    screen_put(&screen, 1, 0, 2, STYLE_PLAIN, "漢");
    screen_print(&screen, &out);
    buffer_char(&out, '\0');
    assert_string_equal(out.data, " x字y\n漢b\n");
    buffer_done(&out);
    screen_done(&screen);
}

static void a_cell_takes_a_few_combining_characters_and_no_more(void **state)
{
    char text[301] = "e";
    _cleanup_free_ char *shown = NULL;

    (void)state;
    use_utf8();
    for (size_t i = 1; i + 2 < sizeof(text); i += 2)
        memcpy(text + i, "\xcc\x81", 3);
    shown = put(text, 3, true);
    assert_true(strlen(shown) > 1 && strlen(shown) <= sizeof(((struct screen_cell *)0)->bytes));
}

static void a_bar_has_the_length_of_its_part(void **state)
{
    static const struct {
        double part;
        const char *utf8, *ascii;
    } cases[] = {
        {0, "", ""},          {-1, "", ""},        {__builtin_nan(""), "", ""},
        {1, "████", "####"},  {7, "████", "####"}, {0.5, "██", "##"},
        {0.28125, "█▏", "#"}, {0.03125, "▏", ""},  {__builtin_inf(), "████", "####"},
    };

    (void)state;
    use_utf8();
    for (size_t i = 0; i < ARRAY_SIZE(cases) * 2; i++) {
        struct screen screen = {.is_utf8 = i % 2 == 0};
        struct buffer out;

        buffer_init(&out, 4096);
        assert_int_equal(screen_resize(&screen, 1, 6), 0);
        screen_put_bar(&screen, 0, 0, 4, cases[i / 2].part);
        screen_print(&screen, &out);
        out.data[out.len - 1] = '\0';
        assert_string_equal(out.data, i % 2 == 0 ? cases[i / 2].utf8 : cases[i / 2].ascii);
        buffer_done(&out);
        screen_done(&screen);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_shown_or_replaced),
        cmocka_unit_test(a_text_that_is_too_long_ends_in_an_ellipsis),
        cmocka_unit_test(nothing_is_drawn_beyond_the_screen),
        cmocka_unit_test(half_of_a_wide_character_is_never_left),
        cmocka_unit_test(a_cell_takes_a_few_combining_characters_and_no_more),
        cmocka_unit_test(a_bar_has_the_length_of_its_part),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
