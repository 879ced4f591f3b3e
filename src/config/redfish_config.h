/* The flags --redfish.*, checked, with the files that they name. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client/http_trust.h"
#include "config/lookup.h"
#include "config/options.h"
#include "core/error.h"

struct redfish_config {
    char host[LOOKUP_HOST_MAX + 1];
    char port[8];
    char url[320]; /* "https://HOST:PORT" */
    char user[256];
    char password[512];
    bool is_insecure;
    bool is_pinned;
    uint8_t certificate_sha256[HTTP_TRUST_SHA256_BYTES];
    char *ca; /* PEM, of --redfish.ca-file; NULL: none */
    size_t ca_len;
};

/* 0 or -errno, with what to do. */
int redfish_config_load(const struct options *options, struct redfish_config *ret_config,
                        struct error *err);

/* How to verify the BMC. The result points into the config. */
struct http_trust_options redfish_config_trust(const struct redfish_config *config);

/* Wipes it. */
void redfish_config_done(struct redfish_config *config);
