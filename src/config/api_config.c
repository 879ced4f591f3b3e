#include "config/api_config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/lookup.h"
#include "core/fs.h"
#include "core/macros.h"
#include "core/parse.h"

enum { TOKEN_MAX = 64 << 10, CA_MAX_BYTES = 1 << 20 };

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

/* A header's value must be printable, or whoever writes the file could add headers. */
static bool is_token(const char *text)
{
    size_t len = 0;

    while (text[len] > ' ' && text[len] <= '~')
        len++;
    return len > 0 && text[len] == '\0';
}

static int read_file(const struct api_config *config, const char *name, size_t max, char **ret_text,
                     size_t *ret_len)
{
    _cleanup_free_ char *path = NULL;

    if (asprintf(&path, "%s/%s", config->directory, name) < 0)
        return -ENOMEM;
    return fs_read_regular(path, max, ret_text, ret_len);
}

static int read_token(const struct api_config *config, struct api_secrets *secrets,
                      struct error *err)
{
    size_t len;
    int r = read_file(config, "token", TOKEN_MAX, &secrets->token, &len);

    if (r < 0)
        return error_set(err, r, "cannot read the service account's token: %s", fs_strerror(r));
    if (len > 0 && secrets->token[len - 1] == '\n')
        secrets->token[--len] = '\0';
    if (strlen(secrets->token) != len || !is_token(secrets->token))
        return error_set(err, -EBADMSG, "the service account's token is not one");
    return 0;
}

int api_secrets_read(const struct api_config *config, struct api_secrets *ret_secrets,
                     struct error *err)
{
    struct api_secrets secrets = {0};
    int r = read_token(config, &secrets, err);

    if (r == 0) {
        r = read_file(config, "ca.crt", CA_MAX_BYTES, &secrets.ca, &secrets.ca_len);
        if (r < 0)
            error_format(err, "cannot read the service account's ca.crt: %s", fs_strerror(r));
    }
    if (r < 0)
        api_secrets_done(&secrets);
    else
        *ret_secrets = secrets;
    return r;
}

void api_secrets_done(struct api_secrets *secrets)
{
    if (secrets->token)
        explicit_bzero(secrets->token, strlen(secrets->token));
    free(secrets->token);
    free(secrets->ca);
    *secrets = (struct api_secrets){0};
}
