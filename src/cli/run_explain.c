/* What `run` could not measure, and why. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/run_session.h"
#include "sources/check.h"

/* Another pid namespace than the node's: drivers and daemons know other pids. */
static bool is_in_pid_namespace(void)
{
    static const char *const OF_THE_NODE = "pid:[4026531836]"; /* PROC_PID_INIT_INO */
    char link[64] = "";
    ssize_t len = readlink("/proc/self/ns/pid", link, sizeof(link) - 1);

    return len > 0 && strcmp(link, OF_THE_NODE) != 0;
}

/* What a check that hangs goes on to use. */
struct explanation {
    struct source_switches others;
    struct source_context context;
    struct report report;
};

/* Why a source has no meter, in the words of `check`. */
static void explain_source(struct run_session *session, const char *name, struct report *report)
{
    struct explanation *of = calloc(1, sizeof(*of));

    if (!of)
        return;
    of->others = *session->measurement->sources.context.switches;
    for (size_t i = 0; source_table[i]; i++)
        if (strcmp(source_table[i]->name, name) != 0 &&
            !source_is_off(&of->others, source_table[i]->name))
            of->others.off[of->others.off_count++] = source_table[i]->name;
    of->context = session->measurement->sources.context;
    of->context.switches = &of->others;
    session->hangs |= !sources_check(&of->report, &of->context, NULL, NULL);
    for (size_t i = 0; i < of->report.count; i++) {
        const struct finding *finding = &of->report.findings[i];

        /* The others are limited, as they are switched off. */
        if (finding->verdict != VERDICT_OK && finding->verdict != VERDICT_LIMITED)
            report_add(report, finding->what, finding->verdict, finding->remedy, "%s",
                       finding->detail);
    }
    if (!session->hangs)
        free(of);
}

static bool result_has(const struct result *result, enum meter_kind kind)
{
    for (size_t i = 0; i < result->meter_count; i++)
        if (result->meters[i].kind == kind)
            return true;
    return false;
}

static void explain_gpus(const struct result *result, struct report *report)
{
    char what[32];

    for (size_t i = 0; i < result->meter_count; i++) {
        const struct result_meter *meter = &result->meters[i];

        if (meter->pending_uj == 0)
            continue;
        snprintf(what, sizeof(what), "gpu %u", meter->gpu);
        report_add(report, what, VERDICT_LIMITED,
                   "none: the metrics of the daemon will have it (--attribution-delay)",
                   "%.3f J were not divided yet; some of them may be the command's",
                   (double)meter->pending_uj / 1e6);
    }
    if (result_has(result, METER_GPU) && is_in_pid_namespace())
        report_add(report, "gpu: processes", VERDICT_LIMITED,
                   "run in the host's PID namespace (docker: --pid=host, Kubernetes: hostPID)",
                   "in a PID namespace of its own the command's processes on GPUs have other "
                   "numbers, and cannot be recognised");
}

void run_session_explain(struct run_session *session, const struct result *result,
                         struct report *report)
{
    struct snapshot snapshot;

    if (!result_has(result, METER_PACKAGE)) {
        explain_source(session, "rapl", report);
        if (!session->daemon)
            report_add(report, "daemon", VERDICT_LIMITED,
                       "start wattribute on this node, or name it with --daemon",
                       "no daemon was asked that reads what this user may not");
    }
    if (!result_has(result, METER_GPU) && !session->daemon && access("/dev/nvidiactl", F_OK) == 0)
        explain_source(session, "nvml", report);
    explain_gpus(result, report);
    snapshot_init(&snapshot);
    if (source_set_describe(&session->measurement->sources, &snapshot) == 0)
        for (size_t i = 0; i < snapshot.source_count; i++)
            if (!snapshot.sources[i].up)
                report_add(report, snapshot.sources[i].name, VERDICT_MISSING,
                           "see 'wattribute check'",
                           "it failed or hung; what it counts is missing");
    snapshot_done(&snapshot);
    if (session->measurement->result < 0)
        report_add(report, "memory", VERDICT_LIMITED, "free some memory",
                   "there was none: some energy has no owner");
    if (result->left_running > 0)
        report_add(report, "processes", VERDICT_LIMITED, "none; or let the command wait for them",
                   "%zu process%s of the command went on after its end: what %s from then on is "
                   "not counted",
                   result->left_running, result->left_running == 1 ? "" : "es",
                   result->left_running == 1 ? "it used" : "they used");
}
