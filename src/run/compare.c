#include "run/compare.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/json_reader.h"

enum { RUNS_MAX = 10000, LINE_BYTES = 512, COLUMN = 30 };

static const double SIGNIFICANT = 0.05;

void compare_summarise(const struct result *runs, size_t count, struct run_summary *ret_summary)
{
    double *values = calloc(count + 1, sizeof(*values));

    *ret_summary = (struct run_summary){.runs = count};
    if (count > 0)
        memcpy(ret_summary->currency, runs[0].currency, sizeof(ret_summary->currency));
    for (int quantity = 0; quantity < QUANTITIES && values; quantity++) {
        size_t known = 0;

        for (size_t i = 0; i < count; i++)
            known += result_get(&runs[i], (enum quantity)quantity, &values[known]);
        if (known == count)
            ret_summary->of[quantity] = statistics_summarise(values, known);
    }
    free(values);
}

static int read_runs(const struct json *runs, struct run_summary *summary)
{
    double *values = calloc(summary->runs, sizeof(*values));

    if (!values)
        return -ENOMEM;
    for (int quantity = 0; quantity < QUANTITIES; quantity++) {
        size_t known = 0;

        for (size_t i = 0; i < summary->runs; i++)
            known += json_double(json_get(json_at(runs, i), quantity_words[quantity].key),
                                 &values[known]);
        if (known == summary->runs)
            summary->of[quantity] = statistics_summarise(values, known);
    }
    free(values);
    return 0;
}

static void read_command(const struct json *command, struct run_summary *summary)
{
    size_t len = 0;

    for (size_t i = 0; i < json_length(command) && len < sizeof(summary->command); i++) {
        const char *word = json_text(json_at(command, i));

        len += (size_t)snprintf(summary->command + len, sizeof(summary->command) - len, "%s%s",
                                i > 0 ? " " : "", word ? word : "");
    }
}

int compare_read(struct span text, struct run_summary *ret_summary, struct error *err)
{
    struct run_summary summary = {0};
    struct json *report = NULL;
    const struct json *runs;
    const char *currency;
    int r = json_read(text, &report);
    int64_t version;
    double time_s;

    if (r == -ENOMEM)
        return error_set(err, r, "out of memory");
    runs = json_get(report, "runs");
    summary.runs = json_length(runs);
    if (r < 0 || !json_int64(json_get(report, "run_report"), &version) || version != 1 ||
        summary.runs == 0 || summary.runs > RUNS_MAX) {
        json_free(report);
        return error_set(err, -EBADMSG,
                         "not a report of 'wattribute run': write one with --output=FILE");
    }
    currency = json_text(json_get(report, "currency"));
    snprintf(summary.currency, sizeof(summary.currency), "%.3s", currency ? currency : "");
    if (json_double(json_get(report, "time"), &time_s) && time_s > 0 && time_s < 1e12)
        summary.time_us = (uint64_t)(time_s * 1e6);
    read_command(json_get(report, "command"), &summary);
    r = read_runs(runs, &summary);
    json_free(report);
    if (r < 0)
        return error_set(err, r, "out of memory");
    *ret_summary = summary;
    return 0;
}

/* Both measured it, and costs are in one currency. */
static bool is_comparable(const struct run_summary *a, const struct run_summary *b, int quantity)
{
    return a->of[quantity].count > 0 && b->of[quantity].count > 0 &&
           (quantity != QUANTITY_COST || strcmp(a->currency, b->currency) == 0);
}

static const char *unit_of(const struct run_summary *summary, int quantity)
{
    return quantity == QUANTITY_COST ? summary->currency : quantity_words[quantity].unit;
}

/* "12.3 +- 0.4 J" */
static void put_mean(const struct run_summary *summary, int quantity, struct buffer *out)
{
    const struct summary *of = &summary->of[quantity];
    char text[LINE_BYTES], spread[64] = "";

    if (of->count > 1)
        snprintf(spread, sizeof(spread), " +- %.3g", of->sd);
    snprintf(text, sizeof(text), "%.6g%s %s", of->mean, spread, unit_of(summary, quantity));
    snprintf(text + strlen(text), sizeof(text) - strlen(text), "%*s",
             (int)(COLUMN - MIN(strlen(text), (size_t)COLUMN)), "");
    buffer_str(out, text);
}

static void put_row(const struct run_summary *a, const struct run_summary *b, int quantity,
                    struct buffer *out)
{
    struct welch welch = statistics_welch(&a->of[quantity], &b->of[quantity]);
    double base = a->of[quantity].mean;
    char text[LINE_BYTES];

    snprintf(text, sizeof(text), "%-17s ", quantity_words[quantity].title);
    buffer_str(out, text);
    put_mean(a, quantity, out);
    put_mean(b, quantity, out);
    if (base > 0) {
        snprintf(text, sizeof(text), "%+.1f %%", 100 * welch.difference / base);
        buffer_str(out, text);
    }
    if (base > 0 && welch.is_known) {
        snprintf(text, sizeof(text), " (%+.1f to %+.1f %%), p %s%.3g",
                 100 * (welch.difference - welch.half_width) / base,
                 100 * (welch.difference + welch.half_width) / base, welch.p < 1e-4 ? "< " : "= ",
                 MAX(welch.p, 1e-4));
        buffer_str(out, text);
    }
    buffer_char(out, '\n');
}

/* What the energy says, or, without any meter, the wall time. */
static void put_verdict(const struct run_summary *a, const struct run_summary *b,
                        struct buffer *out)
{
    int quantity = is_comparable(a, b, QUANTITY_ENERGY) ? QUANTITY_ENERGY : QUANTITY_WALL_TIME;
    const struct summary *of_a = &a->of[quantity], *of_b = &b->of[quantity];
    struct welch welch = statistics_welch(of_a, of_b);
    const char *title = quantity_words[quantity].title, *unit = quantity_words[quantity].unit;
    char text[LINE_BYTES];

    if (!is_comparable(a, b, quantity))
        snprintf(text, sizeof(text), "Nothing was measured in both.\n");
    else if (a->runs < 2 || b->runs < 2)
        snprintf(
            text, sizeof(text),
            "Too few runs to tell whether they differ: A has %zu, B has %zu. Use --repeat=5 or "
            "more for both.\n",
            a->runs, b->runs);
    else if (!welch.is_known)
        snprintf(text, sizeof(text), "%s: no run differs from another, so nothing can be tested.\n",
                 title);
    else if (welch.p >= SIGNIFICANT)
        snprintf(
            text, sizeof(text),
            "No difference of %s can be told (p = %.2g): it is between %+.3g and %+.3g %s with "
            "95 %% confidence.\n",
            title, welch.p, welch.difference - welch.half_width,
            welch.difference + welch.half_width, unit);
    else
        snprintf(
            text, sizeof(text),
            "They differ: B has %.3g %s %s %s than A, %.3g to %.3g with 95 %% confidence (p %s "
            "%.2g).\n",
            fabs(welch.difference), unit, welch.difference < 0 ? "less" : "more", title,
            fabs(welch.difference) - welch.half_width, fabs(welch.difference) + welch.half_width,
            welch.p < 1e-4 ? "<" : "=", MAX(welch.p, 1e-4));
    buffer_str(out, text);
}

void compare_text(const struct run_summary *a, const struct run_summary *b, struct buffer *out)
{
    char text[LINE_BYTES];

    for (int side = 0; side < 2; side++) {
        const struct run_summary *of = side == 0 ? a : b;

        snprintf(text, sizeof(text), "%c: %zu run%s of '", "AB"[side], of -> runs,
                 PLURAL_S(of->runs));
        buffer_str(out, text);
        buffer_printable(out, span_of(of->command));
        buffer_str(out, "'\n");
    }
    snprintf(text, sizeof(text), "\n%-17s %-*s%-*s%s\n", "", COLUMN, "A", COLUMN, "B",
             "B - A (95 % confidence)");
    buffer_str(out, text);
    for (int quantity = 0; quantity < QUANTITIES; quantity++)
        if (is_comparable(a, b, quantity))
            put_row(a, b, quantity, out);
    buffer_char(out, '\n');
    put_verdict(a, b, out);
}

static void put_number(struct buffer *out, const char *key, double value)
{
    char text[64];

    snprintf(text, sizeof(text), "%.9g", value);
    json_key(out, key);
    buffer_str(out, text);
}

static void put_side(struct buffer *out, const char *key, const struct summary *of)
{
    json_key(out, key);
    buffer_char(out, '{');
    json_member_u64(out, "runs", of->count);
    put_number(out, "mean", of->mean);
    if (of->count > 1)
        put_number(out, "sd", of->sd);
    put_number(out, "min", of->min);
    put_number(out, "max", of->max);
    buffer_char(out, '}');
}

void compare_json(const struct run_summary *a, const struct run_summary *b, struct buffer *out)
{
    bool is_first = true;

    buffer_str(out, "{");
    json_member(out, "a", a->command);
    json_member(out, "b", b->command);
    json_key(out, "quantities");
    buffer_char(out, '{');
    for (int quantity = 0; quantity < QUANTITIES; quantity++) {
        struct welch welch = statistics_welch(&a->of[quantity], &b->of[quantity]);

        if (!is_comparable(a, b, quantity))
            continue;
        buffer_str(out, is_first ? "\n " : ",\n ");
        is_first = false;
        json_string(out, quantity_words[quantity].key);
        buffer_str(out, ":{");
        put_side(out, "a", &a->of[quantity]);
        put_side(out, "b", &b->of[quantity]);
        put_number(out, "difference", welch.difference);
        if (welch.is_known) {
            put_number(out, "low", welch.difference - welch.half_width);
            put_number(out, "high", welch.difference + welch.half_width);
            put_number(out, "degrees_of_freedom", welch.degrees);
            put_number(out, "p", welch.p);
            json_key(out, "differ");
            buffer_str(out, welch.p < SIGNIFICANT ? "true" : "false");
        }
        buffer_char(out, '}');
    }
    buffer_str(out, "}}\n");
}
