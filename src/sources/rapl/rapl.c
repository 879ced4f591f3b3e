#include "sources/rapl/rapl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/macros.h"
#include "model/report.h"

/* However long a window is: a counter in units of 2^-16 J is full after 65 kJ, which is half a
 * minute at PACKAGE_MAX_UW. */
enum { INTERVAL_MAX_US = 5000000 };

/* How often meters that went or came with their CPUs are looked for. */
static const uint64_t SEARCH_US = 10 * USEC_PER_SEC;
/* A counter of a machine that runs moves a thousand times a second. */
static const uint64_t STILL_US = 60 * USEC_PER_SEC;

/* No package draws this. Not a multiple of the thermal design power: mobile parts take four times
 * that in short turns, and what is taken for a reset is lost. */
static const uint64_t PACKAGE_MAX_UW = 2000 * (uint64_t)1000000;

/* Nor any platform this. */
static const uint64_t PLATFORM_MAX_UW = 10000 * (uint64_t)1000000;

static int system_perf_event_open(struct perf_event_attr *attr, int cpu)
{
    long fd = syscall(SYS_perf_event_open, attr, /* pid= */ -1, cpu, /* group_fd= */ -1,
                      PERF_FLAG_FD_CLOEXEC);

    return fd < 0 ? -errno : (int)fd;
}

const struct rapl_calls rapl_system_calls = {
    .perf_event_open = system_perf_event_open,
    .read = read,
    .pread = pread,
};

static size_t find_meter(const struct rapl *rapl, enum meter_kind kind, const char *id)
{
    size_t i;

    for (i = 0; i < rapl->meter_count; i++)
        if (rapl->meters[i].kind == kind && strcmp(rapl->meters[i].id, id) == 0)
            break;
    return i;
}

bool rapl_is_open(const struct rapl *rapl, enum meter_kind kind, const char *id)
{
    size_t i = find_meter(rapl, kind, id);

    return i < rapl->meter_count && rapl->meters[i].fd >= 0;
}

void rapl_add(struct rapl *rapl, const struct rapl_meter *found, uint64_t range_uj)
{
    size_t i = find_meter(rapl, found->kind, found->id);
    struct rapl_meter *meter = &rapl->meters[i];

    if (i == RAPL_METERS_MAX || (i < rapl->meter_count && meter->fd >= 0)) {
        close(found->fd);
        return;
    }
    if (i == rapl->meter_count) {
        *meter = *found;
        rapl->meter_count++;
    } else { /* it is back, and goes on from what it had counted */
        meter->fd = found->fd;
        meter->scale = found->scale;
    }
    counter_limit(&meter->counter, range_uj,
                  meter->kind == METER_PSYS ? PLATFORM_MAX_UW : PACKAGE_MAX_UW);
    meter->counter.max_gap_us = MIN(meter->counter.max_gap_us, rapl->way->max_gap_us);
}

static int pick_way(struct rapl *rapl, struct error *err)
{
    static const struct rapl_way *const ways[] = {&rapl_powercap, &rapl_perf};
    struct error why[ARRAY_SIZE(ways)] = {{""}, {""}};
    int result = -ENODEV;

    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        int r;

        rapl->way = ways[i];
        r = rapl->way->find(rapl, &why[i]);
        if (r == 0)
            return 0;
        if (r == -EACCES)
            result = r;
    }
    return error_set(err, result, "RAPL cannot be read: %.300s; %.300s%s", why[0].text, why[1].text,
                     result == -EACCES ? "; run as root, or with CAP_PERFMON" : "");
}

int rapl_new(const struct host *host, const struct clock *clock, const struct rapl_calls *calls,
             struct rapl **ret_rapl, struct error *err)
{
    struct rapl *rapl = calloc(1, sizeof(*rapl));
    int r;

    if (!rapl)
        return error_set(err, -ENOMEM, "out of memory");
    rapl->host = host;
    rapl->clock = clock;
    rapl->calls = calls;
    rapl->is_amd = rapl_is_amd(host->sysfs_fd);
    rapl->next_search_us = clock->monotonic_us(clock) + SEARCH_US;
    r = pick_way(rapl, err);
    if (r < 0) {
        rapl_free(rapl);
        return r;
    }
    *ret_rapl = rapl;
    return 0;
}

void rapl_free(struct rapl *rapl)
{
    if (!rapl)
        return;
    for (size_t i = 0; i < rapl->meter_count; i++)
        if (rapl->meters[i].fd >= 0)
            close(rapl->meters[i].fd);
    free(rapl);
}

/* True if the meter gave a count. An error that passes costs nothing: the next value has it all. */
static bool read_meter(struct rapl *rapl, struct rapl_meter *meter)
{
    uint64_t mono_us = rapl->clock->monotonic_us(rapl->clock), uj;
    int r = rapl->way->read(rapl, meter, &uj);

    if (r == -ENODEV || r == -EBADMSG)
        counter_break(&meter->counter);
    if (r == -ENODEV) {
        close(meter->fd);
        meter->fd = -1;
    }
    if (r < 0 || !counter_add(&meter->counter, mono_us, uj))
        return false;
    if (!meter->has_counted || uj != meter->raw_uj)
        meter->still_since_us = mono_us;
    meter->has_counted |= uj > 0;
    meter->raw_uj = uj;
    return true;
}

/* Virtual machines have meters that stand at 0, or at what the host counted once: those are none,
 * and no measurement of nothing. */
static bool is_trusted(const struct rapl_meter *meter, uint64_t mono_us)
{
    return meter->has_counted && mono_us - MIN(mono_us, meter->still_since_us) < STILL_US;
}

static int add_sample(const struct rapl *rapl, const struct rapl_meter *meter, struct batch *batch)
{
    struct sample sample = {
        .kind = SAMPLE_METER,
        .t_us = rapl->clock->realtime_us(rapl->clock),
        .meter =
            {
                .source = "rapl",
                .kind = meter->kind,
                .id = arena_copy(&batch->arena, meter->id, strlen(meter->id)),
                .counter_uj = meter->counter.total,
                .breaks = meter->counter.breaks,
            },
    };

    return sample.meter.id ? batch_add(batch, &sample) : -ENOMEM;
}

int rapl_read(struct rapl *rapl, struct batch *batch, struct error *err)
{
    uint64_t mono_us = rapl->clock->monotonic_us(rapl->clock);
    size_t answers = 0;

    if (mono_us >= rapl->next_search_us) {
        rapl->next_search_us = mono_us + SEARCH_US;
        (void)rapl->way->find(rapl, NULL); /* what it does not find is missed below */
    }
    for (size_t i = 0; i < rapl->meter_count; i++) {
        struct rapl_meter *meter = &rapl->meters[i];

        if (meter->fd < 0 || !read_meter(rapl, meter))
            continue;
        answers++;
        if (is_trusted(meter, mono_us) && add_sample(rapl, meter, batch) < 0)
            return error_set(err, -ENOMEM, "RAPL: out of memory");
    }
    if (answers == 0)
        return error_set(err, -EIO, "RAPL: none of %zu meters answers (%s)", rapl->meter_count,
                         rapl->way->name);
    return 0;
}

static int source_open(const struct source_context *context, void **ret_state, struct error *err)
{
    struct rapl *rapl;
    int r;

    if (context->replay_path)
        return -ENODEV;
    r = rapl_new(context->host, context->clock, &rapl_system_calls, &rapl, err);
    if (r < 0)
        return r == -EACCES ? -ENOTSUP : r; /* worth a warning, but no reason not to start */
    *ret_state = rapl;
    return 0;
}

static int source_read(void *state, struct batch *batch, struct error *err)
{
    return rapl_read(state, batch, err);
}

static void source_close(void *state)
{
    rapl_free(state);
}

/* A counter that counts has moved by then: they are updated about every millisecond. */
static const struct timespec CHECK_PAUSE = {.tv_nsec = 100000000};

static const char *describe_scope(enum meter_kind kind)
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

static void report_meter(struct report *report, const struct rapl_meter *meter)
{
    char what[64];

    snprintf(what, sizeof(what), "rapl: %s %s", meter_words[meter->kind], meter->id);
    report->meters += meter->has_counted;
    if (meter->has_counted)
        report_add(report, what, VERDICT_OK, NULL, "%s", describe_scope(meter->kind));
    else
        report_add(report, what, VERDICT_MISSING,
                   "none: as on virtual machines and on processors without it; it is left out",
                   "its counter stands at 0");
}

static void report_meters(struct report *report, struct rapl *rapl)
{
    bool has_memory = false;
    struct batch batch;

    batch_init(&batch);
    for (int i = 0; i < 2; i++) {
        if (i > 0)
            nanosleep(&CHECK_PAUSE, NULL);
        (void)rapl_read(rapl, &batch, NULL); /* the meters have what it found */
    }
    batch_done(&batch);
    report_add(report, "rapl", VERDICT_OK, NULL, "%zu meter%s, read by %s", rapl->meter_count,
               PLURAL_S(rapl->meter_count), rapl->way->name);
    for (size_t i = 0; i < rapl->meter_count; i++) {
        report_meter(report, &rapl->meters[i]);
        has_memory |= rapl->meters[i].kind == METER_DRAM;
    }
    if (!has_memory)
        report_add(report, "rapl: dram", VERDICT_LIMITED,
                   "none: AMD's processors and many others do not measure it",
                   "no meter of the memory; its energy is in that of the whole node only");
}

static void rapl_check(const struct source_context *context, struct report *report)
{
    struct error err = {""};
    struct rapl *rapl = NULL;
    int r = rapl_new(context->host, context->clock, &rapl_system_calls, &rapl, &err);

    if (r == 0)
        report_meters(report, rapl);
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

const struct source_ops rapl_source = {
    .name = "rapl",
    .flag = "collector.rapl",
    .help = "read the energy counters of processors",
    .interval_max_us = INTERVAL_MAX_US,
    .open = source_open,
    .read = source_read,
    .close = source_close,
    .check = rapl_check,
};
