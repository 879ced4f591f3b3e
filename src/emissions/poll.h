/*
 * An inquiry: one provider that is asked again and again, never more often than it likes. When it
 * is due, how it is asked, and what its answer, or the lack of one, means for the next time.
 */
#pragma once

#include <stdint.h>

#include "client/http_client.h"
#include "core/clock.h"
#include "core/error.h"
#include "emissions/provider.h"

struct poll;

/* All texts must outlive the inquiry. */
struct poll_options {
    const struct provider *provider;
    const char *zone;
    enum price_basis basis; /* for the one that offers both */
    const char *url;        /* "https://HOST[:PORT]", no slash behind; NULL: the provider's own */
    const char *ca_path;    /* NULL: the system's authorities */
    const char *user;       /* for PROVIDER_KEY_LOGIN */
    const char *key;        /* the token or password; NULL for PROVIDER_KEY_NONE */
    uint64_t interval_us;   /* between two answers; 0: as often as the provider has news */
    bool is_again;          /* somebody asked before, who died: there is no hurry */

    const struct clock *clock;
    uint64_t (*draw)(void *context, uint64_t below); /* a random number */
    void *context;
    struct http_client *client;
};

/* 0, -ENOMEM, or with a text -EINVAL (no such zone, or no key) or -EILSEQ (no key can be so). The
 * first question is due within a minute or the interval, whichever is less, so that the nodes of a
 * cluster do not ask at once. */
int poll_new(const struct poll_options *options, struct poll **ret_inquiry, struct error *err);

/* Wipes its keys. Accepts NULL. */
void poll_free(struct poll *inquiry);

/* When it should be asked next, by the monotonic clock. */
uint64_t poll_due_us(const struct poll *inquiry);

/*
 * Asks, at most until the provider's deadline, and sets when it is due again. 0: the factor is what
 * the provider says now, also if it says that nothing has changed. Else -errno as of http_client_do
 * and provider_parse, or
 *
 * -EACCES      the key is not accepted, or not for this zone
 * -EBUSY       asked too often
 * -ENXIO       there is nothing for this question: the zone, or the place, is wrong
 * -EREMOTEIO   any other status than a good one
 *
 * with a text that names the provider and what to do, and has no key in it.
 */
int poll_ask(struct poll *inquiry, struct emission_factor *ret_factor, struct error *err);
