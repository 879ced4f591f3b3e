/* top/view: what is on the screen, on any screen, of any node. */
#include "top_fixture.h"

#include <math.h>

#include "core/macros.h"
#include "core/utf8.h"

static void start(struct top *top)
{
    use_utf8();
    top_init(top, 2);
    assert_int_equal(top_show(top, node_at(100, "7")), 0);
    assert_int_equal(top_show(top, node_at(102, "10")), 0);
}

/* The line with this text. */
static char *line_with(const char *text, const char *part)
{
    const char *at = strstr(text, part), *begin = at, *end;

    if (!at)
        fail_msg("no \"%s\" in:\n%s", part, text);
    while (begin > text && begin[-1] != '\n')
        begin--;
    end = strchr(at, '\n');
    return strndup(begin, (size_t)(end - begin));
}

static void the_screen_of_80_by_24_has_all_that_matters(void **state)
{
    struct top top;
    _cleanup_free_ char *text = NULL, *train = NULL;

    (void)state;
    start(&top);
    text = drawn(&top, 24, 80, true);
    assert_shows(text, " wattribute  gpu-07  4 workloads");
    assert_shows(text, " 300.0 W = 280.0 workloads + 18.0 idle + 2.0 unattributed  measured 281.5");
    assert_shows(text, "GPU 0  NVIDIA H200   281.5 W  98% busy  1.00 GiB of 140 GiB  43 °C");
    assert_shows(text, "Meters package 0 20.0 W estimated");
    assert_shows(text, "Down:  rapl");
    assert_shows(text, "WATTS▼");
    assert_shows(text, "h help   q quit");
    train = line_with(text, "ml/train");
    assert_shows(train, "200.0 ");
    assert_shows(train, "66.7%  30.0 kJ   2.0% 1.00 GiB");
    top_done(&top);
}

static void a_wide_screen_has_every_column(void **state)
{
    struct top top;
    _cleanup_free_ char *text = NULL, *train = NULL, *web = NULL;

    (void)state;
    start(&top);
    text = drawn(&top, 60, 200, true);
    train = line_with(text, "ml/train");
    web = line_with(text, "web");
    assert_shows(text, "time sliced  2 instances");
    assert_shows(text, "KIND");
    assert_shows(text, "EUR");
    assert_shows(train, "pod ");
    assert_shows(train, "█");
    assert_shows(train, "2.00 KiB  4.25 g  0.1250");
    assert_shows(web, "1.50"); /* processors */
    top_done(&top);
}

static void a_screen_of_40_by_10_has_names_and_watts(void **state)
{
    struct top top;
    _cleanup_free_ char *text = NULL;

    (void)state;
    start(&top);
    text = drawn(&top, 10, 40, true);
    assert_shows(text, "ml/train");
    assert_shows(text, "200.0");
    assert_hides(text, "EUR");
    top_done(&top);
}

static void no_size_of_the_screen_is_too_small(void **state)
{
    static const char keys[] = "j\rjh/x\x1bsr \r";
    struct top top;

    (void)state;
    start(&top);
    for (size_t rows = 1; rows < 12; rows++)
        for (size_t columns = 1; columns < 30; columns++) {
            char key[2] = {keys[(rows * 31 + columns) % (sizeof(keys) - 1)]};
            _cleanup_free_ char *text = drawn(&top, rows, columns, columns % 2);

            press(&top, key);
            assert_true(text[0] != '\0');
        }
    top_done(&top);
}

static void every_row_is_as_wide_as_the_screen_at_most(void **state)
{
    static const char hostile[] =
        "{\"api\":1,\"time\":1,\"node\":\"\\u001b[2Jn\\u0007\",\"watts\":10,\"workloads\":["
        "{\"kind\":\"pod\",\"id\":\"1\",\"name\":\"\\u001b]0;owned\\u0007\",\"watts\":1},"
        "{\"kind\":\"p\\u0000od\\n\",\"id\":\"2\",\"name\":\"漢字漢字漢字漢字漢字漢字漢字漢字\","
        "\"watts\":1e300},"
        "{\"kind\":\"pod\",\"id\":\"3\",\"name\":\"e\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81x\","
        "\"namespace\":\"\\u202Elm\",\"watts\":-5,\"energy_joules\":1e-300},"
        "{\"kind\":\"pod\",\"id\":\"4\",\"name\":\"\\ud800\\u009b31m\",\"watts\":0,"
        "\"processes\":[{\"pid\":1e300,\"name\":\"a\\r\\nb\"}],\"details\":{\"user\":\"\\t\"}}],"
        "\"gpus\":[{\"gpu\":-1e300,\"name\":\"\\u001b[31m\",\"sharing\":\"a_b\\n\"}],"
        "\"sources\":[{\"name\":\"\\u001bc\"}],"
        "\"meters\":[{\"meter\":\"\\u0008\",\"meter_id\":\"\\u001b\"}]}";
    struct top top;

    (void)state;
    use_utf8();
    top_init(&top, 2);
    assert_int_equal(top_show(&top, parse_document(hostile)), 0);
    for (size_t i = 0; i < 8; i++) {
        _cleanup_free_ char *text = drawn(&top, 24, 60 + i, i % 3 != 0);
        struct screen screen = {.is_utf8 = i % 3 != 0};

        press(&top, &"j\rj\x1bj\r\x1bs"[i % 8]);
        for (const char *line = text, *end; *line; line = end + 1) {
            char *copy;

            end = strchr(line, '\n');
            copy = strndup(line, (size_t)(end - line));
            assert_true(screen_text_width(&screen, copy) <= 60 + i);
            for (const char *p = copy; *p; p++)
                assert_true((unsigned char)*p >= ' ' && *p != 0x7f);
            assert_null(strstr(copy, "\xc2\x9b"));
            assert_null(strstr(copy, "\xe2\x80\xae"));
            free(copy);
        }
        assert_shows(text, "?]0;owned?");
    }
    top_done(&top);
}

static void an_empty_node_says_that_it_is(void **state)
{
    struct top top;
    char *text;

    (void)state;
    use_utf8();
    top_init(&top, 2);
    text = drawn(&top, 24, 80, true);
    assert_shows(text, "waiting for the first figures");
    free(text);
    assert_int_equal(top_show(&top, parse_document("{\"api\":1,\"time\":1,\"node\":\"n\"}")), 0);
    text = drawn(&top, 24, 80, true);
    assert_shows(text, "no meter has been read yet");
    assert_shows(text, "no workload has drawn anything yet");
    free(text);
    press(&top, "/x\r");
    text = drawn(&top, 24, 80, true);
    assert_shows(text, "no workload matches the filter");
    assert_shows(text, "\"x\": 0 of 0");
    free(text);
    top_done(&top);
}

static void a_replay_and_a_silent_daemon_have_bands(void **state)
{
    struct top top;
    char *text;

    (void)state;
    use_utf8();
    top_init(&top, 2);
    assert_int_equal(top_show(&top, parse_document("{\"api\":1,\"time\":1,\"replay\":true}")), 0);
    snprintf(top.trouble, sizeof(top.trouble), "NO ANSWER for 7 s");
    text = drawn(&top, 24, 80, true);
    assert_shows(text, "\n REPLAY of a recorded trace");
    assert_shows(text, "\n NO ANSWER for 7 s");
    free(text);
    press(&top, " ");
    text = drawn(&top, 24, 80, true);
    assert_shows(text, "FROZEN");
    free(text);
    top_done(&top);
}

static void an_open_workload_shows_all_that_is_known_of_it(void **state)
{
    static const char *const parts[] = {
        " pod ml/train\n",
        "power         200.0 W, 66.7% of the node",
        "energy        30.0 kJ ± 600 J (2.0%)",
        "emissions     4.25 g",
        "cost          0.1250 EUR",
        "CPUs          0.00 busy now, 100 s in all",
        "image         train:7",
        "user          ann",
        "    190.0  28.0 kJ   2.0%       90.0%  gpu GPU-1\n",
        "     10.0                              package 0 (estimated)\n",
        "GPU 0 instance 3  by kubelet, unverified  GPU-1",
        "       12    0  27.0 kJ   1.0%  1.00 MiB  python3",
        "Esc back",
    };
    struct top top;
    char *text;

    (void)state;
    start(&top);
    press(&top, "\r");
    text = drawn(&top, 60, 80, true);
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        assert_shows(text, parts[i]);
    free(text);
    text = drawn(&top, 16, 80, true); /* not all at once */
    assert_shows(text, "ml/train");
    assert_hides(text, "python3");
    free(text);
    top_press(&top, TOP_KEY_END);
    text = drawn(&top, 16, 80, true);
    assert_hides(text, "ml/train");
    assert_shows(text, "python3");
    free(text);
    top_done(&top);
}

static void the_cursor_is_always_on_the_screen(void **state)
{
    struct top top;
    struct buffer text;

    (void)state;
    use_utf8();
    top_init(&top, 2);
    buffer_init(&text, 1 << 20);
    buffer_str(&text, "{\"api\":1,\"time\":1,\"watts\":10,\"workloads\":[");
    for (int i = 0; i < 500; i++) {
        char row[80];

        snprintf(row, sizeof(row), "%s{\"kind\":\"unit\",\"id\":\"u%03d\",\"watts\":%d}",
                 i > 0 ? "," : "", i, 1000 - i);
        buffer_str(&text, row);
    }
    buffer_str(&text, "]}");
    buffer_char(&text, '\0');
    assert_int_equal(top_show(&top, parse_document(text.data)), 0);
    buffer_done(&text);
    for (int i = 0; i < 60; i++) {
        _cleanup_free_ char *shown = NULL;

        top_press(&top, i < 20   ? TOP_KEY_PAGE_DOWN
                        : i < 25 ? TOP_KEY_END
                        : i < 50 ? TOP_KEY_UP
                                 : TOP_KEY_PAGE_UP);
        shown = drawn(&top, i % 2 ? 24 : 9, 80, true);
        assert_shows(shown, top_selected(&top)->id);
    }
    top_done(&top);
}

static void the_printed_table_has_every_row_and_every_column(void **state)
{
    struct top top;
    struct buffer text;

    (void)state;
    use_utf8();
    top_init(&top, 0);
    assert_int_equal(top_show(&top, node_at(100, "7")), 0);
    assert_int_equal(top_show(&top, node_at(102, "10")), 0);
    buffer_init(&text, 1 << 20);
    assert_int_equal(view_print(&top, 0, false, &text), 0);
    buffer_char(&text, '\0');
    assert_shows(text.data, "300.0 W = 280.0 workloads");
    assert_shows(text.data, "\npod       ml/train      200.0  66.7%  30.0 kJ   2.0% 1.00 GiB  0.00 "
                            "2.00 KiB  4.25 g  0.1250\n");
    assert_shows(text.data, "\nuser      1000 ");
    assert_hides(text.data, "q quit");
    buffer_done(&text);
    top_done(&top);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_screen_of_80_by_24_has_all_that_matters),
        cmocka_unit_test(a_wide_screen_has_every_column),
        cmocka_unit_test(a_screen_of_40_by_10_has_names_and_watts),
        cmocka_unit_test(no_size_of_the_screen_is_too_small),
        cmocka_unit_test(every_row_is_as_wide_as_the_screen_at_most),
        cmocka_unit_test(an_empty_node_says_that_it_is),
        cmocka_unit_test(a_replay_and_a_silent_daemon_have_bands),
        cmocka_unit_test(an_open_workload_shows_all_that_is_known_of_it),
        cmocka_unit_test(the_cursor_is_always_on_the_screen),
        cmocka_unit_test(the_printed_table_has_every_row_and_every_column),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
