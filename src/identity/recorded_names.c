#include "identity/recorded_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

struct key {
    enum workload_kind kind;
    const char *id;
};

static uint64_t key_hash(const struct key *key)
{
    return map_hash_u64(map_hash_bytes(span_of(key->id)) + key->kind);
}

static bool has_key(const void *entry, const void *key)
{
    const struct sample_names *names = ((const struct entry *)entry)->names;
    const struct key *wanted = key;

    return names->kind == wanted->kind && strcmp(names->id, wanted->id) == 0;
}

static const struct sample_names *find_names(const struct recorded_names *names,
                                             enum workload_kind kind, const char *id)
{
    struct key key = {kind, id};
    const struct entry *entry = table_find(&names->table, key_hash(&key), has_key, &key);

    return entry ? entry->names : NULL;
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
    struct key key = {news->kind, news->id};
    struct entry *entry = table_find(&names->table, key_hash(&key), has_key, &key);
    const struct sample_names *copy;

    if (entry ? are_equal(entry->names, news) : names->table.count == RECORDED_NAMES_MAX)
        return 0;
    copy = sample_names_copy(&names->texts, news);
    if (copy && !entry)
        entry = table_add(&names->table, key_hash(&key), sizeof(*entry));
    if (!copy || !entry)
        return -ENOMEM;
    entry->names = copy;
    return 1;
}

bool recorded_names_find(void *context, const struct workload_owner *owner,
                         struct workload_names *ret_names)
{
    const struct sample_names *item = find_names(context, owner->kind, owner->id);

    *ret_names = (struct workload_names){"", "", "", "", ""};
    if (item)
        *ret_names = (struct workload_names){
            .name = item->texts[WORKLOAD_TEXT_NAME],
            .namespace = item->texts[WORKLOAD_TEXT_NAMESPACE],
            .pod = item->texts[WORKLOAD_TEXT_POD],
            .container = item->texts[WORKLOAD_TEXT_CONTAINER],
            .image = item->texts[WORKLOAD_TEXT_IMAGE],
        };
    return true;
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
        const struct sample_names *item;
        bool is_new = !before || before->kind != row->kind || strcmp(before->id, row->id) != 0;

        before = row;
        item = is_new ? find_names(names, row->kind, row->id) : NULL;
        if (item)
            infos[snapshot->info_count++] = (struct snapshot_info){
                .kind = row->kind,
                .id = row->id,
                .namespace = item->texts[WORKLOAD_TEXT_NAMESPACE],
                .pod = item->texts[WORKLOAD_TEXT_POD],
                .container = item->texts[WORKLOAD_TEXT_CONTAINER],
                .image = item->texts[WORKLOAD_TEXT_IMAGE],
                .user = item->texts[WORKLOAD_TEXT_USER],
                .account = item->texts[WORKLOAD_TEXT_ACCOUNT],
                .job_id = item->texts[WORKLOAD_TEXT_JOB_ID],
                .job_name = item->texts[WORKLOAD_TEXT_JOB_NAME],
                .uuid = item->texts[WORKLOAD_TEXT_UUID],
                .container_id = row->container_id,
                .pod_uid = row->pod_uid,
                .unverified = item->texts[WORKLOAD_TEXT_UNVERIFIED],
            };
    }
    snapshot->infos = infos;
    return 0;
}
