#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "collector/collector_parts.h"
#include "config/node_config.h"
#include "core/log.h"
#include "process/signals.h"

/* Ending takes less than a second, whatever hangs; but for logging out of a BMC (fetchers.c). */
static const uint64_t STOP_SERVER_US = 500000;

/* How long SIGUSR1 keeps devices closed. */
static const uint64_t RELEASE_US = 60 * USEC_PER_SEC;

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

static void learn_names(struct recorded_names *names, const struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        if (batch->samples[i].kind == SAMPLE_NAMES &&
            recorded_names_learn(names, batch->samples[i].names) < 0)
            log_error("out of memory: a workload of the trace stays without its names");
}

/* The model ends with the first reading of a real meter. */
static void note_meters(struct source_estimate *model, const struct batch *batch)
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
    if (collector->names)
        learn_names(collector->names, batch);
    if (pipeline_ingest(collector->pipeline, batch->samples, batch->count) < 0)
        log_error("out of memory: some energy stays unattributed");
    collector->measured = true;
    collector->books_moved |= batch->count > 0;
}

/* Without memory the page is made when it is asked for. */
static void prepare_usage(struct collector *collector)
{
    uint64_t real_us = collector->clock->realtime_us(collector->clock);
    uint64_t version = pipeline_usage_version(collector->pipeline);
    struct page_cache *bodies = &collector->bodies;
    struct snapshot snapshot;

    if (!usage_page_is_wanted(&bodies->usage, version, collector_now_us(collector)))
        return;
    snapshot_init(&snapshot);
    pipeline_fix_names(collector->pipeline, real_us);
    version = pipeline_usage_version(collector->pipeline);
    if (pipeline_snapshot_usages(collector->pipeline, real_us, collector_stale_us(collector),
                                 &snapshot) == 0)
        (void)usage_page_make(&bodies->usage, &snapshot, &bodies->exposition, version,
                              collector_now_us(collector));
    snapshot_done(&snapshot);
}

static void read_sources(struct collector *collector)
{
    source_set_read(&collector->sources, collector_now_us(collector), take_batch, collector);
    prepare_usage(collector);
}

/* So that an administrator can reset or repartition a GPU. What it uses meanwhile is a gap. */
static void release_devices(struct collector *collector)
{
    log_info("SIGUSR1: closing every device for a minute");
    source_set_release_devices(&collector->sources, collector_now_us(collector) + RELEASE_US);
    collector->is_releasing = true;
    collector->release_is_late = false;
}

/* A read that hangs keeps its device open, and who resets it has to know. */
static void report_closing(struct collector *collector)
{
    const char *source = source_set_find_closing(&collector->sources);

    if (source && !collector->release_is_late)
        log_warn("a device is still open: a read of it hangs, and it is closed when that returns",
                 "source", source);
    collector->release_is_late = source != NULL;
}

static void finish_release(struct collector *collector)
{
    if (source_set_find_closing(&collector->sources))
        return;
    collector->is_releasing = false;
    log_info("every device is closed");
    pipeline_lose_devices(collector->pipeline, collector->clock->realtime_us(collector->clock));
    collector->books_moved = true;
}

static void stop_loop(struct collector *collector, int signal_number)
{
    char name[SIGNALS_NAME_BYTES];

    log_info("stopping", "signal", signals_name(signal_number, name));
    collector->stopping = true;
}

static void take_signals(struct collector *collector)
{
    struct signalfd_siginfo info;

    while (read(collector->signal_fd, &info, sizeof(info)) == sizeof(info)) {
        if (info.ssi_signo == SIGCHLD) {
            collector_reap_server(collector);
            collector_reap_fetchers(collector);
        } else if (info.ssi_signo == SIGUSR1)
            release_devices(collector);
        else if (info.ssi_signo == SIGHUP)
            log_info("SIGHUP: nothing to reload; the web configuration, the tariff and the keys of "
                     "providers are re-read when they change, all else needs a restart");
        else
            stop_loop(collector, (int)info.ssi_signo);
    }
}

static void note_identity(struct collector *collector)
{
    runtime_log_note(&collector->runtime_log, collector->identity);
    gpu_grants_refresh(&collector->attached, collector->identity, collector->pipeline);
    collector->books_moved = true;
}

/* Factors get old also if nobody says anything. */
static void renew_factor(struct collector *collector)
{
    struct price price = {.pue_millionths = collector->options->pue_millionths};

    if (!emissions_refresh(&collector->emissions))
        return;
    emissions_announce(&collector->emissions);
    price.factor = collector->emissions.in_force;
    pipeline_set_price(collector->pipeline, &price, collector->emissions.since_us);
    collector->books_moved = true;
}

static void look_at_tariff(struct collector *collector)
{
    char price[TARIFF_CLOCK_TEXT_BYTES];
    struct error err;
    int r = tariff_clock_look(collector->tariff, collector->clock->realtime_us(collector->clock),
                              collector->pipeline, &err);

    if (r < 0)
        log_error("the tariff has changed and cannot be used; the one before stays", "error",
                  err.text);
    if (r <= 0)
        return;
    tariff_clock_describe(collector->tariff, price);
    log_info("the tariff has changed and is used from now on", "file", collector->tariff->path,
             "price", price);
    collector->books_moved = true;
}

/* All at once, so that they cost one wake-up. */
static void look_at_files(struct collector *collector)
{
    if (collector->web)
        collector_look_at_web_config(collector);
    if (collector->tariff)
        look_at_tariff(collector);
    for (int kind = 0; kind < FETCHER_KINDS; kind++)
        fetcher_look(&collector->fetchers.items[kind]);
    collector->look_us = collector_now_us(collector) + COLLECTOR_LOOK_US;
}

static void do_what_is_due(struct collector *collector)
{
    uint64_t now = collector_now_us(collector);
    struct error err;

    if (collector->server.restart_us > 0 && now >= collector->server.restart_us &&
        collector_start_server(collector, &err) < 0)
        log_error("cannot start the front process; trying again", "error", err.text);
    collector_start_fetchers(collector);
    if (now >= collector->sweep_us) {
        pipeline_sweep(collector->pipeline, collector->clock->realtime_us(collector->clock));
        collector->sweep_us = now + collector->options->process_scan_interval_us;
        source_set_note(&collector->sources); /* a source that hangs wakes nobody */
        report_closing(collector);
        renew_factor(collector);
        if (collector->identity)
            note_identity(collector);
    }
    if (now >= collector->look_us)
        look_at_files(collector);
    if (collector->web_config_is_new)
        collector_send_web_config(collector);
    if (now >= source_set_next_due_us(&collector->sources))
        (void)source_set_open_due(&collector->sources, now, NULL); /* it logs */
}

static uint64_t restart_us(const struct child *child)
{
    return child->restart_us > 0 ? child->restart_us : UINT64_MAX;
}

static int timeout_ms(const struct collector *collector)
{
    uint64_t due = MIN(collector->sweep_us, source_set_next_due_us(&collector->sources));
    uint64_t now = collector_now_us(collector);

    due = MIN(due, restart_us(&collector->server));
    for (int kind = 0; kind < FETCHER_KINDS; kind++)
        due = MIN(due, restart_us(&collector->fetchers.items[kind].child));
    due = MIN(due, collector->look_us);
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

            switch (events[i].data.u32) {
            case WATCH_SIGNALS:
                take_signals(collector);
                break;
            case WATCH_SOURCES:
                (void)!read(collector->wake_fd, &ignored, sizeof(ignored));
                read_sources(collector);
                break;
            case WATCH_SERVER:
                if (collector->server.channel_fd >= 0)
                    collector_answer_server(collector);
                break;
            default:
                collector_read_fetcher(collector, events[i].data.u32 - WATCH_FETCHER);
                renew_factor(collector);
                break;
            }
        }
        if (collector->is_releasing)
            finish_release(collector);
        do_what_is_due(collector);
    }
}

static void log_books(const struct collector *collector)
{
    const struct ledger *ledger = collector->pipeline->ledger;

    for (uint32_t i = 0; i < ledger_meter_count(ledger); i++) {
        const struct ledger_meter *meter = ledger_meter(ledger, i);
        char energy[32], imbalance[32];

        snprintf(energy, sizeof(energy), "%llu", (unsigned long long)meter->energy_uj);
        snprintf(imbalance, sizeof(imbalance), "%lld", (long long)ledger_imbalance_uj(ledger, i));
        log_info("settled", "meter", meter_words[meter->kind], "meter_id", meter->meter_id,
                 "energy_uj", energy, "imbalance_uj", imbalance);
    }
}

/* Settles first: the joules matter more than the last scrape. */
static void finish(struct collector *collector)
{
    read_sources(collector);
    if (pipeline_finish(collector->pipeline) < 0)
        log_error("out of memory: some energy stays unattributed");
    log_books(collector);
    child_stop(&collector->server, STOP_SERVER_US);
    fetchers_stop(&collector->fetchers);
    source_set_stop(&collector->sources, COLLECTOR_STOP_SOURCE_US);
}

void collector_run(struct collector *collector)
{
    char off[256];

    if (!source_set_has_meter(&collector->sources))
        log_warn("no energy meter was found on this node: nobody's joules are served "
                 "('wattribute check' says what is missing)",
                 "switched_off", source_switches_list_off(&collector->switches, off, sizeof(off)));
    loop(collector);
    finish(collector);
}
