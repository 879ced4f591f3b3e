/* How the collector begins and ends. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "collector/cgroup_verdict.h"
#include "collector/collector_parts.h"
#include "config/node_config.h"
#include "process/signals.h"

static int open_loop(struct collector *collector, struct error *err)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGQUIT, SIGXCPU, SIGHUP, SIGUSR1, SIGCHLD};
    int r = 0;

    signal(SIGCHLD, SIG_DFL); /* ignored by whoever started us, no child's end would be told */
    collector->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    collector->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (collector->epoll_fd < 0 || collector->wake_fd < 0)
        r = -errno;
    if (r == 0)
        r = signals_open(signals, ARRAY_SIZE(signals));
    if (r >= 0)
        collector->signal_fd = r;
    if (r >= 0)
        r = collector_watch(collector, collector->signal_fd, WATCH_SIGNALS);
    if (r == 0)
        r = collector_watch(collector, collector->wake_fd, WATCH_SOURCES);
    return r < 0 ? error_set(err, r, "cannot set up the event loop: %s", strerror(-r)) : 0;
}

bool collector_close(struct collector *collector)
{
    bool is_idle;

    if (!collector)
        return true;
    is_idle = source_set_stop(&collector->sources, COLLECTOR_STOP_SOURCE_US);
    child_stop(&collector->server, 0);
    fetchers_close(&collector->fetchers);
    if (!is_idle)
        return false;
    identity_close(collector->identity);
    recorded_names_free(collector->names);
    process_events_stop(collector->events);
    page_cache_done(&collector->bodies);
    pipeline_free(collector->pipeline);
    tariff_clock_close(collector->tariff);
    cleanup_close(&collector->epoll_fd);
    cleanup_close(&collector->signal_fd);
    cleanup_close(&collector->wake_fd);
    free(collector);
    return true;
}

/* The downward API's name where a pod was given it: it is what the cluster calls the node. */
static void find_node_name(struct collector *collector)
{
    const char *name = secure_getenv("NODE_NAME");

    if (name && name[0])
        snprintf(collector->node, sizeof(collector->node), "%.255s", name);
    else if (gethostname(collector->node, sizeof(collector->node) - 1) < 0)
        collector->node[0] = '\0';
}

static int recall(void *context, uint32_t pid, struct arena *arena,
                  struct sample_process *ret_process)
{
    return process_events_find(context, pid, ret_process, arena);
}

static int open_identity(struct collector *collector, struct error *err)
{
    const struct options *options = collector->options;

    return identity_open(
        &(struct identity_options){
            .host = collector->host,
            .rootfs_path = options->rootfs_path,
            .clock = collector->clock,
            .scan_interval_us = options->process_scan_interval_us,
            .kubernetes = options->kubernetes_enabled,
            .attachments = true,
            .names_from_elsewhere = collector->fetchers.items[FETCHER_KUBERNETES].is_wanted,
            .runtime_sockets = options->runtime_sockets,
            .pod_resources_socket = options->pod_resources_socket,
        },
        &collector->identity, err);
}

/* It sets the time zone, before any thread starts. */
static int open_tariff(struct collector *collector, struct error *err)
{
    const char *path = collector->options->cost_tariff_path;
    char price[TARIFF_CLOCK_TEXT_BYTES];
    int r = tariff_clock_open(path, collector->start_us, &collector->tariff, err);

    if (r < 0)
        return r;
    tariff_clock_describe(collector->tariff, price);
    log_info("a tariff tells what energy costs", "file", path, "price", price);
    return 0;
}

static bool watches_files(const struct options *options)
{
    return options->web_config_path || options->cost_tariff_path || options->emissions_keys_path ||
           options->redfish_url || options->kubernetes_api;
}

int collector_open(const struct collector_options *options, struct collector **ret_collector,
                   struct error *err)
{
    struct pipeline_options pipeline_options = pipeline_config_options(options->options, false);
    const struct exposition_options exposition = {
        .process_prefix = options->options->metric_prefix,
        .compat = options->options->compat,
        .expose = options->options->expose,
        .pue_millionths =
            options_is_given(options->options, "pue") ? options->options->pue_millionths : 0,
        .version = WATTRIBUTE_VERSION,
    };
    struct collector *collector = malloc(sizeof(*collector));
    int r;

    if (!collector)
        return error_set(err, -ENOMEM, "out of memory");
    *collector = (struct collector){
        .options = options->options,
        .host = options->host,
        .listener_fds = options->listener_fds,
        .listener_count = options->listener_count,
        .web = options->web,
        .clock = &clock_system,
        .epoll_fd = -1,
        .signal_fd = -1,
        .wake_fd = -1,
        .start_us = clock_system.realtime_us(&clock_system),
        .look_us = UINT64_MAX,
    };
    if (watches_files(options->options))
        collector->look_us = collector_now_us(collector) + COLLECTOR_LOOK_US;
    collector->sweep_us = collector_now_us(collector) + options->options->process_scan_interval_us;
    child_init(&collector->server, "server");
    page_cache_init(&collector->bodies, &exposition);
    find_node_name(collector);
    gpu_grants_init(&collector->attached, options->host);
    pipeline_options.embodied = pipeline_config_embodied(options->options);
    pipeline_config_price(options->options, &pipeline_options.price);
    r = emissions_init(&collector->emissions, options->options, collector->clock, err);
    if (r == 0)
        r = fetchers_open(&collector->fetchers,
                          &(struct fetchers_options){.options = options->options,
                                                     .with_bmc = options->with_bmc,
                                                     .api = options->api,
                                                     .emissions = &collector->emissions},
                          err);
    pipeline_options.price.factor = collector->emissions.in_force;
    if (r == 0 && options->options->cost_tariff_path)
        r = open_tariff(collector, err);
    if (collector->tariff)
        pipeline_options.price.cost = collector->tariff->cost;
    if (r == 0)
        r = open_loop(collector, err); /* it blocks signals, before any thread starts */
    if (r == 0 && !options->options->replay_path) {
        runtime_log_sockets(options->options);
        r = open_identity(collector, err);
    }
    if (r == 0 && !options->options->replay_path && options->options->process_events &&
        process_events_start(options->host, collector->clock, &collector->events) < 0)
        collector->events = NULL; /* `check` says what it would need */
    if (r == 0 && options->options->replay_path)
        r = recorded_names_new(&collector->names);
    if (collector->identity) {
        pipeline_options.find_names = identity_find_names;
        pipeline_options.are_names_awaited = identity_awaits_names;
        pipeline_options.names_context = collector->identity;
    } else if (collector->names) {
        pipeline_options.find_names = recorded_names_find;
        pipeline_options.names_context = collector->names;
    }
    if (r == 0)
        r = pipeline_new(&pipeline_options, &collector->pipeline);
    if (r == -ENOMEM)
        error_format(err, "out of memory");
    source_switches_read(options->options, &collector->switches);
    source_switches_read_model(options->options, &collector->model);
    source_set_init(
        &collector->sources,
        &(struct source_context){
            .host = options->host,
            .clock = collector->clock,
            .interval_us = options->options->sample_interval_us,
            .replay_path = options->options->replay_path,
            .nvml_library = "libnvidia-ml.so.1",
            .switches = &collector->switches,
            .model = &collector->model,
            .recall = recall,
            .recall_context = collector->events,
            .judge_cgroup = cgroup_verdict_find,
            .redfish_fd = options->with_bmc ? &collector->fetchers.readings_fds[0] : NULL,
        },
        collector->wake_fd, options->options->process_scan_interval_us);
    if (r == 0)
        r = source_set_open_due(&collector->sources, collector_now_us(collector), err);
    collector->measured = !source_set_has_meter(&collector->sources);
    if (r == 0)
        r = collector_start_server(collector, err);
    if (r == 0)
        collector_start_fetchers(collector);
    if (r == 0)
        emissions_announce(&collector->emissions);
    *ret_collector = collector;
    return r;
}
