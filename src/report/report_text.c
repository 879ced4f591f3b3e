#include "report/report_output.h"

#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "core/utf8.h"

enum { ROWS_SHOWN = 40, NAME_WIDTH = 36 };

/* Cut or filled up to the width, in characters. */
static void put_name(struct buffer *out, const char *name)
{
    struct buffer shown;
    size_t width = 0, len = 0;

    buffer_init(&shown, 64 << 10);
    buffer_printable(&shown, span_of(name));
    while (len < shown.len && width < NAME_WIDTH) {
        size_t step = utf8_char_len((struct span){shown.data + len, shown.len - len});

        len += step > 0 ? step : 1;
        width++;
    }
    buffer_bytes(out, shown.data, len);
    for (; width < NAME_WIDTH; width++)
        buffer_char(out, ' ');
    buffer_done(&shown);
}

static void put_row(const struct collected *collected, const char *name, const struct total *total,
                    bool has_uncertainty, struct buffer *out)
{
    const struct totals *totals = &collected->totals;
    char kwh[FIGURE_BYTES], uncertainty[FIGURE_BYTES] = "", grams[FIGURE_BYTES] = "";
    char cost[WORDS_BYTES] = "";

    words_kwh(total->joules, kwh);
    if (has_uncertainty && total->uncertainty_joules > 0)
        words_kwh(total->uncertainty_joules, uncertainty);
    if (totals->has_grams)
        words_grams(total->grams, grams);
    words_cost(totals, total, cost);
    buffer_str(out, "  ");
    put_name(out, name);
    words_put(out, " %12s %6.1f%%", kwh,
              totals->all.joules > 0 ? 100 * total->joules / totals->all.joules : 0.0);
    words_put(out, " %2s%10s %12s %16s", uncertainty[0] ? "+-" : "", uncertainty, grams, cost);
    while (out->len > 0 && out->data[out->len - 1] == ' ')
        out->len--;
    buffer_char(out, '\n');
}

static void put_others(const struct collected *collected, struct total *const *rows, size_t count,
                       struct buffer *out)
{
    struct total others = {0};
    char name[64];

    for (size_t i = ROWS_SHOWN; i < count; i++) {
        others.joules += rows[i]->joules;
        others.uncertainty_joules += rows[i]->uncertainty_joules;
        others.grams += rows[i]->grams;
        for (size_t j = 0; j < TOTALS_CURRENCIES; j++)
            others.cost[j] += rows[i]->cost[j];
    }
    snprintf(name, sizeof(name), "... %zu more (--csv has them)", count - ROWS_SHOWN);
    put_row(collected, name, &others, true, out);
}

static void put_table(const struct collected *collected, struct buffer *out)
{
    size_t count = collected->totals.accounts[TOTALS_WORKLOAD].count, unowned_count;
    struct total **rows = totals_sorted(&collected->totals, TOTALS_WORKLOAD);
    struct total **unowned = words_unowned(collected, &unowned_count);
    char line[128];

    if (!rows || !unowned) {
        buffer_fail(out);
        goto end;
    }
    snprintf(line, sizeof(line), "  %-36s %12s %7s %12s %12s %16s",
             words_is_life(collected) ? "node" : names_by_words[collected->by], "kWh", "part",
             collected->totals.has_uncertainty ? "uncertain" : "",
             collected->totals.has_grams ? "CO2e" : "", collected->totals.has_cost ? "cost" : "");
    buffer_str(out, line);
    while (out->data && out->data[out->len - 1] == ' ')
        out->len--;
    buffer_char(out, '\n');
    for (size_t i = 0; i < MIN(count, (size_t)ROWS_SHOWN); i++)
        put_row(collected,
                words_is_life(collected) ? rows[i]->name : words_name(collected, rows[i]), rows[i],
                true, out);
    if (count > ROWS_SHOWN)
        put_others(collected, rows, count, out);
    if (!words_is_life(collected) && unowned_count > 0) {
        buffer_str(out, "\n  nobody's\n");
        for (size_t i = 0; i < unowned_count; i++)
            put_row(collected, words_reason(unowned[i]), unowned[i], false, out);
    }
    buffer_char(out, '\n');
    put_row(collected, words_is_life(collected) ? "the whole" : "all meters",
            &collected->totals.all, true, out);
end:
    free(rows);
    free(unowned);
}

static void put_life(const struct collected *collected, struct buffer *out)
{
    const struct totals *totals = &collected->totals;
    struct total **devices;
    char text[WORDS_BYTES];

    if (!words_life(collected, text))
        return;
    words_put(out, "  %s\n", text);
    devices = totals_sorted(totals, TOTALS_DEVICE);
    for (size_t i = 0; devices && i < totals->accounts[TOTALS_DEVICE].count; i++) {
        char kwh[FIGURE_BYTES];

        if (devices[i]->joules <= 0)
            break;
        words_kwh(devices[i]->joules, kwh);
        words_put(out, "  %s ", i == 0 ? "GPUs:" : "     ");
        buffer_printable(out, span_of(devices[i]->name));
        words_put(out, " %s", devices[i]->about[0] ? "(" : "");
        buffer_printable(out, span_of(devices[i]->about));
        words_put(out, "%s %s kWh\n", devices[i]->about[0] ? ")" : "", kwh);
    }
    free(devices);
    buffer_char(out, '\n');
}

void report_text(const struct collected *collected, const struct report_source *source,
                 struct buffer *out)
{
    char text[WORDS_BYTES], title[PERIOD_TITLE_BYTES];

    words_subject(collected, text);
    period_title(&collected->period, title);
    buffer_str(out, "\n  ");
    buffer_printable(out, span_of(text));
    words_put(out, ", %s\n", title);
    words_put(out, "  %zu node%s, by ", collected->pages.table.count,
              PLURAL_S(collected->pages.table.count));
    buffer_printable(out, span_of(source->address));
    words_put(out, "; one look every %lld s\n\n", (long long)collected->step_s);
    if (words_is_life(collected))
        put_life(collected, out);
    put_table(collected, out);
    for (size_t i = 0; words_finding(collected, i, text); i++) {
        buffer_str(out, i == 0 ? "\n  missing, and to know:\n  - " : "  - ");
        buffer_printable(out, span_of(text));
        buffer_char(out, '\n');
    }
    buffer_char(out, '\n');
}
