/* Docker, by its own API. */
#include "identity/runtimes/docker.h"

#include <stdio.h>
#include <string.h>

#include "core/json_reader.h"
#include "identity/runtimes/ask.h"
#include "identity/runtimes/inspect.h"
#include "identity/runtimes/kubernetes_labels.h"

/* Names have a slash in front. A container that others link to has a name "/other/alias" for each
 * of them, too. */
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

/* cri-dockerd keeps what the kubelet knows in labels; Docker's own name is a mix of it, and begins
 * with "k8s_". Of any other container, the author of its image may have chosen the label. */
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
                  .ended = !runtime_state_is_running(json_text(json_get(entry, "State"))),
              });
}

int docker_parse(struct span body, struct container_list *list)
{
    struct json *reply = NULL;
    int r = json_read(body, &reply);

    for (size_t i = 0; r == 0 && i < json_length(reply); i++)
        r = add_container(json_at(reply, i), list);
    json_free(reply);
    return r;
}

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

const struct runtime_ops runtime_docker = {
    .name = "docker",
    .flag = "docker-socket",
    .help = "socket of the Docker Engine API; '' disables it",
    .sockets = sockets,
    .list = list_docker,
    .inspect = inspect_docker,
};
