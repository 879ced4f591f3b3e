#include "collector/measurement.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "config/node_config.h"
#include "core/macros.h"

static const uint64_t STOP_SOURCE_US = 200000;

static void choose_sources(struct measurement *measurement, const struct measurement_options *from)
{
    struct source_switches *switches = &measurement->switches;

    node_config_switches(from->options, switches);
    for (size_t i = 0; source_table[i]; i++) {
        const char *name = source_table[i]->name;
        bool is_unwanted = (from->reads && !from->reads(name)) ||
                           (from->reports_usage && strcmp(name, "cgroups") == 0);

        if (is_unwanted && !source_is_off(switches, name))
            switches->off[switches->off_count++] = name;
    }
}

static int open_prices(struct measurement *measurement, struct pipeline_options *books,
                       struct error *err)
{
    const struct options *options = measurement->options;
    int r = emissions_init(&measurement->emissions, options, measurement->clock, err);

    books->embodied = node_config_embodied(options);
    node_config_price(options, &books->price);
    if (r == 0 && options->cost_tariff_path)
        r = tariff_clock_open(&measurement->tariff, options->cost_tariff_path,
                              measurement->start_us, err);
    if (r < 0)
        return r;
    books->price.factor = measurement->emissions.in_force;
    if (measurement->tariff.path)
        books->price.cost = measurement->tariff.cost;
    return 0;
}

static int open_names(struct measurement *measurement, const struct host *host,
                      struct pipeline_options *books, struct error *err)
{
    const struct options *options = measurement->options;
    int r = identity_open(
        &(struct identity_options){
            .host = host,
            .rootfs_path = options->rootfs_path,
            .clock = measurement->clock,
            .scan_interval_us = options->process_scan_interval_us,
            .kubernetes = options->kubernetes_enabled,
            .runtime_sockets = options->runtime_sockets,
            .pod_resources_socket = options->pod_resources_socket,
        },
        &measurement->identity, err);

    books->find_names = identity_find_names;
    books->find_vm = identity_find_vm;
    books->are_names_awaited = identity_awaits_names;
    books->names_context = measurement->identity;
    return r;
}

int measurement_open(const struct measurement_options *options,
                     struct measurement **ret_measurement, struct error *err)
{
    struct pipeline_options books =
        node_config_pipeline(options->options, options->keeps_everything);
    struct measurement *measurement = calloc(1, sizeof(*measurement));
    int r = 0;

    if (!measurement)
        return error_set(err, -ENOMEM, "out of memory");
    measurement->options = options->options;
    measurement->clock = &clock_system;
    measurement->start_us = clock_system.realtime_us(&clock_system);
    measurement->has_prices = options->with_prices;
    measurement->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (gethostname(measurement->node, sizeof(measurement->node) - 1) < 0)
        measurement->node[0] = '\0';
    books.gpu.interval_us = options->interval_us;
    choose_sources(measurement, options);
    books.has_no_usage =
        source_is_off(&measurement->switches, "cgroups") && !options->reports_usage;
    node_config_model(options->options, &measurement->model);
    gpu_counters_init(&measurement->counters);
    source_set_init(&measurement->sources,
                    &(struct source_context){
                        .host = options->host,
                        .clock = measurement->clock,
                        .interval_us = options->interval_us,
                        .nvml_library = "libnvidia-ml.so.1",
                        .counters = &measurement->counters,
                        .model = &measurement->model,
                        .switches = &measurement->switches,
                    },
                    measurement->wake_fd, options->options->process_scan_interval_us);
    if (measurement->wake_fd < 0)
        r = error_set(err, -errno, "cannot wait for sources: %s", strerror(errno));
    if (r == 0 && options->with_prices)
        r = open_prices(measurement, &books, err);
    if (r == 0 && options->with_names)
        r = open_names(measurement, options->host, &books, err);
    if (r == 0 && pipeline_new(&books, &measurement->pipeline) < 0)
        r = error_set(err, -ENOMEM, "out of memory");
    if (r < 0) {
        (void)measurement_close(measurement); /* nothing runs yet that could hang */
        return r;
    }
    measurement_read(measurement);
    *ret_measurement = measurement;
    return 0;
}

static void follow_tariff(struct measurement *measurement)
{
    if (measurement->tariff.path)
        (void)tariff_clock_follow(&measurement->tariff,
                                  measurement->clock->realtime_us(measurement->clock),
                                  measurement->pipeline);
}

/* Names are looked up before they are first needed. */
static void note_sample(struct measurement *measurement, const struct sample *sample)
{
    struct workload_owner owner;

    if (sample->kind != SAMPLE_PROCESS || !measurement->identity)
        return;
    identity_find_owner(&sample->process, &owner);
    identity_note_process(measurement->identity, sample->process.pid, &owner);
}

static void take_batch(void *context, const struct batch *batch)
{
    struct measurement *measurement = context;

    follow_tariff(measurement); /* up to now, which is later than all that was read */
    for (size_t i = 0; i < batch->count; i++)
        note_sample(measurement, &batch->samples[i]);
    if (pipeline_ingest(measurement->pipeline, batch->samples, batch->count) < 0)
        measurement->result = -ENOMEM;
}

void measurement_read(struct measurement *measurement)
{
    uint64_t now_us = measurement->clock->monotonic_us(measurement->clock), ignored;

    (void)!read(measurement->wake_fd, &ignored, sizeof(ignored));
    if (now_us >= source_set_next_due_us(&measurement->sources))
        (void)source_set_open_due(&measurement->sources, now_us, NULL); /* it logs */
    source_set_read(&measurement->sources, now_us, take_batch, measurement);
    if (now_us < measurement->sweep_us)
        return;
    measurement->sweep_us = now_us + measurement->options->process_scan_interval_us;
    source_set_note(&measurement->sources); /* a source that hangs wakes no one */
    pipeline_sweep(measurement->pipeline, measurement->clock->realtime_us(measurement->clock));
}

bool measurement_read_now(struct measurement *measurement, uint64_t wait_us)
{
    uint64_t until_us = measurement->clock->monotonic_us(measurement->clock) + wait_us;

    source_set_request_read(&measurement->sources);
    for (;;) {
        uint64_t now_us = measurement->clock->monotonic_us(measurement->clock);
        bool is_done = source_set_has_read(&measurement->sources);

        measurement_read(measurement); /* of one that has read, the batch is there */
        if (is_done || now_us >= until_us)
            return is_done;
        poll(&(struct pollfd){.fd = measurement->wake_fd, .events = POLLIN}, 1,
             (int)((until_us - now_us + 999) / 1000));
    }
}

int measurement_snapshot(struct measurement *measurement, struct snapshot *snapshot)
{
    uint64_t now_us = measurement->clock->realtime_us(measurement->clock);
    int r;

    follow_tariff(measurement);
    (void)pipeline_fix_names(measurement->pipeline, now_us); /* the rest at the next snapshot */
    r = pipeline_snapshot(measurement->pipeline, now_us,
                          MAX(5 * USEC_PER_SEC, 3 * measurement->sources.context.interval_us),
                          snapshot);
    if (r == 0)
        r = source_set_describe(&measurement->sources, snapshot);
    if (r == 0 && measurement->identity)
        r = identity_describe(measurement->identity, snapshot);
    if (r == 0 && measurement->has_prices)
        r = emissions_describe(&measurement->emissions, snapshot);
    snapshot->node = measurement->node;
    snapshot->start_us = measurement->start_us;
    return r;
}

bool measurement_close(struct measurement *measurement)
{
    if (!measurement)
        return true;
    if (!source_set_stop(&measurement->sources, STOP_SOURCE_US))
        return false;
    identity_close(measurement->identity);
    pipeline_free(measurement->pipeline);
    cleanup_close(&measurement->wake_fd);
    free(measurement);
    return true;
}
