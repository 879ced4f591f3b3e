#include "fetcher/kubernetes/kubernetes_pods.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/json_reader.h"
#include "core/macros.h"

/* HTTP statuses, also of errors inside a watch. */
enum { UNAUTHORIZED = 401, FORBIDDEN = 403, GONE = 410 };

/* False, with nothing written, if there is no text or it does not fit. */
static bool copy_text(const struct json *value, char *to, size_t size_bytes)
{
    const char *text = json_text(value);
    size_t len = text ? strlen(text) : 0;

    if (len == 0 || len >= size_bytes)
        return false;
    memcpy(to, text, len + 1);
    return true;
}

static bool is_text(const struct json *value, const char *wanted)
{
    const char *text = json_text(value);

    return text && strcmp(text, wanted) == 0;
}

/* The uid on the node. Of a static pod the API has only the mirror, whose uid never appears on the
 * node; there the hash is the uid. */
static const char *node_uid(const struct json *metadata)
{
    const struct json *annotations = json_get(metadata, "annotations");
    const char *hash = json_text(json_get(annotations, "kubernetes.io/config.hash"));

    if (hash && json_get(annotations, "kubernetes.io/config.mirror"))
        return hash;
    return json_text(json_get(metadata, "uid"));
}

/* "containerd://<64 hex digits>"; absent until the container is created. */
static const char *bare_id(const struct json *container_id)
{
    const char *text = json_text(container_id), *end = text ? strstr(text, "://") : NULL;

    return end ? end + 3 : NULL;
}

static int add_container(const struct json *status, const struct json *metadata,
                         struct container_list *list)
{
    return container_list_add(list, &(struct container){
                                        .id = bare_id(json_get(status, "containerID")),
                                        .name = json_text(json_get(status, "name")),
                                        .namespace = json_text(json_get(metadata, "namespace")),
                                        .pod = json_text(json_get(metadata, "name")),
                                        .pod_uid = node_uid(metadata),
                                        .image = json_text(json_get(status, "image")),
                                    });
}

static int add_pod(const struct json *pod, struct container_list *list)
{
    static const char *const kinds[] = {"containerStatuses", "initContainerStatuses",
                                        "ephemeralContainerStatuses"};
    const struct json *metadata = json_get(pod, "metadata"), *status = json_get(pod, "status");
    /* The pod itself: its pause container has no status, and no other may have started yet. */
    int r = container_list_add_pod(list, json_text(json_get(metadata, "namespace")),
                                   json_text(json_get(metadata, "name")), node_uid(metadata));

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        const struct json *containers = json_get(status, kinds[i]);

        for (size_t j = 0; j < json_length(containers) && r == 0; j++)
            r = add_container(json_at(containers, j), metadata, list);
    }
    return r;
}

static int read_page(const struct json *page, struct container_list *list,
                     struct kubernetes_page *ret_page)
{
    const struct json *metadata = json_get(page, "metadata"), *items = json_get(page, "items");
    const struct json *next = json_get(metadata, "continue");
    struct kubernetes_page result = {0};
    int r = 0;

    if (!is_text(json_get(page, "kind"), "PodList") ||
        !copy_text(json_get(metadata, "resourceVersion"), result.version, sizeof(result.version)))
        return -EBADMSG;
    if (next && !is_text(next, "") && !copy_text(next, result.next, sizeof(result.next)))
        return -EBADMSG;
    for (size_t i = 0; i < json_length(items) && r == 0; i++)
        r = add_pod(json_at(items, i), list);
    if (r == 0)
        *ret_page = result;
    return r;
}

int kubernetes_parse_list(struct span text, struct container_list *list,
                          struct kubernetes_page *ret_page)
{
    struct json *page = NULL;
    int r = json_read(text, &page);

    if (r == 0)
        r = read_page(page, list, ret_page);
    json_free(page);
    return r;
}

static const char *message_of(const struct json *status)
{
    const char *message = json_text(json_get(status, "message"));

    return message ? message : "";
}

int kubernetes_classify_status(int64_t status)
{
    if (status == GONE)
        return -ESTALE;
    return status == UNAUTHORIZED || status == FORBIDDEN ? -EACCES : -EREMOTEIO;
}

static int read_error(const struct json *status, struct error *err)
{
    int64_t code = 0;

    (void)json_int64(json_get(status, "code"), &code);
    return error_set(err, kubernetes_classify_status(code),
                     "its watch ended with error %lld: %.256s", (long long)code,
                     message_of(status));
}

static int read_event(const struct json *event, struct container_list *list,
                      char version[KUBERNETES_VERSION_BYTES], struct error *err)
{
    const struct json *type = json_get(event, "type"), *object = json_get(event, "object");

    if (is_text(json_get(event, "kind"), "Status")) /* the watch did not start */
        return read_error(event, err);
    if (!json_text(type) || !object)
        return -EBADMSG;
    if (is_text(type, "ERROR"))
        return read_error(object, err);
    /* Of bookmarks, and of types yet to be invented, only the version counts. */
    (void)copy_text(json_get(json_get(object, "metadata"), "resourceVersion"), version,
                    KUBERNETES_VERSION_BYTES);
    return add_pod(object, list);
}

int kubernetes_parse_event(struct span line, struct container_list *list,
                           char version[KUBERNETES_VERSION_BYTES], struct error *err)
{
    struct json *event = NULL;
    int r = json_read(line, &event);

    if (r == 0)
        r = read_event(event, list, version, err);
    json_free(event);
    return r;
}

void kubernetes_parse_error(struct span text, char *message, size_t size_bytes)
{
    struct json *status = NULL;

    (void)json_read(text, &status);
    snprintf(message, size_bytes, "%s", message_of(status));
    json_free(status);
}
