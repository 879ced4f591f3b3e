/* Where the Kubernetes API is, and which node asks it: from what Kubernetes tells every pod. */
#pragma once

#include "config/options.h"
#include "core/error.h"

struct api_config {
    const char *host; /* an address, or a name that is still to be looked up */
    const char *port;
    const char *node;
    const char *directory; /* of the service account: token and ca.crt */
};

/* Reads KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT and NODE_NAME; the strings stay theirs. 0
 * or -EINVAL, with what to do. */
int api_config_read(const struct options *options, struct api_config *ret_config,
                    struct error *err);
