#include "model/scopes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/macros.h"
#include "core/parse.h"

/* Empty: the id has none. */
static struct span scope_of(const char *id)
{
    const char *slash = strchr(id, '/');

    return (struct span){id, slash ? (size_t)(slash - id) : 0};
}

static bool is_text(const void *entry, const void *key)
{
    const struct scope *scope = entry;
    const struct span *text = key;

    return scope->len == text->len && memcmp(scope->text, text->data, text->len) == 0;
}

bool scope_has(const struct scope *scope, const char *id)
{
    struct span text = scope_of(id);

    return is_text(scope, &text);
}

void scopes_done(struct scopes *scopes)
{
    table_done(&scopes->table);
    scopes->count = 0;
}

struct scope *scopes_find(const struct scopes *scopes, const char *id)
{
    struct span text = scope_of(id);

    return text.len > 0 ? table_find(&scopes->table, map_hash_bytes(text), is_text, &text) : NULL;
}

bool scopes_have_room(const struct scopes *scopes, const char *id)
{
    size_t one_max = MAX(scopes->workloads_max / SCOPES_ONE_PART, (size_t)1);
    size_t all_max = MAX(scopes->workloads_max / SCOPES_ALL_PART, (size_t)1);
    const struct scope *scope = scopes_find(scopes, id);

    return scope_of(id).len == 0 ||
           (scopes->count < all_max && (scope ? scope->count : 0) < one_max);
}

int scopes_add(struct scopes *scopes, const char *id)
{
    struct span text = scope_of(id);
    struct scope *scope = scopes_find(scopes, id);

    if (text.len == 0)
        return 0;
    if (!scope) {
        scope = table_add(&scopes->table, map_hash_bytes(text), sizeof(*scope) + text.len);
        if (!scope)
            return -ENOMEM;
        scope->len = text.len;
        memcpy(scope->text, text.data, text.len);
    }
    scope->count++;
    scopes->count++;
    return 0;
}

void scopes_remove(struct scopes *scopes, const char *id)
{
    struct scope *scope = scopes_find(scopes, id);

    if (!scope)
        return;
    scopes->count--;
    if (--scope->count == 0)
        table_remove(&scopes->table, scope);
}

bool scope_find_owner(const char *id, struct workload_owner *ret_owner)
{
    static const struct {
        const char *prefix;
        enum workload_kind kind;
    } named[] = {
        {"lxc:", WORKLOAD_LXC}, {"nspawn:", WORKLOAD_NSPAWN}, {"slurm:", WORKLOAD_SLURM},
        {"lsf:", WORKLOAD_LSF}, {"pbs:", WORKLOAD_PBS},
    };
    struct workload_owner owner = {.kind = WORKLOAD_CONTAINER};
    struct span text = scope_of(id);
    uint64_t uid;

    if (text.len == 0 || text.len >= sizeof(owner.id))
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(named); i++)
        if (span_strip_prefix(&text, named[i].prefix))
            owner.kind = named[i].kind;
    if (owner.kind == WORKLOAD_CONTAINER && parse_u64_max(text, UINT32_MAX, &uid) == 0) {
        owner.kind = uid == 0 ? WORKLOAD_SYSTEM : WORKLOAD_USER;
        text = uid == 0 ? span_of("system") : text;
    }
    snprintf(owner.id, sizeof(owner.id), "%.*s", (int)text.len, text.data);
    if (owner.kind == WORKLOAD_CONTAINER)
        snprintf(owner.container_id, sizeof(owner.container_id), "%.*s",
                 WORKLOAD_CONTAINER_BYTES - 1, owner.id);
    *ret_owner = owner;
    return true;
}
