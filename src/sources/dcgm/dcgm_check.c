/* What `wattribute check` reports of DCGM. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/macros.h"
#include "model/report.h"
#include "sources/dcgm/dcgm.h"

#define START_IT                                                                                   \
    "not needed, but with it processes on GPUs without GPM are told apart better: install "        \
    "datacenter-gpu-manager, systemctl enable --now nvidia-dcgm; a container needs the host's "    \
    "network to reach it"

/* Whether the profiling fields of each board without GPM can be watched. False: the host engine
 * does not answer any more. */
static bool report_board(struct report *report, struct dcgm *dcgm, uint32_t gpu, const char *uuid)
{
    struct dcgm_watch watch = {0};
    struct error err = {""};
    char what[64];
    int r;

    snprintf(watch.uuid, sizeof(watch.uuid), "%s", uuid);
    snprintf(what, sizeof(what), "dcgm: gpu %u", gpu);
    r = dcgm_watch(dcgm, &watch, &err);
    if (r == 0)
        report_add(report, what, VERDICT_OK, NULL, "%zu profiling fields, in place of GPM",
                   watch.field_count);
    else
        report_add(report, what, VERDICT_LIMITED,
                   r == -ENODEV
                       ? START_IT
                       : "none on boards that cannot be profiled (GeForce); otherwise run the host "
                         "engine as root with its profiling module, and end other profilers",
                   "%s", err.text);
    return r != -ENODEV;
}

static void report_boards(struct report *report, struct dcgm *dcgm)
{
    char uuid[GPU_COUNTERS_UUID_BYTES];
    bool answers = true;

    for (uint32_t gpu = 0; gpu < SAMPLE_GPU_MAX && answers; gpu++)
        if (gpu_counters_wanted(dcgm->context->counters, gpu, uuid))
            answers = report_board(report, dcgm, gpu, uuid);
}

/* Boards that want counters were found by the sources before it. */
void dcgm_check(const struct source_context *context, struct report *report)
{
    struct error err = {""};
    void *state = NULL;
    struct dcgm *dcgm;
    int r;

    if (report->gpus == 0 || !context->counters)
        return;
    r = dcgm_source.open(context, &state, &err);
    if (r == -ENODEV && err.text[0] == '\0') {
        report_add(report, "dcgm", VERDICT_OK, NULL,
                   "not used: all GPUs here have GPM, or are in MIG mode");
        return;
    }
    if (r < 0) {
        report_add(report, "dcgm", VERDICT_LIMITED, START_IT, "%s", err.text);
        return;
    }
    dcgm = state;
    if (dcgm_connect(dcgm, &err) == 0) {
        report_add(report, "dcgm", VERDICT_OK, NULL, "the host engine answers at " DCGM_ADDRESS);
        report_boards(report, dcgm);
    } else {
        report_add(report, "dcgm", VERDICT_LIMITED, START_IT, "%s", err.text);
    }
    dcgm_source.close(state);
}
