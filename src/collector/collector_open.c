/* How the collector starts and ends. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "collector/collector_private.h"
#include "config/node_config.h"
#include "core/log.h"
#include "process/sandbox.h"
#include "process/signals.h"

static int watch(const struct collector *collector, int fd, enum watched event)
{
    struct epoll_event in = {.events = EPOLLIN, .data.u32 = event};

    return epoll_ctl(collector->epoll_fd, EPOLL_CTL_ADD, fd, &in) < 0 ? -errno : 0;
}

static int open_loop(struct collector *collector, struct error *err)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGQUIT, SIGXCPU, SIGHUP, SIGUSR1, SIGCHLD};
    int r = 0;

    signal(SIGCHLD, SIG_DFL); /* inherited as ignored, it would not report the end of a child */
    collector->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    collector->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (collector->epoll_fd < 0 || collector->wake_fd < 0)
        r = -errno;
    if (r == 0)
        r = signals_open(signals, ARRAY_SIZE(signals));
    if (r >= 0)
        collector->signal_fd = r;
    if (r >= 0)
        r = watch(collector, collector->signal_fd, WATCH_SIGNALS);
    if (r == 0)
        r = watch(collector, collector->wake_fd, WATCH_SOURCES);
    return r < 0 ? error_set(err, r, "cannot set up the event loop: %s", strerror(-r)) : 0;
}

bool collector_close(struct collector *collector)
{
    bool is_idle;

    if (!collector)
        return true;
    is_idle = source_set_stop(&collector->sources, COLLECTOR_STOP_SOURCE_US);
    child_stop(&collector->server, 0);
    child_stop(&collector->check.child, 0);
    fetchers_close(&collector->fetchers);
    is_idle &= state_file_close(collector->state.file, COLLECTOR_STOP_STATE_US);
    if (!is_idle)
        return false;
    free(collector->state.data);
    identity_close(collector->identity);
    recorded_names_free(collector->names);
    process_events_stop(collector->events);
    page_cache_done(&collector->pages);
    pipeline_free(collector->pipeline);
    notify_close(&collector->notify);
    cleanup_close(&collector->epoll_fd);
    cleanup_close(&collector->signal_fd);
    cleanup_close(&collector->wake_fd);
    free(collector);
    return true;
}

/* NODE_NAME from the downward API of Kubernetes: the node's name in the cluster. */
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

static void open_notify(struct collector *collector)
{
    int r = notify_open(&collector->notify, secure_getenv("NOTIFY_SOCKET"),
                        secure_getenv("WATCHDOG_USEC"), secure_getenv("WATCHDOG_PID"));

    if (r < 0)
        log_warn("cannot tell the service manager ($NOTIFY_SOCKET) that the service is up; use a "
                 "unit with Type=exec and without WatchdogSec=",
                 "error", strerror(-r));
    collector->beat_us = collector->notify.beat_us > 0 ? 0 : UINT64_MAX;
}

/* It sets the time zone, before any thread starts. */
static int open_tariff(struct collector *collector, struct error *err)
{
    const char *path = collector->options->cost_tariff_path;
    char price[TARIFF_CLOCK_TEXT_BYTES];
    int r = tariff_clock_open(&collector->tariff, path, collector->start_us, err);

    if (r < 0)
        return r;
    tariff_clock_describe(&collector->tariff, price);
    log_info("a tariff sets the price of energy", "file", path, "price", price);
    return 0;
}

/* All that is opened before the sources, in this order: what blocks signals or sets the time zone
 * comes before the first thread. */
static int open_parts(struct collector *collector, const struct collector_options *options,
                      struct error *err)
{
    struct pipeline_options pipeline = node_config_pipeline(options->options, false);
    int r;

    pipeline.embodied = node_config_embodied(options->options);
    pipeline.has_history = options->options->history;
    pipeline.has_no_usage =
        !options->options->replay_path && !node_config_is_on(options->options, "cgroups");
    node_config_price(options->options, &pipeline.price);
    r = emissions_init(&collector->emissions, options->options, collector->clock, err);
    if (r < 0)
        return r;
    /* From here on this process holds what its children get: passwords, tokens, keys. */
    if (options->web || options->with_bmc || options->api ||
        collector->emissions.config.poll_count > 0)
        sandbox_forbid_dumps();
    r = collector_open_state(collector, err);
    if (r < 0)
        return r;
    pipeline.price.factor = collector->emissions.in_force;
    r = fetchers_open(&collector->fetchers,
                      &(struct fetchers_options){.options = options->options,
                                                 .clock = collector->clock,
                                                 .with_bmc = options->with_bmc,
                                                 .api = options->api,
                                                 .emissions = &collector->emissions},
                      err);
    if (r == 0 && options->options->cost_tariff_path)
        r = open_tariff(collector, err);
    if (r == 0 && collector->tariff.path)
        pipeline.price.cost = collector->tariff.cost;
    if (r == 0)
        r = open_loop(collector, err);
    if (r == 0)
        r = collector_open_names(collector, &pipeline, err);
    if (r == 0)
        r = collector_resume_books(collector, &pipeline);
    if (r == -ENOMEM)
        error_format(err, "out of memory");
    collector->fetchers.identity = collector->identity;
    collector->fetchers.epoll_fd = collector->epoll_fd;
    collector->fetchers.first_event = WATCH_FETCHER;
    return r;
}

int collector_open(const struct collector_options *options, struct collector **ret_collector,
                   struct error *err)
{
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
        .check_files_us = UINT64_MAX,
    };
    if (options->web || options->with_bmc || options->api || options->options->cost_tariff_path ||
        options->options->emissions_keys_path)
        collector->check_files_us = collector_now_us(collector) + COLLECTOR_CHECK_FILES_US;
    collector->sweep_us = collector_now_us(collector) + options->options->process_scan_interval_us;
    collector->ping_us = collector_now_us(collector) + CHILD_PING_US;
    child_init(&collector->server, "server");
    child_init(&collector->check.child, "checker");
    page_cache_init(&collector->pages, &exposition);
    find_node_name(collector);
    open_notify(collector);
    r = open_parts(collector, options, err);
    node_config_switches(options->options, &collector->switches);
    node_config_model(options->options, &collector->model);
    gpu_counters_init(&collector->counters);
    source_set_init(
        &collector->sources,
        &(struct source_context){
            .host = options->host,
            .clock = collector->clock,
            .interval_us = options->options->sample_interval_us,
            .replay_path = options->options->replay_path,
            .nvml_library = "libnvidia-ml.so.1",
            .counters = &collector->counters,
            .switches = &collector->switches,
            .model = &collector->model,
            .recall = recall,
            .recall_context = collector->events,
            .redfish_fd = options->with_bmc ? &collector->fetchers.readings_fds[0] : NULL,
        },
        collector->wake_fd, options->options->process_scan_interval_us);
    if (r == 0)
        r = source_set_open_due(&collector->sources, collector_now_us(collector), err);
    collector->measured = !source_set_has_meter(&collector->sources);
    if (r == 0)
        r = collector_start_server(collector, err);
    if (r == 0) {
        fetchers_start_due(&collector->fetchers);
        emissions_announce(&collector->emissions);
    }
    *ret_collector = collector;
    return r;
}
