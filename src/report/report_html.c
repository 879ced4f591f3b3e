#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "report/report_chart.h"

enum { ROWS_SHOWN = 200 };

extern const char report_css[];
extern const size_t report_css_len;

static void put_head(const char *title, struct buffer *out)
{
    buffer_str(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                    "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action "
                    "'none'\">\n<meta name=\"viewport\" content=\"width=device-width, "
                    "initial-scale=1\">\n<meta name=\"referrer\" content=\"no-referrer\">\n"
                    "<link rel=\"icon\" href=\"data:,\">\n<title>");
    chart_put_text(out, title);
    buffer_str(out, "</title>\n<style>\n");
    buffer_bytes(out, report_css, report_css_len);
    buffer_str(out, "</style>\n</head>\n<body>\n");
}

static void put_figure(struct buffer *out, const char *title, const char *value, const char *note)
{
    words_put(out, "<div><dt>%s</dt><dd>", title);
    chart_put_text(out, value);
    if (note[0]) {
        buffer_str(out, "<small>");
        chart_put_text(out, note);
        buffer_str(out, "</small>");
    }
    buffer_str(out, "</dd></div>\n");
}

static void put_figures(const struct collected *collected, struct buffer *out)
{
    const struct totals *totals = &collected->totals;
    const struct total *all = &totals->all;
    int64_t whole_s = collected_whole_s(collected), missing_s = collected_missing_s(collected);
    char text[WORDS_BYTES], note[WORDS_BYTES] = "", figure[FIGURE_BYTES];

    buffer_str(out, "<dl class=\"figures\">\n");
    words_kwh(all->joules, figure);
    snprintf(text, sizeof(text), "%s kWh", figure);
    if (all->uncertainty_joules > 0) {
        words_kwh(all->uncertainty_joules, figure);
        snprintf(note, sizeof(note), "divided to within %s kWh", figure);
    }
    put_figure(out, "Energy", text, note);
    if (totals->has_cost) {
        words_cost(totals, all, text);
        put_figure(out, "Cost", text, "at the prices of their time");
    }
    if (totals->has_grams) {
        words_grams(all->grams, text);
        put_figure(out, "CO2 equivalent", text, "at the factors of their time");
    }
    snprintf(text, sizeof(text), "%zu", collected->pages.table.count);
    snprintf(note, sizeof(note), "%.2f %% of their time was seen",
             whole_s > 0 ? 100.0 * (double)(whole_s - missing_s) / (double)whole_s : 0.0);
    put_figure(out, collected->pages.table.count == 1 ? "Node" : "Nodes", text, note);
    buffer_str(out, "</dl>\n");
}

static void put_cells(const struct collected *collected, const struct total *total,
                      bool has_uncertainty, struct buffer *out)
{
    const struct totals *totals = &collected->totals;
    char kwh[FIGURE_BYTES], figure[FIGURE_BYTES], cost[WORDS_BYTES];

    words_kwh(total->joules, kwh);
    words_put(out, "<td>%s</td><td class=\"dim\">%.1f %%</td>", kwh,
              totals->all.joules > 0 ? 100 * total->joules / totals->all.joules : 0.0);
    if (totals->has_uncertainty) {
        words_kwh(total->uncertainty_joules, figure);
        if (has_uncertainty && total->uncertainty_joules > 0)
            words_put(out, "<td class=\"dim\">± %s</td>", figure);
        else
            buffer_str(out, "<td></td>");
    }
    if (totals->has_grams) {
        words_grams(total->grams, figure);
        words_put(out, "<td>%s</td>", figure);
    }
    if (totals->has_cost) {
        words_cost(totals, total, cost);
        buffer_str(out, "<td>");
        chart_put_text(out, cost);
        buffer_str(out, "</td>");
    }
    buffer_str(out, "</tr>\n");
}

static void put_row(const struct collected *collected, const char *name, const char *about,
                    const struct total *total, double most, const char *colour, struct buffer *out)
{
    buffer_str(out, "<tr><th scope=\"row\"><bdi>");
    chart_put_text(out, name);
    buffer_str(out, "</bdi>");
    if (about[0]) {
        buffer_str(out, "<small><bdi>");
        chart_put_text(out, about);
        buffer_str(out, "</bdi></small>");
    }
    buffer_str(out, "</th><td>");
    chart_bar(total, most, colour, out);
    buffer_str(out, "</td>");
    put_cells(collected, total, true, out);
}

static void put_heading(const struct collected *collected, struct buffer *out)
{
    const struct totals *totals = &collected->totals;

    words_put(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table\"><table>\n<thead><tr><th scope=\"col\">%s</th><td></td><th "
        "scope=\"col\">kWh</th><th scope=\"col\">part</th>",
        words_is_life(collected) ? "node" : names_by_words[collected->by]);
    if (totals->has_uncertainty)
        buffer_str(out, "<th scope=\"col\">uncertainty</th>");
    if (totals->has_grams)
        buffer_str(out, "<th scope=\"col\">CO2e</th>");
    if (totals->has_cost)
        buffer_str(out, "<th scope=\"col\">cost</th>");
    buffer_str(out, "</tr></thead>\n");
}

static void put_rows(const struct collected *collected, struct total *const *rows, size_t count,
                     double most, struct buffer *out)
{
    char colour[8];

    buffer_str(out, "<tbody>\n");
    for (size_t i = 0; i < MIN(count, (size_t)ROWS_SHOWN); i++) {
        snprintf(colour, sizeof(colour), "c%zu",
                 count > CHART_GROUPS ? MIN(i, (size_t)CHART_GROUPS - 1) : i);
        put_row(collected,
                words_is_life(collected) ? rows[i]->name : words_name(collected, rows[i]),
                rows[i]->about, rows[i], most, colour, out);
    }
    buffer_str(out, "</tbody>\n");
}

static void put_table(const struct collected *collected, struct total *const *rows, size_t count,
                      struct total *const *unowned, size_t unowned_count, struct buffer *out)
{
    double most = count > 0 ? rows[0]->joules : 0;

    for (size_t i = 0; i < unowned_count; i++)
        most = MAX(most, unowned[i]->joules);
    words_put(out, "<section class=\"card long\"><h2>%s</h2>\n",
              words_is_life(collected) ? "On which nodes" : "Who used it");
    put_heading(collected, out);
    put_rows(collected, rows, count, most, out);
    if (unowned_count > 0) {
        buffer_str(out, "<tbody class=\"nobodys\">\n");
        for (size_t i = 0; i < unowned_count; i++)
            put_row(collected, words_reason(unowned[i]), "", unowned[i], most, "nobody", out);
        buffer_str(out, "</tbody>\n");
    }
    words_put(out, "<tfoot><tr><th scope=\"row\">%s</th><td></td>",
              words_is_life(collected) ? "the whole" : "all meters");
    put_cells(collected, &collected->totals.all, true, out);
    buffer_str(out, "</tfoot></table></div>\n");
    if (count > ROWS_SHOWN)
        words_put(out,
                  "<p class=\"dim\">%zu more rows are in the sums; <code>--csv</code> has "
                  "them.</p>\n",
                  count - ROWS_SHOWN);
    buffer_str(out, "</section>\n");
}

static void put_devices(const struct collected *collected, struct buffer *out)
{
    struct total **devices = totals_sorted(&collected->totals, TOTALS_DEVICE);
    const char *end = "";

    for (size_t i = 0; devices && i < collected->totals.accounts[TOTALS_DEVICE].count; i++) {
        char kwh[FIGURE_BYTES];

        if (devices[i]->joules <= 0)
            break;
        if (i == 0)
            buffer_str(out, "<section class=\"card\"><h2>Its GPUs</h2><ul class=\"notes\">\n");
        end = "</ul></section>\n";
        words_kwh(devices[i]->joules, kwh);
        buffer_str(out, "<li><b><bdi>");
        chart_put_text(out, devices[i]->about[0] ? devices[i]->about : devices[i]->name);
        words_put(out, "</bdi></b> %s kWh <span class=\"dim\"><bdi>", kwh);
        chart_put_text(out, devices[i]->about[0] ? devices[i]->name : "");
        buffer_str(out, "</bdi></span></li>\n");
    }
    buffer_str(out, end);
    free(devices);
}

static void put_findings(const struct collected *collected, struct buffer *out)
{
    char text[WORDS_BYTES];

    buffer_str(out, "<section class=\"card\"><h2>What is missing</h2>\n");
    if (!words_finding(collected, 0, text)) {
        buffer_str(out, "<p class=\"none\">Nothing: every node was seen all the time, no counter "
                        "began anew, and every joule of the meters is above.</p></section>\n");
        return;
    }
    chart_nodes(collected, out);
    buffer_str(out, "<ul class=\"notes\">\n");
    for (size_t i = 0; words_finding(collected, i, text); i++) {
        buffer_str(out, "<li>");
        chart_put_text(out, text);
        buffer_str(out, "</li>\n");
    }
    buffer_str(out, "</ul></section>\n");
}

static void put_method(const struct collected *collected, struct buffer *out)
{
    char duration[FIGURE_BYTES];

    words_duration(MAX(collected->step_s, (int64_t)60), duration);
    buffer_str(out, "<section class=\"card method\"><h2>How this was made</h2>\n"
                    "<p>Each node's wattribute reads the energy counters of its hardware and "
                    "divides them among the workloads that used it, window by window. Nothing is "
                    "divided twice: of every meter, the parts and what nobody owns are the "
                    "whole.</p>\n");
    words_put(out,
              "<p>This report read the counters as a Prometheus has them, once every %s, and added "
              "up their increases. A new series counts from its first value if its node was seen "
              "before, because it began since; a counter that fell, or whose node began anew, "
              "counts from 0. An increase belongs to the moment at which it was seen. Of times in "
              "which a node was missing nothing is estimated.</p>\n",
              duration);
    buffer_str(out, "<p>Cost and grams were booked by each node with the energy, at the price and "
                    "the emission factor of that moment, including the PUE that the node was told. "
                    "The uncertainty is the expected error of dividing shared GPUs; errors of the "
                    "meters are not in it, and its sums are upper bounds.</p>\n</section>\n");
}

static void put_body(const struct collected *collected, struct total *const *rows,
                     struct total *const *unowned, size_t unowned_count, struct buffer *out)
{
    static const char *const units[] = {"hour", "day", "month"};
    size_t count = collected->totals.accounts[TOTALS_WORKLOAD].count;

    put_figures(collected, out);
    words_put(out, "<section class=\"card\"><h2>kWh of each %s</h2>\n",
              units[collected->totals.parts.unit]);
    chart_parts(collected, rows, count, out);
    buffer_str(out, "</section>\n");
    put_table(collected, rows, count, unowned, words_is_life(collected) ? 0 : unowned_count, out);
    if (words_is_life(collected))
        put_devices(collected, out);
    buffer_str(out, "<section class=\"card\"><h2>Which hardware</h2>\n");
    chart_meters(collected, out);
    buffer_str(out, "</section>\n");
    put_findings(collected, out);
    put_method(collected, out);
}

void report_html(const struct collected *collected, const struct report_source *source,
                 struct buffer *out)
{
    size_t unowned_count;
    struct total **rows = totals_sorted(&collected->totals, TOTALS_WORKLOAD);
    struct total **unowned = words_unowned(collected, &unowned_count);
    char subject[WORDS_BYTES], life[WORDS_BYTES];
    char title[PERIOD_TITLE_BYTES], now[PERIOD_TITLE_BYTES];

    words_subject(collected, subject);
    period_title(&collected->period, title);
    period_moment(source->now_s, now);
    put_head(subject, out);
    buffer_str(out, "<header><h1><bdi>");
    chart_put_text(out, subject);
    buffer_str(out, "</bdi></h1><p>");
    chart_put_text(out, words_is_life(collected) && words_life(collected, life) ? life : title);
    buffer_str(out, "</p></header>\n<main>\n");
    if (rows && unowned)
        put_body(collected, rows, unowned, unowned_count, out);
    else
        buffer_fail(out);
    buffer_str(out, "</main>\n<footer><p>Made on ");
    chart_put_text(out, now);
    words_put(out, " by wattribute %s from ", source->version);
    chart_put_text(out, source->address);
    words_put(out, ": %zu requests, %llu samples.</p></footer>\n</body>\n</html>\n",
              collected->progress.requests + collected->progress.kept,
              (unsigned long long)collected->progress.samples);
    free(rows);
    free(unowned);
}
