/*
 * Trust: who a server must prove to be over TLS. It is held in memory, so that a connection can be
 * checked where no file can be opened any more.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "core/span.h"

enum { HTTP_TRUST_SHA256_BYTES = 32 };

struct http_trust;

struct http_trust_options {
    const char *host; /* a name or address that the certificate must be for */
    struct span ca;   /* PEM: who must have signed it, or itself; empty: the system's */
    /* If not NULL: the digest of the one certificate (DER) that is trusted. Then neither the host
     * nor who signed it matters. */
    const uint8_t *certificate_sha256;
    bool anybody; /* nothing is checked, and TLS not needed */
};

/* Reads the system's authorities. 0, or -errno with a text. */
int http_trust_new(const struct http_trust_options *options, struct http_trust **ret_trust,
                   struct error *err);

/* Accepts NULL. */
void http_trust_free(struct http_trust *trust);

/* For http_client: `session` is a gnutls_session_t after the handshake, NULL: there is none. 0 or
 * -EKEYREJECTED with a text. */
int http_trust_check(const struct http_trust *trust, void *session, struct error *err);
