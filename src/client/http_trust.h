/* How a TLS server is verified. Held in memory, for processes that can open no file any more. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "core/span.h"

enum { HTTP_TRUST_SHA256_BYTES = 32 };

struct http_trust;

struct http_trust_options {
    const char *host; /* name or address in the certificate */
    struct span ca;   /* PEM: CAs, or the certificate itself; empty: the system's CAs */
    /* If not NULL, the digest of the one certificate (DER) that is trusted, whatever its host and
     * issuer. */
    const uint8_t *certificate_sha256;
    bool anybody; /* no verification, and TLS is optional */
};

/* Reads the CAs. The options' host and digest must outlive it. 0, or -errno with a text. */
int http_trust_new(const struct http_trust_options *options, struct http_trust **ret_trust,
                   struct error *err);

/* Accepts NULL. */
void http_trust_free(struct http_trust *trust);

/* For http_client: `session` is a gnutls_session_t after the handshake, or NULL. 0 or -EKEYREJECTED
 * with a text. */
int http_trust_check(const struct http_trust *trust, void *session, struct error *err);
