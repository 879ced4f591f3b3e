#include "net/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"
#include "core/macros.h"

/* Forward secrecy and authenticated encryption only: every client of the last ten years has them.
 */
static const char base_priority[] =
    "NORMAL:-KX-ALL:+ECDHE-ECDSA:+ECDHE-RSA:-CIPHER-ALL:+AES-128-GCM:+AES-256-GCM"
    ":+CHACHA20-POLY1305:-MAC-ALL:+AEAD:-VERS-ALL";

struct tls {
    size_t references;
    gnutls_certificate_credentials_t credentials;
    gnutls_priority_t priority;
    enum tls_client_auth client_auth;
    char *sans[TLS_SANS_MAX];
    size_t san_count;
};

static const struct {
    gnutls_certificate_request_t request;
    bool verifies;
} client_auths[TLS_CLIENT_AUTH_COUNT] = {
    [TLS_NO_CLIENT_CERT] = {GNUTLS_CERT_IGNORE, false},
    [TLS_REQUEST_CLIENT_CERT] = {GNUTLS_CERT_REQUEST, false},
    [TLS_REQUIRE_ANY_CLIENT_CERT] = {GNUTLS_CERT_REQUIRE, false},
    [TLS_VERIFY_CLIENT_CERT_IF_GIVEN] = {GNUTLS_CERT_REQUEST, true},
    [TLS_REQUIRE_AND_VERIFY_CLIENT_CERT] = {GNUTLS_CERT_REQUIRE, true},
};

static int set_priority(struct tls *tls, const struct tls_settings *settings, struct error *err)
{
    static const char *const versions[] = {":+VERS-TLS1.2", ":+VERS-TLS1.3"};
    static const char *const curves[] = {":+GROUP-X25519", ":+GROUP-SECP256R1", ":+GROUP-SECP384R1",
                                         ":+GROUP-SECP521R1"};
    struct buffer text;
    int r;

    buffer_init(&text, 1024);
    buffer_str(&text, base_priority);
    for (enum tls_version v = settings->max_version + 1; v-- > settings->min_version;)
        buffer_str(&text, versions[v]);
    /* X25519 first: it is what clients send a share of, and another costs them a round trip. */
    buffer_str(&text, ":-GROUP-ALL");
    for (size_t i = 0; i < (settings->curve_count ? settings->curve_count : TLS_CURVE_COUNT); i++)
        buffer_str(&text, curves[settings->curve_count ? settings->curves[i] : i]);
    if (settings->prefer_server_ciphers)
        buffer_str(&text, ":%SERVER_PRECEDENCE");
    buffer_char(&text, '\0');
    if (buffer_failed(&text)) {
        r = error_set(err, -ENOMEM, "out of memory");
    } else {
        r = gnutls_priority_init(&tls->priority, text.data, NULL);
        if (r < 0)
            r = error_set(err, -EINVAL, "GnuTLS refuses the TLS settings '%s': %s", text.data,
                          gnutls_strerror(r));
    }
    buffer_done(&text);
    return r;
}

static gnutls_datum_t datum_of(struct span text)
{
    return (gnutls_datum_t){(unsigned char *)text.data, (unsigned)text.len};
}

static int refuse(struct error *err, const struct tls_pem *pem, const char *why, int code)
{
    return error_set(err, -EINVAL, "%.300s: %s: %s", pem->name, why, gnutls_strerror(code));
}

/* Each on its own first, so that the message names the bad file. */
static int check_certificate(const struct tls_pem *pem, struct error *err)
{
    gnutls_datum_t datum = datum_of(pem->text);
    gnutls_x509_crt_t *list = NULL;
    unsigned count = 0;
    int r = gnutls_x509_crt_list_import2(&list, &count, &datum, GNUTLS_X509_FMT_PEM, 0);

    if (r < 0)
        return refuse(err, pem, "not a certificate in PEM form", r);
    for (unsigned i = 0; i < count; i++)
        gnutls_x509_crt_deinit(list[i]);
    gnutls_free(list);
    return 0;
}

static int check_key(const struct tls_pem *pem, struct error *err)
{
    gnutls_datum_t datum = datum_of(pem->text);
    gnutls_x509_privkey_t key;
    int r = gnutls_x509_privkey_init(&key);

    if (r < 0)
        return error_set(err, -ENOMEM, "out of memory");
    r = gnutls_x509_privkey_import2(key, &datum, GNUTLS_X509_FMT_PEM, NULL, 0);
    gnutls_x509_privkey_deinit(key);
    if (r == GNUTLS_E_DECRYPTION_FAILED)
        return error_set(err, -EINVAL,
                         "%.300s: the private key has a password; store it without one, readable "
                         "for this program alone",
                         pem->name);
    return r < 0 ? refuse(err, pem, "not a private key in PEM form", r) : 0;
}

static int set_key_pair(struct tls *tls, const struct tls_settings *settings, struct error *err)
{
    gnutls_datum_t cert = datum_of(settings->cert.text), key = datum_of(settings->key.text);
    int r = check_certificate(&settings->cert, err);

    if (r == 0)
        r = check_key(&settings->key, err);
    if (r < 0)
        return r;
    r = gnutls_certificate_set_x509_key_mem2(tls->credentials, &cert, &key, GNUTLS_X509_FMT_PEM,
                                             NULL, 0);
    if (r == GNUTLS_E_CERTIFICATE_KEY_MISMATCH)
        return error_set(err, -EINVAL,
                         "%.300s is not the private key of %.300s; give the two that belong "
                         "together, the server's own certificate first in its file",
                         settings->key.name, settings->cert.name);
    return r < 0 ? error_set(err, -EINVAL, "%.300s and %.300s cannot be used: %s",
                             settings->cert.name, settings->key.name, gnutls_strerror(r))
                 : 0;
}

static int set_client_ca(struct tls *tls, const struct tls_pem *pem, struct error *err)
{
    gnutls_datum_t datum = datum_of(pem->text);
    int r = check_certificate(pem, err);

    if (r < 0)
        return r;
    r = gnutls_certificate_set_x509_trust_mem(tls->credentials, &datum, GNUTLS_X509_FMT_PEM);
    return r <= 0 ? refuse(err, pem, "cannot be used as an authority", r) : 0;
}

/* As Go writes it: names as they are, addresses in their usual form. */
static bool san_is_allowed(const struct tls *tls, unsigned type, const unsigned char *data,
                           size_t len)
{
    const bool is_name =
        type == GNUTLS_SAN_DNSNAME || type == GNUTLS_SAN_RFC822NAME || type == GNUTLS_SAN_URI;
    char address[INET6_ADDRSTRLEN];
    const char *san = NULL;

    if (is_name && !memchr(data, '\0', len))
        san = (const char *)data;
    else if (type == GNUTLS_SAN_IPADDRESS && (len == 4 || len == 16))
        san = inet_ntop(len == 4 ? AF_INET : AF_INET6, data, address, sizeof(address));
    for (size_t i = 0; i < tls->san_count && san; i++)
        if (strcmp(tls->sans[i], san) == 0)
            return true;
    return false;
}

static bool peer_has_allowed_san(const struct tls *tls, const gnutls_datum_t *first)
{
    enum { SEEN_MAX = 256 };
    gnutls_x509_crt_t cert;
    bool ok = false;
    int r;

    if (gnutls_x509_crt_init(&cert) < 0)
        return false;
    r = gnutls_x509_crt_import(cert, first, GNUTLS_X509_FMT_DER);
    for (unsigned i = 0; i < SEEN_MAX && r >= 0 && !ok; i++) {
        unsigned char data[1024];
        size_t len = sizeof(data) - 1;
        unsigned type = 0;

        r = gnutls_x509_crt_get_subject_alt_name2(cert, i, data, &len, &type, NULL);
        if (r == GNUTLS_E_SHORT_MEMORY_BUFFER) {
            r = 0; /* longer than any that can be allowed */
        } else if (r >= 0) {
            data[MIN(len, sizeof(data) - 1)] = '\0';
            ok = san_is_allowed(tls, type, data, len);
        }
    }
    gnutls_x509_crt_deinit(cert);
    return ok;
}

static bool peer_is_verified(gnutls_session_t session)
{
    gnutls_typed_vdata_st purpose = {GNUTLS_DT_KEY_PURPOSE_OID,
                                     (unsigned char *)GNUTLS_KP_TLS_WWW_CLIENT, 0};
    unsigned status = GNUTLS_CERT_INVALID;

    return gnutls_certificate_verify_peers(session, &purpose, 1, &status) == 0 && status == 0;
}

/* Called within the handshake if a certificate was requested; a result other than 0 ends it. */
static int verify_peer(gnutls_session_t session)
{
    const struct tls_session *own = gnutls_session_get_ptr(session);
    const struct tls *tls = own->tls;
    unsigned count = 0;
    const gnutls_datum_t *chain = gnutls_certificate_get_peers(session, &count);

    if (!chain || count == 0)
        return client_auths[tls->client_auth].request == GNUTLS_CERT_REQUEST
                   ? 0
                   : GNUTLS_E_CERTIFICATE_REQUIRED;
    if ((!client_auths[tls->client_auth].verifies || peer_is_verified(session)) &&
        (tls->san_count == 0 || peer_has_allowed_san(tls, &chain[0])))
        return 0;
    /* Neither GnuTLS nor libmicrohttpd would send the reason. */
    (void)gnutls_alert_send(session, GNUTLS_AL_FATAL, GNUTLS_A_BAD_CERTIFICATE);
    return GNUTLS_E_CERTIFICATE_ERROR;
}

int tls_new(const struct tls_settings *settings, struct tls **ret_tls, struct error *err)
{
    struct tls *tls = calloc(1, sizeof(*tls));
    int r;

    if (!tls || gnutls_certificate_allocate_credentials(&tls->credentials) < 0) {
        free(tls);
        return error_set(err, -ENOMEM, "out of memory");
    }
    tls->references = 1;
    tls->client_auth = settings->client_auth;
    gnutls_certificate_set_verify_function(tls->credentials, verify_peer);
    r = set_priority(tls, settings, err);
    if (r == 0)
        r = set_key_pair(tls, settings, err);
    if (r == 0 && settings->client_ca.text.len > 0)
        r = set_client_ca(tls, &settings->client_ca, err);
    for (size_t i = 0; i < settings->client_san_count && r == 0; i++) {
        tls->sans[i] = strdup(settings->client_sans[i]);
        if (tls->sans[i])
            tls->san_count++;
        else
            r = error_set(err, -ENOMEM, "out of memory");
    }
    if (r < 0) {
        tls_unref(tls);
        return r;
    }
    *ret_tls = tls;
    return 0;
}

struct tls *tls_ref(struct tls *tls)
{
    tls->references++;
    return tls;
}

void tls_unref(struct tls *tls)
{
    if (!tls || --tls->references > 0)
        return;
    for (size_t i = 0; i < tls->san_count; i++)
        free(tls->sans[i]);
    gnutls_certificate_free_credentials(tls->credentials);
    if (tls->priority)
        gnutls_priority_deinit(tls->priority);
    free(tls);
}

/* After the client's last message, only we have something to send. */
static int end_handshake(gnutls_session_t session, unsigned type, unsigned when, unsigned incoming,
                         const gnutls_datum_t *message)
{
    struct tls_session *own = gnutls_session_get_ptr(session);

    (void)type;
    (void)when;
    (void)message;
    if (incoming)
        own->is_shaking_hands = false;
    return 0;
}

int tls_session_init(struct tls_session *ret, struct tls *tls, void *session)
{
    *ret = (struct tls_session){tls_ref(tls), session, true};
    gnutls_session_set_ptr(session, ret);
    gnutls_handshake_set_hook_function(session, GNUTLS_HANDSHAKE_FINISHED, GNUTLS_HOOK_POST,
                                       end_handshake);
    gnutls_certificate_server_set_request(session, client_auths[tls->client_auth].request);
    if (gnutls_priority_set(session, tls->priority) < 0)
        return -EIO;
    /* It adds to a list, in which the oldest of a kind would win. */
    gnutls_credentials_clear(session);
    return gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, tls->credentials) < 0 ? -EIO : 0;
}

void tls_session_done(struct tls_session *session)
{
    tls_unref(session->tls);
    *session = (struct tls_session){0};
}

bool tls_session_wants_to_write(const struct tls_session *session)
{
    return gnutls_record_get_direction(session->session) == 1;
}
