/* The node's power from its BMC, by Redfish. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "client/http_trust.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/macros.h"
#include "fetcher/fetcher.h"
#include "fetcher/redfish/redfish_client.h"
#include "process/sandbox.h"
#include "sources/redfish_reading.h"

/* Each start is a login at the BMC, and one that died could not log out: one that dies again and
 * again must not use up the BMC's sessions. */
static const uint64_t LOGIN_PAUSE_US = 60 * USEC_PER_SEC;

struct bmc {
    const struct bmc_job *job;
    int readings_fd;
    char resolve[FETCHER_ADDRESS_BYTES];
    bool is_address_missing; /* and that was logged */
    struct http_trust *trust;
    struct redfish_client *client;
};

/* If the collector is so far behind that there is no room, it has readings enough. */
static void send_reading(void *context, int result, uint64_t power_mw, uint64_t taken_us,
                         const char *why)
{
    const struct bmc *bmc = context;
    struct redfish_reading reading = {
        .power_mw = result == 0 ? power_mw : 0, .taken_us = taken_us, .result = result};

    snprintf(reading.why, sizeof(reading.why), "%s%s", result == 0 ? "" : why,
             result == -EKEYREJECTED ? "; give --redfish.ca-file or --redfish.certificate-sha256"
                                     : "");
    (void)redfish_reading_send(bmc->readings_fd, &reading);
}

static void log_place(void *context, const struct redfish_place *place)
{
    const struct bmc *bmc = context;

    log_info("the BMC tells the node's power by Redfish", "url", bmc->job->url, "resource",
             place->paths[0].text, "what", redfish_kind_words[place->kind]);
}

static void report_no_address(void *context, const char *why)
{
    struct bmc *bmc = context;

    if (!bmc->is_address_missing)
        log_warn("readings of the BMC are missing; all else is served", "error", why);
    bmc->is_address_missing = true;
    send_reading(context, -EHOSTUNREACH, 0, clock_system.monotonic_us(&clock_system), why);
}

static int open_client(struct bmc *bmc, bool is_again, struct error *err)
{
    const struct bmc_job *job = bmc->job;
    const struct http_trust_options trust = {
        .host = job->host,
        .ca = job->ca,
        .certificate_sha256 = job->certificate_sha256.len == HTTP_TRUST_SHA256_BYTES
                                  ? (const uint8_t *)job->certificate_sha256.data
                                  : NULL,
        .anybody = job->is_insecure,
    };
    int r = http_trust_new(&trust, &bmc->trust, err);

    if (r < 0)
        return r;
    r = redfish_client_new(
        &(struct redfish_client_options){
            .session = {.url = job->url,
                        .resolve = bmc->resolve,
                        .trust = bmc->trust,
                        .user = job->user,
                        .password = job->password},
            .interval_us = job->interval_us,
            .delay_us = is_again ? LOGIN_PAUSE_US : 0,
            .clock = &clock_system,
            .take = send_reading,
            .found = log_place,
            .context = bmc,
        },
        &bmc->client);
    return r < 0 ? error_set(err, r, "cannot set up the client of the BMC: %s", strerror(-r)) : 0;
}

static void *run_client(void *argument)
{
    redfish_client_run(argument);
    return NULL;
}

/* What it needs of files it has: from here on it opens none. */
static int ask(struct bmc *bmc, int channel_fd, struct error *err)
{
    pthread_t thread;
    int r = sandbox_filter_calls(SYSCALL_FILELESS_CLIENT, err);

    if (r < 0)
        return r;
    r = -pthread_create(&thread, NULL, run_client, bmc->client);
    if (r < 0)
        return error_set(err, r, "cannot start a thread: %s", strerror(-r));
    (void)fetcher_is_over(channel_fd, UINT64_MAX);
    redfish_client_stop(bmc->client); /* it logs out */
    pthread_join(thread, NULL);
    return 0;
}

int fetch_bmc(const struct fetcher_job *job, int channel_fd, int readings_fd, struct error *err)
{
    struct bmc bmc = {.job = &job->bmc, .readings_fd = readings_fd};
    int r = open_client(&bmc, job->is_again, err);

    if (r == 0)
        r = fetcher_enter_sandbox("", err);
    if (r == 0 && fetcher_look_up("the BMC", bmc.job->host, bmc.job->port, channel_fd,
                                  report_no_address, &bmc, bmc.resolve))
        r = ask(&bmc, channel_fd, err);
    redfish_client_free(bmc.client);
    http_trust_free(bmc.trust);
    return r;
}
