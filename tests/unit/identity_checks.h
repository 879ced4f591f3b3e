/* What holds for every entry of a list, whatever a runtime or a kubelet has answered. */
#pragma once

#include <stdbool.h>
#include <string.h>

#include "core/utf8.h"
#include "identity/pod_resources.h"
#include "identity/runtime.h"

static inline bool is_kept_text(const char *text)
{
    struct span rest;

    if (!text || strlen(text) > RUNTIME_TEXT_MAX)
        return false;
    rest = span_of(text);
    while (rest.len > 0) {
        size_t len = utf8_char_len(rest);

        if (len == 0)
            return false;
        rest = (struct span){rest.data + len, rest.len - len};
    }
    return true;
}

static inline bool is_valid_container(const struct container *container)
{
    bool is_pod = container->id && !*container->id && !*container->name && *container->pod_uid;

    return container->id &&
           (is_pod ||
            (strlen(container->id) == 64 && strspn(container->id, "0123456789abcdef") == 64)) &&
           is_kept_text(container->name) && is_kept_text(container->namespace) &&
           is_kept_text(container->pod) && is_kept_text(container->pod_uid) &&
           is_kept_text(container->image);
}

static inline bool are_valid_containers(const struct container_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (!is_valid_container(&list->items[i]))
            return false;
    return list->count <= RUNTIME_CONTAINERS_MAX && list->count <= list->capacity;
}

static inline bool is_valid_allocation(const struct allocation *allocation)
{
    bool has_id = allocation->kind == ALLOCATION_GPU_UUID ||
                  allocation->kind == ALLOCATION_MIG_UUID || allocation->kind == ALLOCATION_PCI;
    bool may_have_id =
        has_id || allocation->kind == ALLOCATION_MINOR || allocation->kind == ALLOCATION_INDEX;

    return is_kept_text(allocation->namespace) && is_kept_text(allocation->pod) &&
           is_kept_text(allocation->container) && is_kept_text(allocation->resource) &&
           is_kept_text(allocation->id) && *allocation->namespace && *allocation->pod &&
           *allocation->container && (!has_id || *allocation->id) &&
           (may_have_id || !*allocation->id) && !strstr(allocation->id, "::");
}

static inline bool are_valid_allocations(const struct allocation_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (!is_valid_allocation(&list->items[i]))
            return false;
    return list->count <= ALLOCATIONS_MAX && list->count <= list->capacity;
}
