/* Podman, where its service listens: containers run without it. */
#include "core/json_reader.h"
#include "identity/runtime_table.h"
#include "identity/runtimes/request.h"

/* The id of a pod is not one of Kubernetes, so only its name is kept. */
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
                  .ended = !runtime_http_is_running(json_text(json_get(entry, "State"))),
              });
}

static const char *const sockets[] = {"/run/podman/podman.sock", NULL};

const struct runtime_ops runtime_podman = {
    .name = "podman",
    .source = ALLOCATED_BY_PODMAN,
    .flag = "podman-socket",
    .help = "socket of Podman's API; '' disables it",
    .sockets = sockets,
    .list = runtime_http_list,
    .inspect = runtime_http_inspect,
    /* Not Docker's API, which does not have the pod. Any version up to its own is accepted. */
    .api_path = "/v4.0.0/libpod/containers",
    .add_container = add_container,
};
