#include "identity/runtime.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "core/utf8.h"

enum { ARENA_CAP_BYTES = 32 << 20, ID_DIGITS = 64 };

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

static bool is_id(struct span id)
{
    if (id.len != ID_DIGITS)
        return false;
    for (size_t i = 0; i < id.len; i++)
        if (!(id.data[i] >= '0' && id.data[i] <= '9') && !(id.data[i] >= 'a' && id.data[i] <= 'f'))
            return false;
    return true;
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

static bool make_room(struct container_list *list)
{
    size_t capacity = MAX(list->capacity * 2, (size_t)64);
    struct container *items;

    if (list->count < list->capacity)
        return true;
    items = realloc(list->items, capacity * sizeof(*items));
    if (!items)
        return false;
    list->items = items;
    list->capacity = capacity;
    return true;
}

static int add(struct container_list *list, const struct container_spans *container)
{
    struct arena *arena = &list->arena;
    struct container item;

    if (list->count == RUNTIME_CONTAINERS_MAX)
        return 0;
    item = (struct container){
        .id = runtime_text(arena, container->id),
        .name = runtime_text(arena, container->name),
        .namespace = runtime_text(arena, container->namespace),
        .pod = runtime_text(arena, container->pod),
        .pod_uid = runtime_text(arena, container->pod_uid),
        .image = runtime_text(arena, container->image),
        .is_pod_certain = container->is_pod_certain,
        .ended = container->ended,
        .image_is_digest = container->image_is_digest,
    };
    if (!item.id || !item.name || !item.namespace || !item.pod || !item.pod_uid || !item.image ||
        !make_room(list))
        return -ENOMEM;
    list->items[list->count++] = item;
    return 0;
}

int container_list_add_spans(struct container_list *list, const struct container_spans *container)
{
    return is_id(container->id) ? add(list, container) : 0;
}

static struct span span_or_empty(const char *text)
{
    return text ? span_of(text) : (struct span){NULL, 0};
}

int container_list_add_pod(struct container_list *list, const char *namespace, const char *pod,
                           const char *pod_uid)
{
    struct container_spans container = {
        .namespace = span_or_empty(namespace),
        .pod = span_or_empty(pod),
        .pod_uid = span_or_empty(pod_uid),
    };

    return container.pod_uid.len > 0 ? add(list, &container) : 0;
}

int container_list_add(struct container_list *list, const struct container *container)
{
    return container_list_add_spans(list, &(struct container_spans){
                                              .id = span_or_empty(container->id),
                                              .name = span_or_empty(container->name),
                                              .namespace = span_or_empty(container->namespace),
                                              .pod = span_or_empty(container->pod),
                                              .pod_uid = span_or_empty(container->pod_uid),
                                              .image = span_or_empty(container->image),
                                              .is_pod_certain = container->is_pod_certain,
                                              .ended = container->ended,
                                              .image_is_digest = container->image_is_digest,
                                          });
}

bool runtime_state_is_running(const char *state)
{
    static const char *const running[] = {"running", "paused", "stopping"};

    for (size_t i = 0; state && i < ARRAY_SIZE(running); i++)
        if (strcmp(state, running[i]) == 0)
            return true;
    return !state;
}
