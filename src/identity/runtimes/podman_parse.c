#include "identity/runtimes/podman.h"

#include "core/json_reader.h"

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
