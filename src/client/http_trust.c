#include "client/http_trust.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"

enum { CHAIN_MAX = 16 };

/* As curl does: many BMCs have a certificate of version 1. */
static const unsigned verify_flags = GNUTLS_VERIFY_ALLOW_X509_V1_CA_CRT;

struct http_trust {
    struct http_trust_options options;
    gnutls_x509_trust_list_t authorities;
};

static int load_authorities(struct http_trust *trust, struct span ca, struct error *err)
{
    const gnutls_datum_t pem = {(unsigned char *)ca.data, (unsigned)ca.len};
    int r = gnutls_x509_trust_list_init(&trust->authorities, 0);

    if (r < 0)
        return error_set(err, -ENOMEM, "out of memory");
    r = ca.len > 0 ? gnutls_x509_trust_list_add_trust_mem(trust->authorities, &pem, NULL,
                                                          GNUTLS_X509_FMT_PEM, 0, 0)
                   : gnutls_x509_trust_list_add_system_trust(trust->authorities, 0, 0);
    if (r > 0)
        return 0;
    return error_set(err, -EINVAL, "no CA certificate can be read%s%s%s",
                     ca.len > 0 ? "" : " from the system's store", r < 0 ? ": " : "",
                     r < 0 ? gnutls_strerror(r) : "");
}

int http_trust_new(const struct http_trust_options *options, struct http_trust **ret_trust,
                   struct error *err)
{
    struct http_trust *trust = calloc(1, sizeof(*trust));
    int r = 0;

    if (!trust)
        return error_set(err, -ENOMEM, "out of memory");
    trust->options = *options;
    if (!options->certificate_sha256 && !options->anybody)
        r = load_authorities(trust, options->ca, err);
    if (r < 0)
        http_trust_free(trust);
    else
        *ret_trust = trust;
    return r;
}

void http_trust_free(struct http_trust *trust)
{
    if (!trust)
        return;
    if (trust->authorities)
        gnutls_x509_trust_list_deinit(trust->authorities, 1);
    free(trust);
}

static int check_pin(const struct http_trust *trust, const gnutls_datum_t *certificate,
                     struct error *err)
{
    uint8_t digest[HTTP_TRUST_SHA256_BYTES];
    size_t size = sizeof(digest);

    if (gnutls_fingerprint(GNUTLS_DIG_SHA256, certificate, digest, &size) == 0 &&
        size == sizeof(digest) && memcmp(digest, trust->options.certificate_sha256, size) == 0)
        return 0;
    return error_set(err, -EKEYREJECTED, "its certificate has another fingerprint");
}

static int classify_status(unsigned status, struct error *err)
{
    gnutls_datum_t text = {0};

    if (status == 0)
        return 0;
    if (gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &text, 0) < 0)
        return error_set(err, -EKEYREJECTED, "its certificate is not trusted");
    error_format(err, "%s", (const char *)text.data);
    gnutls_free(text.data);
    return -EKEYREJECTED;
}

static int check_chain(const struct http_trust *trust, const gnutls_datum_t *chain, unsigned count,
                       struct error *err)
{
    gnutls_typed_vdata_st wanted[] = {
        {GNUTLS_DT_DNS_HOSTNAME, (unsigned char *)trust->options.host, 0},
        {GNUTLS_DT_KEY_PURPOSE_OID, (unsigned char *)GNUTLS_KP_TLS_WWW_SERVER, 0},
    };
    gnutls_x509_crt_t certificates[CHAIN_MAX];
    unsigned imported = 0, status = 0;
    int r = 0;

    for (unsigned i = 0; i < MIN(count, (unsigned)CHAIN_MAX) && r == 0; i++) {
        r = gnutls_x509_crt_init(&certificates[i]);
        if (r < 0)
            break;
        imported++;
        r = gnutls_x509_crt_import(certificates[i], &chain[i], GNUTLS_X509_FMT_DER);
    }
    if (r == 0)
        r = gnutls_x509_trust_list_verify_crt2(trust->authorities, certificates, imported, wanted,
                                               ARRAY_SIZE(wanted), verify_flags, &status, NULL);
    r = r < 0 ? error_set(err, -EKEYREJECTED, "its certificate cannot be checked: %s",
                          gnutls_strerror(r))
              : classify_status(status, err);
    for (unsigned i = 0; i < imported; i++)
        gnutls_x509_crt_deinit(certificates[i]);
    return r;
}

int http_trust_check(const struct http_trust *trust, void *session, struct error *err)
{
    const gnutls_datum_t *chain;
    unsigned count = 0;

    if (trust->options.anybody)
        return 0;
    if (!session)
        return error_set(err, -EKEYREJECTED, "the connection does not use TLS by GnuTLS");
    chain = gnutls_certificate_get_peers(session, &count);
    if (!chain || count == 0)
        return error_set(err, -EKEYREJECTED, "it presents no certificate");
    return trust->options.certificate_sha256 ? check_pin(trust, &chain[0], err)
                                             : check_chain(trust, chain, count, err);
}
