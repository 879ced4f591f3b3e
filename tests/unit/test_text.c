/* metrics/text: the two text formats from the same calls, and names that last. */
#include "unit.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/macros.h"
#include "core/utf8.h"
#include "metrics/text.h"

enum { CAP_BYTES = 1 << 20 };

static void assert_page(struct buffer *page, const char *expected)
{
    assert_false(buffer_failed(page));
    if (page->len != strlen(expected) || memcmp(page->data, expected, page->len) != 0)
        fail_msg("expected:\n%s\ngot:\n%.*s", expected, (int)page->len, page->data);
    buffer_done(page);
}

/* A gauge with a unit, a counter with one, and a family without samples between them. */
static void write_some(struct buffer *page, enum page_format format)
{
    struct text text;

    buffer_init(page, CAP_BYTES);
    text_begin(&text, page, format, "my_gpu_process");
    text_family(&text, METRIC_GPU_POWER);
    text_sample(&text);
    text_label_u64(&text, "gpu", 0);
    text_value(&text, 123162, 3);
    text_sample(&text);
    text_label_u64(&text, "gpu", UINT64_MAX);
    text_label(&text, "name", "x");
    text_value(&text, -1, 3);
    text_family(&text, METRIC_GPU_CLOCK);
    text_family(&text, METRIC_SELF_CPU);
    text_sample(&text);
    text_value(&text, 1500000, 6);
    text_family(&text, METRIC_FRONT_STARTS);
    text_sample(&text);
    text_value(&text, 2, 0);
    text_end(&text);
}

static void the_older_format_names_a_counter_with_total_everywhere(void **state)
{
    struct buffer page;

    (void)state;
    write_some(&page, PAGE_TEXT);
    assert_page(
        &page,
        "# HELP wattribute_gpu_power_watts Power of a GPU as the driver reports it; of a MIG "
        "instance, an estimate.\n"
        "# TYPE wattribute_gpu_power_watts gauge\n"
        "wattribute_gpu_power_watts{gpu=\"0\"} 123.162\n"
        "wattribute_gpu_power_watts{gpu=\"18446744073709551615\",name=\"x\"} -0.001\n"
        "# HELP process_cpu_seconds_total CPU time of the collector process.\n"
        "# TYPE process_cpu_seconds_total counter\n"
        "process_cpu_seconds_total 1.5\n"
        "# HELP wattribute_front_starts_total Deprecated: use "
        "wattribute_child_starts_total of the server.\n"
        "# TYPE wattribute_front_starts_total counter\n"
        "wattribute_front_starts_total 2\n");
}

static void openmetrics_names_the_family_without_total_and_gives_units_and_an_end(void **state)
{
    struct buffer page;

    (void)state;
    write_some(&page, PAGE_OPENMETRICS);
    assert_page(
        &page,
        "# HELP wattribute_gpu_power_watts Power of a GPU as the driver reports it; of a MIG "
        "instance, an estimate.\n"
        "# TYPE wattribute_gpu_power_watts gauge\n"
        "# UNIT wattribute_gpu_power_watts watts\n"
        "wattribute_gpu_power_watts{gpu=\"0\"} 123.162\n"
        "wattribute_gpu_power_watts{gpu=\"18446744073709551615\",name=\"x\"} -0.001\n"
        "# HELP process_cpu_seconds CPU time of the collector process.\n"
        "# TYPE process_cpu_seconds counter\n"
        "# UNIT process_cpu_seconds seconds\n"
        "process_cpu_seconds_total 1.5\n"
        "# HELP wattribute_front_starts Deprecated: use "
        "wattribute_child_starts_total of the server.\n"
        "# TYPE wattribute_front_starts counter\n"
        "wattribute_front_starts_total 2\n"
        "# EOF\n");
}

static void only_the_process_families_carry_the_operators_prefix(void **state)
{
    static const struct {
        enum metric metric;
        const char *sample;
    } cases[] = {
        {METRIC_PROCESS_ACTIVE, "\nlab_active 1\n"},
        {METRIC_PROCESS_ACTIVE, "\nlab_active 1\n"},
        {METRIC_SOURCE_UP, "\nwattribute_source_up 1\n"},
        {METRIC_SELF_MEMORY, "\nprocess_resident_memory_bytes 1\n"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct buffer page;
        struct text text;

        buffer_init(&page, CAP_BYTES);
        text_begin(&text, &page, PAGE_TEXT, "lab");
        text_family(&text, cases[i].metric);
        text_sample(&text);
        text_value(&text, 1, 0);
        buffer_char(&page, '\0');
        assert_non_null(strstr(page.data, cases[i].sample));
        buffer_done(&page);
    }
}

static void a_label_holds_any_bytes_as_valid_utf8_on_one_line(void **state)
{
    static const struct {
        const char *value, *written;
    } cases[] = {
        {"", ""},
        {"plain", "plain"},
        {"a b,c=d{e}", "a b,c=d{e}"},
        {"say \"no\"", "say \\\"no\\\""},
        {"C:\\new", "C:\\\\new"},
        {"one\ntwo", "one\\ntwo"},
        {"a\tb\rc", "a" UTF8_REPLACEMENT "09b" UTF8_REPLACEMENT "0dc"},
        {"\x01\x1b\x7f", UTF8_REPLACEMENT "01" UTF8_REPLACEMENT "1b" UTF8_REPLACEMENT "7f"},
        /* A literal one is written as its bytes: no two values look the same. */
        {UTF8_REPLACEMENT "ff",
         UTF8_REPLACEMENT "ef" UTF8_REPLACEMENT "bf" UTF8_REPLACEMENT "bdff"},
        {"caf\xc3\xa9 \xf0\x9f\x98\x80", "caf\xc3\xa9 \xf0\x9f\x98\x80"},
        {"\xff\xc3", UTF8_REPLACEMENT "ff" UTF8_REPLACEMENT "c3"},
        {"\xc3\"", UTF8_REPLACEMENT "c3\\\""}, /* a broken character does not hide the quote */
        {"\xe2\x82\\", UTF8_REPLACEMENT "e2" UTF8_REPLACEMENT "82\\\\"},
        {"\xed\xa0\x80\n", UTF8_REPLACEMENT "ed" UTF8_REPLACEMENT "a0" UTF8_REPLACEMENT "80\\n"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct buffer page;
        struct text text;
        char expected[256];

        snprintf(expected, sizeof(expected),
                 "# HELP wattribute_source_up 1 if the source's last read succeeded and none "
                 "hangs.\n# TYPE wattribute_source_up gauge\n"
                 "wattribute_source_up{source=\"%s\",next=\"1\"} 1\n",
                 cases[i].written);
        buffer_init(&page, CAP_BYTES);
        text_begin(&text, &page, PAGE_TEXT, "x");
        text_family(&text, METRIC_SOURCE_UP);
        text_sample(&text);
        text_label(&text, "source", cases[i].value);
        text_label_u64(&text, "next", 1);
        text_value(&text, 1, 0);
        assert_page(&page, expected);
    }
}

static void labels_are_repeated_as_they_were_escaped_and_others_may_follow(void **state)
{
    struct text_labels labels;
    struct buffer page;
    struct text text;

    (void)state;
    buffer_init(&page, CAP_BYTES);
    text_begin(&text, &page, PAGE_TEXT, "my_gpu_process");
    text_family(&text, METRIC_SOURCE_UP);
    text_sample(&text);
    text_label(&text, "source", "a\"b");
    labels = text_labels_so_far(&text);
    text_label(&text, "first", "1");
    text_value(&text, 1, 0);
    text_sample(&text);
    text_repeat_labels(&text, labels);
    text_label(&text, "second", "2");
    text_value(&text, 2, 0);
    text_sample(&text);
    text_repeat_labels(&text, (struct text_labels){0});
    text_value(&text, 3, 0);
    assert_page(&page, "# HELP wattribute_source_up 1 if the source's last read succeeded and none "
                       "hangs.\n"
                       "# TYPE wattribute_source_up gauge\n"
                       "wattribute_source_up{source=\"a\\\"b\",first=\"1\"} 1\n"
                       "wattribute_source_up{source=\"a\\\"b\",second=\"2\"} 2\n"
                       "wattribute_source_up 3\n");
}

static void an_empty_page_is_empty_or_only_its_end(void **state)
{
    struct buffer page;
    struct text text;

    (void)state;
    buffer_init(&page, CAP_BYTES);
    text_begin(&text, &page, PAGE_TEXT, "x");
    text_family(&text, METRIC_SOURCE_UP);
    text_end(&text);
    assert_int_equal(page.len, 0);
    text_begin(&text, &page, PAGE_OPENMETRICS, "x");
    text_family(&text, METRIC_SOURCE_UP);
    text_end(&text);
    assert_page(&page, "# EOF\n");
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);

    return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

static void every_metric_has_a_well_formed_name_without_total(void **state)
{
    (void)state;
    for (int metric = 0; metric < METRIC_COUNT; metric++) {
        bool is_theirs = metric >= METRIC_DCGM_SM_CLOCK; /* names of other exporters */
        const char *name = metric_names[metric].name;

        assert_non_null(name);
        assert_true(is_theirs || (name[0] >= 'a' && name[0] <= 'z'));
        for (const char *p = name; *p; p++)
            if (!islower((unsigned char)*p) && !isdigit((unsigned char)*p) && *p != '_' &&
                !(is_theirs && isupper((unsigned char)*p)))
                fail_msg("%s: '%c'", name, *p);
        assert_null(strstr(name, "__"));
        if (ends_with(name, "_") || ends_with(name, "_total"))
            fail_msg("%s", name);
    }
}

static void the_unit_is_the_last_word_of_the_name(void **state)
{
    static const char *const units[] = {"joules", "watts",   "seconds", "bytes",
                                        "ratio",  "celsius", "hertz",   "grams"};

    (void)state;
    for (int metric = 0; metric < METRIC_COUNT; metric++) {
        const char *name = metric_names[metric].name;
        const char *last = strrchr(name, '_') ? strrchr(name, '_') + 1 : name;
        char expected[256] = "";
        struct buffer page;
        struct text text;

        for (size_t i = 0; i < ARRAY_SIZE(units); i++)
            if (strcmp(last, units[i]) == 0)
                snprintf(expected, sizeof(expected), "%s %s\n", name, units[i]);
        buffer_init(&page, CAP_BYTES);
        text_begin(&text, &page, PAGE_OPENMETRICS, "p");
        text_family(&text, (enum metric)metric);
        text_sample(&text);
        buffer_char(&page, '\0');
        if (!strstr(page.data, expected) || !strstr(page.data, "# UNIT ") != !expected[0])
            fail_msg("%s: expected the unit '%s' in:\n%s", name, expected, page.data);
        buffer_done(&page);
    }
}

static void every_help_is_one_line_and_ends_with_a_full_stop(void **state)
{
    (void)state;
    for (int metric = 0; metric < METRIC_COUNT; metric++) {
        const char *help = metric_names[metric].help;

        assert_non_null(help);
        /* A backslash or quote would have to be escaped, and differently in each format. */
        if (strlen(help) < 2 || !ends_with(help, ".") || strpbrk(help, "\n\r\t\\\"") ||
            help[0] == ' ' || strstr(help, "  "))
            fail_msg("%s: %s", metric_names[metric].name, help);
    }
}

static void full_name(int metric, enum page_format format, char *name, size_t size_bytes)
{
    static const char *const prefixes[] = {
        [METRIC_PREFIX_PROCESS] = "my_gpu_process_",
        [METRIC_PREFIX_OWN] = "wattribute_",
        [METRIC_PREFIX_NONE] = "",
    };
    bool total = format == PAGE_TEXT && metric_names[metric].type == METRIC_COUNTER;

    snprintf(name, size_bytes, "%s%s%s", prefixes[metric_names[metric].prefix],
             metric_names[metric].name, total ? "_total" : "");
}

/* METRIC_PROCESS_ENERGY_SUM is for the older format only: in OpenMetrics its name is taken. */
static void no_two_families_of_a_format_have_the_same_name(void **state)
{
    (void)state;
    for (int format = PAGE_TEXT; format <= PAGE_OPENMETRICS; format++)
        for (int a = 0; a < METRIC_COUNT; a++)
            for (int b = 0; b < a; b++) {
                char one[128], two[128];

                if (format == PAGE_OPENMETRICS &&
                    (a == METRIC_PROCESS_ENERGY_SUM || b == METRIC_PROCESS_ENERGY_SUM))
                    continue;
                full_name(a, (enum page_format)format, one, sizeof(one));
                full_name(b, (enum page_format)format, two, sizeof(two));
                if (strcmp(one, two) == 0)
                    fail_msg("%s is there twice", one);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_older_format_names_a_counter_with_total_everywhere),
        cmocka_unit_test(openmetrics_names_the_family_without_total_and_gives_units_and_an_end),
        cmocka_unit_test(only_the_process_families_carry_the_operators_prefix),
        cmocka_unit_test(a_label_holds_any_bytes_as_valid_utf8_on_one_line),
        cmocka_unit_test(labels_are_repeated_as_they_were_escaped_and_others_may_follow),
        cmocka_unit_test(an_empty_page_is_empty_or_only_its_end),
        cmocka_unit_test(every_metric_has_a_well_formed_name_without_total),
        cmocka_unit_test(the_unit_is_the_last_word_of_the_name),
        cmocka_unit_test(every_help_is_one_line_and_ends_with_a_full_stop),
        cmocka_unit_test(no_two_families_of_a_format_have_the_same_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
