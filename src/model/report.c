#include "model/report.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/json.h"

static const char *const verdict_words[] = {"ok", "limited", "missing"};

void report_add(struct report *report, const char *what, enum verdict verdict, const char *remedy,
                const char *format, ...)
{
    struct finding *finding;
    va_list args;

    if (report->count == REPORT_FINDINGS_MAX)
        return;
    finding = &report->findings[report->count++];
    *finding = (struct finding){.verdict = verdict, .remedy = remedy};
    snprintf(finding->what, sizeof(finding->what), "%s", what);
    va_start(args, format);
    vsnprintf(finding->detail, sizeof(finding->detail), format, args);
    va_end(args);
}

bool report_can_measure(const struct report *report)
{
    return report->meters > 0 || report->gpus > 0 || report->has_model;
}

static size_t count_verdicts(const struct report *report, enum verdict verdict)
{
    size_t count = 0;

    for (size_t i = 0; i < report->count; i++)
        count += report->findings[i].verdict == verdict;
    return count;
}

/* Padded for a column; the escape sequences take no room in it. */
static void verdict_put(enum verdict verdict, bool in_colour, struct buffer *out)
{
    static const char *const colours[] = {"\033[32m", "\033[33m", "\033[31m"};
    char text[32];

    snprintf(text, sizeof(text), "%s%-8s%s ", in_colour ? colours[verdict] : "",
             verdict_words[verdict], in_colour ? "\033[0m" : "");
    buffer_str(out, text);
}

void report_print_text(const struct report *report, bool in_colour, struct buffer *out)
{
    char text[256];

    for (size_t i = 0; i < report->count; i++) {
        const struct finding *finding = &report->findings[i];

        verdict_put(finding->verdict, in_colour, out);
        snprintf(text, sizeof(text), "%-24s ", finding->what);
        buffer_str(out, text);
        buffer_printable(out, span_of(finding->detail)); /* names in it are anybody's */
        buffer_char(out, '\n');
        if (finding->remedy) {
            buffer_str(out, "                                  -> ");
            buffer_str(out, finding->remedy);
            buffer_char(out, '\n');
        }
    }
    /* "1 GPU, 2 other meters, 14 workloads; 3 limited, 4 missing" */
    snprintf(text, sizeof(text),
             "\n%zu GPU%s, %zu other meter%s%s, %zu workload%s; %zu limited, %zu missing%s\n",
             report->gpus, PLURAL_S(report->gpus), report->meters, PLURAL_S(report->meters),
             report->has_model ? ", a model of the processors" : "", report->workloads,
             PLURAL_S(report->workloads), count_verdicts(report, VERDICT_LIMITED),
             count_verdicts(report, VERDICT_MISSING),
             report->is_refused            ? ": the exporter does not start with these flags"
             : !report_can_measure(report) ? ": nothing to measure"
                                           : "");
    buffer_str(out, text);
}

void report_print_json(const struct report *report, struct buffer *out)
{
    buffer_str(out, "{\"findings\":[");
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
    json_member_u64(out, "limited", count_verdicts(report, VERDICT_LIMITED));
    json_member_u64(out, "missing", count_verdicts(report, VERDICT_MISSING));
    buffer_str(out, "}}\n");
}
