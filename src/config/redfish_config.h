/* What --redfish.* says, checked, with the files that it names: all that asking a BMC needs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client/http_trust.h"
#include "config/lookup.h"
#include "config/options.h"
#include "core/error.h"
#include "core/span.h"

/* As given; "" for what was not. */
struct redfish_flags {
    const char *url, *credentials_path, *ca_path, *certificate_sha256;
    bool insecure;
    uint64_t interval_us;
};

struct redfish_config {
    char host[LOOKUP_HOST_MAX + 1];
    char port[8];
    char url[320];  /* "https://HOST:PORT" */
    bool is_plain;  /* http */
    char user[256]; /* of the BMC */
    char password[512];
    bool is_pinned;
    uint8_t certificate_sha256[HTTP_TRUST_SHA256_BYTES];
    char *ca; /* PEM, of --redfish.ca-file; NULL: none */
    size_t ca_len;
};

struct redfish_flags redfish_flags_of(const struct options *options);

/* Reads the credentials and the authorities, and checks them. 0 or -errno, with what to do. */
int redfish_config_load(const struct redfish_flags *flags, struct redfish_config *ret_config,
                        struct error *err);

/* Which server it must be. The result points into both. */
struct http_trust_options redfish_config_trust(const struct redfish_config *config,
                                               const struct redfish_flags *flags);

/* Wipes it. */
void redfish_config_done(struct redfish_config *config);

/* The parts of it that read no file. */
int redfish_config_parse_url(const char *text, bool insecure, struct redfish_config *config,
                             struct error *err);
int redfish_config_parse_credentials(struct span text, const char *path,
                                     struct redfish_config *config, struct error *err);
