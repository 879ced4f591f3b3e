#include "config/api_config.h"

#include <errno.h>
#include <stdlib.h>

#include "config/lookup.h"
#include "core/parse.h"

static const char *read_variable(const char *name)
{
    const char *value = secure_getenv(name);

    return value ? value : "";
}

int api_config_read(const struct options *options, struct api_config *ret_config, struct error *err)
{
    struct api_config config = {
        .host = read_variable("KUBERNETES_SERVICE_HOST"),
        .port = read_variable("KUBERNETES_SERVICE_PORT"),
        .node = read_variable("NODE_NAME"),
        .directory = options->kubernetes_service_account_dir,
    };
    uint64_t port;

    if (!lookup_is_host(config.host))
        return error_set(err, -EINVAL,
                         "--kubernetes.api: KUBERNETES_SERVICE_HOST is '%.80s', not a host; "
                         "Kubernetes sets it in every pod, elsewhere give the API server's address",
                         config.host);
    if (parse_u64_max(span_of(config.port), UINT16_MAX, &port) < 0 || port == 0)
        return error_set(err, -EINVAL,
                         "--kubernetes.api: KUBERNETES_SERVICE_PORT is '%.80s', not a port; "
                         "Kubernetes sets it in every pod, elsewhere give the API server's port",
                         config.port);
    if (!lookup_is_dns_name(config.node))
        return error_set(err, -EINVAL,
                         "--kubernetes.api: NODE_NAME is '%.80s', not a node; set it in the pod's "
                         "spec by the downward API, from the field spec.nodeName",
                         config.node);
    *ret_config = config;
    return 0;
}
