#include "sources/sensors/cray.h"

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
#include "sources/overlap.h"

enum { TRIES = 3, TEXT_BYTES = 128 };

/* Between two attempts to open missing files. */
static const uint64_t SEARCH_US = 30 * USEC_PER_SEC;

/* Freshness moves ten times a second: a controller that has not moved it for so long hangs. */
static const uint64_t STALE_US = 2 * USEC_PER_SEC;

/* A controller's clock that is further off than this is not the node's. */
static const uint64_t CLOCK_SKEW_MAX_US = 10 * USEC_PER_SEC;

#define ENERGY_MAX_J (UINT64_MAX / 1000000) /* in microjoules it fits in 64 bits */

static const struct {
    const char *name;
    const char *unit; /* NULL: a plain number */
    uint64_t max;
    enum meter_kind kind; /* of energy counters */
} files[CRAY_FILES] = {
    [CRAY_FRESHNESS] = {"freshness", NULL, UINT64_MAX, METER_KINDS},
    [CRAY_STARTUP] = {"startup", NULL, UINT64_MAX, METER_KINDS},
    [CRAY_POWER] = {"power", "W", PLAUSIBLE_POWER_MAX_UW / 1000000 - 1, METER_KINDS},
    [CRAY_ENERGY] = {"energy", "J", ENERGY_MAX_J, METER_NODE},
    [CRAY_CPU_ENERGY] = {"cpu_energy", "J", ENERGY_MAX_J, METER_PACKAGE},
    [CRAY_MEMORY_ENERGY] = {"memory_energy", "J", ENERGY_MAX_J, METER_DRAM},
};

struct cray {
    const struct source_context *context;
    struct cray_counters counters;
    uint64_t next_search_us;
    struct cray_value freshness;
    uint64_t fresh_us;
    struct cray_value startup;
    bool is_elsewhere[CRAY_FILES];
    struct counter energy[CRAY_FILES];
};

/* RAPL measures it. */
static bool is_elsewhere(const struct source_context *context, enum cray_file file)
{
    return (file == CRAY_CPU_ENERGY || file == CRAY_MEMORY_ENERGY) &&
           overlap_rapl_measures(context->host, context->switches, files[file].kind);
}

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
    for (enum cray_file file = CRAY_ENERGY; file < CRAY_FILES; file++) {
        cray->is_elsewhere[file] = is_elsewhere(context, file);
        counter_limit(&cray->energy[file], 0, PLAUSIBLE_POWER_MAX_UW);
    }
    *ret_state = cray;
    return 0;
}

/* The controller's time where its clock is set, to match the samples of other sources. */
static uint64_t sample_us(const struct cray *cray, const struct cray_value *value)
{
    const struct clock *clock = cray->context->clock;
    uint64_t now_us = clock->realtime_us(clock);
    uint64_t skew_us = MAX(now_us, value->t_us) - MIN(now_us, value->t_us);

    return skew_us <= CLOCK_SKEW_MAX_US ? MIN(value->t_us, now_us) : now_us;
}

static int add_samples(struct cray *cray, const struct cray_value values[static CRAY_FILES],
                       uint64_t mono_us, struct batch *batch)
{
    const struct cray_value *power = &values[CRAY_POWER];
    int r = 0;

    for (enum cray_file file = CRAY_ENERGY; r == 0 && file < CRAY_FILES; file++) {
        const struct cray_value *value = &values[file];
        struct counter *counter = &cray->energy[file];

        if (!value->valid || cray->is_elsewhere[file])
            continue;
        counter_add(counter, value->t_us > 0 ? value->t_us : mono_us, value->number * 1000000);
        /* The id is no number: the counter is of all sockets. */
        r = batch_add(
            batch, &(struct sample){.kind = SAMPLE_METER,
                                    .t_us = sample_us(cray, value),
                                    .meter = {.source = "cray",
                                              .kind = files[file].kind,
                                              .id = "cray",
                                              .counter_uj = counter->total,
                                              .breaks = counter->breaks,
                                              .hardware = counter_copy(counter, &batch->arena)}});
    }
    /* A node that runs draws something: 0 is a controller that does not know. */
    if (r == 0 && power->valid && power->number > 0)
        r = batch_add(batch, &(struct sample){.kind = SAMPLE_NODE_POWER,
                                              .t_us = sample_us(cray, power),
                                              .node_power = {"cray", power->number * 1000}});
    return r;
}

static void check_startup(struct cray *cray, const struct cray_value *startup)
{
    if (!startup->valid)
        return;
    if (cray->startup.valid && cray->startup.number != startup->number)
        for (enum cray_file file = CRAY_ENERGY; file < CRAY_FILES; file++)
            counter_break(&cray->energy[file]);
    cray->startup = *startup;
}

/* False if the controller wrote nothing since the last read. Without the file it is unknown. */
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
        (void)cray_counters_reopen(&cray->counters);
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
    check_startup(cray, &values[CRAY_STARTUP]);
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
        report_add(report, "cray", VERDICT_FAILED, r == -EACCES ? "run as root" : NULL,
                   "cray/pm_counters cannot be read: %s", strerror(-r));
        return;
    }
    for (enum cray_file file = CRAY_POWER; file < CRAY_FILES; file++) {
        bool elsewhere = is_elsewhere(context, file);
        char what[64];

        snprintf(what, sizeof(what), "cray: %s", files[file].name);
        report->meters += values[file].valid && !elsewhere && file != CRAY_POWER;
        if (!values[file].valid)
            report_add(report, what, VERDICT_FAILED, "check the file's mode, and the blade's log",
                       "no usable value in cray/pm_counters/%s", files[file].name);
        else if (elsewhere)
            report_add(report, what, VERDICT_OK, NULL, "skipped: RAPL is finer");
        else
            report_add(report, what, VERDICT_OK, NULL, "%" PRIu64 " %s", values[file].number,
                       files[file].unit);
    }
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

int cray_parse(enum cray_file file, struct span text, struct cray_value *ret_value)
{
    const char *unit = files[file].unit;
    struct cray_value value = {.valid = true};
    int r;

    span_strip_suffix(&text, "\n");
    r = parse_u64_max(span_cut(&text, ' '), files[file].max, &value.number);
    if (r < 0)
        return r;
    if (unit && !span_equals(span_cut(&text, ' '), unit))
        return -EINVAL;
    if (unit && text.len > 0)
        r = span_strip_suffix(&text, " us") ? parse_u64(text, &value.t_us) : -EINVAL;
    if (r == 0)
        *ret_value = value;
    return r;
}

int cray_counters_open(int sysfs_fd, struct cray_counters *ret_counters)
{
    struct cray_counters counters = {
        .dir_fd = openat(sysfs_fd, "cray/pm_counters", O_PATH | O_DIRECTORY | O_CLOEXEC),
        .read_kept = fs_reread,
    };
    int r;

    if (counters.dir_fd < 0)
        return -ENODEV;
    memset(counters.fds, -1, sizeof(counters.fds));
    r = cray_counters_reopen(&counters);
    if (r < 0)
        cray_counters_close(&counters);
    else
        *ret_counters = counters;
    return r;
}

int cray_counters_reopen(struct cray_counters *counters)
{
    int result = -ENODEV;

    for (enum cray_file file = 0; file < CRAY_FILES; file++) {
        int *fd = &counters->fds[file];

        if (*fd < 0)
            *fd = openat(counters->dir_fd, files[file].name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (file >= CRAY_ENERGY && *fd >= 0)
            result = 0;
        else if (file >= CRAY_ENERGY && result < 0 && errno != ENOENT)
            result = -errno;
    }
    return result;
}

void cray_counters_close(struct cray_counters *counters)
{
    for (size_t i = 0; i < CRAY_FILES; i++)
        cleanup_close(&counters->fds[i]);
    cleanup_close(&counters->dir_fd);
}

static struct cray_value read_value(struct cray_counters *counters, enum cray_file file)
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
    if (r == 0)
        (void)cray_parse(file, (struct span){text, len}, &value);
    return value;
}

int cray_counters_read(struct cray_counters *counters, struct cray_value ret_values[CRAY_FILES])
{
    struct cray_value values[CRAY_FILES];

    values[CRAY_FRESHNESS] = read_value(counters, CRAY_FRESHNESS);
    for (int i = 0; i < TRIES; i++) {
        struct cray_value before = values[CRAY_FRESHNESS];

        for (enum cray_file file = CRAY_FRESHNESS + 1; file < CRAY_FILES; file++)
            values[file] = read_value(counters, file);
        values[CRAY_FRESHNESS] = read_value(counters, CRAY_FRESHNESS);
        if (values[CRAY_FRESHNESS].valid == before.valid &&
            values[CRAY_FRESHNESS].number == before.number) {
            memcpy(ret_values, values, sizeof(values));
            return 0;
        }
    }
    return -EAGAIN;
}
