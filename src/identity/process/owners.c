#include "identity/process/owners.h"

#include <string.h>

#include "identity/owner.h"

static bool is_owner(const void *entry, const void *key)
{
    const struct workload_owner *held = &((const struct process_owner *)entry)->view.owner;
    const struct workload_owner *wanted = key;

    return held->kind == wanted->kind && strcmp(held->id, wanted->id) == 0;
}

struct process_owner *process_owners_intern(struct table *owners, size_t max,
                                            const struct workload_owner *owner)
{
    uint64_t hash = map_hash_u64(map_hash_bytes(span_of(owner->id)) + owner->kind);
    struct process_owner *found = table_find(owners, hash, is_owner, owner);

    if (found || owners->count >= max)
        return found;
    found = table_add(owners, hash, sizeof(*found));
    if (found)
        found->view = (struct process_table_owner){.owner = *owner, .uid = OWNER_UID_UNKNOWN};
    return found;
}

void process_owners_sweep(struct table *owners)
{
    for (size_t i = owners->count; i-- > 0;) {
        struct process_owner *owner = owners->items[i];

        if (owner->view.count == 0)
            table_remove(owners, owner);
    }
}

static bool is_text(const void *entry, const void *key)
{
    const struct cgroup_text *held = entry;
    const struct span *wanted = key;

    return held->len == wanted->len && memcmp(held->bytes, wanted->data, wanted->len) == 0;
}

struct cgroup_text *cgroup_texts_find(const struct cgroup_texts *texts, struct span bytes)
{
    return table_find(&texts->table, map_hash_bytes(bytes), is_text, &bytes);
}

struct cgroup_text *cgroup_texts_add(struct cgroup_texts *texts, struct span bytes)
{
    size_t size_bytes = sizeof(struct cgroup_text) + bytes.len;
    struct cgroup_text *text = NULL;

    if (size_bytes <= CGROUP_TEXTS_BYTES_MAX - texts->used_bytes)
        text = table_add(&texts->table, map_hash_bytes(bytes), size_bytes);
    if (!text)
        return NULL;
    text->len = (uint32_t)bytes.len;
    memcpy(text->bytes, bytes.data, bytes.len);
    texts->used_bytes += size_bytes;
    return text;
}

void cgroup_texts_leave(struct cgroup_texts *texts, struct cgroup_text *text)
{
    if (!text || --text->processes > 0)
        return;
    texts->used_bytes -= sizeof(*text) + text->len;
    table_remove(&texts->table, text);
}
