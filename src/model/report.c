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

/* "1 GPU, 2 other meters, 14 workloads; 3 limited, 4 missing" */
static void put_summary(const struct report *report, struct buffer *out)
{
    char text[256];

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

void report_print_text(const struct report *report, struct buffer *out)
{
    for (size_t i = 0; i < report->count; i++) {
        const struct finding *finding = &report->findings[i];
        char head[128];

        snprintf(head, sizeof(head), "%-8s %-24s ", verdict_words[finding->verdict], finding->what);
        buffer_str(out, head);
        buffer_str(out, finding->detail);
        buffer_char(out, '\n');
        if (finding->remedy) {
            buffer_str(out, "                                  -> ");
            buffer_str(out, finding->remedy);
            buffer_char(out, '\n');
        }
    }
    put_summary(report, out);
}

static void put_pair(struct buffer *out, const char *key, const char *value)
{
    json_string(out, key);
    buffer_char(out, ':');
    json_string(out, value);
}

void report_print_json(const struct report *report, struct buffer *out)
{
    char summary[256];

    buffer_str(out, "{\"findings\":[");
    for (size_t i = 0; i < report->count; i++) {
        const struct finding *finding = &report->findings[i];

        buffer_str(out, i ? ",\n {" : "\n {");
        put_pair(out, "what", finding->what);
        buffer_char(out, ',');
        put_pair(out, "verdict", verdict_words[finding->verdict]);
        buffer_char(out, ',');
        put_pair(out, "detail", finding->detail);
        if (finding->remedy) {
            buffer_char(out, ',');
            put_pair(out, "remedy", finding->remedy);
        }
        buffer_char(out, '}');
    }
    snprintf(summary, sizeof(summary),
             "],\n\"summary\":{\"meters\":%zu,\"gpus\":%zu,\"model\":%s,\"workloads\":%zu,"
             "\"limited\":%zu,\"missing\":%zu}}\n",
             report->meters, report->gpus, report->has_model ? "true" : "false", report->workloads,
             count_verdicts(report, VERDICT_LIMITED), count_verdicts(report, VERDICT_MISSING));
    buffer_str(out, summary);
}
