#include "identity/recorded_names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/table.h"

enum { TEXTS_CAP_BYTES = 64 << 20 };

struct entry {
    struct table_entry entry;
    const struct sample_names *names;
};

struct recorded_names {
    struct arena texts;
    struct table table;
};

int recorded_names_new(struct recorded_names **ret_names)
{
    struct recorded_names *names = calloc(1, sizeof(*names));

    if (!names)
        return -ENOMEM;
    arena_init(&names->texts, TEXTS_CAP_BYTES);
    *ret_names = names;
    return 0;
}

void recorded_names_free(struct recorded_names *names)
{
    if (!names)
        return;
    table_done(&names->table);
    arena_done(&names->texts);
    free(names);
}

static uint64_t hash_of(enum workload_kind kind, const char *id)
{
    return map_hash_u64(map_hash_bytes(span_of(id)) + kind);
}

static bool has_key(const void *entry, const void *key)
{
    const struct sample_names *names = ((const struct entry *)entry)->names, *wanted = key;

    return names->kind == wanted->kind && strcmp(names->id, wanted->id) == 0;
}

static struct entry *find_entry(const struct recorded_names *names, enum workload_kind kind,
                                const char *id)
{
    struct sample_names key = {.kind = kind, .id = id};

    return table_find(&names->table, hash_of(kind, id), has_key, &key);
}

static bool are_equal(const struct sample_names *a, const struct sample_names *b)
{
    for (int i = 0; i < WORKLOAD_TEXTS; i++)
        if (strcmp(a->texts[i], b->texts[i]) != 0)
            return false;
    return true;
}

int recorded_names_learn(struct recorded_names *names, const struct sample_names *news)
{
    struct entry *entry = find_entry(names, news->kind, news->id);
    const struct sample_names *copy;

    if (entry ? are_equal(entry->names, news) : names->table.count == RECORDED_NAMES_MAX)
        return 0;
    copy = sample_names_copy(&names->texts, news);
    if (copy && !entry)
        entry = table_add(&names->table, hash_of(news->kind, news->id), sizeof(*entry));
    if (!copy || !entry)
        return -ENOMEM;
    entry->names = copy;
    return 1;
}

bool recorded_names_find(void *context, const struct workload_owner *owner,
                         struct workload_names *ret_names)
{
    const struct entry *entry = find_entry(context, owner->kind, owner->id);
    const char *const *texts = entry ? entry->names->texts : NULL;

    *ret_names = (struct workload_names){"", "", "", "", ""};
    if (texts)
        *ret_names = (struct workload_names){
            .name = texts[WORKLOAD_TEXT_NAME],
            .namespace = texts[WORKLOAD_TEXT_NAMESPACE],
            .pod = texts[WORKLOAD_TEXT_POD],
            .container = texts[WORKLOAD_TEXT_CONTAINER],
            .image = texts[WORKLOAD_TEXT_IMAGE],
        };
    return true;
}

bool recorded_names_find_vm(void *context, const char *vm, bool is_uuid,
                            struct workload_owner *ret_owner)
{
    const struct recorded_names *names = context;

    for (size_t i = 0; i < names->table.count && is_uuid; i++) {
        const struct sample_names *workload = ((const struct entry *)names->table.items[i])->names;

        if (workload->kind != WORKLOAD_VM ||
            strcasecmp(workload->texts[WORKLOAD_TEXT_UUID], vm) != 0)
            continue;
        *ret_owner = (struct workload_owner){.kind = WORKLOAD_VM};
        snprintf(ret_owner->id, sizeof(ret_owner->id), "%s", workload->id);
        return true;
    }
    return false;
}

int recorded_names_describe(const struct recorded_names *names, struct snapshot *snapshot)
{
    struct snapshot_info *infos =
        arena_array(&snapshot->arena, snapshot->workload_count, sizeof(*infos));
    const struct snapshot_workload *before = NULL;

    if (!infos)
        return -ENOMEM;
    for (size_t i = 0; i < snapshot->workload_count; i++) {
        const struct snapshot_workload *row = &snapshot->workloads[i];
        bool is_new = !before || before->kind != row->kind || strcmp(before->id, row->id) != 0;
        const struct entry *entry = is_new ? find_entry(names, row->kind, row->id) : NULL;
        const char *const *texts = entry ? entry->names->texts : NULL;

        before = row;
        if (texts)
            infos[snapshot->info_count++] = (struct snapshot_info){
                .kind = row->kind,
                .id = row->id,
                .namespace = texts[WORKLOAD_TEXT_NAMESPACE],
                .pod = texts[WORKLOAD_TEXT_POD],
                .container = texts[WORKLOAD_TEXT_CONTAINER],
                .image = texts[WORKLOAD_TEXT_IMAGE],
                .user = texts[WORKLOAD_TEXT_USER],
                .account = texts[WORKLOAD_TEXT_ACCOUNT],
                .job_id = texts[WORKLOAD_TEXT_JOB_ID],
                .job_name = texts[WORKLOAD_TEXT_JOB_NAME],
                .uuid = texts[WORKLOAD_TEXT_UUID],
                .container_id = row->container_id,
                .pod_uid = row->pod_uid,
                .unverified = texts[WORKLOAD_TEXT_UNVERIFIED],
            };
    }
    snapshot->infos = infos;
    return 0;
}
