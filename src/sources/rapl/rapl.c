#include "sources/rapl/rapl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/parse.h"
#include "model/report.h"

/* However long a window is: a counter in units of 2^-16 J is full after 65 kJ, which is half a
 * minute at PACKAGE_MAX_UW. */
enum { INTERVAL_MAX_US = 5000000 };

/* Between two searches for meters that came or went with their CPUs. */
static const uint64_t SEARCH_US = 10 * USEC_PER_SEC;
/* A counter of a machine that runs moves a thousand times a second. */
static const uint64_t STILL_US = 60 * USEC_PER_SEC;

/* No package draws this. Not a multiple of the thermal design power: mobile parts draw four times
 * that for short, and energy mistaken for a reset is lost. */
static const uint64_t PACKAGE_MAX_UW = 2000 * (uint64_t)1000000;

/* No platform draws this. */
static const uint64_t PLATFORM_MAX_UW = 10000 * (uint64_t)1000000;

static int system_perf_event_open(struct perf_event_attr *attr, int cpu)
{
    long fd = syscall(SYS_perf_event_open, attr, /* pid= */ -1, cpu, /* group_fd= */ -1,
                      PERF_FLAG_FD_CLOEXEC);

    return fd < 0 ? -errno : (int)fd;
}

static const struct rapl_calls system_calls = {
    .perf_event_open = system_perf_event_open,
    .read = read,
    .pread = pread,
};

static struct rapl_meter *find_meter(struct rapl *rapl, enum meter_kind kind, const char *id)
{
    for (size_t i = 0; i < rapl->meter_count; i++)
        if (rapl->meters[i].kind == kind && strcmp(rapl->meters[i].id, id) == 0)
            return &rapl->meters[i];
    return NULL;
}

bool rapl_is_open(struct rapl *rapl, enum meter_kind kind, const char *id)
{
    const struct rapl_meter *meter = find_meter(rapl, kind, id);

    return meter && meter->fd >= 0;
}

void rapl_set_limits(struct rapl *rapl, const struct rapl_meter *meter,
                     const struct meter_limits *limits)
{
    struct rapl_meter *known = find_meter(rapl, meter->kind, meter->id);

    if (!known || known->has_limits)
        return;
    known->limits = *limits;
    known->has_limits = true;
}

void rapl_add(struct rapl *rapl, const struct rapl_meter *found, uint64_t range_uj)
{
    struct rapl_meter *meter = find_meter(rapl, found->kind, found->id);

    if (meter ? meter->fd >= 0 : rapl->meter_count == RAPL_METERS_MAX) {
        close(found->fd);
        return;
    }
    if (meter) { /* it is back, and goes on from its last count */
        meter->fd = found->fd;
        meter->shift = found->shift;
    } else {
        meter = &rapl->meters[rapl->meter_count++];
        *meter = *found;
    }
    counter_limit(&meter->counter, range_uj,
                  meter->kind == METER_PSYS ? PLATFORM_MAX_UW : PACKAGE_MAX_UW);
    meter->counter.max_gap_us = MIN(meter->counter.max_gap_us, rapl->backend->max_gap_us);
}

int rapl_read_file(const struct rapl *rapl, char buffer[static RAPL_TEXT_BYTES],
                   struct span *ret_text, const char *format, ...)
{
    struct span text = {buffer, 0};
    char path[128];
    va_list args;
    int r;

    va_start(args, format);
    vsnprintf(path, sizeof(path), format, args);
    va_end(args);
    r = fs_read_at(rapl->host->sysfs_fd, path, buffer, RAPL_TEXT_BYTES, &text.len);
    if (r < 0)
        return r;
    (void)span_strip_suffix(&text, "\n");
    *ret_text = text;
    return 0;
}

void rapl_print_id(uint32_t socket, const uint32_t *die, char id[static RAPL_ID_BYTES])
{
    if (die)
        snprintf(id, RAPL_ID_BYTES, "%u-die-%u", socket, *die);
    else
        snprintf(id, RAPL_ID_BYTES, "%u", socket);
}

/* X86_VENDOR_AMD and X86_VENDOR_HYGON of the kernel's asm/processor.h. */
bool rapl_modalias_is_amd(struct span modalias)
{
    return span_strip_prefix(&modalias, "cpu:type:x86,ven0002") ||
           span_strip_prefix(&modalias, "cpu:type:x86,ven0009");
}

int rapl_parse_number(struct span text, uint32_t *ret_value)
{
    uint64_t value;

    if (parse_u64_max(text, RAPL_NUMBER_MAX, &value) < 0)
        return -EINVAL;
    *ret_value = (uint32_t)value;
    return 0;
}

int rapl_parse_hex(struct span text, uint32_t max, uint32_t *ret_value)
{
    uint32_t value = 0;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];

        if (!parse_is_hex(c))
            return -EINVAL;
        value = value * 16 + (uint32_t)(parse_is_digit(c) ? c - '0' : c - 'a' + 10);
        if (value > max)
            return -EINVAL;
    }
    if (text.len == 0)
        return -EINVAL;
    *ret_value = value;
    return 0;
}

static int choose_backend(struct rapl *rapl, struct error *err)
{
    static const struct rapl_backend *const backends[] = {&rapl_powercap, &rapl_perf};
    struct error why[ARRAY_SIZE(backends)] = {{""}, {""}};
    int result = -ENODEV;

    for (size_t i = 0; i < ARRAY_SIZE(backends); i++) {
        int r;

        rapl->backend = backends[i];
        r = rapl->backend->find(rapl, &why[i]);
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
    char buffer[RAPL_TEXT_BYTES];
    struct span modalias;
    int r;

    if (!rapl)
        return error_set(err, -ENOMEM, "out of memory");
    rapl->host = host;
    rapl->clock = clock;
    rapl->calls = calls;
    rapl->is_amd = rapl_read_file(rapl, buffer, &modalias, "devices/system/cpu/modalias") == 0 &&
                   rapl_modalias_is_amd(modalias);
    rapl->next_search_us = clock->monotonic_us(clock) + SEARCH_US;
    r = choose_backend(rapl, err);
    if (r < 0) {
        rapl_free(rapl);
        return r;
    }
    *ret_rapl = rapl;
    return 0;
}

void rapl_free(void *state)
{
    struct rapl *rapl = state;

    if (!rapl)
        return;
    for (size_t i = 0; i < rapl->meter_count; i++)
        cleanup_close(&rapl->meters[i].fd);
    free(rapl);
}

/* True if it was a count. A passing error costs nothing: the next value includes it. */
static bool read_meter(struct rapl *rapl, struct rapl_meter *meter)
{
    uint64_t mono_us = rapl->clock->monotonic_us(rapl->clock), uj;
    int r = rapl->backend->read(rapl, meter, &uj);

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
                .hardware =
                    rapl->backend->is_lasting ? counter_copy(&meter->counter, &batch->arena) : NULL,
                .limits = meter->limits,
            },
    };

    return sample.meter.id ? batch_add(batch, &sample) : -ENOMEM;
}

int rapl_read(void *state, struct batch *batch, struct error *err)
{
    struct rapl *rapl = state;
    uint64_t mono_us = rapl->clock->monotonic_us(rapl->clock);
    size_t answers = 0;

    if (mono_us >= rapl->next_search_us) {
        rapl->next_search_us = mono_us + SEARCH_US;
        (void)rapl->backend->find(rapl, NULL); /* a meter that it does not find fails below */
    }
    for (size_t i = 0; i < rapl->meter_count; i++) {
        struct rapl_meter *meter = &rapl->meters[i];

        if (meter->fd < 0 || !read_meter(rapl, meter))
            continue;
        answers++;
        /* Virtual machines have counters that stay at 0, or at an old value of the host: those are
         * not meters, and 0 W was not measured. */
        if (!meter->has_counted || mono_us - MIN(mono_us, meter->still_since_us) >= STILL_US)
            continue;
        if (add_sample(rapl, meter, batch) < 0)
            return error_set(err, -ENOMEM, "RAPL: out of memory");
    }
    if (answers == 0)
        return error_set(err, -EIO, "RAPL: none of %zu meters answers (%s)", rapl->meter_count,
                         rapl->backend->name);
    return 0;
}

static int rapl_open(const struct source_context *context, void **ret_state, struct error *err)
{
    int r;

    if (context->replay_path)
        return -ENODEV;
    r = rapl_new(context->host, context->clock, &system_calls, (struct rapl **)ret_state, err);
    return r == -EACCES ? -ENOTSUP : r; /* a warning; the collector starts without it */
}

/* A counter that counts has moved by then: they are updated about every millisecond. */
static const struct timespec CHECK_PAUSE = {.tv_nsec = 100000000};

static const char *const scopes[METER_KINDS] = {
    [METER_PACKAGE] = "booked: the processor",
    [METER_DRAM] = "booked: its memory, which is not in the package",
    [METER_CORE] = "observed: a part of the package",
    [METER_UNCORE] = "observed: a part of the package",
    [METER_PSYS] = "observed: the platform, with the packages in it",
};

static void report_meters(struct report *report, struct rapl *rapl)
{
    bool has_memory = false;
    struct batch batch;

    batch_init(&batch);
    (void)rapl_read(rapl, &batch, NULL); /* its results are in the meters */
    nanosleep(&CHECK_PAUSE, NULL);
    (void)rapl_read(rapl, &batch, NULL);
    batch_done(&batch);
    report_add(report, "rapl", VERDICT_OK, NULL, "%zu meter%s, read by %s", rapl->meter_count,
               PLURAL_S(rapl->meter_count), rapl->backend->name);
    for (size_t i = 0; i < rapl->meter_count; i++) {
        const struct rapl_meter *meter = &rapl->meters[i];
        char what[64];

        snprintf(what, sizeof(what), "rapl: %s %s", meter_words[meter->kind], meter->id);
        has_memory |= meter->kind == METER_DRAM;
        report->meters += meter->has_counted;
        if (meter->has_counted)
            report_add(report, what, VERDICT_OK, NULL, "%s", scopes[meter->kind]);
        else
            report_add(report, what, VERDICT_MISSING,
                       "none: virtual machines and some processors do not count it; it is ignored",
                       "its counter stays at 0");
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
    int r = rapl_new(context->host, context->clock, &system_calls, &rapl, &err);

    if (r == 0)
        report_meters(report, rapl);
    else if (r == -EACCES)
        report_add(report, "rapl", VERDICT_FAILED,
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
    .open = rapl_open,
    .read = rapl_read,
    .close = rapl_free,
    .check = rapl_check,
};
