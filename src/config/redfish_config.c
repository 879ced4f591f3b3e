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

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

struct redfish_flags redfish_flags_of(const struct options *options)
{
    return (struct redfish_flags){
        .url = or_empty(options->redfish_url),
        .credentials_path = or_empty(options->redfish_credentials_path),
        .ca_path = or_empty(options->redfish_ca_path),
        .certificate_sha256 = or_empty(options->redfish_certificate_sha256),
        .insecure = options->redfish_insecure,
        .interval_us = options->redfish_interval_us,
    };
}

/* HOST, HOST:PORT, [ADDRESS] or [ADDRESS]:PORT. */
static bool split_authority(struct span authority, struct redfish_config *config)
{
    struct span host = authority, port = {NULL, 0};
    uint64_t number;

    if (span_strip_prefix(&host, "[")) {
        port = host;
        host = span_cut(&port, ']');
        if (port.len > 0 && !span_strip_prefix(&port, ":"))
            return false;
    } else {
        port = host;
        host = span_cut(&port, ':');
    }
    if (host.len >= sizeof(config->host) || port.len >= sizeof(config->port))
        return false;
    snprintf(config->host, sizeof(config->host), "%.*s", (int)host.len, host.data);
    snprintf(config->port, sizeof(config->port), "%s", config->is_plain ? "80" : "443");
    if (port.len > 0) {
        if (parse_u64_max(port, UINT16_MAX, &number) < 0 || number == 0)
            return false;
        snprintf(config->port, sizeof(config->port), "%u", (unsigned)number);
    }
    return lookup_is_host(config->host);
}

int redfish_config_parse_url(const char *text, bool insecure, struct redfish_config *config,
                             struct error *err)
{
    struct span rest = span_of(text), authority;
    bool is_v6;

    config->is_plain = span_strip_prefix(&rest, "http://");
    if (!config->is_plain)
        span_strip_prefix(&rest, "https://");
    authority = span_cut(&rest, '/');
    /* What follows is the same for all: the user may have copied it or not. */
    span_strip_suffix(&rest, "/");
    if ((rest.len > 0 && !span_equals(rest, "redfish/v1")) || !split_authority(authority, config))
        return error_set(err, -EINVAL,
                         "--redfish.url: not the address of a BMC; write https://HOST/ or "
                         "https://HOST:PORT/, and user and password into a file for "
                         "--redfish.credentials-file");
    if (config->is_plain && !insecure)
        return error_set(err, -EINVAL,
                         "--redfish.url: over plain http everybody on the way can read the "
                         "password; use https, or add --redfish.insecure if that is no matter");
    is_v6 = strchr(config->host, ':') != NULL;
    snprintf(config->url, sizeof(config->url), "%s://%s%s%s:%s",
             config->is_plain ? "http" : "https", is_v6 ? "[" : "", config->host, is_v6 ? "]" : "",
             config->port);
    return 0;
}

static int hex_value(char c)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *at = c ? strchr(digits, c) : NULL;

    return at ? (int)((at - digits) & 15) : -1;
}

/* As openssl prints it, with colons, or without. */
static int parse_pin(const char *text, struct redfish_config *config, struct error *err)
{
    size_t digits = 0;

    for (; *text; text++) {
        int value = hex_value(*text);

        if (*text == ':' && digits % 2 == 0 && digits > 0)
            continue;
        if (value < 0 || digits == 2 * sizeof(config->certificate_sha256)) {
            digits = 0;
            break;
        }
        if (digits % 2 == 0)
            config->certificate_sha256[digits / 2] = 0;
        config->certificate_sha256[digits / 2] =
            (uint8_t)(config->certificate_sha256[digits / 2] << 4 | value);
        digits++;
    }
    if (digits != 2 * sizeof(config->certificate_sha256))
        return error_set(err, -EINVAL,
                         "--redfish.certificate-sha256: not 64 hexadecimal digits; openssl x509 "
                         "-noout -fingerprint -sha256 -in CERTIFICATE prints them");
    config->is_pinned = true;
    return 0;
}

static const struct secret_file_form credentials_form = {
    .flag = "--redfish.credentials-file",
    .contents = "a password",
    .keys = "username and password",
    .example = "two lines: username: ... and password: ...",
    .quoted = "two lines, username: '...' and password: '...'",
};

enum { CREDENTIALS = 2 };

static void list_credentials(struct redfish_config *config,
                             struct secret_file_entry entries[CREDENTIALS])
{
    entries[0] = (struct secret_file_entry){"username", config->user, sizeof(config->user)};
    entries[1] = (struct secret_file_entry){"password", config->password, sizeof(config->password)};
}

static int check_credentials(const struct redfish_config *config, const char *path,
                             struct error *err)
{
    if (config->user[0] == '\0' || config->password[0] == '\0')
        return error_set(err, -EINVAL, "%.300s: must have both username and password", path);
    return 0;
}

int redfish_config_parse_credentials(struct span text, const char *path,
                                     struct redfish_config *config, struct error *err)
{
    struct secret_file_entry entries[CREDENTIALS];
    int r;

    list_credentials(config, entries);
    r = secret_file_parse(&credentials_form, text, path, entries, CREDENTIALS, err);
    return r < 0 ? r : check_credentials(config, path, err);
}

static int read_credentials(const char *path, struct redfish_config *config, struct error *err)
{
    struct secret_file_entry entries[CREDENTIALS];
    int r;

    if (path[0] == '\0')
        return error_set(err, -EINVAL,
                         "--redfish.url: needs --redfish.credentials-file, a file with the lines "
                         "username: ... and password: ...");
    list_credentials(config, entries);
    r = secret_file_read(&credentials_form, path, entries, CREDENTIALS, err);
    return r < 0 ? r : check_credentials(config, path, err);
}

static int read_ca(const char *path, struct redfish_config *config, struct error *err)
{
    int r = path[0] ? fs_read_regular(path, CA_MAX_BYTES, &config->ca, &config->ca_len) : 0;

    return r < 0 ? error_set(err, -EINVAL,
                             "--redfish.ca-file: no certificate of an authority can be read from "
                             "%.300s: %s",
                             path, fs_strerror(r))
                 : 0;
}

struct http_trust_options redfish_config_trust(const struct redfish_config *config,
                                               const struct redfish_flags *flags)
{
    return (struct http_trust_options){
        .host = config->host,
        .ca = {config->ca, config->ca_len},
        .certificate_sha256 = config->is_pinned ? config->certificate_sha256 : NULL,
        .anybody = flags->insecure,
    };
}

static int check_trust(const struct redfish_flags *flags, struct redfish_config *config,
                       struct error *err)
{
    struct http_trust_options options;
    struct http_trust *trust = NULL;
    struct error why;
    int r;

    if (flags->insecure && (flags->ca_path[0] || config->is_pinned))
        return error_set(err, -EINVAL,
                         "--redfish.insecure: with it nothing is checked; leave it out, or "
                         "--redfish.ca-file and --redfish.certificate-sha256");
    r = read_ca(flags->ca_path, config, err);
    if (r < 0)
        return r;
    options = redfish_config_trust(config, flags);
    r = http_trust_new(&options, &trust, &why);
    http_trust_free(trust);
    return r < 0 ? error_set(err, r, "--redfish.ca-file: %s%s%.300s", why.text,
                             flags->ca_path[0] ? ": " : "", flags->ca_path)
                 : 0;
}

int redfish_config_load(const struct redfish_flags *flags, struct redfish_config *ret_config,
                        struct error *err)
{
    struct redfish_config config = {0};
    int r = redfish_config_parse_url(flags->url, flags->insecure, &config, err);

    if (r == 0 && flags->certificate_sha256[0])
        r = parse_pin(flags->certificate_sha256, &config, err);
    if (r == 0)
        r = read_credentials(flags->credentials_path, &config, err);
    if (r == 0)
        r = check_trust(flags, &config, err);
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
