#include "cli/top_measure.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "collector/measurement.h"
#include "core/macros.h"
#include "metrics/node_json.h"
#include "model/snapshot.h"

enum { JSON_MAX_BYTES = 64 << 20 };

/* A sample of each meter, then a window that ends: a few seconds where cgroups are read, more where
 * a model stands in for the meter. */
static const uint64_t FIRST_SAMPLE_US = 4 * USEC_PER_SEC, FIRST_WINDOW_US = 15 * USEC_PER_SEC;
/* A daemon's 60 seconds are for books that last: here somebody is waiting. */
static const uint64_t DELAY_US = 2 * USEC_PER_SEC;

struct top_measure {
    struct options options; /* shares the texts of the verb's */
    struct host host;
    struct measurement *measurement;
    struct snapshot snapshot;
    struct buffer json;
    uint64_t generation;
};

static int get(void *context, struct span *ret_json, struct error *err)
{
    struct top_measure *measure = context;
    int r;

    measurement_read(measure->measurement);
    snapshot_done(&measure->snapshot); /* and starts anew */
    r = measurement_snapshot(measure->measurement, &measure->snapshot);
    measure->json.len = 0;
    if (r == 0)
        node_json(&measure->snapshot,
                  &(struct node_json_options){.version = WATTRIBUTE_VERSION,
                                              .expose = measure->options.expose,
                                              .generation = ++measure->generation},
                  &measure->json);
    if (r < 0 || buffer_failed(&measure->json))
        return error_set(err, -ENOMEM, "out of memory");
    *ret_json = (struct span){measure->json.data, measure->json.len};
    return 0;
}

static void attend(void *context)
{
    struct top_measure *measure = context;

    measurement_read(measure->measurement);
}

/* It never blocks. */
static void cancel(void *context)
{
    (void)context;
}

struct top_source top_measure_source(struct top_measure *measure)
{
    return (struct top_source){.get = get,
                               .cancel = cancel,
                               .attend = attend,
                               .wake_fd = measure->measurement->wake_fd,
                               .context = measure};
}

int top_measure_open(const struct options *options, struct top_measure **ret_measure,
                     struct error *err)
{
    struct top_measure *measure = calloc(1, sizeof(*measure));
    int r;

    if (!measure)
        return error_set(err, -ENOMEM, "out of memory");
    measure->options = *options;
    measure->options.attribution_delay_us = DELAY_US;
    measure->host = (struct host){.procfs_fd = -1, .sysfs_fd = -1, .rootfs_fd = -1};
    snapshot_init(&measure->snapshot);
    buffer_init(&measure->json, JSON_MAX_BYTES);
    r = host_open(options->procfs_path, options->sysfs_path, options->rootfs_path, &measure->host,
                  err);
    if (r == 0)
        r = measurement_open(
            &(struct measurement_options){.options = &measure->options,
                                          .host = &measure->host,
                                          .interval_us = options->sample_interval_us,
                                          .with_names = true,
                                          .with_prices = true},
            &measure->measurement, err);
    if (r < 0)
        (void)top_measure_close(measure); /* nothing runs yet that could hang */
    else
        *ret_measure = measure;
    return r;
}

static bool has_watts(const struct snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->meter_count; i++)
        if (snapshot->meters[i].power_mw >= 0)
            return true;
    return false;
}

/* Of a source that has none there is nothing to wait for. */
static uint64_t patience_us(const struct top_measure *measure)
{
    bool has_meters = measure->options.model_full_uw > 0 || measure->options.model_cpu ||
                      measure->measurement->pipeline->node.meter_count > 0 ||
                      measure->snapshot.meter_count > 0;

    return has_meters ? FIRST_WINDOW_US : FIRST_SAMPLE_US;
}

int top_measure_wait(struct top_measure *measure, struct error *err)
{
    uint64_t began_us = clock_system.monotonic_us(&clock_system);

    do {
        struct span ignored;
        int r = get(measure, &ignored, err);

        if (r < 0 || has_watts(&measure->snapshot))
            return r;
        (void)poll(&(struct pollfd){.fd = measure->measurement->wake_fd, .events = POLLIN}, 1, 200);
    } while (clock_system.monotonic_us(&clock_system) < began_us + patience_us(measure));
    if (measure->snapshot.meter_count > 0)
        return 0;
    return error_set(err, -ENODEV,
                     "no daemon answers at %s, and no energy meter of this node can be read from "
                     "here: start wattribute, name one with --daemon, or see what 'wattribute "
                     "check' finds missing (most meters are for root)",
                     measure->options.daemon_url);
}

bool top_measure_close(struct top_measure *measure)
{
    if (!measure)
        return true;
    if (!measurement_close(measure->measurement))
        return false;
    snapshot_done(&measure->snapshot);
    buffer_done(&measure->json);
    host_close(&measure->host);
    free(measure);
    return true;
}
