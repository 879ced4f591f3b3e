#include "app/collector.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/attached_set.h"
#include "app/bodies.h"
#include "app/cgroup_verdict.h"
#include "app/channel.h"
#include "app/collectors.h"
#include "app/emissions.h"
#include "app/price_config.h"
#include "app/runtime_log.h"
#include "app/self.h"
#include "app/source_set.h"
#include "app/tariff_clock.h"
#include "app/verbs.h"
#include "attribution/pipeline.h"
#include "core/clock.h"
#include "core/macros.h"
#include "identity/identity.h"
#include "identity/process_events.h"
#include "sources/redfish.h"

enum { REQUESTS_PER_WAKE = 64 };

/* Ending takes less than a second, whatever hangs. */
static const uint64_t STOP_SOURCE_US = 200000, STOP_FRONT_US = 500000, STOP_ASKER_US = 100000;

/* But logging out of a BMC may take longer: a session that is left behind may lock out others. */
static const uint64_t STOP_FRONT_LOGOUT_US = 3 * USEC_PER_SEC;

/* How long SIGUSR1 keeps devices closed. */
static const uint64_t RELEASE_US = 60 * USEC_PER_SEC;

/* A gauge is shown for this long, or for three windows. */
static const uint64_t STALE_US = 5 * USEC_PER_SEC;

/* What an event of the loop is about. */
enum watched { WATCH_SIGNALS, WATCH_SOURCES, WATCH_FRONT, WATCH_NAMES, WATCH_POWER, WATCH_FACTORS };

struct collector {
    const struct options *options;
    const struct host *host;
    const struct clock *clock;
    int epoll_fd, signal_fd, wake_fd;
    struct source_switches switches;
    struct source_model model;
    struct source_set sources;
    struct process_events *events; /* NULL: not permitted, or not wanted */
    struct identity *identity;     /* NULL in a replay: its processes are not of this node */
    struct runtime_log runtime_log;
    struct attached_set attached;
    char node[256];
    struct emissions emissions;
    struct price price;
    struct tariff_clock *tariff; /* NULL: no --cost.tariff-file */
    struct pipeline *pipeline;
    bool measured;    /* something was read, or there is nothing to read */
    bool books_moved; /* since the last snapshot */
    struct bodies bodies;
    uint64_t snapshot_us;
    struct front_process front;
    struct redfish_mailbox redfish;
    struct web_watch *web;  /* NULL: none */
    bool web_config_is_new; /* the front does not have it yet */
    uint64_t start_us;
    uint64_t sweep_us; /* when the next sweep is due */
    bool stopping;
};

static int watch(const struct collector *collector, int fd, enum watched what)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = what};

    return epoll_ctl(collector->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static uint64_t now_us(const struct collector *collector)
{
    return collector->clock->monotonic_us(collector->clock);
}

/* So that the names of who is on a device are there when they are first asked for. */
static void note_processes(struct identity *identity, const struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct sample *sample = &batch->samples[i];
        struct workload_owner owner;

        if (sample->kind != SAMPLE_PROCESS)
            continue;
        identity_find_owner(&sample->process, &owner);
        identity_note(identity, sample->process.pid, &owner);
    }
}

/* The model ends with the first reading of a real meter. */
static void note_meters(struct source_model *model, const struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct sample *sample = &batch->samples[i];

        if (sample->kind == SAMPLE_METER && sample->meter.kind == METER_PACKAGE &&
            !sample->meter.modelled)
            atomic_store(&model->gives_way, true);
    }
}

static void follow_tariff(struct collector *collector)
{
    if (collector->tariff &&
        tariff_clock_follow(collector->tariff, collector->clock->realtime_us(collector->clock),
                            collector->pipeline))
        collector->books_moved = true;
}

static void take_batch(void *context, const struct batch *batch)
{
    struct collector *collector = context;

    follow_tariff(collector); /* up to now, which is later than all that was read */
    note_meters(&collector->model, batch);
    if (collector->identity)
        note_processes(collector->identity, batch);
    if (pipeline_ingest(collector->pipeline, batch->samples, batch->count) < 0)
        log_error("out of memory: some energy stays unattributed");
    collector->measured = true;
    collector->books_moved = true;
}

static uint64_t stale_us(const struct collector *collector)
{
    return MAX(STALE_US, 3 * collector->options->sample_interval_us);
}

/* Without memory the page is made when it is asked for. */
static void prepare_usage(struct collector *collector)
{
    uint64_t real_us = collector->clock->realtime_us(collector->clock);
    uint64_t version = pipeline_usage_version(collector->pipeline);
    struct bodies *bodies = &collector->bodies;
    struct snapshot snapshot;

    if (!usage_page_is_wanted(&bodies->usage, version, now_us(collector)))
        return;
    snapshot_init(&snapshot);
    pipeline_fix_names(collector->pipeline, real_us);
    version = pipeline_usage_version(collector->pipeline);
    if (pipeline_snapshot_usages(collector->pipeline, real_us, stale_us(collector), &snapshot) == 0)
        (void)usage_page_make(&bodies->usage, &snapshot, &bodies->exposition, version,
                              now_us(collector));
    snapshot_done(&snapshot);
}

static void read_sources(struct collector *collector)
{
    source_set_read(&collector->sources, now_us(collector), take_batch, collector);
    prepare_usage(collector);
}

/* A new snapshot when the books moved, or when the old one is a window old: gauges must age. */
static int refresh_snapshot(struct collector *collector)
{
    uint64_t interval_us = collector->options->sample_interval_us;
    uint64_t real_us = collector->clock->realtime_us(collector->clock);
    struct snapshot *snapshot = &collector->bodies.snapshot;
    int r;

    if (collector->bodies.generation > 0 && !collector->books_moved &&
        now_us(collector) - collector->snapshot_us < interval_us)
        return 0;
    bodies_renew(&collector->bodies);
    pipeline_fix_names(collector->pipeline, real_us);
    r = pipeline_snapshot(collector->pipeline, real_us, stale_us(collector), snapshot);
    if (r == 0)
        r = source_set_describe(&collector->sources, snapshot);
    if (r == 0 && collector->identity)
        r = identity_describe(collector->identity, snapshot);
    if (r == 0)
        r = emissions_describe(&collector->emissions, snapshot);
    if (r < 0)
        return r;
    snapshot->node = collector->node;
    snapshot->replay_active = collector->options->replay_path != NULL;
    snapshot->front_starts = collector->front.starts;
    snapshot->self_cpu_us = self_cpu_us();
    snapshot->self_rss_bytes = self_rss_bytes(collector->host);
    snapshot->start_us = collector->start_us;
    collector->snapshot_us = now_us(collector);
    collector->books_moved = false;
    return 0;
}

static int answer(struct collector *collector, const struct channel_request *request)
{
    struct channel_reply reply = {
        .status = CHANNEL_NOT_READY,
        .format = request->format,
        .encoding = request->encoding,
    };
    int fd = -1;
    size_t size;

    if (collector->measured) {
        reply.status = CHANNEL_FAILED;
        if (refresh_snapshot(collector) < 0) {
            log_error("out of memory: cannot take a snapshot");
        } else if (request->have_generation == collector->bodies.generation) {
            reply.status = CHANNEL_UNCHANGED;
        } else if (bodies_get(&collector->bodies, (enum route_format)request->format,
                              (enum route_encoding)request->encoding,
                              pipeline_usage_version(collector->pipeline), now_us(collector), &fd,
                              &size) < 0) {
            log_error("cannot render the metrics page");
        } else {
            reply.status = CHANNEL_BODY;
            reply.body_bytes = size;
        }
        reply.generation = collector->bodies.generation;
    }
    return channel_send_reply(collector->front.channel_fd, &reply, fd);
}

/* Either the front is dying, or it must: SIGCHLD brings the next one. */
static void replace_front(struct collector *collector, int why)
{
    if (why != -ENOTCONN)
        log_error("the front process broke the protocol and is replaced", "error", strerror(-why));
    epoll_ctl(collector->epoll_fd, EPOLL_CTL_DEL, collector->front.channel_fd, NULL);
    front_process_kill(&collector->front);
}

static void serve_front(struct collector *collector)
{
    for (int i = 0; i < REQUESTS_PER_WAKE; i++) {
        struct channel_request request;
        int r = channel_receive_request(collector->front.channel_fd, &request);

        if (r == -EAGAIN)
            return;
        /* It has at most one question for each variant out: a full queue is a broken front, too. */
        if (r == 0)
            r = answer(collector, &request);
        if (r < 0) {
            replace_front(collector, r);
            return;
        }
    }
}

/* As anything that comes from outside: what is not a name says nothing, and a pod counts only where
 * the cgroup names it, too. */
static int learn(struct identity *identity, const struct channel_container *record)
{
    struct container_list list;
    int r;

    container_list_init(&list);
    r = container_list_add(&list, &(struct container){
                                      .id = record->id,
                                      .name = record->container,
                                      .namespace = record->namespace,
                                      .pod = record->pod,
                                      .pod_uid = record->pod_uid,
                                      .image = record->image,
                                  });
    if (r == 0)
        identity_learn(identity, &list);
    container_list_done(&list);
    return r;
}

static void take_names(struct collector *collector)
{
    for (int i = 0; i < REQUESTS_PER_WAKE; i++) {
        struct channel_container record;
        int r = channel_receive_container(collector->front.names_fd, &record);

        if (r == -EAGAIN)
            return;
        if (r == 0 && learn(collector->identity, &record) < 0)
            log_error("out of memory: names of a container are lost");
        if (r == 0)
            continue;
        if (r != -ENOTCONN)
            replace_front(collector, r);
        front_process_close_names(&collector->front);
        identity_expect_names(collector->identity, false); /* so that nobody waits for them */
        return;
    }
}

static void take_power(struct collector *collector)
{
    for (int i = 0; i < REQUESTS_PER_WAKE; i++) {
        struct channel_node_power record;
        struct redfish_reading reading;
        int r = channel_receive_node_power(collector->front.power_fd, &record);

        if (r == -EAGAIN)
            return;
        if (r < 0) {
            if (r != -ENOTCONN)
                replace_front(collector, r);
            front_process_close_power(&collector->front);
            return;
        }
        reading = (struct redfish_reading){
            .result = record.result, .power_mw = record.power_mw, .taken_us = record.taken_us};
        snprintf(reading.why, sizeof(reading.why), "%s", record.why);
        redfish_mailbox_post(&collector->redfish, &reading);
    }
}

/* Where its queue is full, the next wake tries again; one that is dying needs none. */
static void send_web_config(struct collector *collector)
{
    const struct channel_reply message = {.status = CHANNEL_CONFIG,
                                          .body_bytes = collector->web->config_bytes};

    if (collector->front.channel_fd >= 0)
        collector->web_config_is_new = channel_send_reply(collector->front.channel_fd, &message,
                                                          collector->web->config_fd) == -EAGAIN;
}

static void look_at_web_config(struct collector *collector)
{
    struct error err;
    int r = web_watch_look(collector->web, now_us(collector), &err);

    if (r < 0) {
        log_error("the web config has changed and cannot be used; the one before stays", "error",
                  err.text);
    } else if (r > 0) {
        log_info("the web config has changed and is used from now on", "file",
                 collector->web->path);
        collector->web_config_is_new = true;
    }
    if (collector->web_config_is_new)
        send_web_config(collector);
}

static int start_front(struct collector *collector, struct error *err)
{
    int r = front_process_start(&collector->front, now_us(collector), err);

    if (r == 0 && collector->web)
        send_web_config(collector);

    if (r == 0)
        r = watch(collector, collector->front.channel_fd, WATCH_FRONT);
    if (r == 0 && collector->front.names_fd >= 0) {
        r = watch(collector, collector->front.names_fd, WATCH_NAMES);
        identity_expect_names(collector->identity, true);
    }
    if (r == 0 && collector->front.power_fd >= 0)
        r = watch(collector, collector->front.power_fd, WATCH_POWER);
    return r;
}

static uint64_t asker_restart_us(const struct collector *collector)
{
    return collector->emissions.asker.restart_us;
}

static int start_asker(struct collector *collector, struct error *err)
{
    const struct asker_process *asker = &collector->emissions.asker;
    int r = emissions_start(&collector->emissions, err);

    return r == 0 && asker->fd >= 0 ? watch(collector, asker->fd, WATCH_FACTORS) : r;
}

static void reap_front(struct collector *collector)
{
    char how[64];
    int status;

    if (!front_process_reap(&collector->front, now_us(collector), &status))
        return;
    log_warn("the front process ended and is started again; no energy is lost", "how",
             child_describe_end(status, how, sizeof(how)));
}

/* So that an administrator can reset or repartition a GPU. What it uses meanwhile is a gap. */
static void release_devices(struct collector *collector)
{
    log_info("SIGUSR1: every device is closed for a minute");
    read_sources(collector);
    source_set_release_devices(&collector->sources, now_us(collector), RELEASE_US, STOP_SOURCE_US);
    pipeline_lose_devices(collector->pipeline, collector->clock->realtime_us(collector->clock));
    collector->books_moved = true;
}

static void take_signals(struct collector *collector)
{
    struct signalfd_siginfo info;

    while (read(collector->signal_fd, &info, sizeof(info)) == sizeof(info)) {
        if (info.ssi_signo == SIGCHLD) {
            reap_front(collector);
            emissions_reap(&collector->emissions);
        } else if (info.ssi_signo == SIGUSR1)
            release_devices(collector);
        else
            collector->stopping = true;
    }
}

static void note_identity(struct collector *collector)
{
    runtime_log_note(&collector->runtime_log, collector->identity);
    attached_set_refresh(&collector->attached, collector->identity, collector->pipeline);
    collector->books_moved = true;
}

/* Factors get old also if nobody says anything. */
static void renew_price(struct collector *collector)
{
    if (!emissions_refresh(&collector->emissions))
        return;
    emissions_announce(&collector->emissions);
    collector->price.factor = collector->emissions.in_force;
    pipeline_set_price(collector->pipeline, &collector->price,
                       collector->clock->realtime_us(collector->clock));
    collector->books_moved = true;
}

static void do_what_is_due(struct collector *collector)
{
    uint64_t now = now_us(collector);
    struct error err;

    if (collector->front.restart_us > 0 && now >= collector->front.restart_us &&
        start_front(collector, &err) < 0)
        log_error("cannot start the front process; trying again", "error", err.text);
    if (asker_restart_us(collector) > 0 && now >= asker_restart_us(collector) &&
        start_asker(collector, &err) < 0)
        log_error("cannot start the process that asks for emission factors; trying again", "error",
                  err.text);
    if (now >= collector->sweep_us) {
        pipeline_sweep(collector->pipeline, collector->clock->realtime_us(collector->clock));
        collector->sweep_us = now + collector->options->process_scan_interval_us;
        source_set_note(&collector->sources); /* a source that hangs wakes nobody */
        renew_price(collector);
        if (collector->identity)
            note_identity(collector);
    }
    if (collector->web)
        look_at_web_config(collector);
    if (now >= source_set_next_due_us(&collector->sources))
        (void)source_set_open_due(&collector->sources, now, NULL); /* it logs */
}

static int timeout_ms(const struct collector *collector)
{
    uint64_t due = MIN(collector->sweep_us, source_set_next_due_us(&collector->sources));
    uint64_t now = now_us(collector);

    if (collector->front.restart_us > 0)
        due = MIN(due, collector->front.restart_us);
    if (asker_restart_us(collector) > 0)
        due = MIN(due, asker_restart_us(collector));
    if (collector->web)
        due = MIN(due, collector->web->next_us);
    if (collector->tariff)
        due = MIN(due, now + tariff_clock_wait_us(collector->tariff,
                                                  collector->clock->realtime_us(collector->clock)));
    return due <= now ? 0 : (int)MIN((due - now + 999) / 1000, (uint64_t)3600000);
}

static void loop(struct collector *collector)
{
    while (!collector->stopping) {
        struct epoll_event events[8];
        int count =
            epoll_wait(collector->epoll_fd, events, ARRAY_SIZE(events), timeout_ms(collector));

        follow_tariff(collector);
        for (int i = 0; i < count; i++) {
            uint64_t ignored;

            switch ((enum watched)events[i].data.u32) {
            case WATCH_SIGNALS:
                take_signals(collector);
                break;
            case WATCH_SOURCES:
                (void)!read(collector->wake_fd, &ignored, sizeof(ignored));
                read_sources(collector);
                break;
            case WATCH_FRONT:
                if (collector->front.channel_fd >= 0)
                    serve_front(collector);
                break;
            case WATCH_NAMES:
                if (collector->front.names_fd >= 0)
                    take_names(collector);
                break;
            case WATCH_POWER:
                if (collector->front.power_fd >= 0)
                    take_power(collector);
                break;
            case WATCH_FACTORS:
                if (collector->emissions.asker.fd >= 0)
                    emissions_read(&collector->emissions);
                renew_price(collector);
                break;
            }
        }
        do_what_is_due(collector);
    }
}

static void log_books(const struct collector *collector)
{
    const struct ledger *ledger = &collector->pipeline->ledger;

    for (uint32_t i = 0; i < ledger->meter_count; i++) {
        char energy[32], imbalance[32];

        snprintf(energy, sizeof(energy), "%llu", (unsigned long long)ledger->meters[i].energy_uj);
        snprintf(imbalance, sizeof(imbalance), "%lld", (long long)ledger_imbalance_uj(ledger, i));
        log_info("settled", "meter", meter_words[ledger->meters[i].kind], "meter_id",
                 ledger->meters[i].meter_id, "energy_uj", energy, "imbalance_uj", imbalance);
    }
}

/* Settles first: the joules matter more than the last scrape. */
static void finish(struct collector *collector)
{
    read_sources(collector);
    if (pipeline_finish(collector->pipeline) < 0)
        log_error("out of memory: some energy stays unattributed");
    log_books(collector);
    front_process_stop(&collector->front,
                       collector->front.options.redfish ? STOP_FRONT_LOGOUT_US : STOP_FRONT_US);
    emissions_stop(&collector->emissions, STOP_ASKER_US);
    source_set_stop(&collector->sources, STOP_SOURCE_US);
}

static int open_loop(struct collector *collector, struct error *err)
{
    sigset_t signals;
    int r = 0;

    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, SIGUSR1);
    /* Before any thread starts, so that all of them leave the signals to the loop. */
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    collector->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    collector->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    collector->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (collector->epoll_fd < 0 || collector->signal_fd < 0 || collector->wake_fd < 0)
        r = -errno;
    if (r == 0)
        r = watch(collector, collector->signal_fd, WATCH_SIGNALS);
    if (r == 0)
        r = watch(collector, collector->wake_fd, WATCH_SOURCES);
    return r < 0 ? error_set(err, r, "cannot set up the event loop: %s", strerror(-r)) : 0;
}

void collector_run(struct collector *collector)
{
    char off[256];

    if (!source_set_has_meter(&collector->sources))
        log_warn("no energy meter was found on this node: nobody's joules are served "
                 "('wattribute check' says what is missing)",
                 "switched_off", collectors_list_off(&collector->switches, off, sizeof(off)));
    loop(collector);
    finish(collector);
}

void collector_close(struct collector *collector)
{
    if (!collector)
        return;
    source_set_stop(&collector->sources, STOP_SOURCE_US);
    front_process_stop(&collector->front, 0);
    emissions_stop(&collector->emissions, 0);
    identity_close(collector->identity);
    process_events_stop(collector->events);
    bodies_done(&collector->bodies);
    pipeline_free(collector->pipeline);
    tariff_clock_close(collector->tariff);
    cleanup_close(&collector->epoll_fd);
    cleanup_close(&collector->signal_fd);
    cleanup_close(&collector->wake_fd);
    free(collector);
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
            .names_from_elsewhere = collector->front.options.api != NULL,
            .cri_socket = options->cri_socket,
            .docker_socket = options->docker_socket,
            .podman_socket = options->podman_socket,
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

int collector_open(const struct collector_options *options, struct collector **ret_collector,
                   struct error *err)
{
    struct pipeline_options pipeline_options = verb_pipeline_options(options->options, false);
    const struct exposition_options exposition = {
        .process_prefix = options->options->metric_prefix,
        .compat_my_gpu_exporter = options->options->compat_my_gpu_exporter,
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
        .web = options->web,
        .clock = &clock_system,
        .epoll_fd = -1,
        .signal_fd = -1,
        .wake_fd = -1,
        .start_us = clock_system.realtime_us(&clock_system),
    };
    collector->sweep_us = now_us(collector) + options->options->process_scan_interval_us;
    front_process_init(&collector->front, &options->front);
    redfish_mailbox_init(&collector->redfish);
    bodies_init(&collector->bodies, &exposition);
    find_node_name(collector);
    attached_set_init(&collector->attached, options->host);
    pipeline_options.embodied = price_config_embodied(options->options);
    price_config_read(options->options, &collector->price);
    r = emissions_init(&collector->emissions, options->options, collector->clock, err);
    collector->price.factor = collector->emissions.in_force;
    pipeline_options.price = collector->price;
    if (r == 0 && options->options->cost_tariff_path)
        r = open_tariff(collector, err);
    if (collector->tariff) /* not in collector->price, which is told again with each factor */
        pipeline_options.price.cost = collector->tariff->cost;
    if (r == 0)
        r = open_loop(collector, err); /* it blocks signals, before any thread starts */
    if (r == 0 && !options->options->replay_path)
        r = open_identity(collector, err);
    if (r == 0 && !options->options->replay_path && options->options->process_events &&
        process_events_start(options->host, collector->clock, &collector->events) < 0)
        collector->events = NULL; /* `check` says what it would need */
    if (collector->identity) {
        pipeline_options.find_names = identity_find_names;
        pipeline_options.names_context = collector->identity;
    }
    if (r == 0)
        r = pipeline_new(&pipeline_options, &collector->pipeline);
    if (r == -ENOMEM)
        error_format(err, "out of memory");
    collectors_read(options->options, &collector->switches);
    collectors_read_model(options->options, &collector->model);
    source_set_init(&collector->sources,
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
                        .redfish = options->front.redfish ? &collector->redfish : NULL,
                    },
                    collector->wake_fd, options->options->process_scan_interval_us);
    if (r == 0)
        r = source_set_open_due(&collector->sources, now_us(collector), err);
    collector->measured = !source_set_has_meter(&collector->sources);
    if (r == 0)
        r = start_front(collector, err);
    if (r == 0)
        r = start_asker(collector, err);
    emissions_announce(&collector->emissions);
    if (r < 0) {
        collector_close(collector);
        return r;
    }
    *ret_collector = collector;
    return 0;
}
