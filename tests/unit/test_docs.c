/* docs/metrics.md tells of every metric, with its type, and of no other. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/fs.h"
#include "core/macros.h"
#include "core/span.h"
#include "metrics/text.h"

enum { NAME_BYTES = 128 };

static void print_name(const struct metric_name *metric, char name[static NAME_BYTES])
{
    static const char *const prefixes[] = {
        [METRIC_PREFIX_PROCESS] = "my_gpu_process_",
        [METRIC_PREFIX_OWN] = "wattribute_",
        [METRIC_PREFIX_NONE] = "",
    };

    snprintf(name, NAME_BYTES, "%s%s%s", prefixes[metric->prefix], metric->name,
             metric->type == METRIC_COUNTER ? "_total" : "");
}

/* METRIC_COUNT: there is none. */
static size_t find_metric(struct span wanted)
{
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        char name[NAME_BYTES];

        print_name(&metric_names[i], name);
        if (span_equals(wanted, name))
            return i;
    }
    return METRIC_COUNT;
}

static struct span trim(struct span text)
{
    while (text.len > 0 && text.data[0] == ' ')
        text = (struct span){text.data + 1, text.len - 1};
    while (text.len > 0 && text.data[text.len - 1] == ' ')
        text.len--;
    return text;
}

/* The names of a cell, "`a{x,y}`, `b`": each is a family of this type, and was in no other row. */
static void check_names(struct span cell, enum metric_type type, size_t rows[static METRIC_COUNT])
{
    while (cell.len > 0) {
        struct span code, name;
        size_t index;

        (void)span_cut(&cell, '`');
        code = span_cut(&cell, '`');
        name = span_cut(&code, '{');
        if (name.len == 0)
            continue;
        index = find_metric(name);
        if (index == METRIC_COUNT) {
            fail_msg("docs/metrics.md has %.*s, which is no metric", (int)name.len, name.data);
            return;
        }
        if ((metric_names[index].type == METRIC_GAUGE) != (type == METRIC_GAUGE))
            fail_msg("docs/metrics.md has the wrong type of %.*s", (int)name.len, name.data);
        rows[index]++;
    }
}

/* A row of a table of families: the cell before the one with the type has the names. */
static void check_row(struct span line, size_t rows[static METRIC_COUNT])
{
    struct span before = {"", 0};

    if (!span_strip_prefix(&line, "|"))
        return;
    while (line.len > 0) {
        struct span cell = trim(span_cut(&line, '|'));

        if (span_equals(cell, "gauge") || span_equals(cell, "counter")) {
            check_names(before, span_equals(cell, "gauge") ? METRIC_GAUGE : METRIC_COUNTER, rows);
            return;
        }
        before = cell;
    }
}

static void every_metric_is_in_one_row_of_its_type_and_no_other_name_is(void **state)
{
    _cleanup_close_ int fd = open(SOURCE_DIR "/docs/metrics.md", O_RDONLY | O_CLOEXEC);
    _cleanup_free_ char *page = NULL;
    size_t rows[METRIC_COUNT] = {0}, len;
    struct span rest;

    (void)state;
    assert_int_equal(fs_read_fd(fd, 1 << 20, &page, &len), 0);
    rest = (struct span){page, len};
    while (rest.len > 0)
        check_row(span_cut(&rest, '\n'), rows);
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        char name[NAME_BYTES];

        print_name(&metric_names[i], name);
        if (rows[i] != 1)
            fail_msg("docs/metrics.md has %zu rows of %s", rows[i], name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_metric_is_in_one_row_of_its_type_and_no_other_name_is)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
