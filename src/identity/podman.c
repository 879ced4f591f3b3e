/* Podman, where its service listens: its containers need none to run. */
#include "identity/podman.h"

#include "identity/ask.h"

static const char *const sockets[] = {"/run/podman/podman.sock", NULL};

/* Podman's own API, because Docker's does not tell the pod. It lists what runs unless told
 * otherwise, and takes any version up to its own. */
static const struct ask_http_list containers = {
    "podman",
    "/v4.0.0/libpod/containers/json",
    podman_parse,
};

static int list_podman(struct http_client *client, const char *socket_path, uint64_t timeout_us,
                       struct container_list *list, struct error *err)
{
    return ask_http_list(client, &containers, socket_path, timeout_us, list, err);
}

const struct runtime_ops runtime_podman = {"podman", sockets, list_podman};
