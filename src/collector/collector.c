/* The loop of the collector. */
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "collector/collector_private.h"
#include "config/node_config.h"
#include "core/log.h"

/* Stopping takes less than a second, whatever hangs; but for logging out of a BMC (fetchers.c). */
static const uint64_t STOP_SERVER_US = 500000;

/* Another wake-up is joined, if there is one. */
static const uint64_t PING_SLACK_US = USEC_PER_SEC / 2;

/* How long SIGUSR1 keeps devices closed. */
static const uint64_t RELEASE_US = 60 * USEC_PER_SEC;

static void note_sample(struct collector *collector, const struct sample *sample)
{
    struct workload_owner owner;

    if (sample->kind == SAMPLE_PROCESS && collector->identity) {
        /* So that its names are there when they are first needed. */
        identity_find_owner(&sample->process, &owner);
        identity_note_process(collector->identity, sample->process.pid, &owner);
    } else if (sample->kind == SAMPLE_NAMES && collector->names) {
        if (recorded_names_learn(collector->names, sample->names) < 0)
            log_error("out of memory: a workload of the trace stays without its names");
    }
}

static void follow_tariff(struct collector *collector)
{
    if (collector->tariff.path &&
        tariff_clock_follow(&collector->tariff, collector_real_us(collector), collector->pipeline))
        collector->books_moved = true;
}

static void ingest_batch(void *context, const struct batch *batch)
{
    struct collector *collector = context;

    follow_tariff(collector); /* up to now, which is later than all that was read */
    for (size_t i = 0; i < batch->count; i++)
        note_sample(collector, &batch->samples[i]);
    if (pipeline_ingest(collector->pipeline, batch->samples, batch->count) < 0)
        log_error("out of memory: some energy stays unattributed");
    collector->measured = true;
    collector->books_moved |= batch->count > 0;
}

/* Out of memory: rendered with the page. */
static void prepare_usage(struct collector *collector)
{
    uint64_t real_us = collector_real_us(collector);
    uint64_t version = pipeline_usage_version(collector->pipeline);
    struct page_cache *pages = &collector->pages;
    struct snapshot snapshot;

    if (!usage_page_is_wanted(&pages->usage, version, collector_now_us(collector)))
        return;
    snapshot_init(&snapshot);
    snapshot.node = collector->node;                        /* a label of compatibility names */
    (void)pipeline_fix_names(collector->pipeline, real_us); /* the rest at the next snapshot */
    version = pipeline_usage_version(collector->pipeline);
    if (pipeline_snapshot_usages(collector->pipeline, real_us, collector_stale_us(collector),
                                 &snapshot) == 0)
        (void)usage_page_make(&pages->usage, &snapshot, &pages->exposition, version,
                              collector_now_us(collector));
    snapshot_done(&snapshot);
}

static void read_sources(struct collector *collector)
{
    source_set_read(&collector->sources, collector_now_us(collector), ingest_batch, collector);
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

/* A read that hangs keeps its device open, which the administrator has to know. */
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
    pipeline_lose_devices(collector->pipeline, collector_real_us(collector));
    collector->books_moved = true;
}

static void reap_children(struct collector *collector)
{
    collector_reap_server(collector);
    collector_reap_check(collector);
    fetchers_reap(&collector->fetchers);
}

static void handle_signals(struct collector *collector)
{
    char name[16];
    struct signalfd_siginfo info;

    while (read(collector->signal_fd, &info, sizeof(info)) == sizeof(info))
        switch (info.ssi_signo) {
        case SIGCHLD:
            reap_children(collector);
            break;
        case SIGUSR1:
            release_devices(collector);
            break;
        case SIGHUP:
            log_info("SIGHUP: nothing to reload; the web configuration, the tariff and files with "
                     "secrets are re-read when they change, all else needs a restart");
            break;
        default:
            snprintf(name, sizeof(name), "SIG%s", sigabbrev_np((int)info.ssi_signo));
            log_info("stopping", "signal", name);
            collector->stopping = true;
        }
}

/* Factors also expire without news. */
static void refresh_factor(struct collector *collector)
{
    struct price price = {.pue_millionths = collector->options->pue_millionths};

    if (!emissions_refresh(&collector->emissions))
        return;
    emissions_announce(&collector->emissions);
    price.factor = collector->emissions.in_force;
    pipeline_set_price(collector->pipeline, &price, collector->emissions.since_us);
    collector->books_moved = true;
}

static void check_tariff(struct collector *collector)
{
    char price[TARIFF_CLOCK_TEXT_BYTES];
    struct error err;
    int r = tariff_clock_check(&collector->tariff, collector_real_us(collector),
                               collector->pipeline, &err);

    if (r < 0)
        log_error("the tariff has changed and cannot be used; keeping the previous one", "error",
                  err.text);
    if (r <= 0)
        return;
    tariff_clock_describe(&collector->tariff, price);
    log_info("the tariff has changed and is used from now on", "file", collector->tariff.path,
             "price", price);
    collector->books_moved = true;
}

/* All at once, so that they cost one wake-up. */
static void check_files(struct collector *collector)
{
    if (collector->web)
        collector_check_web_config(collector);
    if (collector->tariff.path)
        check_tariff(collector);
    fetchers_check_files(&collector->fetchers);
    collector->check_files_us = collector_now_us(collector) + COLLECTOR_CHECK_FILES_US;
}

/* Meters without a count of their own leave a hole at each restart. */
static void report_gaps(struct collector *collector)
{
    uint64_t gaps = pipeline_unknown_gaps(collector->pipeline);

    if (gaps > collector->gaps_reported)
        log_info("what some meters counted during the downtime is unknown: "
                 "wattribute_meter_unknown_gaps_total names them");
    collector->gaps_reported = gaps;
}

static void sweep(struct collector *collector, uint64_t now)
{
    pipeline_sweep(collector->pipeline, collector_real_us(collector));
    collector->sweep_us = now + collector->options->process_scan_interval_us;
    source_set_note(&collector->sources); /* a source that hangs wakes no one */
    reap_children(collector);             /* a signal that was missed does not come again */
    report_closing(collector);
    refresh_factor(collector);
    report_gaps(collector);
    if (collector->identity)
        collector_refresh_identity(collector);
}

/* After everything that has come from them was read, however long this loop was held up. */
static void ping_children(struct collector *collector, uint64_t now)
{
    collector_ping_server(collector);
    fetchers_ping(&collector->fetchers);
    collector->ping_us = now + CHILD_PING_US;
}

/* What it proves is that this loop turns. Sources have threads of their own, and one that hangs is
 * counted and logged: a restart would not help. */
static void beat(struct collector *collector, uint64_t now)
{
    (void)notify_send(&collector->notify, "WATCHDOG=1"); /* the next one comes in time, too */
    collector->beat_us = now + collector->notify.beat_us;
}

static void run_due(struct collector *collector)
{
    uint64_t now = collector_now_us(collector);
    struct error err;

    if (now >= collector->server.restart_us && collector_start_server(collector, &err) < 0)
        log_error("cannot start the server; trying again", "error", err.text);
    fetchers_start_due(&collector->fetchers);
    if (now >= collector->ping_us)
        ping_children(collector, now);
    if (now >= collector->beat_us)
        beat(collector, now);
    if (now >= collector->sweep_us)
        sweep(collector, now);
    if (now >= collector->check_files_us)
        check_files(collector);
    if (collector->web_config_is_new)
        collector_send_web_config(collector);
    if (now >= collector->state.save_us)
        collector_save_due(collector);
    if (now >= source_set_next_due_us(&collector->sources))
        (void)source_set_open_due(&collector->sources, now, NULL); /* it logs */
}

static int timeout_ms(const struct collector *collector)
{
    uint64_t due = MIN(collector->sweep_us, source_set_next_due_us(&collector->sources));
    uint64_t now = collector_now_us(collector);

    due = MIN(due, collector->ping_us + PING_SLACK_US);
    due = MIN(due, collector->beat_us);
    due = MIN(due, collector->server.restart_us);
    for (int kind = 0; kind < FETCHER_KINDS; kind++)
        due = MIN(due, collector->fetchers.items[kind].child.restart_us);
    due = MIN(due, collector->check_files_us);
    due = MIN(due, collector->state.save_us);
    if (collector->tariff.path)
        due =
            MIN(due, now + tariff_clock_wait_us(&collector->tariff, collector_real_us(collector)));
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
                handle_signals(collector);
                break;
            case WATCH_SOURCES:
                (void)!read(collector->wake_fd, &ignored, sizeof(ignored));
                read_sources(collector);
                break;
            case WATCH_SERVER:
                collector_answer_server(collector);
                break;
            case WATCH_CHECKER:
                collector_read_check(collector);
                break;
            default:
                fetchers_read(&collector->fetchers, events[i].data.u32 - WATCH_FETCHER);
                refresh_factor(collector);
                break;
            }
        }
        if (collector->is_releasing)
            finish_release(collector);
        run_due(collector);
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
    (void)notify_send(&collector->notify, "STOPPING=1");
    read_sources(collector);
    if (pipeline_finish(collector->pipeline) < 0)
        log_error("out of memory: some energy stays unattributed");
    log_books(collector);
    collector_save_last(collector);
    child_stop(&collector->server, STOP_SERVER_US);
    fetchers_stop(&collector->fetchers);
    source_set_stop(&collector->sources, COLLECTOR_STOP_SOURCE_US);
}

void collector_run(struct collector *collector)
{
    char off[256];

    if (!source_set_has_meter(&collector->sources))
        log_warn("no energy meter was found on this node: no energy is served ('wattribute check' "
                 "reports what is missing)",
                 "switched_off", node_config_list_off(&collector->switches, off, sizeof(off)));
    loop(collector);
    finish(collector);
}
