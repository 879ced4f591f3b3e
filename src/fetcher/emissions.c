/* Fetches emission factors from the providers that publish them. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/clock.h"
#include "core/macros.h"
#include "fetcher/fetcher.h"
#include "fetcher/silence.h"
#include "process/channel.h"

/* How often it is checked whether any provider has answered, and none hangs. A resolv.conf that was
 * made after the sandbox may be out of reach for this process. */
static const uint64_t CHECK_US = 300 * USEC_PER_SEC;

/* Polls one provider, on a thread of its own so that one that hangs does not hold up the others. */
struct poller {
    size_t index; /* in the job */
    int channel_fd;
    int stop_fd; /* a channel that is closed when the thread is to end */
    struct http_client *client;
    struct poll *poll; /* NULL: it cannot be polled */
    atomic_bool has_failed, has_answered;
    atomic_uint begun, ended; /* requests, with their logins */
    unsigned begun_before;    /* at the last check */
    pthread_t thread;
    bool is_started;
};

static uint64_t draw_random(void *context, uint64_t below)
{
    uint64_t random = 0;

    (void)context;
    (void)!getrandom(&random, sizeof(random), GRND_NONBLOCK);
    return below > 0 ? random % below : 0;
}

static const char *or_null(const char *text)
{
    return text[0] ? text : NULL;
}

int emission_poll_open(const struct emissions_job *job, size_t index, bool is_restart,
                       struct http_client *client, struct poll **ret_poll, struct error *err)
{
    const char *name = job->polls[index].provider;
    struct poll_options options = {
        .provider = provider_find(span_of(name)),
        .zone = or_null(job->polls[index].zone),
        .basis = job->basis,
        .url = or_null(job->polls[index].url),
        .ca_path = or_null(job->ca_path),
        .interval_us = job->interval_us,
        .is_restart = is_restart,
        .clock = &clock_system,
        .draw = draw_random,
        .client = client,
    };
    int r;

    if (!options.provider)
        return error_set(err, -EINVAL, "no such provider");
    r = emission_keys_find(&job->keys, name, &options.user, &options.key, err);
    return r < 0 ? r : poll_new(&options, ret_poll, err);
}

/* A record for which the channel has no room is dropped: the collector has enough to read. */
static void send_result(const struct poller *poller, int result,
                        const struct emission_factor *factor, const char *why)
{
    struct channel_factor record = {.index = (uint32_t)poller->index,
                                    .result = result,
                                    .taken_us = clock_system.monotonic_us(&clock_system)};

    if (result == 0) {
        record.mg_per_kwh = factor->mg_per_kwh;
        record.time_us = factor->time_us;
        record.is_estimated = factor->is_estimated;
        record.basis = factor->basis;
    } else {
        provider_copy_printable(span_of(why[0] ? why : strerror(-result)), record.why,
                                sizeof(record.why));
    }
    (void)channel_send(poller->channel_fd, &record, sizeof(record), -1);
}

static void *run_poller(void *argument)
{
    struct poller *poller = argument;

    while (!fetcher_wait(poller->stop_fd, poll_due_us(poller->poll))) {
        struct emission_factor factor;
        struct error err = {""};
        int r;

        poller->begun++;
        r = poll_fetch(poller->poll, &factor, &err);
        poller->ended++;
        if (r == -ECANCELED)
            break;
        if (silence_is_unanswered(r))
            poller->has_failed = true;
        else
            poller->has_answered = true;
        send_result(poller, r, &factor, err.text);
    }
    return NULL;
}

/* 0 also for one that cannot be polled, which the collector is told. */
static int start_poller(struct poller *poller, const struct fetcher_job *job, struct error *err)
{
    struct error why;
    int r = emission_poll_open(&job->emissions, poller->index, job->is_restart, poller->client,
                               &poller->poll, &why);

    if (r < 0) {
        send_result(poller, r, NULL, why.text);
        return 0;
    }
    r = -pthread_create(&poller->thread, NULL, run_poller, poller);
    if (r < 0)
        return error_set(err, r,
                         "cannot start a thread for a provider of emission factors: %s; raise the "
                         "limit of processes (TasksMax=, ulimit -u, --pids-limit)",
                         strerror(-r));
    poller->is_started = true;
    return 0;
}

/* Loads libcurl, which is impossible inside the sandbox. */
static int open_pollers(struct poller *pollers, const struct emissions_job *job, int channel_fd,
                        int stop_fd, struct error *err)
{
    for (size_t i = 0; i < PROXY_VARIABLES; i++)
        if (job->proxies[i][0])
            setenv(proxy_variables[i], job->proxies[i], 1);
    for (size_t i = 0; i < job->count; i++) {
        pollers[i] = (struct poller){
            .index = i,
            .channel_fd = channel_fd,
            .stop_fd = stop_fd,
        };
        if (http_client_new(&pollers[i].client) < 0)
            return error_set(err, -ENOMEM, "out of memory");
        http_client_watch(pollers[i].client, stop_fd, fetcher_attend);
    }
    return 0;
}

/* Some were asked, and none has ever answered. */
static bool are_all_lost(struct poller *pollers, size_t count)
{
    bool has_failed = false;

    for (size_t i = 0; i < count; i++) {
        if (pollers[i].has_answered)
            return false;
        has_failed |= pollers[i].has_failed;
    }
    return has_failed;
}

/* A request was in progress at the last check, and still is. Its own limit is half a minute. */
static bool has_hung(struct poller *poller)
{
    unsigned begun = poller->begun;
    bool is_same = begun == poller->begun_before;

    poller->begun_before = begun;
    return is_same && begun != poller->ended;
}

/* Stays also with nothing to poll: else the collector would start it again and again. */
static int wait_for_end(struct poller *pollers, size_t count, int channel_fd, struct error *err)
{
    while (!fetcher_wait(channel_fd, clock_system.monotonic_us(&clock_system) + CHECK_US)) {
        if (are_all_lost(pollers, count))
            return -EHOSTUNREACH;
        for (size_t i = 0; i < count; i++)
            /* If its thread cannot be stopped, no ping is answered any more, and this process is
             * killed. */
            if (has_hung(&pollers[i]))
                return error_set(err, -ETIMEDOUT, "a request for an emission factor hangs");
    }
    return -ECANCELED;
}

int fetch_emissions(const struct fetcher_job *job, int channel_fd, struct error *err)
{
    struct poller pollers[CHOICE_MAX] = {0};
    int stop_fds[2] = {-1, -1}; /* what the threads watch, and what is closed to stop them */
    int r = channel_open(&stop_fds[0], &stop_fds[1]);

    r = r < 0 ? error_set(err, r, "cannot make a channel: %s", strerror(-r))
              : open_pollers(pollers, &job->emissions, channel_fd, stop_fds[0], err);
    if (r == 0)
        r = fetcher_enter_sandbox(SANDBOX_EMISSIONS, channel_fd, job->emissions.ca_path, err);
    for (size_t i = 0; i < job->emissions.count && r == 0; i++)
        r = start_poller(&pollers[i], job, err);
    if (r == 0)
        r = wait_for_end(pollers, job->emissions.count, channel_fd, err);
    cleanup_close(&stop_fds[1]);
    for (size_t i = 0; i < job->emissions.count; i++) {
        if (pollers[i].is_started)
            pthread_join(pollers[i].thread, NULL);
        poll_free(pollers[i].poll);
        http_client_free(pollers[i].client);
    }
    cleanup_close(&stop_fds[0]);
    return r;
}
