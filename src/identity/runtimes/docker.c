/* Docker, by its own API. */
#include "identity/runtimes/docker.h"

#include <stdio.h>

#include "identity/runtimes/ask.h"
#include "identity/runtimes/inspect.h"

static const char *const sockets[] = {"/run/docker.sock", NULL};

/* 1.40 is the least that daemons of today take, and what those of five years ago know. The filter
 * is {"status":["running","paused"]}: a paused container still holds its GPU memory. */
static const struct ask_http_list lists[] = {
    [RUNTIME_RUNNING] = {"docker",
                         "/v1.40/containers/json"
                         "?filters=%7B%22status%22%3A%5B%22running%22%2C%22paused%22%5D%7D",
                         docker_parse},
    [RUNTIME_ALL] = {"docker", "/v1.40/containers/json?all=1", docker_parse},
};

static int list_docker(struct http_client *client, const char *socket_path, uint64_t timeout_us,
                       enum runtime_scope scope, struct container_list *list, struct error *err)
{
    return ask_http_list(client, &lists[scope], socket_path, timeout_us, list, err);
}

static int inspect_docker(struct http_client *client, const char *socket_path, uint64_t timeout_us,
                          const char *container_id, struct gpu_access_list *gpus, struct error *err)
{
    char path[128];

    snprintf(path, sizeof(path), "/v1.40/containers/%s/json", container_id);
    return ask_http_inspect(client,
                            &(struct ask_http_inspect){"docker", path, inspect_parse_container},
                            socket_path, timeout_us, gpus, err);
}

const struct runtime_ops runtime_docker = {"docker", sockets, list_docker, inspect_docker, NULL};
