/* Emission factors from the providers that publish them. */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/stoppable.h"
#include "core/clock.h"
#include "core/log.h"
#include "fetcher/emission_poll.h"
#include "fetcher/fetcher.h"
#include "process/channel.h"

/* A provider that is asked, by a thread of its own so that one that hangs holds up nobody, and what
 * was said of it last. */
struct poller {
    size_t index; /* in the job */
    const char *provider, *zone;
    int channel_fd;
    struct stoppable thread_stop;
    struct poll *poll; /* NULL: it cannot be asked */
    bool has_answered;
    int last_result;
    pthread_t thread;
    bool is_started;
};

struct pollers {
    int channel_fd;
    struct poller items[CHOICE_MAX];
    size_t count;
};

static uint64_t now_us(void)
{
    return clock_system.monotonic_us(&clock_system);
}

static void put_printable(char *to, size_t size_bytes, const char *from)
{
    snprintf(to, size_bytes, "%s", from);
    for (; *to; to++)
        if (*to < ' ' || *to > '~')
            *to = '?';
}

/* If the collector is so far behind that there is no room, it has factors enough. */
static void send_result(const struct poller *poller, int result,
                        const struct emission_factor *factor, const char *why)
{
    struct channel_factor record = {
        .index = (uint32_t)poller->index, .result = result, .taken_us = now_us()};

    if (result == 0) {
        record.mg_per_kwh = factor->mg_per_kwh;
        record.time_us = factor->time_us;
        record.is_estimated = factor->is_estimated;
        record.basis = factor->basis;
    } else {
        put_printable(record.why, sizeof(record.why), why[0] ? why : strerror(-result));
    }
    (void)channel_send(poller->channel_fd, &record, sizeof(record), -1);
}

/* Once per change, also of the kind of failure. */
static void note(struct poller *poller, int result, const char *why)
{
    if (result < 0 && result != poller->last_result)
        log_warn("a provider of emission factors fails", "provider", poller->provider, "zone",
                 poller->zone, "error", why);
    else if (result == 0 && !poller->has_answered)
        log_info("emission factors are read", "provider", poller->provider, "zone", poller->zone);
    else if (result == 0 && poller->last_result < 0)
        log_info("a provider of emission factors is back", "provider", poller->provider, "zone",
                 poller->zone);
    poller->has_answered = poller->has_answered || result == 0;
    poller->last_result = result;
}

static void *ask_again_and_again(void *argument)
{
    struct poller *poller = argument;

    for (;;) {
        struct emission_factor factor;
        struct error err = {""};
        int r;

        stoppable_pause(&poller->thread_stop, poll_due_us(poller->poll));
        if (stoppable_is_stopped(&poller->thread_stop))
            return NULL;
        r = poll_ask(poller->poll, &factor, &err);
        if (r == -ECANCELED)
            return NULL;
        note(poller, r, err.text);
        send_result(poller, r, &factor, err.text);
    }
}

static int start(const struct fetcher_job *job, struct poller *poller, struct error *err)
{
    int r = emission_poll_open(&job->emissions, poller->index, job->is_again,
                               poller->thread_stop.client, &poller->poll, err);

    if (r < 0)
        return r;
    r = -pthread_create(&poller->thread, NULL, ask_again_and_again, poller);
    if (r < 0)
        return error_set(err, r, "cannot start its thread: %s", strerror(-r));
    poller->is_started = true;
    return 0;
}

static void start_all(struct pollers *pollers, const struct fetcher_job *job)
{
    for (size_t i = 0; i < pollers->count; i++) {
        struct poller *poller = &pollers->items[i];
        struct error err;
        int r = start(job, poller, &err);

        if (r == 0)
            continue;
        log_warn("a provider of emission factors is not asked", "provider", poller->provider,
                 "error", err.text);
        send_result(poller, r, NULL, err.text);
    }
}

/* With libcurl, which can be loaded only outside of the sandbox. */
static int open_pollers(struct pollers *pollers, const struct emissions_job *job, struct error *err)
{
    int r = 0;

    for (size_t i = 0; i < job->count && r == 0; i++) {
        struct poller *poller = &pollers->items[pollers->count++];

        *poller = (struct poller){
            .index = i,
            .provider = job->polls[i].provider,
            .zone = job->polls[i].zone,
            .channel_fd = pollers->channel_fd,
        };
        r = stoppable_init(&poller->thread_stop);
    }
    return r < 0 ? error_set(err, r, "out of memory") : 0;
}

static void close_pollers(struct pollers *pollers)
{
    for (size_t i = 0; i < pollers->count; i++)
        stoppable_stop(&pollers->items[i].thread_stop);
    for (size_t i = 0; i < pollers->count; i++) {
        struct poller *poller = &pollers->items[i];

        if (poller->is_started)
            pthread_join(poller->thread, NULL);
        poll_free(poller->poll);
        stoppable_done(&poller->thread_stop);
    }
}

static void set_proxies(const struct emissions_job *job)
{
    for (size_t i = 0; i < PROXY_VARIABLES; i++)
        if (job->proxies[i][0])
            setenv(proxy_variables[i], job->proxies[i], 1);
}

/* Stays also if there is nobody to ask: else it would be started again and again. */
int fetch_emissions(const struct fetcher_job *job, int channel_fd, struct error *err)
{
    struct pollers pollers = {.channel_fd = channel_fd};
    int r;

    set_proxies(&job->emissions);
    r = open_pollers(&pollers, &job->emissions, err);
    if (r == 0)
        r = fetcher_enter_sandbox(job->emissions.ca_path, err);
    if (r == 0) {
        start_all(&pollers, job);
        (void)fetcher_is_over(channel_fd, UINT64_MAX);
    }
    close_pollers(&pollers);
    return r;
}
