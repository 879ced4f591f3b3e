#include "sources/sensors/cray.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/macros.h"
#include "core/parse.h"
#include "model/report.h"
#include "sources/counter.h"
#include "sources/overlap.h"

/* How often files that are not there are tried again. */
static const uint64_t SEARCH_US = 30 * USEC_PER_SEC;

/* Freshness that stands still for so long, at ten steps a second, means that nobody counts. */
static const uint64_t STALE_US = 2 * USEC_PER_SEC;

/* A controller's clock that is further off than this is not the node's. */
static const uint64_t CLOCK_SKEW_MAX_US = 10 * USEC_PER_SEC;

static const struct {
    enum cray_file file;
    enum meter_kind kind;
    const char *id; /* not a number: it is all of the node's sockets */
} meters[] = {
    {CRAY_ENERGY, METER_NODE, "cray"},
    {CRAY_CPU_ENERGY, METER_PACKAGE, "cray"},
    {CRAY_MEMORY_ENERGY, METER_DRAM, "cray"},
};

struct cray {
    const struct source_context *context;
    struct cray_counters counters;
    uint64_t next_search_us;
    struct cray_value freshness;
    uint64_t fresh_us;
    struct cray_value startup;
    struct {
        bool elsewhere; /* RAPL measures it */
        struct counter counter;
    } meters[ARRAY_SIZE(meters)];
};

static int cray_open(const struct source_context *context, void **ret_state, struct error *err)
{
    struct cray *cray;
    int r;

    if (context->replay_path)
        return -ENODEV;
    cray = calloc(1, sizeof(*cray));
    if (!cray)
        return error_set(err, -ENOMEM, "out of memory");
    r = cray_counters_open(context->host->sysfs_fd, &cray->counters);
    if (r < 0) {
        free(cray);
        return r == -ENODEV
                   ? r
                   : error_set(err, r, "cannot open cray/pm_counters/energy: %s", strerror(-r));
    }
    cray->context = context;
    for (size_t i = 0; i < ARRAY_SIZE(meters); i++) {
        cray->meters[i].elsewhere =
            meters[i].kind != METER_NODE &&
            overlap_rapl_measures(context->host, context->switches, meters[i].kind);
        counter_limit(&cray->meters[i].counter, 0, PLAUSIBLE_POWER_MAX_UW);
    }
    *ret_state = cray;
    return 0;
}

/* The controller's time where its clock is set; so that samples of all sources go together. */
static uint64_t sample_us(const struct cray *cray, const struct cray_value *value)
{
    const struct clock *clock = cray->context->clock;
    uint64_t now_us = clock->realtime_us(clock);
    uint64_t skew_us = MAX(now_us, value->t_us) - MIN(now_us, value->t_us);

    return skew_us <= CLOCK_SKEW_MAX_US ? MIN(value->t_us, now_us) : now_us;
}

static int add_meter(struct cray *cray, size_t index, const struct cray_value *value,
                     uint64_t mono_us, struct batch *batch)
{
    struct counter *counter = &cray->meters[index].counter;

    counter_add(counter, value->t_us > 0 ? value->t_us : mono_us, value->number * 1000000);
    return batch_add(batch, &(struct sample){.kind = SAMPLE_METER,
                                             .t_us = sample_us(cray, value),
                                             .meter = {.source = "cray",
                                                       .kind = meters[index].kind,
                                                       .id = meters[index].id,
                                                       .counter_uj = counter->total,
                                                       .breaks = counter->breaks}});
}

static int add_samples(struct cray *cray, const struct cray_value values[static CRAY_FILES],
                       uint64_t mono_us, struct batch *batch)
{
    const struct cray_value *power = &values[CRAY_POWER];
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(meters); i++)
        if (values[meters[i].file].valid && !cray->meters[i].elsewhere)
            r = add_meter(cray, i, &values[meters[i].file], mono_us, batch);
    /* A node that runs draws something: 0 is a controller that does not know. */
    if (r == 0 && power->valid && power->number > 0)
        r = batch_add(batch, &(struct sample){.kind = SAMPLE_NODE_POWER,
                                              .t_us = sample_us(cray, power),
                                              .node_power = {"cray", power->number * 1000}});
    return r;
}

static void note_startup(struct cray *cray, const struct cray_value *startup)
{
    if (!startup->valid)
        return;
    if (cray->startup.valid && cray->startup.number != startup->number)
        for (size_t i = 0; i < ARRAY_SIZE(meters); i++)
            counter_break(&cray->meters[i].counter);
    cray->startup = *startup;
}

/* False if the controller wrote nothing since the last read. Without the file nobody can tell. */
static bool is_fresh(struct cray *cray, const struct cray_value *freshness, uint64_t mono_us)
{
    if (freshness->valid && cray->freshness.valid && freshness->number == cray->freshness.number)
        return false;
    cray->freshness = *freshness;
    cray->fresh_us = mono_us;
    return true;
}

static int cray_read(void *state, struct batch *batch, struct error *err)
{
    struct cray *cray = state;
    const struct clock *clock = cray->context->clock;
    uint64_t mono_us = clock->monotonic_us(clock);
    struct cray_value values[CRAY_FILES];
    size_t before = batch->count;
    int r;

    if (mono_us >= cray->next_search_us) {
        cray->next_search_us = mono_us + SEARCH_US;
        cray_counters_reopen(&cray->counters);
    }
    r = cray_counters_read(&cray->counters, values);
    if (r < 0)
        return error_set(err, r, "cray/pm_counters changed during each of three reads");
    if (!is_fresh(cray, &values[CRAY_FRESHNESS], mono_us))
        return mono_us - cray->fresh_us < STALE_US
                   ? 0
                   : error_set(err, -ESTALE,
                               "cray/pm_counters/freshness stands still: the blade's controller "
                               "does not count");
    note_startup(cray, &values[CRAY_STARTUP]);
    r = add_samples(cray, values, mono_us, batch);
    if (r < 0)
        return error_set(err, r, "out of memory");
    if (batch->count == before)
        return error_set(err, -EIO, "cray/pm_counters: none of its files has a usable value");
    return 0;
}

static void cray_close(void *state)
{
    struct cray *cray = state;

    if (!cray)
        return;
    cray_counters_close(&cray->counters);
    free(cray);
}

static void report_counter(struct report *report, enum cray_file file,
                           const struct cray_value *value, bool elsewhere)
{
    char what[64];

    snprintf(what, sizeof(what), "cray: %s", cray_file_names[file]);
    report->meters += value->valid && !elsewhere && file != CRAY_POWER;
    if (!value->valid)
        report_add(report, what, VERDICT_LIMITED, "look at the file's mode, and the blade's log",
                   "no usable value in cray/pm_counters/%s", cray_file_names[file]);
    else if (elsewhere)
        report_add(report, what, VERDICT_OK, NULL, "left alone: RAPL is finer");
    else
        report_add(report, what, VERDICT_OK, NULL, "%" PRIu64 " %s", value->number,
                   file == CRAY_POWER ? "W" : "J");
}

static void cray_check(const struct source_context *context, struct report *report)
{
    struct cray_counters counters;
    struct cray_value values[CRAY_FILES] = {0};
    int r = cray_counters_open(context->host->sysfs_fd, &counters);

    if (r == -ENODEV)
        return;
    if (r == 0) {
        r = cray_counters_read(&counters, values);
        cray_counters_close(&counters);
    }
    if (r < 0) {
        report_add(report, "cray", VERDICT_MISSING, r == -EACCES ? "run as root" : NULL,
                   "cray/pm_counters cannot be read: %s", strerror(-r));
        return;
    }
    report_counter(report, CRAY_POWER, &values[CRAY_POWER], false);
    report_counter(report, CRAY_ENERGY, &values[CRAY_ENERGY], false);
    report_counter(report, CRAY_CPU_ENERGY, &values[CRAY_CPU_ENERGY],
                   overlap_rapl_measures(context->host, context->switches, METER_PACKAGE));
    report_counter(report, CRAY_MEMORY_ENERGY, &values[CRAY_MEMORY_ENERGY],
                   overlap_rapl_measures(context->host, context->switches, METER_DRAM));
}

const struct source_ops cray_source = {
    .name = "cray",
    .flag = "collector.cray",
    .help = "read the energy counters of a Cray blade",
    .open = cray_open,
    .read = cray_read,
    .close = cray_close,
    .check = cray_check,
};

/* From here on: the counters. */

enum { TRIES = 3, TEXT_BYTES = 128 };

const char *const cray_file_names[CRAY_FILES] = {
    [CRAY_FRESHNESS] = "freshness",   [CRAY_STARTUP] = "startup",
    [CRAY_POWER] = "power",           [CRAY_ENERGY] = "energy",
    [CRAY_CPU_ENERGY] = "cpu_energy", [CRAY_MEMORY_ENERGY] = "memory_energy",
};

static const char *unit_of(enum cray_file file)
{
    switch (file) {
    case CRAY_FRESHNESS:
    case CRAY_STARTUP:
        return NULL;
    case CRAY_POWER:
        return "W";
    default:
        return "J";
    }
}

static uint64_t max_of(enum cray_file file)
{
    switch (file) {
    case CRAY_FRESHNESS:
    case CRAY_STARTUP:
        return UINT64_MAX;
    case CRAY_POWER:
        return PLAUSIBLE_POWER_MAX_UW / 1000000 - 1;
    default:
        return UINT64_MAX / 1000000; /* so that it can be said in microjoules */
    }
}

int cray_parse(enum cray_file file, struct span text, struct cray_value *ret_value)
{
    const char *unit = unit_of(file);
    struct cray_value value = {.valid = true};
    struct span rest = text;
    int r;

    span_strip_suffix(&rest, "\n");
    r = parse_u64_max(span_cut(&rest, ' '), max_of(file), &value.number);
    if (r < 0)
        return r;
    if (unit && !span_equals(span_cut(&rest, ' '), unit))
        return -EINVAL;
    if (unit && rest.len > 0) {
        if (!span_strip_suffix(&rest, " us"))
            return -EINVAL;
        r = parse_u64(rest, &value.t_us);
        if (r < 0)
            return r;
    }
    *ret_value = value;
    return 0;
}

static bool counts_energy(enum cray_file file)
{
    return file == CRAY_ENERGY || file == CRAY_CPU_ENERGY || file == CRAY_MEMORY_ENERGY;
}

int cray_counters_open(int sysfs_fd, struct cray_counters *ret_counters)
{
    struct cray_counters counters = {
        .dir_fd = openat(sysfs_fd, "cray/pm_counters", O_PATH | O_DIRECTORY | O_CLOEXEC),
        .read_kept = fs_read_kept,
    };
    int result = -ENODEV;

    if (counters.dir_fd < 0)
        return -ENODEV;
    for (size_t i = 0; i < CRAY_FILES; i++) {
        counters.fds[i] =
            openat(counters.dir_fd, cray_file_names[i], O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (!counts_energy((enum cray_file)i))
            continue;
        if (counters.fds[i] >= 0)
            result = 0;
        else if (result < 0 && errno != ENOENT)
            result = -errno;
    }
    if (result < 0) {
        cray_counters_close(&counters);
        return result;
    }
    *ret_counters = counters;
    return 0;
}

void cray_counters_close(struct cray_counters *counters)
{
    for (size_t i = 0; i < CRAY_FILES; i++) {
        cleanup_close(&counters->fds[i]);
        counters->fds[i] = -1;
    }
    cleanup_close(&counters->dir_fd);
    counters->dir_fd = -1;
}

void cray_counters_reopen(struct cray_counters *counters)
{
    for (size_t i = 0; i < CRAY_FILES; i++)
        if (counters->fds[i] < 0)
            counters->fds[i] =
                openat(counters->dir_fd, cray_file_names[i], O_RDONLY | O_CLOEXEC | O_NOCTTY);
}

static struct cray_value read_one(struct cray_counters *counters, enum cray_file file)
{
    struct cray_value value = {0};
    char text[TEXT_BYTES];
    size_t len;
    int r;

    if (counters->fds[file] < 0)
        return value;
    r = counters->read_kept(counters->fds[file], text, sizeof(text), &len);
    if (r == -ENODEV || r == -ENOENT) {
        cleanup_close(&counters->fds[file]);
        counters->fds[file] = -1;
    }
    if (r < 0 || cray_parse(file, (struct span){text, len}, &value) < 0)
        return (struct cray_value){0};
    return value;
}

int cray_counters_read(struct cray_counters *counters, struct cray_value ret_values[CRAY_FILES])
{
    struct cray_value values[CRAY_FILES];
    struct cray_value after;

    values[CRAY_FRESHNESS] = read_one(counters, CRAY_FRESHNESS);
    for (int i = 0; i < TRIES; i++) {
        for (enum cray_file file = CRAY_FRESHNESS + 1; file < CRAY_FILES; file++)
            values[file] = read_one(counters, file);
        after = read_one(counters, CRAY_FRESHNESS);
        if (after.valid == values[CRAY_FRESHNESS].valid &&
            after.number == values[CRAY_FRESHNESS].number) {
            memcpy(ret_values, values, sizeof(values));
            return 0;
        }
        values[CRAY_FRESHNESS] = after;
    }
    return -EAGAIN;
}
