#include "run/run_report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/json.h"
#include "core/timestamp.h"

enum { LINE_BYTES = 512, PROCESSES_SHOWN = 8 };

static const char *const meter_titles[METER_NODE_OVERHEAD + 1] = {
    [METER_GPU] = "GPU",
    [METER_PACKAGE] = "CPU package",
    [METER_DRAM] = "DRAM",
    [METER_NODE_OVERHEAD] = "rest of the node",
};

static double joules(uint64_t uj)
{
    return (double)uj / 1e6;
}

static void put_line(struct buffer *out, const char *format, ...) PRINTF(2, 3);
static void put_line(struct buffer *out, const char *format, ...)
{
    char text[LINE_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    buffer_str(out, text);
}

static bool is_plain(const char *word)
{
    static const char *const PLAIN =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
        "%+,-./:=@_";

    return word[0] != '\0' && word[strspn(word, PLAIN)] == '\0';
}

void run_report_command(char *const *argv, char *text, size_t size_bytes)
{
    struct buffer out = {.data = text, .capacity = size_bytes, .cap_bytes = size_bytes};
    size_t end = 0;

    for (size_t i = 0; argv[i] && !buffer_failed(&out); i++) {
        bool plain = is_plain(argv[i]);

        buffer_str(&out, i > 0 ? " " : "");
        buffer_str(&out, plain ? "" : "'");
        buffer_printable(&out, span_of(argv[i]));
        buffer_str(&out, plain ? "" : "'");
        end = out.len;
    }
    end = MIN(end, size_bytes - 1);
    if (buffer_failed(&out) && size_bytes > 4) {
        end = MIN(out.len, size_bytes - 4);
        memcpy(text + end, "...", 3);
        end += 3;
    }
    text[end] = '\0';
}

static void put_total(const struct result *run, struct buffer *out)
{
    uint64_t uncertain_uj = result_uncertain_uj(run);
    double energy, power, peak;

    if (!result_get(run, QUANTITY_ENERGY, &energy)) {
        buffer_str(out, "  No energy was measured.\n");
        return;
    }
    put_line(out, "  %12.3f J   energy", energy);
    if (uncertain_uj > 0)
        put_line(out, ", +- %.3g J", joules(uncertain_uj));
    if (result_get(run, QUANTITY_POWER, &power))
        put_line(out, "; %.4g W on average", power);
    if (result_get(run, QUANTITY_PEAK_POWER, &peak))
        put_line(out, ", %.4g W at most", peak);
    buffer_char(out, '\n');
}

static void put_meter(const struct result_meter *meter, struct buffer *out)
{
    char title[64];

    snprintf(title, sizeof(title), "%s", meter_titles[meter->kind]);
    if (meter->kind == METER_GPU)
        snprintf(title, sizeof(title), "GPU %u", meter->gpu);
    else if (meter->kind != METER_NODE_OVERHEAD)
        snprintf(title, sizeof(title), "%s %.40s", meter_titles[meter->kind], meter->id);
    put_line(out, "  %12.3f J   ", joules(meter->command_uj));
    buffer_printable(out, span_of(title));
    if (meter->counted_uj > 0)
        put_line(out, ": %.1f %% of %.3f J",
                 100 * joules(meter->command_uj) / joules(meter->counted_uj),
                 joules(meter->counted_uj));
    if (meter->idle_uj > 0)
        put_line(out, ", %.3f J idle", joules(meter->idle_uj));
    if (meter->has_uncertainty && meter->uncertain_uj > 0)
        put_line(out, ", +- %.3g J", joules(meter->uncertain_uj));
    if (meter->is_modelled)
        buffer_str(out, ", modelled");
    if (meter->is_estimated)
        buffer_str(out, ", estimated");
    if (meter->is_partial)
        buffer_str(out, ", not all the time");
    buffer_char(out, '\n');
}

static void put_prices(const struct result *run, struct buffer *out)
{
    double energy, grams, cost;

    if (!result_get(run, QUANTITY_ENERGY, &energy))
        return;
    put_line(out, "  %12.6f Wh", energy / 3600);
    if (result_get(run, QUANTITY_EMISSIONS, &grams))
        put_line(out, "   %.4g g CO2e", grams);
    if (result_get(run, QUANTITY_COST, &cost))
        put_line(out, "   %.4g %s", cost, run->currency);
    buffer_char(out, '\n');
}

static void put_processes(const struct result *run, struct buffer *out)
{
    uint64_t seen_us = 0;

    if (run->process_total < 2 && run->process_count < 2)
        return;
    buffer_str(out, "\n       pid   CPU time      CPU energy      GPU energy   process\n");
    for (size_t i = 0; i < run->process_count; i++) {
        const struct result_process *process = &run->processes[i];

        seen_us += process->cpu_us;
        if (i >= PROCESSES_SHOWN)
            continue;
        put_line(out, "  %8d %8.2f s  %12.3f J  %12.3f J   ", (int)process->pid,
                 joules(process->cpu_us), joules(process->cpu_uj), joules(process->gpu_uj));
        buffer_printable(out, span_of(process->name));
        buffer_char(out, '\n');
    }
    if (run->process_total > PROCESSES_SHOWN || run->cpu_us > seen_us + run->cpu_us / 20)
        put_line(out, "  %zu processes were seen; shorter ones are in the sums\n",
                 run->process_total);
}

static void put_one(const struct run_report *report, struct buffer *out)
{
    const struct result *run = &report->runs[0];

    put_total(run, out);
    for (size_t i = 0; i < run->meter_count; i++)
        put_meter(&run->meters[i], out);
    put_prices(run, out);
    put_line(out, "  %12.3f s   wall time\n  %12.3f s   CPU time%s\n", joules(run->wall_us),
             joules(run->cpu_us),
             report->has_own_cgroup ? "" : ", of the processes that were seen");
    put_processes(run, out);
}

static void put_many(const struct run_report *report, struct buffer *out)
{
    struct run_summary summary;

    compare_summarise(report->runs, report->count, &summary);
    buffer_str(out, "                               mean           sd          min          max\n");
    for (int quantity = 0; quantity < QUANTITIES; quantity++) {
        const struct summary *of = &summary.of[quantity];

        if (of->count > 0)
            put_line(out, "  %-17s %12.6g  +- %10.4g %12.6g %12.6g %s\n",
                     quantity_words[quantity].title, of->mean, of->sd, of->min, of->max,
                     quantity == QUANTITY_COST ? summary.currency : quantity_words[quantity].unit);
    }
}

static void put_change(struct buffer *out, const char *title, double before, double now,
                       const char *unit)
{
    if (before > 0)
        put_line(out, "%s %+.1f %% (%.6g %s then)", title, 100 * (now - before) / before, before,
                 unit);
}

static void put_last(const struct run_report *report, struct buffer *out)
{
    struct run_summary now;
    const struct summary *before, *after;
    struct civil_minute when;

    if (!report->last || !compare_is_whole(&report->runs[report->count - 1]))
        return;
    compare_summarise(report->runs, report->count, &now);
    when = timestamp_minute(report->last->time_us);
    put_line(out, "\n  Since %04u-%02u-%02u %02u:%02u UTC (%zu run%s): ", when.year, when.month,
             when.day, when.hour, when.minute, report->last->runs, PLURAL_S(report->last->runs));
    before = report->last->of;
    after = now.of;
    if (!compare_same_meters(report->last, &now)) {
        buffer_str(out, "other meters were read, ");
    } else if (before[QUANTITY_ENERGY].count > 0 && after[QUANTITY_ENERGY].count > 0) {
        put_change(out, "energy", before[QUANTITY_ENERGY].mean, after[QUANTITY_ENERGY].mean, "J");
        buffer_str(out, ", ");
    }
    put_change(out, "wall time", before[QUANTITY_WALL_TIME].mean, after[QUANTITY_WALL_TIME].mean,
               "s");
    buffer_char(out, '\n');
}

static void put_findings(const struct report *findings, struct buffer *out)
{
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->findings[i];

        if (finding->verdict == VERDICT_OK)
            continue;
        buffer_str(out, i == 0 ? "\n  " : "  ");
        buffer_printable(out, span_of(finding->what));
        buffer_str(out, ": ");
        buffer_printable(out, span_of(finding->detail));
        buffer_char(out, '\n');
        if (!finding->remedy)
            continue;
        buffer_str(out, "      -> ");
        buffer_str(out, finding->remedy);
        buffer_char(out, '\n');
    }
}

static void put_end(const struct run_report *report, struct buffer *out)
{
    const struct result *end = &report->runs[report->count - 1];

    if (report->wanted < 2 || compare_is_whole(end))
        return;
    put_line(out, "\n  Run %zu of %zu ", report->count, report->wanted);
    if (end->is_interrupted)
        buffer_str(out, "was interrupted");
    else
        put_line(out, "ended with status %d", end->status);
    put_line(out, "%s%s.\n", report->count > 1 ? ", and is in no figure above" : "",
             report->count < report->wanted ? "; no more were started" : "");
}

void run_report_text(const struct run_report *report, struct buffer *out)
{
    char command[RUN_COMMAND_BYTES];

    run_report_command(report->argv, command, sizeof(command));
    buffer_str(out, "\n  Energy of ");
    buffer_str(out, command);
    if (report->wanted > 1)
        put_line(out, ", %zu run%s", report->count, PLURAL_S(report->count));
    if (report->daemon) {
        buffer_str(out, ", with the wattribute at ");
        buffer_printable(out, span_of(report->daemon));
    }
    buffer_str(out, "\n\n");
    if (report->wanted > 1)
        put_many(report, out);
    else
        put_one(report, out);
    put_end(report, out);
    put_last(report, out);
    put_findings(report->findings, out);
    buffer_char(out, '\n');
}

/* Joules and seconds with six decimals. */
static void put_micro(struct buffer *out, const char *key, uint64_t value)
{
    json_key(out, key);
    buffer_decimal(out, value / 1000000, value % 1000000, 6);
}

static void put_double(struct buffer *out, const char *key, double value)
{
    json_key(out, key);
    put_line(out, "%.9g", value);
}

static void put_flag(struct buffer *out, const char *key, bool value)
{
    if (!value)
        return;
    json_key(out, key);
    buffer_str(out, "true");
}

static void put_json_meters(const struct result *run, struct buffer *out)
{
    json_key(out, "meters");
    buffer_char(out, '[');
    for (size_t i = 0; i < run->meter_count; i++) {
        const struct result_meter *meter = &run->meters[i];

        buffer_str(out, i > 0 ? ",\n   {" : "\n   {");
        json_member(out, "meter", meter_words[meter->kind]);
        json_member(out, "meter_id", meter->id);
        if (meter->kind == METER_GPU)
            json_member_u64(out, "gpu", meter->gpu);
        put_micro(out, "joules", meter->command_uj);
        put_micro(out, "counted_joules", meter->counted_uj);
        put_micro(out, "idle_joules", meter->idle_uj);
        if (meter->has_uncertainty)
            put_micro(out, "uncertainty_joules", meter->uncertain_uj);
        if (meter->pending_uj > 0)
            put_micro(out, "pending_joules", meter->pending_uj);
        put_flag(out, "modelled", meter->is_modelled);
        put_flag(out, "estimated", meter->is_estimated);
        put_flag(out, "partial", meter->is_partial);
        buffer_char(out, '}');
    }
    buffer_char(out, ']');
}

static void put_json_processes(const struct result *run, struct buffer *out)
{
    json_key(out, "processes");
    buffer_char(out, '[');
    for (size_t i = 0; i < run->process_count; i++) {
        const struct result_process *process = &run->processes[i];

        buffer_str(out, i > 0 ? ",\n   {" : "\n   {");
        json_member_u64(out, "pid", (uint64_t)process->pid);
        json_member(out, "name", process->name);
        put_micro(out, "cpu_seconds", process->cpu_us);
        put_micro(out, "cpu_joules", process->cpu_uj);
        put_micro(out, "gpu_joules", process->gpu_uj);
        buffer_char(out, '}');
    }
    buffer_char(out, ']');
    json_member_u64(out, "processes_seen", run->process_total);
}

static void put_json_run(const struct result *run, struct buffer *out)
{
    uint64_t uncertain_uj = result_uncertain_uj(run);
    double value;

    buffer_char(out, '{');
    json_member_u64(out, "exit_status", (uint64_t)run->status);
    put_flag(out, "interrupted", run->is_interrupted);
    for (int quantity = 0; quantity < QUANTITIES; quantity++)
        if (result_get(run, (enum quantity)quantity, &value))
            put_double(out, quantity_words[quantity].key, value);
    if (uncertain_uj > 0)
        put_micro(out, "uncertainty_joules", uncertain_uj);
    put_json_meters(run, out);
    put_json_processes(run, out);
    buffer_char(out, '}');
}

static void put_json_summary(const struct run_report *report, struct buffer *out)
{
    struct run_summary summary;

    compare_summarise(report->runs, report->count, &summary);
    json_key(out, "summary");
    buffer_char(out, '{');
    for (int quantity = 0; quantity < QUANTITIES; quantity++) {
        const struct summary *of = &summary.of[quantity];

        if (of->count == 0)
            continue;
        json_key(out, quantity_words[quantity].key);
        buffer_char(out, '{');
        put_double(out, "mean", of->mean);
        if (of->count > 1)
            put_double(out, "sd", of->sd);
        put_double(out, "min", of->min);
        put_double(out, "max", of->max);
        buffer_char(out, '}');
    }
    buffer_char(out, '}');
}

static void put_json_findings(const struct report *findings, struct buffer *out)
{
    bool is_first = true;

    json_key(out, "findings");
    buffer_char(out, '[');
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->findings[i];

        if (finding->verdict == VERDICT_OK)
            continue;
        buffer_str(out, is_first ? "\n {" : ",\n {");
        is_first = false;
        json_member(out, "what", finding->what);
        json_member(out, "detail", finding->detail);
        if (finding->remedy)
            json_member(out, "remedy", finding->remedy);
        buffer_char(out, '}');
    }
    buffer_char(out, ']');
}

void run_report_json(const struct run_report *report, struct buffer *out)
{
    buffer_char(out, '{');
    json_member_u64(out, "run_report", 1);
    json_key(out, "command");
    buffer_char(out, '[');
    for (size_t i = 0; report->argv[i]; i++) {
        buffer_str(out, i > 0 ? "," : "");
        json_string(out, report->argv[i]);
    }
    buffer_char(out, ']');
    json_member(out, "node", report->node);
    put_micro(out, "time", report->time_us);
    if (report->daemon)
        json_member(out, "daemon", report->daemon);
    if (report->runs[0].has_cost)
        json_member(out, "currency", report->runs[0].currency);
    put_flag(out, "own_cgroup", report->has_own_cgroup);
    json_key(out, "runs");
    buffer_char(out, '[');
    for (size_t i = 0; i < report->count; i++) {
        buffer_str(out, i > 0 ? ",\n  " : "\n  ");
        put_json_run(&report->runs[i], out);
    }
    buffer_char(out, ']');
    put_json_summary(report, out);
    put_json_findings(report->findings, out);
    buffer_str(out, "}\n");
}
