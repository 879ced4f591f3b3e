#include <stdlib.h>

#include "core/json.h"
#include "core/macros.h"
#include "report/report_output.h"

static void put_double(struct buffer *out, const char *key, double value)
{
    json_key(out, key);
    words_put(out, "%.12g", value);
}

static void put_total(const struct collected *collected, const char *name,
                      const struct total *total, struct buffer *out)
{
    const struct totals *totals = &collected->totals;

    buffer_str(out, "\n  {");
    json_member(out, "name", name);
    if (total->about[0])
        json_member(out, "about", total->about);
    put_double(out, "joules", total->joules);
    put_double(out, "kwh", total->joules / 3.6e6);
    if (totals->has_uncertainty)
        put_double(out, "uncertainty_joules", total->uncertainty_joules);
    if (totals->has_grams)
        put_double(out, "grams", total->grams);
    if (totals->has_cost) {
        json_key(out, "cost");
        buffer_char(out, '{');
        for (size_t i = 0; i < totals->currency_count; i++)
            put_double(out, totals->currencies[i], total->cost[i]);
        buffer_char(out, '}');
    }
    json_key(out, "meters");
    buffer_char(out, '{');
    for (size_t i = 0; i < TOTALS_METERS; i++)
        if (total->meter_joules[i] != 0)
            put_double(out, totals_meter_words[i], total->meter_joules[i]);
    buffer_char(out, '}');
    if (total->last_window > 0) {
        put_double(out, "first", (double)collected_window_end(collected, total->first_window - 1));
        put_double(out, "last", (double)collected_window_end(collected, total->last_window));
    }
    json_key(out, "parts");
    buffer_char(out, '[');
    for (size_t i = 0; i < totals->parts.count; i++)
        words_put(out, i > 0 ? ",%.9g" : "%.9g", total->part_joules[i]);
    buffer_str(out, "]}");
}

static void put_totals(const struct collected *collected, const char *key,
                       enum totals_account account, struct buffer *out)
{
    struct total **rows = totals_sorted(&collected->totals, account);
    bool is_first = true;

    json_key(out, key);
    buffer_char(out, '[');
    for (size_t i = 0; rows && i < collected->totals.accounts[account].count; i++) {
        if (account == TOTALS_DEVICE && rows[i]->joules <= 0)
            continue;
        buffer_str(out, is_first ? "" : ",");
        is_first = false;
        put_total(collected, rows[i]->name, rows[i], out);
    }
    buffer_char(out, ']');
    if (!rows)
        buffer_fail(out);
    free(rows);
}

static void put_missing(const struct collected *collected, struct buffer *out)
{
    static const char *const kinds[] = {"late", "gap", "lost"};

    json_key(out, "missing");
    buffer_char(out, '[');
    for (size_t i = 0; i < collected->missing_count; i++) {
        const struct missing *missing = &collected->missing[i];

        buffer_str(out, i > 0 ? ",\n  {" : "\n  {");
        json_member(out, "node", missing->page->title);
        json_member(out, "kind", kinds[missing->kind]);
        put_double(out, "from", (double)missing->from_s);
        put_double(out, "to", (double)missing->to_s);
        if (missing->kind == MISSING_LATE)
            json_member_bool(out, "began_then", missing->is_fresh);
        if (missing->kind == MISSING_GAP)
            json_member_bool(out, "counters_began_anew", missing->has_restarted);
        if (missing->kind == MISSING_GAP)
            json_member_bool(out, "began_before_period", missing->is_older);
        buffer_char(out, '}');
    }
    buffer_char(out, ']');
    put_double(out, "missing_seconds", (double)collected_missing_s(collected));
    put_double(out, "node_seconds", (double)collected_whole_s(collected));
}

void report_json(const struct collected *collected, const struct report_source *source,
                 struct buffer *out)
{
    const struct totals *totals = &collected->totals;
    char text[WORDS_BYTES];

    buffer_char(out, '{');
    json_member_u64(out, "report", 1);
    json_member(out, "server", source->address);
    put_double(out, "from", (double)collected->period.from_s);
    put_double(out, "to", (double)collected->period.to_s);
    put_double(out, "step_seconds", (double)collected->step_s);
    if (collected->job)
        json_member(out, "job", collected->job);
    else if (collected->pod)
        json_member(out, "pod", collected->pod);
    else
        json_member(out, "by", names_by_words[collected->by]);
    json_member_u64(out, "nodes", collected->pages.table.count);
    json_key(out, "part_edges");
    buffer_char(out, '[');
    for (size_t i = 0; i <= totals->parts.count; i++)
        words_put(out, i > 0 ? ",%lld" : "%lld", (long long)totals->parts.edges_s[i]);
    buffer_char(out, ']');
    json_key(out, "total");
    put_total(collected, "", &totals->all, out);
    put_totals(collected, "groups", TOTALS_WORKLOAD, out);
    if (!words_is_life(collected)) {
        put_totals(collected, "nobody", TOTALS_UNOWNED, out);
        json_key(out, "unseen");
        put_total(collected, "", &totals->unseen, out);
        put_totals(collected, "by_node", TOTALS_METER, out);
    } else {
        put_totals(collected, "gpus", TOTALS_DEVICE, out);
    }
    put_missing(collected, out);
    json_member_u64(out, "restarts", collected->restarts);
    put_double(out, "late_joules", collected->late_joules);
    json_key(out, "findings");
    buffer_char(out, '[');
    for (size_t i = 0; words_finding(collected, i, text); i++) {
        buffer_str(out, i > 0 ? ",\n  " : "\n  ");
        json_string(out, text);
    }
    buffer_str(out, "]}\n");
}
