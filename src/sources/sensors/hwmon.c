#include "sources/sensors/hwmon.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/fs.h"
#include "core/macros.h"
#include "core/parse.h"
#include "model/counter.h"
#include "model/report.h"

/* Between two searches for chips that came, went or failed. */
static const uint64_t SEARCH_US = 30 * USEC_PER_SEC;

/* A gap between two readings that is longer is not integrated. */
static const uint64_t STALE_MIN_US = 3 * USEC_PER_SEC;
enum { STALE_INTERVALS = 3 };

/*
 * A value that stands still is not believed: a running machine never draws the same to the
 * microwatt for long, so the controller behind it hangs. It may stand still for a minute, and ten
 * of the chip's refresh intervals (some firmware gives means of 5 minutes), and ten readings.
 */
static const uint64_t STILL_MIN_US = 60 * USEC_PER_SEC, STILL_MAX_US = 3600 * USEC_PER_SEC;
enum { STILL_REFRESHES = 10 };

struct meter {
    struct hwmon_found found;
    bool present; /* the last search found it */
    int fd;       /* or -errno, why it could not be opened */
    int result;   /* of the last reading */
    struct integrator integrator;
    struct counter counter; /* one of the two is used */
    uint64_t still_max_us;
    uint64_t still_value;
    uint64_t still_since_us;
    uint64_t still_readings;
};

struct hwmon {
    const struct source_context *context;
    uint64_t next_search_us;
    struct meter meters[HWMON_METERS_MAX]; /* stay when the chip goes: it may come back */
    size_t count;
};

static uint64_t read_still_max_us(const struct hwmon *hwmon, const struct hwmon_found *found)
{
    uint64_t refresh_ms;
    char text[32];
    struct span number = {text, 0};

    if (found->refresh[0] == '\0' || fs_read_at(hwmon->context->host->sysfs_fd, found->refresh,
                                                text, sizeof(text), &number.len) < 0)
        return STILL_MIN_US;
    span_strip_suffix(&number, "\n");
    if (parse_u64_max(number, STILL_MAX_US / 1000 / STILL_REFRESHES, &refresh_ms) < 0)
        return STILL_MIN_US;
    return MAX(STILL_MIN_US, STILL_REFRESHES * refresh_ms * 1000);
}

/* NULL: no room. */
static struct meter *get_meter(struct hwmon *hwmon, const struct hwmon_found *found)
{
    struct meter *meter = hwmon->meters;

    for (; meter < hwmon->meters + hwmon->count; meter++)
        if (meter->found.kind == found->kind && strcmp(meter->found.id, found->id) == 0)
            return meter;
    if (hwmon->count == HWMON_METERS_MAX)
        return NULL;
    hwmon->count++;
    *meter = (struct meter){.found = *found, .fd = -ENODEV};
    meter->integrator.stale_us = MAX(STALE_MIN_US, STALE_INTERVALS * hwmon->context->interval_us);
    counter_limit(&meter->counter, 0, PLAUSIBLE_POWER_MAX_UW);
    return meter;
}

static void update_meter(struct hwmon *hwmon, const struct hwmon_found *found)
{
    struct meter *meter = get_meter(hwmon, found);
    bool moved;

    /* A count and an integral cannot continue each other. */
    if (!meter || meter->found.counts != found->counts)
        return;
    meter->present = true;
    moved = strcmp(meter->found.path, found->path) != 0;
    if (moved)
        counter_break(&meter->counter);
    meter->found = *found;
    if (!moved && meter->fd >= 0 && meter->result >= 0)
        return;
    cleanup_close(&meter->fd);
    meter->fd =
        openat(hwmon->context->host->sysfs_fd, found->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (meter->fd < 0)
        meter->fd = -errno;
    meter->still_max_us = read_still_max_us(hwmon, found);
}

static void search(struct hwmon *hwmon)
{
    struct hwmon_scan scan;

    hwmon_scan(hwmon->context->host, hwmon->context->switches, &scan);
    for (size_t i = 0; i < hwmon->count; i++)
        hwmon->meters[i].present = false;
    for (size_t i = 0; i < scan.count; i++)
        update_meter(hwmon, &scan.found[i]);
    for (size_t i = 0; i < hwmon->count; i++)
        if (!hwmon->meters[i].present) {
            cleanup_close(&hwmon->meters[i].fd);
            hwmon->meters[i].fd = -ENODEV;
        }
}

static int hwmon_open(const struct source_context *context, void **ret_state, struct error *err)
{
    struct hwmon *hwmon;

    if (context->replay_path)
        return -ENODEV;
    hwmon = calloc(1, sizeof(*hwmon));
    if (!hwmon)
        return error_set(err, -ENOMEM, "out of memory");
    hwmon->context = context;
    search(hwmon);
    if (hwmon->count == 0) {
        free(hwmon);
        return -ENODEV;
    }
    *ret_state = hwmon;
    return 0;
}

static bool stands_still(struct meter *meter, uint64_t value, uint64_t mono_us)
{
    if (meter->still_readings == 0 || value != meter->still_value) {
        meter->still_value = value;
        meter->still_since_us = mono_us;
        meter->still_readings = 0;
    }
    meter->still_readings++;
    return meter->still_readings > STILL_REFRESHES &&
           mono_us - meter->still_since_us >= meter->still_max_us;
}

static int add_samples(const struct meter *meter, uint64_t t_us, uint64_t power_uw,
                       struct batch *batch)
{
    bool counts = meter->found.counts;
    struct sample sample = {
        .kind = SAMPLE_METER,
        .t_us = t_us,
        .meter = {.source = "hwmon",
                  .kind = meter->found.kind,
                  .id = arena_copy(&batch->arena, meter->found.id, strlen(meter->found.id)),
                  .counter_uj = counts ? meter->counter.total : meter->integrator.energy_uj,
                  .breaks = counts ? meter->counter.breaks : meter->integrator.breaks,
                  .integrated = !counts,
                  .hardware = counts ? counter_copy(&meter->counter, &batch->arena) : NULL},
    };
    int r = sample.meter.id ? batch_add(batch, &sample) : -ENOMEM;

    if (r < 0 || meter->found.kind != METER_NODE || counts)
        return r;
    return batch_add(batch, &(struct sample){.kind = SAMPLE_NODE_POWER,
                                             .t_us = t_us,
                                             .node_power = {"hwmon", power_uw / 1000}});
}

static int parse_value(const struct hwmon_found *found, struct span text, uint64_t *ret_value)
{
    if (!found->counts)
        return hwmon_parse_power(text, ret_value);
    span_strip_suffix(&text, "\n");
    return parse_u64(text, ret_value);
}

static int read_meter(const struct hwmon *hwmon, struct meter *meter, struct batch *batch)
{
    const struct clock *clock = hwmon->context->clock;
    uint64_t value = 0, mono_us;
    char text[32];
    size_t len;
    int r = meter->fd < 0 ? meter->fd : fs_reread(meter->fd, text, sizeof(text), &len);

    if (r == 0)
        r = parse_value(&meter->found, (struct span){text, len}, &value);
    if (r < 0)
        return r;
    mono_us = clock->monotonic_us(clock); /* the other clock may be set meanwhile */
    if (stands_still(meter, value, mono_us))
        return -ESTALE;
    if (meter->found.counts)
        counter_add(&meter->counter, mono_us, value);
    else
        integrator_add(&meter->integrator, mono_us, value);
    return add_samples(meter, clock->realtime_us(clock), value, batch);
}

static const char *describe_error(int code)
{
    if (code == -ESTALE)
        return "has not moved for a minute or more, so it is not believed";
    if (code == -EACCES)
        return "may not be read; run as root";
    if (code == -EINVAL || code == -EFBIG || code == -ERANGE)
        return "is not a usable number";
    return strerror(-code);
}

static int hwmon_read(void *state, struct batch *batch, struct error *err)
{
    struct hwmon *hwmon = state;
    const struct clock *clock = hwmon->context->clock;
    uint64_t mono_us = clock->monotonic_us(clock);
    const struct meter *failed = NULL;
    size_t answered = 0;

    if (mono_us >= hwmon->next_search_us) {
        hwmon->next_search_us = mono_us + SEARCH_US;
        search(hwmon);
    }
    for (size_t i = 0; i < hwmon->count; i++) {
        struct meter *meter = &hwmon->meters[i];

        if (!meter->present)
            continue;
        meter->result = read_meter(hwmon, meter, batch);
        if (meter->result < 0)
            failed = meter;
        else
            answered++;
    }
    if (answered > 0)
        return 0;
    if (!failed)
        return error_set(err, -ENODEV, "hwmon: no chip is left that measures the node");
    return error_set(err, -EIO, "%s %s", failed->found.path, describe_error(failed->result));
}

static void hwmon_close(void *state)
{
    struct hwmon *hwmon = state;

    if (!hwmon)
        return;
    for (size_t i = 0; i < hwmon->count; i++)
        cleanup_close(&hwmon->meters[i].fd);
    free(hwmon);
}

static void report_meter(struct report *report, const struct host *host,
                         const struct hwmon_found *found)
{
    char what[64], text[64];
    struct span number = {text, 0};
    uint64_t value;
    int r = fs_read_at(host->sysfs_fd, found->path, text, sizeof(text), &number.len);

    snprintf(what, sizeof(what), "hwmon: %s %s", meter_words[found->kind],
             found->kind == METER_NODE ? "" : found->id);
    if (r == 0)
        r = parse_value(found, number, &value);
    report->meters += r == 0;
    if (r == 0 && found->counts)
        report_add(report, what, VERDICT_OK, NULL, "%s, counter %s", found->what, found->path);
    else if (r == 0)
        report_add(report, what, VERDICT_OK, NULL, "%s, %" PRIu64 " W, %s", found->what,
                   value / 1000000, found->path);
    else
        report_add(report, what, VERDICT_FAILED,
                   r == -EACCES ? "run as root" : "update the board's firmware", "%s, %s: %s",
                   found->what, found->path, r == -EACCES ? strerror(-r) : "no usable value");
}

static void hwmon_check(const struct source_context *context, struct report *report)
{
    struct hwmon_scan scan;

    hwmon_scan(context->host, context->switches, &scan);
    for (size_t i = 0; i < scan.count; i++)
        report_meter(report, context->host, &scan.found[i]);
    if (scan.repeated > 0)
        report_add(report, "hwmon", VERDICT_LIMITED, NULL,
                   "chips skipped because another measures the same: %zu", scan.repeated);
    if (scan.elsewhere > 0)
        report_add(report, "hwmon", VERDICT_OK, NULL,
                   "chips skipped because their CPUs have finer meters: %zu", scan.elsewhere);
    if (scan.count + scan.elsewhere == 0)
        report_add(report, "hwmon", VERDICT_MISSING,
                   "modprobe acpi_power_meter (NVIDIA Grace: boot with "
                   "acpi_power_meter.force_cap_on=y); nothing to do where the firmware has none",
                   "no chip measures the node, a module or the CPUs");
}

const struct source_ops hwmon_source = {
    .name = "hwmon",
    .flag = "collector.hwmon",
    .help = "read the power sensors of the board and of NVIDIA Grace",
    .open = hwmon_open,
    .read = hwmon_read,
    .close = hwmon_close,
    .check = hwmon_check,
};
