#include "identity/runtime.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "core/array.h"
#include "core/utf8.h"
#include "identity/cgroup/component.h"

enum { ARENA_CAP_BYTES = 32 << 20 };

static_assert(offsetof(struct container, namespace) == CONTAINER_TEXT_NAMESPACE * sizeof(char *) &&
                  offsetof(struct container, pod_uid) == CONTAINER_TEXT_POD_UID * sizeof(char *) &&
                  offsetof(struct container, image) == CONTAINER_TEXT_IMAGE * sizeof(char *),
              "texts[] is in the order of the names");

void container_list_init(struct container_list *list)
{
    *list = (struct container_list){0};
    arena_init(&list->arena, ARENA_CAP_BYTES);
}

void container_list_done(struct container_list *list)
{
    free(list->items);
    arena_done(&list->arena);
    container_list_init(list);
}

const char *runtime_text(struct arena *arena, struct span text)
{
    size_t len = 0;

    while (len < text.len && len < RUNTIME_TEXT_MAX) {
        struct span rest = {text.data + len, text.len - len};
        size_t char_len = utf8_char_len(rest);

        if (char_len == 0 || rest.data[0] == '\0')
            return "";
        if (len + char_len > RUNTIME_TEXT_MAX)
            break;
        len += char_len;
    }
    return len > 0 ? arena_copy(arena, text.data, len) : "";
}

static int append(struct container_list *list, const struct container *container)
{
    for (size_t i = 0; i < CONTAINER_TEXTS; i++)
        if (!container->texts[i])
            return -ENOMEM;
    if (list->count == RUNTIME_CONTAINERS_MAX)
        return 0;
    if (!array_reserve(&list->items, &list->capacity, list->count, sizeof(*list->items)))
        return -ENOMEM;
    list->items[list->count++] = *container;
    return 0;
}

int container_list_append(struct container_list *list, const struct container *container)
{
    if (container->id && !component_is_container_id(span_of(container->id)))
        return 0;
    return append(list, container);
}

static int append_copy(struct container_list *list, struct container container)
{
    for (size_t i = 0; i < CONTAINER_TEXTS; i++)
        container.texts[i] =
            container.texts[i] ? runtime_text(&list->arena, span_of(container.texts[i])) : "";
    return append(list, &container);
}

int container_list_add(struct container_list *list, const struct container *container)
{
    if (!container->id || !component_is_container_id(span_of(container->id)))
        return 0;
    return append_copy(list, *container);
}

int container_list_add_pod(struct container_list *list, const char *namespace, const char *pod,
                           const char *pod_uid)
{
    if (!pod_uid || !*pod_uid)
        return 0;
    return append_copy(list,
                       (struct container){.namespace = namespace, .pod = pod, .pod_uid = pod_uid});
}

static void set_text(const char **text, const char *to)
{
    char *copy;

    if (!to || !*to || (*text && strcmp(*text, to) == 0)) /* as nearly always */
        return;
    copy = strdup(to);
    if (!copy)
        return;
    free((void *)*text);
    *text = copy;
}

void container_keep(struct container *kept, const struct container *news)
{
    bool has_image = kept->image != NULL, is_certain = kept->is_pod_certain;

    for (size_t i = 0; i < CONTAINER_TEXTS; i++) {
        bool is_pods = i >= CONTAINER_TEXT_NAMESPACE && i <= CONTAINER_TEXT_POD_UID;

        if ((i == CONTAINER_TEXT_IMAGE && has_image && news->image_is_digest) ||
            (is_pods && is_certain && !news->is_pod_certain))
            continue;
        if (is_pods && news->is_pod_certain && !is_certain) { /* nothing of the labels stays */
            free((void *)kept->texts[i]);
            kept->texts[i] = NULL;
        }
        set_text(&kept->texts[i], news->texts[i]);
    }
    kept->is_pod_certain |= news->is_pod_certain;
}

void container_forget(struct container *kept)
{
    for (size_t i = 0; i < CONTAINER_TEXTS; i++)
        free((void *)kept->texts[i]);
    *kept = (struct container){0};
}
