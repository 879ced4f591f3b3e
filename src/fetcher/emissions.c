/* Fetches emission factors from the providers that publish them. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/clock.h"
#include "core/log.h"
#include "fetcher/fetcher.h"
#include "process/channel.h"

/* Polls one provider, on a thread of its own so that one that hangs does not hold up the others. */
struct poller {
    size_t index; /* in the job */
    const char *provider, *zone;
    int channel_fd;
    struct http_client *client;
    struct poll *poll; /* NULL: it cannot be polled */
    bool has_answered;
    int last_result;
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

/* Once per change, also of the kind of failure. */
static void log_result(struct poller *poller, int result, const char *why)
{
    if (result < 0 && result != poller->last_result)
        log_warn("a provider of emission factors fails", "provider", poller->provider, "zone",
                 poller->zone, "error", why);
    else if (result == 0 && (!poller->has_answered || poller->last_result < 0))
        log_info(poller->has_answered ? "a provider of emission factors is back"
                                      : "reading emission factors",
                 "provider", poller->provider, "zone", poller->zone);
    poller->has_answered = poller->has_answered || result == 0;
    poller->last_result = result;
}

static void *run_poller(void *argument)
{
    struct poller *poller = argument;

    while (!fetcher_wait(poller->channel_fd, poll_due_us(poller->poll))) {
        struct emission_factor factor;
        struct error err = {""};
        int r = poll_fetch(poller->poll, &factor, &err);

        if (r == -ECANCELED)
            break;
        log_result(poller, r, err.text);
        send_result(poller, r, &factor, err.text);
    }
    return NULL;
}

static void start_poller(struct poller *poller, const struct fetcher_job *job)
{
    struct error err;
    int r = emission_poll_open(&job->emissions, poller->index, job->is_restart, poller->client,
                               &poller->poll, &err);

    if (r == 0) {
        r = -pthread_create(&poller->thread, NULL, run_poller, poller);
        poller->is_started = r == 0;
        if (r < 0)
            error_format(&err, "cannot start its thread: %s", strerror(-r));
    }
    if (r < 0) {
        log_warn("a provider of emission factors is not polled", "provider", poller->provider,
                 "error", err.text);
        send_result(poller, r, NULL, err.text);
    }
}

/* Loads libcurl, which is impossible inside the sandbox. */
static int open_pollers(struct poller *pollers, const struct emissions_job *job, int channel_fd,
                        struct error *err)
{
    for (size_t i = 0; i < PROXY_VARIABLES; i++)
        if (job->proxies[i][0])
            setenv(proxy_variables[i], job->proxies[i], 1);
    for (size_t i = 0; i < job->count; i++) {
        pollers[i] = (struct poller){
            .index = i,
            .provider = job->polls[i].provider,
            .zone = job->polls[i].zone,
            .channel_fd = channel_fd,
        };
        if (http_client_new(&pollers[i].client) < 0)
            return error_set(err, -ENOMEM, "out of memory");
        http_client_watch(pollers[i].client, channel_fd);
    }
    return 0;
}

/* Stays also with nothing to poll: else the collector would start it again and again. */
int fetch_emissions(const struct fetcher_job *job, int channel_fd, struct error *err)
{
    struct poller pollers[CHOICE_MAX] = {0};
    int r = open_pollers(pollers, &job->emissions, channel_fd, err);

    if (r == 0)
        r = fetcher_enter_sandbox(job->emissions.ca_path, err);
    if (r == 0) {
        for (size_t i = 0; i < job->emissions.count; i++)
            start_poller(&pollers[i], job);
        (void)fetcher_wait(channel_fd, UINT64_MAX);
    }
    for (size_t i = 0; i < job->emissions.count; i++) {
        if (pollers[i].is_started)
            pthread_join(pollers[i].thread, NULL);
        poll_free(pollers[i].poll);
        http_client_free(pollers[i].client);
    }
    return r;
}
