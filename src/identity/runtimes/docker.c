/* Docker, by its own API. */
#include <string.h>

#include "core/json_reader.h"
#include "identity/runtime_table.h"
#include "identity/runtimes/parse.h"
#include "identity/runtimes/request.h"

/* Names begin with a slash. A container that others link to also has a name "/other/alias" for each
 * of them. */
static const char *own_name(const struct json *names)
{
    for (size_t i = 0; i < json_length(names); i++) {
        const char *name = json_text(json_at(names, i));

        if (!name)
            continue;
        name += name[0] == '/';
        if (!strchr(name, '/'))
            return name;
    }
    return NULL;
}

/* cri-dockerd keeps the kubelet's name in a label; Docker's own name begins with "k8s_" and is made
 * of several. The label of any other container may come from the author of its image. */
static const char *find_name(const struct json *entry, const struct json *labels)
{
    const char *own = own_name(json_get(entry, "Names"));
    const char *label = json_text(json_get(labels, KUBERNETES_CONTAINER_NAME));

    return own && strncmp(own, "k8s_", 4) == 0 && label && *label ? label : own;
}

static int add_container(const struct json *entry, struct container_list *list)
{
    const struct json *labels = json_get(entry, "Labels");

    return container_list_add(
        list, &(struct container){
                  .id = json_text(json_get(entry, "Id")),
                  .name = find_name(entry, labels),
                  .namespace = json_text(json_get(labels, KUBERNETES_POD_NAMESPACE)),
                  .pod = json_text(json_get(labels, KUBERNETES_POD_NAME)),
                  .pod_uid = json_text(json_get(labels, KUBERNETES_POD_UID)),
                  .image = json_text(json_get(entry, "Image")),
                  .ended = !runtime_http_is_running(json_text(json_get(entry, "State"))),
              });
}

static const char *const sockets[] = {"/run/docker.sock", NULL};

const struct runtime_ops runtime_docker = {
    .name = "docker",
    .source = ALLOCATED_BY_DOCKER,
    .flag = "docker-socket",
    .help = "socket of the Docker Engine API; '' disables it",
    .sockets = sockets,
    .list = runtime_http_list,
    .inspect = runtime_http_inspect,
    .api_path = "/v1.40/containers", /* the oldest version that today's daemons accept */
    .add_container = add_container,
};
