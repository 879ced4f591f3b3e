#include "collector/checker.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/fs.h"
#include "core/log.h"
#include "host/host.h"
#include "model/report.h"
#include "process/channel.h"
#include "process/child.h"
#include "process/job.h"
#include "sources/check.h"
#include "sources/gpu_counters.h"
#include "sources/source.h"

enum { TEXT_CAP_BYTES = 1 << 20 };

static int send_report(const struct report *report)
{
    struct channel_reply reply = {.status = CHANNEL_BODY, .format = PAGE_CHECK};
    _cleanup_close_ int fd = -1;
    struct buffer text;
    int r;

    buffer_init(&text, TEXT_CAP_BYTES);
    report_print_json(report, &text);
    r = buffer_failed(&text) ? -ENOMEM : fs_create_sealed(text.data, text.len, &fd);
    reply.body_bytes = text.len;
    buffer_done(&text);
    return r < 0 ? r : channel_send(CHILD_CHANNEL_FD, &reply, sizeof(reply), fd);
}

/* It ends as it is: a thread may hang in a driver. */
static int check(const struct checker_job *job, struct error *err)
{
    struct source_switches switches = {.off_count = job->off_count};
    struct source_estimate model = {.is_on = job->has_model,
                                    .by_table = job->model_by_table,
                                    .idle_uw = job->model_idle_uw,
                                    .full_uw = job->model_full_uw};
    struct host host = {.procfs_fd = -1, .sysfs_fd = -1, .rootfs_fd = -1};
    struct report *report = calloc(1, sizeof(*report));
    struct gpu_counters counters;
    int r;

    if (!report)
        return error_set(err, -ENOMEM, "out of memory");
    memcpy(switches.off, job->off, sizeof(switches.off));
    gpu_counters_init(&counters);
    r = host_open(job->procfs_path, job->sysfs_path, job->rootfs_path, &host, err);
    if (r < 0)
        return r;
    (void)sources_check(report,
                        &(struct source_context){.host = &host,
                                                 .clock = &clock_system,
                                                 .interval_us = job->interval_us,
                                                 .nvml_library = "libnvidia-ml.so.1",
                                                 .counters = &counters,
                                                 .model = &model,
                                                 .switches = &switches},
                        NULL, NULL);
    r = send_report(report);
    return r < 0 ? error_set(err, r, "%s", strerror(-r)) : 0;
}

int checker_main(void)
{
    struct checker_job job;
    struct job block = {0};
    struct error err = {""};
    int r;

    prctl(PR_SET_NAME, "wattribute"); /* it was started as /proc/self/exe */
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* it does not watch its channel */
    child_ignore_signals();
    r = checker_job_read(CHILD_JOB_FD, &block, &job);
    close(CHILD_JOB_FD);
    if (r < 0) {
        log_error("the checker has no job: only the collector starts it", "error", strerror(-r));
        return 1;
    }
    log_configure(job.log.level, job.log.format);
    r = check(&job, &err);
    if (r < 0)
        log_error("cannot check the sources", "error", err.text);
    _exit(r < 0);
}
