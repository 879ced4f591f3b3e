#include "config/api_config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/http_trust.h"
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
                         "Kubernetes sets it in every pod, elsewhere set the API server's address",
                         config.host);
    if (parse_u64_max(span_of(config.port), UINT16_MAX, &port) < 0 || port == 0)
        return error_set(err, -EINVAL,
                         "--kubernetes.api: KUBERNETES_SERVICE_PORT is '%.80s', not a port; "
                         "Kubernetes sets it in every pod, elsewhere set the API server's port",
                         config.port);
    if (!lookup_is_dns_name(config.node))
        return error_set(err, -EINVAL,
                         "--kubernetes.api: NODE_NAME is '%.80s', not a node; set it in the pod's "
                         "spec by the downward API, from the field spec.nodeName",
                         config.node);
    *ret_config = config;
    return 0;
}

static int read_file(const struct api_config *config, const char *name, size_t max, char **ret_text,
                     size_t *ret_len, struct error *err)
{
    _cleanup_free_ char *path = NULL;
    int r = asprintf(&path, "%s/%s", config->directory, name) < 0
                ? -ENOMEM
                : fs_read_regular(path, max, ret_text, ret_len);

    return r < 0
               ? error_set(err, r, "cannot read the service account's %s: %s", name, fs_strerror(r))
               : 0;
}

static int read_token(const struct api_config *config, char **ret_token, struct error *err)
{
    size_t len, printable = 0;
    int r = read_file(config, "token", TOKEN_MAX, ret_token, &len, err);
    char *token = *ret_token;

    if (r < 0)
        return r;
    if (len > 0 && token[len - 1] == '\n')
        token[--len] = '\0';
    /* It becomes a header's value: a line break in it could add headers. */
    while (token[printable] > ' ' && token[printable] <= '~')
        printable++;
    return len > 0 && printable == len
               ? 0
               : error_set(err, -EBADMSG, "the service account's token is malformed");
}

/* One that cannot be used is noticed here, where the old one can stay, and not by the fetcher. */
static int check_ca(const struct api_secrets *secrets, struct error *err)
{
    const struct http_trust_options options = {.host = "", .ca = {secrets->ca, secrets->ca_len}};
    struct http_trust *trust = NULL;
    struct error why;
    int r;

    if (secrets->ca_len == 0) /* which would mean the system's authorities */
        return error_set(err, -EINVAL, "the service account's ca.crt is empty");
    r = http_trust_new(&options, &trust, &why);
    http_trust_free(trust);
    return r < 0 ? error_set(err, r, "the service account's ca.crt: %s", why.text) : 0;
}

int api_secrets_read(const struct api_config *config, struct api_secrets *ret_secrets,
                     struct error *err)
{
    struct api_secrets secrets = {0};
    int r = read_token(config, &secrets.token, err);

    if (r == 0)
        r = read_file(config, "ca.crt", CA_MAX_BYTES, &secrets.ca, &secrets.ca_len, err);
    if (r == 0)
        r = check_ca(&secrets, err);
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
