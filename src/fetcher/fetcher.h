/*
 * Fetcher: the process that talks to the network, one for each trust domain: the BMC, the
 * Kubernetes API server, the providers of emission factors. It listens on nothing, and all it can
 * send to the collector are readings, names and factors.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/http_client.h"
#include "client/http_trust.h"
#include "config/lookup.h"
#include "core/error.h"
#include "emissions/poll.h"
#include "process/job.h"
#include "process/sandbox.h"

/* The hidden verb `fetcher`. Reads its job, drops what it does not need, and fetches until the
 * channel is closed. Returns the exit status: 0, 1 if it could not start, or FETCHER_RESTART. */
int fetcher_main(void);

/* Each returns 0 or -ECANCELED when the channel is closed, -EHOSTUNREACH when another process
 * should look up the host's name again, and another -errno with a text when it cannot start. */
int fetch_bmc(const struct fetcher_job *job, int channel_fd, int readings_fd, struct error *err);
int fetch_kubernetes(const struct fetcher_job *job, int channel_fd, struct error *err);
int fetch_emissions(const struct fetcher_job *job, int channel_fd, struct error *err);

/* First stage of the sandbox; libraries must be loaded before. From here on the process has no
 * privileges, and opens only what name lookups need, and files at `ca_path` ("": none). */
int fetcher_enter_sandbox(enum sandbox_user user, int channel_fd, const char *ca_path,
                          struct error *err);

/*
 * Answers the collector's pings. True: the channel was closed. To be called by the thread that does
 * the work, wherever it waits: the functions below do, and http_client with it as `attend`. Where
 * other threads do the work, the one that answers has to see that they get on.
 */
bool fetcher_attend(int channel_fd);

/* Waits until then by the monotonic clock. True: the channel was closed. */
bool fetcher_wait(int channel_fd, uint64_t until_us);

/* The peer of a fetcher that talks to one host only, and opens no file once it has its address. */
struct fetcher_peer {
    const char *what; /* for error texts: "the BMC" */
    const char *host, *port;
    struct http_trust_options trust_options;
    int channel_fd;
    enum sandbox_user user;
    void (*report)(void *context, const char *why); /* each time it has none */
    void *context;

    struct http_client *client; /* its requests end when the channel is closed */
    struct http_trust *trust;
    char resolve[LOOKUP_TEXT_BYTES]; /* as in struct http_request */
};

/* Loads what needs files, enters the sandbox, and looks the host up until it has an address. 0,
 * -ECANCELED (the channel was closed before), -EHOSTUNREACH (it has none for a minute) or -errno
 * with a text. */
int fetcher_peer_open(struct fetcher_peer *peer, struct error *err);
void fetcher_peer_close(struct fetcher_peer *peer);

/* A poll of the job's provider `index`; job and client must outlive it. 0, -ENOKEY, or as poll_new,
 * with what to do. */
int emission_poll_open(const struct emissions_job *job, size_t index, bool is_restart,
                       struct http_client *client, struct poll **ret_poll, struct error *err);
