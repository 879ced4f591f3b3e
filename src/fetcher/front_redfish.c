#include "fetcher/front_redfish.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/macros.h"
#include "fetcher/redfish/redfish_client.h"
#include "process/channel.h"
#include "process/sandbox.h"

struct front_redfish {
    int power_fd;
    struct redfish_config config;
    char resolve[LOOKUP_TEXT_BYTES]; /* "": the host is an address */
    struct redfish_client *client;
    pthread_t thread;
    bool started;
};

/* If the collector is so far behind that there is no room, it has readings enough. */
static void send_reading(void *context, int result, uint64_t power_mw, uint64_t taken_us,
                         const char *why)
{
    const struct front_redfish *redfish = context;
    struct channel_node_power record = {
        .power_mw = result == 0 ? power_mw : 0, .taken_us = taken_us, .result = result};

    snprintf(record.why, sizeof(record.why), "%s%s", result == 0 ? "" : why,
             result == -EKEYREJECTED ? "; give --redfish.ca-file or --redfish.certificate-sha256"
                                     : "");
    (void)channel_send_node_power(redfish->power_fd, &record);
}

static void log_place(void *context, const struct redfish_place *place)
{
    const struct front_redfish *redfish = context;

    log_info("the BMC tells the node's power by Redfish", "url", redfish->config.url, "resource",
             place->paths[0].text, "what", redfish_kind_words[place->kind]);
}

int front_redfish_open(const struct redfish_flags *flags, uint64_t delay_us, int power_fd,
                       struct front_redfish **ret_redfish, struct error *err)
{
    struct front_redfish *redfish = calloc(1, sizeof(*redfish));
    int r;

    if (!redfish) {
        close(power_fd);
        return error_set(err, -ENOMEM, "out of memory");
    }
    redfish->power_fd = power_fd;
    r = redfish_config_load(flags, &redfish->config, err);
    if (r == 0)
        r = lookup_host("the BMC", redfish->config.host, redfish->config.port, redfish->resolve,
                        err);
    if (r == 0) {
        r = redfish_client_new(
            &(struct redfish_client_options){
                .session = {.url = redfish->config.url,
                            .resolve = redfish->resolve[0] ? redfish->resolve : NULL,
                            .trust = redfish->config.trust,
                            .user = redfish->config.user,
                            .password = redfish->config.password},
                .interval_us = flags->interval_us,
                .delay_us = delay_us,
                .clock = &clock_system,
                .take = send_reading,
                .found = log_place,
                .context = redfish,
            },
            &redfish->client);
        if (r < 0)
            error_format(err, "cannot set up its client: %s", strerror(-r));
    }
    if (r < 0) {
        front_redfish_close(redfish);
        return r;
    }
    *ret_redfish = redfish;
    return 0;
}

static void *run(void *argument)
{
    struct front_redfish *redfish = argument;
    struct error err;

    if (sandbox_filter_calls(SYSCALL_FILELESS_CLIENT, &err) < 0)
        log_error("readings of the BMC are missing", "error", err.text);
    else
        redfish_client_run(redfish->client);
    return NULL;
}

int front_redfish_start(struct front_redfish *redfish, struct error *err)
{
    int r = -pthread_create(&redfish->thread, NULL, run, redfish);

    if (r < 0)
        return error_set(err, r, "cannot start its thread: %s", strerror(-r));
    redfish->started = true;
    return 0;
}

void front_redfish_stop(struct front_redfish *redfish)
{
    if (redfish && redfish->started)
        redfish_client_stop(redfish->client);
}

void front_redfish_close(struct front_redfish *redfish)
{
    if (!redfish)
        return;
    front_redfish_stop(redfish);
    if (redfish->started)
        pthread_join(redfish->thread, NULL);
    redfish_client_free(redfish->client);
    redfish_config_done(&redfish->config);
    close(redfish->power_fd);
    free(redfish);
}
