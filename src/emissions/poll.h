/*
 * Polls one provider: when it is due, the request with its key, and what the reply, or a failure,
 * means for the next time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client/http_client.h"
#include "core/clock.h"
#include "core/error.h"
#include "emissions/provider.h"

struct poll;

/* Strings must outlive the poll. */
struct poll_options {
    const struct provider *provider;
    const char *zone;
    enum price_basis basis; /* for a provider that offers both */
    const char *url;        /* "https://HOST[:PORT]", no trailing slash; NULL: the provider's own */
    const char *ca_path;    /* NULL: the system's CAs */
    const char *user;       /* for PROVIDER_KEY_LOGIN */
    const char *key;        /* token or password; NULL for PROVIDER_KEY_NONE */
    uint64_t interval_us;   /* between two successes; 0: as often as the provider has news */
    bool is_restart;        /* a process that polled before has died: no hurry */

    struct http_client *client;
    const struct clock *clock;
    uint64_t (*draw)(void *context, uint64_t below); /* a random number */
    void *context;
};

/* 0, -ENOMEM, or with a text -EINVAL (unknown zone, or no key) or -EILSEQ (malformed key). The
 * first poll is due within a minute or the interval, whichever is less, so that the nodes of a
 * cluster do not poll at once. */
int poll_new(const struct poll_options *options, struct poll **ret_poll, struct error *err);

/* Wipes its keys. Accepts NULL. */
void poll_free(struct poll *poll);

/* When the next poll is due, by the monotonic clock. */
uint64_t poll_due_us(const struct poll *poll);

/*
 * Blocks until the provider's deadline at most, and sets when it is due again. 0: the provider's
 * current factor, changed or not. Else -errno as of http_client_do and provider_parse, or
 *
 * -EACCES      the key is not accepted, or not for this zone
 * -EBUSY       too many requests
 * -ENXIO       no such resource: the zone or the URL is wrong
 * -EREMOTEIO   any other bad status
 *
 * with a text that names the provider and what to do, and contains no key.
 */
int poll_fetch(struct poll *poll, struct emission_factor *ret_factor, struct error *err);
