#include "fetcher/redfish/redfish_client.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "client/stoppable.h"
#include "core/json_reader.h"
#include "core/macros.h"

static const uint64_t PAUSE_MAX_US = 300 * USEC_PER_SEC;
static const uint64_t LOGOUT_US = 2 * USEC_PER_SEC;

struct redfish_client {
    struct redfish_client_options options;
    struct redfish_session session;
    struct redfish_place place;
    bool is_found;
    unsigned failures; /* in a row */
    struct stoppable thread;
};

static int send_request(void *context, const struct http_request *request,
                        struct http_reply *ret_reply, struct error *err)
{
    struct redfish_client *client = context;

    return http_client_do(client->thread.client, request, ret_reply, err);
}

int redfish_client_new(const struct redfish_client_options *options,
                       struct redfish_client **ret_client)
{
    struct redfish_client *client = calloc(1, sizeof(*client));
    int r;

    if (!client)
        return -ENOMEM;
    client->options = *options;
    client->options.session.send = send_request;
    client->options.session.context = client;
    redfish_session_init(&client->session, &client->options.session);
    r = stoppable_init(&client->thread);
    if (r == 0)
        r = json_seed();
    if (r < 0) {
        redfish_client_free(client);
        return r;
    }
    *ret_client = client;
    return 0;
}

static uint64_t now_us(const struct redfish_client *client)
{
    return client->options.clock->monotonic_us(client->options.clock);
}

static int search(struct redfish_client *client, uint64_t *ret_power_mw, struct error *err)
{
    int r = redfish_find(&client->session, &client->place, ret_power_mw, err);

    (void)malloc_trim(0); /* the trees of many resources, freed in small pieces */
    if (r == 0) {
        client->is_found = true;
        client->options.found(client->options.context, &client->place);
    }
    return r;
}

/* What was found may have moved with the BMC's firmware, or a supply was pulled. */
static int ask(struct redfish_client *client, uint64_t *ret_power_mw, struct error *err)
{
    int r;

    if (!client->is_found)
        return search(client, ret_power_mw, err);
    r = redfish_read(&client->session, &client->place, ret_power_mw, err);
    if (r == -ENODATA || r == -EPERM || r == -EREMOTEIO || r == -EBADMSG)
        client->is_found = false;
    return r;
}

/* Many BMCs lock an account after a few logins that failed. */
static uint64_t pause_us(const struct redfish_client *client, int r)
{
    uint64_t interval_us = client->options.interval_us;

    if (r == 0)
        return interval_us;
    if (r == -EACCES)
        return PAUSE_MAX_US;
    return MIN(interval_us << MIN(client->failures, 9U), PAUSE_MAX_US);
}

void redfish_client_run(struct redfish_client *client)
{
    const struct redfish_client_options *options = &client->options;
    uint64_t due_us = now_us(client) + options->delay_us;

    for (;;) {
        struct error err = {""};
        uint64_t began_us, ended_us, power_mw = 0;
        int r;

        stoppable_pause(&client->thread, due_us);
        if (stoppable_is_stopped(&client->thread))
            break;
        began_us = now_us(client);
        r = ask(client, &power_mw, &err);
        ended_us = now_us(client);
        if (r == -ECANCELED)
            break;
        client->failures = r < 0 ? client->failures + 1 : 0;
        options->take(options->context, r, power_mw, ended_us, err.text);
        /* In step, but never in a hurry after an answer that took long. */
        due_us = MAX(began_us + pause_us(client, r), ended_us + options->interval_us / 2);
    }
    http_client_resume(client->thread.client);
    redfish_session_close(&client->session, LOGOUT_US);
    redfish_session_done(&client->session);
    stoppable_close(&client->thread);
}

void redfish_client_stop(struct redfish_client *client)
{
    stoppable_stop(&client->thread);
}

void redfish_client_free(struct redfish_client *client)
{
    if (!client)
        return;
    redfish_session_done(&client->session);
    stoppable_done(&client->thread);
    free(client);
}
