/* Podman, where its service listens: its containers need none to run. */
#include "identity/runtimes/podman.h"

#include <stdio.h>

#include "core/json_reader.h"
#include "identity/runtimes/ask.h"
#include "identity/runtimes/inspect.h"

/* A pod's id is none of Kubernetes, so it is not passed on: its name is. */
static int add_container(const struct json *entry, struct container_list *list)
{
    const char *name = json_text(json_at(json_get(entry, "Names"), 0));

    return container_list_add(
        list, &(struct container){
                  .id = json_text(json_get(entry, "Id")),
                  .name = json_is_true(json_get(entry, "IsInfra")) ? "POD" : name,
                  .pod = json_text(json_get(entry, "PodName")),
                  .image = json_text(json_get(entry, "Image")),
                  .is_pod_certain = true,
                  .ended = !runtime_state_is_running(json_text(json_get(entry, "State"))),
              });
}

int podman_parse(struct span body, struct container_list *list)
{
    struct json *reply = NULL;
    int r = json_read(body, &reply);

    for (size_t i = 0; r == 0 && i < json_length(reply); i++)
        r = add_container(json_at(reply, i), list);
    json_free(reply);
    return r;
}

static const char *const sockets[] = {"/run/podman/podman.sock", NULL};

/* Podman's own API, because Docker's does not tell the pod. It takes any version up to
 * its own, and the same filter as Docker. */
static const struct ask_http_list lists[] = {
    [RUNTIME_RUNNING] = {"podman",
                         "/v4.0.0/libpod/containers/json"
                         "?filters=%7B%22status%22%3A%5B%22running%22%2C%22paused%22%5D%7D",
                         podman_parse},
    [RUNTIME_ALL] = {"podman", "/v4.0.0/libpod/containers/json?all=true", podman_parse},
};

static int list_podman(struct http_client *client, const char *socket_path, uint64_t timeout_us,
                       enum runtime_scope scope, struct container_list *list, struct error *err)
{
    return ask_http_list(client, &lists[scope], socket_path, timeout_us, list, err);
}

static int inspect_podman(struct http_client *client, const char *socket_path, uint64_t timeout_us,
                          const char *container_id, struct gpu_access_list *gpus, struct error *err)
{
    char path[128];

    snprintf(path, sizeof(path), "/v4.0.0/libpod/containers/%s/json", container_id);
    return ask_http_inspect(client,
                            &(struct ask_http_inspect){"podman", path, inspect_parse_container},
                            socket_path, timeout_us, gpus, err);
}

const struct runtime_ops runtime_podman = {
    .name = "podman",
    .flag = "podman-socket",
    .help = "socket of Podman's API; '' disables it",
    .sockets = sockets,
    .list = list_podman,
    .inspect = inspect_podman,
};
