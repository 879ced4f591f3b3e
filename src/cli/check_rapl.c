#include "cli/check_rapl.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "sources/rapl/rapl.h"

/* A counter that counts has moved by then: they are updated about every millisecond. */
static const struct timespec PAUSE = {.tv_nsec = 100000000};

static const char *scope_of(enum meter_kind kind)
{
    switch (kind) {
    case METER_PACKAGE:
        return "booked: the processor";
    case METER_DRAM:
        return "booked: its memory, which is not in the package";
    case METER_CORE:
    case METER_UNCORE:
        return "observed: a part of the package";
    case METER_PSYS:
        return "observed: the platform, with the packages in it";
    case METER_GPU:
    case METER_REST:
    case METER_MODULE:
    case METER_NODE:
    case METER_KINDS:
        break;
    }
    return "observed";
}

static void check_meter(struct report *report, const struct rapl_meter *meter)
{
    char what[64];

    snprintf(what, sizeof(what), "rapl: %s %s", meter_words[meter->kind], meter->id);
    report->meters += meter->has_counted;
    if (meter->has_counted)
        report_add(report, what, VERDICT_OK, NULL, "%s", scope_of(meter->kind));
    else
        report_add(report, what, VERDICT_MISSING,
                   "none: as on virtual machines and on processors without it; it is left out",
                   "its counter stands at 0");
}

static void check_meters(struct report *report, struct rapl *rapl)
{
    bool has_memory = false;
    struct batch batch;

    batch_init(&batch);
    for (int i = 0; i < 2; i++) {
        if (i > 0)
            nanosleep(&PAUSE, NULL);
        (void)rapl_read(rapl, &batch, NULL); /* the meters have what it found */
    }
    batch_done(&batch);
    report_add(report, "rapl", VERDICT_OK, NULL, "%zu meter%s, read by %s", rapl->meter_count,
               PLURAL_S(rapl->meter_count), rapl->way->name);
    for (size_t i = 0; i < rapl->meter_count; i++) {
        check_meter(report, &rapl->meters[i]);
        has_memory |= rapl->meters[i].kind == METER_DRAM;
    }
    if (!has_memory)
        report_add(report, "rapl: dram", VERDICT_LIMITED,
                   "none: AMD's processors and many others do not measure it",
                   "no meter of the memory; its energy is in that of the whole node only");
}

void check_rapl(struct report *report, const struct host *host)
{
    struct error err = {""};
    struct rapl *rapl = NULL;
    int r = rapl_new(host, &clock_system, &rapl_system_calls, &rapl, &err);

    if (r == 0)
        check_meters(report, rapl);
    else if (r == -EACCES)
        report_add(report, "rapl", VERDICT_MISSING,
                   "run as root; or with CAP_PERFMON, and kernel.perf_event_paranoid at most 2; in "
                   "a container with the host's /sys mounted and --path.sysfs (docs/power.md)",
                   "%s", err.text);
    else
        report_add(report, "rapl", VERDICT_MISSING,
                   "none on virtual machines and on ARM; else load the driver: modprobe "
                   "intel_rapl_msr (also for AMD)",
                   "%s", err.text);
    rapl_free(rapl);
}
