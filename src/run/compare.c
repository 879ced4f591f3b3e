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
/* More than any command uses, and far from where squares overflow. */
static const double FIGURE_MAX = 1e18;

bool compare_is_whole(const struct result *run)
{
    return run->status == 0 && !run->is_interrupted;
}

static uint32_t meter_bit(enum meter_kind kind, bool is_modelled)
{
    return 1U << (2 * (unsigned)kind + is_modelled);
}

bool compare_same_meters(const struct run_summary *a, const struct run_summary *b)
{
    return a->meters == b->meters;
}

static void count_runs(struct run_summary *summary, size_t whole, size_t all)
{
    summary->runs = whole > 0 ? whole : all;
    summary->left_out = all - summary->runs;
}

void compare_summarise(const struct result *runs, size_t count, struct run_summary *ret_summary)
{
    double *values = calloc(count + 1, sizeof(*values));
    size_t whole = 0;

    *ret_summary = (struct run_summary){.runs = 0};
    for (size_t i = 0; i < count; i++)
        whole += compare_is_whole(&runs[i]);
    for (size_t i = 0; i < count; i++)
        for (size_t m = 0; m < runs[i].meter_count; m++)
            ret_summary->meters |= meter_bit(runs[i].meters[m].kind, runs[i].meters[m].is_modelled);
    count_runs(ret_summary, whole, count);
    if (count > 0)
        memcpy(ret_summary->currency, runs[0].currency, sizeof(ret_summary->currency));
    for (int quantity = 0; quantity < QUANTITIES && values; quantity++) {
        size_t known = 0;

        for (size_t i = 0; i < count; i++)
            if (whole == 0 || compare_is_whole(&runs[i]))
                known += result_get(&runs[i], (enum quantity)quantity, &values[known]);
        if (known == ret_summary->runs)
            ret_summary->of[quantity] = statistics_summarise(values, known);
    }
    free(values);
}

static bool is_whole(const struct json *run)
{
    int64_t status;

    /* Without a status it is of somebody else's making. */
    return (!json_int64(json_get(run, "exit_status"), &status) || status == 0) &&
           !json_is_true(json_get(run, "interrupted"));
}

static uint32_t read_meters(const struct json *meters)
{
    uint32_t bits = 0;

    for (size_t i = 0; i < json_length(meters); i++) {
        const char *word = json_text(json_get(json_at(meters, i), "meter"));

        for (int kind = 0; word && kind <= METER_NODE_OVERHEAD; kind++)
            if (strcmp(word, meter_words[kind]) == 0)
                bits |= meter_bit((enum meter_kind)kind,
                                  json_is_true(json_get(json_at(meters, i), "modelled")));
    }
    return bits;
}

static int read_runs(const struct json *runs, struct run_summary *summary)
{
    size_t count = json_length(runs), whole = 0;
    double *values = calloc(count, sizeof(*values));
    int r = 0;

    if (!values)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        whole += is_whole(json_at(runs, i));
    for (size_t i = 0; i < count; i++)
        summary->meters |= read_meters(json_get(json_at(runs, i), "meters"));
    count_runs(summary, whole, count);
    for (int quantity = 0; quantity < QUANTITIES; quantity++) {
        size_t known = 0;

        for (size_t i = 0; i < count; i++)
            if ((whole == 0 || is_whole(json_at(runs, i))) &&
                json_double(json_get(json_at(runs, i), quantity_words[quantity].key),
                            &values[known]))
                r = fabs(values[known++]) <= FIGURE_MAX ? r : -ERANGE;
        if (known == summary->runs)
            summary->of[quantity] = statistics_summarise(values, known);
    }
    free(values);
    return r;
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
    if (r < 0 || !json_int64(json_get(report, "run_report"), &version) || version != 1 ||
        json_length(runs) == 0 || json_length(runs) > RUNS_MAX) {
        json_free(report);
        return error_set(err, -EBADMSG,
                         "not a report of 'wattribute run': write one with --output=FILE");
    }
    currency = json_text(json_get(report, "currency"));
    if (currency && price_is_currency(currency))
        memcpy(summary.currency, currency, sizeof(summary.currency));
    if (json_double(json_get(report, "time"), &time_s) && time_s > 0 && time_s < 1e12)
        summary.time_us = (uint64_t)(time_s * 1e6);
    read_command(json_get(report, "command"), &summary);
    r = read_runs(runs, &summary);
    json_free(report);
    if (r == -ERANGE)
        return error_set(err, -EBADMSG, "it has figures that no run can have");
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

static void put_meters(const struct run_summary *of, struct buffer *out)
{
    bool is_first = true;

    for (int kind = 0; kind <= METER_NODE_OVERHEAD; kind++)
        for (int is_modelled = 0; is_modelled < 2; is_modelled++)
            if (of->meters & meter_bit((enum meter_kind)kind, is_modelled)) {
                buffer_str(out, is_first ? "" : ", ");
                buffer_str(out, meter_words[kind]);
                buffer_str(out, is_modelled ? " (modelled)" : "");
                is_first = false;
            }
    buffer_str(out, is_first ? "none" : "");
}

static void put_different_meters(const struct run_summary *a, const struct run_summary *b,
                                 struct buffer *out)
{
    buffer_str(out, "Their energies cannot be compared, as the meters differ: A has ");
    put_meters(a, out);
    buffer_str(out, "; B has ");
    put_meters(b, out);
    buffer_str(out, ".\n");
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
        buffer_char(out, '\'');
        if (of->left_out > 0) {
            snprintf(text, sizeof(text), ", without %zu that did not succeed", of->left_out);
            buffer_str(out, text);
        }
        buffer_char(out, '\n');
    }
    snprintf(text, sizeof(text), "\n%-17s %-*s%-*s%s\n", "", COLUMN, "A", COLUMN, "B",
             "B - A (95 % confidence)");
    buffer_str(out, text);
    for (int quantity = 0; quantity < QUANTITIES; quantity++)
        if (is_comparable(a, b, quantity))
            put_row(a, b, quantity, out);
    buffer_char(out, '\n');
    if (compare_same_meters(a, b))
        put_verdict(a, b, out);
    else
        put_different_meters(a, b, out);
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

static bool is_time(int quantity)
{
    return quantity == QUANTITY_WALL_TIME || quantity == QUANTITY_CPU_TIME;
}

void compare_json(const struct run_summary *a, const struct run_summary *b, struct buffer *out)
{
    bool same_meters = compare_same_meters(a, b), is_first = true;

    buffer_str(out, "{");
    json_member(out, "a", a->command);
    json_member(out, "b", b->command);
    if (!same_meters)
        json_member_bool(out, "meters_differ", true);
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
        }
        if (welch.is_known && (same_meters || is_time(quantity))) {
            json_key(out, "differ");
            buffer_str(out, welch.p < SIGNIFICANT ? "true" : "false");
        }
        buffer_char(out, '}');
    }
    buffer_str(out, "}}\n");
}
