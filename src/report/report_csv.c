#include <stdlib.h>
#include <string.h>

#include "report/report_output.h"

static void put_text(struct buffer *out, const char *text)
{
    buffer_char(out, '"');
    if (text[0] && strchr("=+-@\t\r", text[0]))
        buffer_char(out, '\'');
    for (; *text; text++) {
        if (*text == '"')
            buffer_char(out, '"');
        buffer_char(out, *text);
    }
    buffer_char(out, '"');
}

static void put_row(const struct collected *collected, const char *account, const char *name,
                    const struct total *total, struct buffer *out)
{
    const struct totals *totals = &collected->totals;

    buffer_str(out, account);
    buffer_char(out, ',');
    put_text(out, name);
    buffer_char(out, ',');
    put_text(out, total->about);
    words_put(out, ",%.12g,%.12g", total->joules / 3.6e6, total->joules);
    for (size_t i = 0; i < TOTALS_METERS; i++)
        words_put(out, ",%.12g", total->meter_joules[i]);
    if (totals->has_uncertainty)
        words_put(out, ",%.12g", total->uncertainty_joules);
    if (totals->has_grams)
        words_put(out, ",%.12g", total->grams);
    for (size_t i = 0; i < totals->currency_count; i++)
        words_put(out, ",%.12g", total->cost[i]);
    buffer_str(out, "\r\n");
}

static void put_heading(const struct totals *totals, struct buffer *out)
{
    buffer_str(out, "account,name,about,kwh,joules");
    for (size_t i = 0; i < TOTALS_METERS; i++)
        words_put(out, ",%s_joules", totals_meter_words[i]);
    if (totals->has_uncertainty)
        buffer_str(out, ",uncertainty_joules");
    if (totals->has_grams)
        buffer_str(out, ",grams");
    for (size_t i = 0; i < totals->currency_count; i++) {
        char title[32];

        snprintf(title, sizeof(title), "cost_%.8s", totals->currencies[i]);
        buffer_char(out, ',');
        put_text(out, title);
    }
    buffer_str(out, "\r\n");
}

void report_csv(const struct collected *collected, struct buffer *out)
{
    const struct totals *totals = &collected->totals;
    size_t unowned_count;
    struct total **rows = totals_sorted(totals, TOTALS_WORKLOAD);
    struct total **unowned = words_unowned(collected, &unowned_count);

    if (rows && unowned) {
        put_heading(totals, out);
        for (size_t i = 0; i < totals->accounts[TOTALS_WORKLOAD].count; i++)
            put_row(collected, "workload", rows[i]->name, rows[i], out);
        for (size_t i = 0; i < unowned_count && !words_is_life(collected); i++)
            put_row(collected, "nobody", unowned[i]->name[0] ? unowned[i]->name : "unseen",
                    unowned[i], out);
        put_row(collected, "total", "", &totals->all, out);
    } else {
        buffer_fail(out);
    }
    free(rows);
    free(unowned);
}
