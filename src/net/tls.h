/* TLS for a server: its certificate, and those that it requests of clients. Behind GnuTLS. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "core/span.h"

/* As crypto/tls of Go calls them. */
enum tls_client_auth {
    TLS_NO_CLIENT_CERT,
    TLS_REQUEST_CLIENT_CERT,
    TLS_REQUIRE_ANY_CLIENT_CERT,
    TLS_VERIFY_CLIENT_CERT_IF_GIVEN,
    TLS_REQUIRE_AND_VERIFY_CLIENT_CERT,
    TLS_CLIENT_AUTH_COUNT,
};

enum tls_version { TLS_1_2, TLS_1_3, TLS_VERSION_COUNT };
enum tls_curve { TLS_X25519, TLS_P256, TLS_P384, TLS_P521, TLS_CURVE_COUNT };

enum { TLS_SANS_MAX = 64 };

/* PEM, and its name in messages: the path of the file, or "cert". */
struct tls_pem {
    const char *name;
    struct span text;
};

struct tls_settings {
    struct tls_pem cert, key; /* the certificate with those that lead to the authority */
    enum tls_client_auth client_auth;
    struct tls_pem client_ca; /* no text: none */
    const char *client_sans[TLS_SANS_MAX];
    size_t client_san_count; /* 0: any */
    enum tls_version min_version, max_version;
    enum tls_curve curves[TLS_CURVE_COUNT];
    size_t curve_count; /* 0: all of them */
    bool prefer_server_ciphers;
};

struct tls;

/* Checks all of it; keeps copies. 0, -EINVAL with what is wrong, or -ENOMEM. The caller holds the
 * first reference. */
int tls_new(const struct tls_settings *settings, struct tls **ret_tls, struct error *err);

struct tls *tls_ref(struct tls *tls);
void tls_unref(struct tls *tls); /* accepts NULL */

/* Of one connection, which must not move. */
struct tls_session {
    struct tls *tls; /* a reference */
    void *session;   /* a gnutls_session_t, not ours */
    bool is_shaking_hands;
};

/* Sets up a session before its handshake, in which clients are verified: one that fails never sends
 * a request. To be released after the session is gone, also after a failure. */
int tls_session_init(struct tls_session *ret, struct tls *tls, void *session);
void tls_session_done(struct tls_session *session); /* accepts zeros */

/* In the middle of a handshake: it waits for a chance to write, and not for the client. */
bool tls_session_wants_to_write(const struct tls_session *session);
