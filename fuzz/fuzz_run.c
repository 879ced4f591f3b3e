/* What `wattribute run` and `diff` read: the document of a daemon, a report that was kept, and a
 * line of /proc. Any bytes are an error, or books and reports whose results are conserved. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "run/compare.h"
#include "run/result.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_result(const struct books *books)
{
    static const struct relative relatives[] = {{.pid = 100, .start_ticks = 5, .cpu_us = 1}};
    static const struct books none;
    struct family family = {.items = (struct relative *)relatives, .count = 1};
    struct result result;

    result_make(&(struct result_input){.wall_us = 1,
                                       .cpu_us = 1,
                                       .family = &family,
                                       .before = &none,
                                       .after = &none,
                                       .daemon_before = &none,
                                       .daemon_after = books,
                                       .gpus = books},
                &result);
    for (size_t i = 0; i < result.meter_count; i++)
        if (result.meters[i].command_uj > result.meters[i].counted_uj)
            abort();
}

static void check_report(struct span text)
{
    struct run_summary summary;
    struct buffer out;
    struct error err;

    if (compare_read(text, &summary, &err) < 0)
        return;
    if (summary.runs == 0 || !memchr(summary.command, '\0', sizeof(summary.command)))
        abort();
    buffer_init(&out, 1 << 20);
    compare_text(&summary, &summary, &out);
    compare_json(&summary, &summary, &out);
    buffer_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = {(const char *)data, size};
    struct books books = {0};
    struct relative relative;
    struct error err;

    if (books_take_document(&books, text, &err) == 0)
        check_result(&books);
    books_done(&books);
    check_report(text);
    if (family_parse_stat(text.data, text.len, 10000, &relative) == 0 &&
        !memchr(relative.name, '\0', sizeof(relative.name)))
        abort();
    return 0;
}
