#include "sources/check.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "core/macros.h"
#include "model/report.h"
#include "sources/source.h"

/* Drivers take seconds to start. */
enum { PATIENCE_S = 20 };

struct source_check {
    const struct source_ops *source;
    const struct source_context *context;
    struct report report; /* a copy: what hangs must not write into that of the others */
};

static void *run_check(void *argument)
{
    struct source_check *check = argument;

    check->source->check(check->context, &check->report);
    return NULL;
}

/* False: it hangs. */
static bool check_source(struct report *report, const struct source_ops *source,
                         const struct source_context *context)
{
    _cleanup_free_ struct source_check *check = malloc(sizeof(*check));
    struct timespec until;
    pthread_t thread;
    bool is_idle;

    if (!check) {
        report_add(report, source->name, VERDICT_FAILED, "free some memory", "out of memory");
        return true;
    }
    *check = (struct source_check){source, context, *report};
    if (pthread_create(&thread, NULL, run_check, check) != 0) {
        report_add(report, source->name, VERDICT_FAILED, "allow more threads",
                   "cannot start a thread");
        return true;
    }
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PATIENCE_S;
    if (pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until) == 0) {
        *report = check->report;
        is_idle = !report->is_hung;
        report->is_hung = false; /* until the next one does */
        return is_idle;
    }
    report_add(report, source->name, VERDICT_FAILED,
               "look into the kernel's log and that of its daemon; the exporter goes on without it",
               "it has hung for %d s", PATIENCE_S);
    (void)TAKE_PTR(check);
    return false;
}

bool sources_check(struct report *report, const struct source_context *context,
                   void (*check_redfish)(struct report *report, const void *argument),
                   const void *argument)
{
    bool is_idle = true;

    for (size_t i = 0; source_table[i]; i++) {
        const struct source_ops *source = source_table[i];

        if (source_is_off(context->switches, source->name))
            report_add(report, source->name, VERDICT_LIMITED,
                       "to read it, remove --collector.NAME=false and --no-collector.NAME",
                       "switched off by --collector.%s", source->name);
        else if (source == &redfish_source && check_redfish)
            check_redfish(report, argument);
        else if (source->check)
            is_idle &= check_source(report, source, context);
    }
    return is_idle;
}
