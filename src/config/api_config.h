/* Access to the Kubernetes API server, from the environment and files that every pod has. */
#pragma once

#include "config/options.h"
#include "core/error.h"

struct api_config {
    const char *host; /* an address, or a name to look up */
    const char *port;
    const char *node;
    const char *directory; /* of the service account: token and ca.crt */
};

/* Reads KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT and NODE_NAME; the strings belong to the
 * environment. 0 or -EINVAL, with what to do. */
int api_config_read(const struct options *options, struct api_config *ret_config,
                    struct error *err);

struct api_secrets {
    char *token;
    char *ca; /* PEM */
    size_t ca_len;
};

/* Reads both files of the service account, and checks that ca.crt holds a certificate. 0 or -errno,
 * with a text. */
int api_secrets_read(const struct api_config *config, struct api_secrets *ret_secrets,
                     struct error *err);

/* Wipes them. Accepts a zeroed struct. */
void api_secrets_done(struct api_secrets *secrets);
