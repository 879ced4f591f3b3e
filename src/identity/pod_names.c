#include "identity/pod_names.h"

#include <stdlib.h>
#include <string.h>

#include "model/workload.h"

static void free_texts(struct pod_name *pod)
{
    free(pod->uid);
    free(pod->namespace);
    free(pod->name);
}

void pod_names_done(struct pod_names *names)
{
    for (size_t i = 0; i < names->table.count; i++)
        free_texts(names->table.items[i]);
    table_done(&names->table);
}

static bool has_uid(const void *entry, const void *key)
{
    return strcmp(((const struct pod_name *)entry)->uid, key) == 0;
}

static struct pod_name *find(const struct pod_names *names, const char *uid)
{
    return table_find(&names->table, map_hash_bytes(span_of(uid)), has_uid, uid);
}

/* It is not wanted yet. NULL where there is no room. */
static struct pod_name *add(struct pod_names *names, const char *uid, uint64_t now_us)
{
    struct pod_name *pod;

    if (uid[0] == '\0' || strlen(uid) >= WORKLOAD_POD_UID_BYTES ||
        names->table.count >= POD_NAMES_MAX)
        return NULL;
    pod = table_add(&names->table, map_hash_bytes(span_of(uid)), sizeof(*pod));
    if (!pod)
        return NULL;
    pod->uid = strdup(uid);
    if (!pod->uid) {
        table_remove(&names->table, pod);
        return NULL;
    }
    pod->used_us = now_us;
    names->unwanted_count++;
    return pod;
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
    for (size_t i = names->table.count; i-- > 0;) {
        struct pod_name *pod = names->table.items[i];

        if (pod->used_us >= before_us)
            continue;
        names->unwanted_count -= !pod->wanted;
        free_texts(pod);
        table_remove(&names->table, pod);
    }
}
