/*
 * Fetches the node's power from its BMC, by Redfish. Whatever the BMC does costs its own readings
 * only: each request has a deadline, and after a failure the pause grows to five minutes.
 */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/macros.h"
#include "fetcher/fetcher.h"
#include "fetcher/redfish.h"
#include "fetcher/silence.h"
#include "sources/redfish_reading.h"

/* Each start is a login at the BMC, and a process that died could not log out: repeated deaths must
 * not use up the BMC's sessions. */
static const uint64_t LOGIN_PAUSE_US = 60 * USEC_PER_SEC;

static const uint64_t PAUSE_MAX_US = 300 * USEC_PER_SEC;

struct bmc {
    const struct bmc_job *job;
    int readings_fd;
    struct redfish_session session;
    struct redfish_place place;
    bool is_found;
};

static uint64_t now_us(void)
{
    return clock_system.monotonic_us(&clock_system);
}

/* A reading for which the socket has no room is dropped: the collector has enough to read. */
static void send_reading(const struct bmc *bmc, int result, uint64_t power_mw, uint64_t taken_us,
                         const char *why)
{
    struct redfish_reading reading = {.power_mw = power_mw, .taken_us = taken_us, .result = result};

    snprintf(reading.why, sizeof(reading.why), "%s%s", result == 0 ? "" : why,
             result == -EKEYREJECTED ? "; set --redfish.ca-file or --redfish.certificate-sha256"
                                     : "");
    (void)redfish_reading_send(bmc->readings_fd, &reading);
}

static void report_no_address(void *context, const char *why)
{
    send_reading(context, -EHOSTUNREACH, 0, now_us(), why);
}

/* The place may move with the BMC's firmware, or when a power supply is pulled. */
static int read_power(struct bmc *bmc, uint64_t *ret_power_mw, struct error *err)
{
    int r;

    if (bmc->is_found) {
        r = redfish_read(&bmc->session, &bmc->place, ret_power_mw, err);
        if (r == -ENODATA || r == -EPERM || r == -EREMOTEIO || r == -EBADMSG)
            bmc->is_found = false;
        return r;
    }
    r = redfish_find(&bmc->session, &bmc->place, ret_power_mw, err);
    (void)malloc_trim(0); /* the trees of many resources, freed in small pieces */
    if (r < 0)
        return r;
    bmc->is_found = true;
    log_info("reading the node's power from the BMC by Redfish", "url", bmc->job->url, "resource",
             bmc->place.paths[0].text, "what", redfish_kind_words[bmc->place.kind]);
    return 0;
}

/* Many BMCs lock an account after a few failed logins. */
static uint64_t pause_us(const struct bmc *bmc, int r, unsigned failures)
{
    if (r == -EACCES)
        return PAUSE_MAX_US;
    return r == 0 ? bmc->job->interval_us
                  : MIN(bmc->job->interval_us << MIN(failures, 9U), PAUSE_MAX_US);
}

/* A refused login is an answer: another process must not log in again. */
static int poll_bmc(struct bmc *bmc, int channel_fd, bool is_named, uint64_t due_us)
{
    unsigned failures = 0; /* in a row */
    uint64_t since_us = 0;

    while (!fetcher_wait(channel_fd, due_us)) {
        struct error err = {""};
        uint64_t began_us = now_us(), power_mw = 0;
        int r = read_power(bmc, &power_mw, &err);
        uint64_t ended_us = now_us();

        if (r == -ECANCELED)
            return r;
        failures = r < 0 ? failures + 1 : 0;
        send_reading(bmc, r, power_mw, ended_us, err.text);
        if (is_named && silence_is_long(&since_us, r, ended_us))
            return -EHOSTUNREACH;
        /* In step, but with a pause after a reply that took long. */
        due_us = MAX(began_us + pause_us(bmc, r, failures), ended_us + bmc->job->interval_us / 2);
    }
    return -ECANCELED;
}

int fetch_bmc(const struct fetcher_job *job, int channel_fd, int readings_fd, struct error *err)
{
    const struct bmc_job *bmc_job = &job->bmc;
    struct bmc bmc = {.job = bmc_job, .readings_fd = readings_fd};
    struct fetcher_peer peer = {
        .what = "the BMC",
        .host = bmc_job->host,
        .port = bmc_job->port,
        .trust_options =
            {
                .host = bmc_job->host,
                .ca = bmc_job->ca,
                .certificate_sha256 = bmc_job->certificate_sha256.len == HTTP_TRUST_SHA256_BYTES
                                          ? (const uint8_t *)bmc_job->certificate_sha256.data
                                          : NULL,
                .anybody = bmc_job->is_insecure,
            },
        .channel_fd = channel_fd,
        .user = SANDBOX_BMC,
        .report = report_no_address,
        .context = &bmc,
    };
    int r = fetcher_peer_open(&peer, err);

    if (r == 0) {
        redfish_session_init(&bmc.session, &(struct redfish_session_options){
                                               .client = peer.client,
                                               .url = bmc_job->url,
                                               .resolve = peer.resolve,
                                               .trust = peer.trust,
                                               .user = bmc_job->user,
                                               .password = bmc_job->password,
                                           });
        r = poll_bmc(&bmc, channel_fd, peer.resolve[0] != '\0',
                     now_us() + (job->is_restart ? LOGIN_PAUSE_US : 0));
        http_client_watch(peer.client, -1, NULL);
        redfish_session_close(&bmc.session);
        redfish_session_done(&bmc.session);
    }
    fetcher_peer_close(&peer);
    return r;
}
