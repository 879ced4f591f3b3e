#include "config/redfish_config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/secret_file.h"
#include "core/fs.h"
#include "core/macros.h"
#include "core/parse.h"

enum { CA_MAX_BYTES = 1 << 20 };

/* HOST, HOST:PORT, [ADDRESS] or [ADDRESS]:PORT. */
static bool split_authority(struct span authority, const char *default_port,
                            struct redfish_config *config)
{
    struct span port = authority, host;
    uint64_t number;

    if (span_strip_prefix(&port, "[")) {
        host = span_cut(&port, ']');
        if (port.len > 0 && !span_strip_prefix(&port, ":"))
            return false;
    } else {
        host = span_cut(&port, ':');
    }
    if (port.len == 0)
        port = span_of(default_port);
    if (host.len >= sizeof(config->host) || parse_u64_max(port, UINT16_MAX, &number) < 0 ||
        number == 0)
        return false;
    snprintf(config->host, sizeof(config->host), "%.*s", (int)host.len, host.data);
    snprintf(config->port, sizeof(config->port), "%u", (unsigned)number);
    return lookup_is_host(config->host);
}

static int parse_url(const char *text, struct redfish_config *config, struct error *err)
{
    struct span rest = span_of(text), authority;
    bool is_plain = span_strip_prefix(&rest, "http://"), is_v6;

    if (!is_plain)
        span_strip_prefix(&rest, "https://");
    authority = span_cut(&rest, '/');
    /* The path is the same for all BMCs: the user may have copied it or not. */
    span_strip_suffix(&rest, "/");
    if ((rest.len > 0 && !span_equals(rest, "redfish/v1")) ||
        !split_authority(authority, is_plain ? "80" : "443", config))
        return error_set(err, -EINVAL,
                         "--redfish.url: not the address of a BMC; write https://HOST/ or "
                         "https://HOST:PORT/, and put user and password into a file for "
                         "--redfish.credentials-file");
    if (is_plain && !config->is_insecure)
        return error_set(err, -EINVAL,
                         "--redfish.url: plain http exposes the password to the network; use "
                         "https, or add --redfish.insecure");
    is_v6 = strchr(config->host, ':') != NULL;
    snprintf(config->url, sizeof(config->url), "%s://%s%s%s:%s", is_plain ? "http" : "https",
             is_v6 ? "[" : "", config->host, is_v6 ? "]" : "", config->port);
    return 0;
}

/* As openssl prints it, with colons, or without. */
static int parse_pin(const char *text, struct redfish_config *config, struct error *err)
{
    static const char hex[] = "0123456789abcdef0123456789ABCDEF";
    uint8_t *bytes = config->certificate_sha256;
    size_t digits = 0;

    for (; *text; text++) {
        const char *digit = strchr(hex, *text);

        if (*text == ':' && digits % 2 == 0 && digits > 0)
            continue;
        if (!digit || digits == 2 * sizeof(config->certificate_sha256))
            break;
        bytes[digits / 2] = (uint8_t)(bytes[digits / 2] << 4 | ((digit - hex) & 15));
        digits++;
    }
    if (*text || digits != 2 * sizeof(config->certificate_sha256))
        return error_set(err, -EINVAL,
                         "--redfish.certificate-sha256: not 64 hexadecimal digits; openssl x509 "
                         "-noout -fingerprint -sha256 -in CERTIFICATE prints them");
    config->is_pinned = true;
    return 0;
}

static int read_credentials(const char *path, struct redfish_config *config, struct error *err)
{
    static const struct secret_file_form form = {
        .flag = "--redfish.credentials-file",
        .contents = "a password",
        .keys = "username and password",
        .example = "two lines, username: '...' and password: '...'",
    };
    const struct secret_file_entry entries[] = {
        {"username", config->user, sizeof(config->user)},
        {"password", config->password, sizeof(config->password)},
    };
    int r;

    if (!path)
        return error_set(err, -EINVAL,
                         "--redfish.url: needs --redfish.credentials-file, a file with the lines "
                         "username: ... and password: ...");
    r = secret_file_read(&form, path, entries, ARRAY_SIZE(entries), err);
    if (r == 0 && (config->user[0] == '\0' || config->password[0] == '\0'))
        r = error_set(err, -EINVAL, "%.300s: must have both username and password", path);
    return r;
}

struct http_trust_options redfish_config_trust(const struct redfish_config *config)
{
    return (struct http_trust_options){
        .host = config->host,
        .ca = {config->ca, config->ca_len},
        .certificate_sha256 = config->is_pinned ? config->certificate_sha256 : NULL,
        .anybody = config->is_insecure,
    };
}

static int check_trust(const char *ca_path, struct redfish_config *config, struct error *err)
{
    struct http_trust_options options;
    struct http_trust *trust = NULL;
    struct error why;
    int r;

    if (config->is_insecure && (ca_path || config->is_pinned))
        return error_set(err, -EINVAL,
                         "--redfish.insecure: skips all verification; remove it, or "
                         "--redfish.ca-file and --redfish.certificate-sha256");
    r = ca_path ? fs_read_regular(ca_path, CA_MAX_BYTES, &config->ca, &config->ca_len) : 0;
    if (r < 0)
        return error_set(err, -EINVAL, "--redfish.ca-file: cannot read a CA from %.300s: %s",
                         ca_path, fs_strerror(r));
    options = redfish_config_trust(config);
    r = http_trust_new(&options, &trust, &why);
    http_trust_free(trust);
    return r < 0 ? error_set(err, r, "--redfish.ca-file: %s%s%.300s", why.text, ca_path ? ": " : "",
                             ca_path ? ca_path : "")
                 : 0;
}

int redfish_config_load(const struct options *options, struct redfish_config *ret_config,
                        struct error *err)
{
    struct redfish_config config = {.is_insecure = options->redfish_insecure};
    int r = parse_url(options->redfish_url, &config, err);

    if (r == 0 && options->redfish_certificate_sha256)
        r = parse_pin(options->redfish_certificate_sha256, &config, err);
    if (r == 0)
        r = read_credentials(options->redfish_credentials_path, &config, err);
    if (r == 0)
        r = check_trust(options->redfish_ca_path, &config, err);
    if (r < 0)
        redfish_config_done(&config);
    else
        *ret_config = config;
    return r;
}

void redfish_config_done(struct redfish_config *config)
{
    free(config->ca);
    explicit_bzero(config, sizeof(*config));
}
