#include "identity/pod_names.h"

#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "model/workload.h"

static void empty_slot(struct pod_name *pod)
{
    free(pod->uid);
    free(pod->namespace);
    free(pod->name);
    *pod = (struct pod_name){0};
}

void pod_names_done(struct pod_names *names)
{
    for (size_t i = 0; i < names->slots; i++)
        empty_slot(&names->items[i]);
    free(names->items);
    map_done(&names->map);
    *names = (struct pod_names){0};
}

static bool has_uid(const void *context, uint32_t value, const void *key)
{
    return strcmp(((const struct pod_names *)context)->items[value].uid, key) == 0;
}

static struct pod_name *find(const struct pod_names *names, const char *uid)
{
    uint32_t index;

    return map_find(&names->map, map_hash_bytes(span_of(uid)), has_uid, names, uid, &index)
               ? &names->items[index]
               : NULL;
}

static bool make_room(struct pod_names *names)
{
    size_t slots = MAX(names->slots * 2, (size_t)32);
    struct pod_name *items;

    if (names->items && names->count < names->slots)
        return true;
    if (names->count >= POD_NAMES_MAX || !(items = realloc(names->items, slots * sizeof(*items))))
        return false;
    memset(items + names->slots, 0, (slots - names->slots) * sizeof(*items));
    names->items = items;
    names->slots = slots;
    return true;
}

/* It is not wanted yet. NULL where there is no room. */
static struct pod_name *add(struct pod_names *names, const char *uid, uint64_t now_us)
{
    uint32_t index = 0;
    char *copy;

    if (uid[0] == '\0' || strlen(uid) >= WORKLOAD_POD_UID_BYTES || !make_room(names))
        return NULL;
    while (names->items[index].uid)
        index++;
    copy = strdup(uid);
    if (!copy || map_insert(&names->map, map_hash_bytes(span_of(uid)), index) < 0) {
        free(copy);
        return NULL;
    }
    names->items[index] = (struct pod_name){.uid = copy, .used_us = now_us};
    names->count++;
    names->unwanted_count++;
    return &names->items[index];
}

void pod_names_want(struct pod_names *names, const char *uid, uint64_t now_us)
{
    struct pod_name *pod = find(names, uid);

    if (!pod)
        pod = add(names, uid, now_us);
    if (!pod)
        return;
    names->unwanted_count -= !pod->wanted;
    pod->wanted = true;
    pod->used_us = now_us;
}

static void set_text(char **text, const char *to)
{
    char *copy;

    if (strcmp(*text ? *text : "", to) == 0)
        return; /* as nearly always */
    copy = strdup(to);
    if (!copy)
        return;
    free(*text);
    *text = copy;
}

void pod_names_learn(struct pod_names *names, const char *uid, const char *namespace,
                     const char *name, bool is_hint, uint64_t now_us)
{
    struct pod_name *pod = find(names, uid);

    if (name[0] == '\0' || (is_hint && pod && pod->known))
        return;
    if (!pod && (!is_hint || names->unwanted_count < POD_NAMES_UNWANTED_MAX))
        pod = add(names, uid, now_us);
    if (!pod)
        return;
    set_text(&pod->namespace, namespace);
    set_text(&pod->name, name);
    pod->known |= !is_hint;
    pod->hinted = is_hint;
}

bool pod_names_is_missing(const struct pod_names *names, const char *uid)
{
    const struct pod_name *pod = find(names, uid);

    return pod && pod->wanted && !pod->known;
}

const struct pod_name *pod_names_find(struct pod_names *names, const char *uid, uint64_t now_us)
{
    struct pod_name *pod = find(names, uid);

    if (!pod)
        return NULL;
    pod->used_us = now_us;
    return pod->known || pod->hinted ? pod : NULL;
}

void pod_names_expire(struct pod_names *names, uint64_t before_us)
{
    for (size_t i = 0; i < names->slots; i++) {
        struct pod_name *pod = &names->items[i];

        if (!pod->uid || pod->used_us >= before_us)
            continue;
        map_remove(&names->map, map_hash_bytes(span_of(pod->uid)), (uint32_t)i);
        names->unwanted_count -= !pod->wanted;
        empty_slot(pod);
        names->count--;
    }
}
