#include "model/report.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/json.h"

static const char *const verdict_words[] = {"ok", "limited", "missing", "failed"};

void report_add(struct report *report, const char *what, enum verdict verdict, const char *remedy,
                const char *format, ...)
{
    struct finding *finding;
    va_list args;

    report->verdicts[verdict]++;
    if (report->count == REPORT_FINDINGS_MAX)
        return;
    finding = &report->findings[report->count++];
    *finding = (struct finding){.verdict = verdict, .remedy = remedy};
    snprintf(finding->what, sizeof(finding->what), "%s", what);
    va_start(args, format);
    vsnprintf(finding->detail, sizeof(finding->detail), format, args);
    va_end(args);
}

void report_take(struct report *report, const struct report *other)
{
    for (size_t i = 0; i < other->count && report->count < REPORT_FINDINGS_MAX; i++)
        report->findings[report->count++] = other->findings[i];
    for (enum verdict verdict = VERDICT_OK; verdict < VERDICT_COUNT; verdict++)
        report->verdicts[verdict] += other->verdicts[verdict];
    report->meters += other->meters;
    report->gpus += other->gpus;
}

enum report_outcome report_outcome(const struct report *report)
{
    if (report->is_refused)
        return REPORT_REFUSED;
    if (report->meters == 0 && report->gpus == 0 && !report->has_model)
        return REPORT_NOTHING;
    return report->verdicts[VERDICT_FAILED] > 0 ? REPORT_FAILED : REPORT_WORKS;
}

/* Padded for a column; the escape sequences take no room in it. */
static void verdict_put(enum verdict verdict, bool in_colour, struct buffer *out)
{
    /* What is missing is often no defect: it has the colour of the text. */
    static const char *const colours[] = {"\033[32m", "\033[33m", "\033[39m", "\033[31m"};
    char text[32];

    snprintf(text, sizeof(text), "%s%-8s%s ", in_colour ? colours[verdict] : "",
             verdict_words[verdict], in_colour ? "\033[0m" : "");
    buffer_str(out, text);
}

void report_print_text(const struct report *report, bool in_colour, struct buffer *out)
{
    static const char *const outcomes[] = {
        [REPORT_WORKS] = "",
        [REPORT_NOTHING] = ": nothing to measure",
        [REPORT_REFUSED] = ": the exporter does not start with these flags",
        [REPORT_FAILED] = "",
    };
    char text[256], failed[32] = "";

    for (size_t i = 0; i < report->count; i++) {
        const struct finding *finding = &report->findings[i];

        verdict_put(finding->verdict, in_colour, out);
        snprintf(text, sizeof(text), "%-24s ", finding->what);
        buffer_printable(out, span_of(text));
        buffer_printable(out, span_of(finding->detail));
        buffer_char(out, '\n');
        if (finding->remedy) {
            buffer_str(out, "                                  -> ");
            buffer_str(out, finding->remedy);
            buffer_char(out, '\n');
        }
    }
    /* "1 GPU, 2 other meters, 14 workloads; 1 failed, 3 limited, 4 missing" */
    if (report->verdicts[VERDICT_FAILED] > 0)
        snprintf(failed, sizeof(failed), "%zu failed, ", report->verdicts[VERDICT_FAILED]);
    snprintf(text, sizeof(text),
             "\n%zu GPU%s, %zu other meter%s%s, %zu workload%s; %s%zu limited, %zu missing%s\n",
             report->gpus, PLURAL_S(report->gpus), report->meters, PLURAL_S(report->meters),
             report->has_model ? ", a model of the processors" : "", report->workloads,
             PLURAL_S(report->workloads), failed, report->verdicts[VERDICT_LIMITED],
             report->verdicts[VERDICT_MISSING], outcomes[report_outcome(report)]);
    buffer_str(out, text);
}

void report_print_json(const struct report *report, struct buffer *out)
{
    buffer_str(out, "{\"version\":1,\n\"findings\":[");
    for (size_t i = 0; i < report->count; i++) {
        const struct finding *finding = &report->findings[i];

        buffer_str(out, i ? ",\n {" : "\n {");
        json_member(out, "what", finding->what);
        json_member(out, "verdict", verdict_words[finding->verdict]);
        json_member(out, "detail", finding->detail);
        if (finding->remedy)
            json_member(out, "remedy", finding->remedy);
        buffer_char(out, '}');
    }
    buffer_str(out, "],\n\"summary\":{");
    json_member_u64(out, "meters", report->meters);
    json_member_u64(out, "gpus", report->gpus);
    json_member_bool(out, "model", report->has_model);
    json_member_u64(out, "workloads", report->workloads);
    for (enum verdict verdict = VERDICT_LIMITED; verdict < VERDICT_COUNT; verdict++)
        json_member_u64(out, verdict_words[verdict], report->verdicts[verdict]);
    json_member_u64(out, "status", report_outcome(report));
    buffer_str(out, "}}\n");
}
