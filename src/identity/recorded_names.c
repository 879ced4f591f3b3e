#include "identity/recorded_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/map.h"

enum { TEXTS_CAP_BYTES = 64 << 20 };

struct recorded_names {
    struct arena texts;
    const struct sample_names **items;
    size_t count, capacity;
    struct map map;
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
    free(names->items);
    map_done(&names->map);
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

static bool is_of(const void *context, uint32_t value, const void *key)
{
    const struct sample_names *item = ((const struct recorded_names *)context)->items[value];
    const struct key *wanted = key;

    return item->kind == wanted->kind && strcmp(item->id, wanted->id) == 0;
}

static const struct sample_names *find_item(const struct recorded_names *names,
                                            const struct key *key, uint32_t *ret_index)
{
    return map_find(&names->map, key_hash(key), is_of, names, key, ret_index)
               ? names->items[*ret_index]
               : NULL;
}

static bool are_equal(const struct sample_names *a, const struct sample_names *b)
{
    for (int i = 0; i < WORKLOAD_TEXTS; i++)
        if (strcmp(a->texts[i], b->texts[i]) != 0)
            return false;
    return true;
}

static int reserve_item(struct recorded_names *names)
{
    size_t capacity = names->capacity ? names->capacity * 2 : 64;
    const struct sample_names **items;

    if (names->count < names->capacity)
        return 0;
    items = realloc(names->items, capacity * sizeof(const struct sample_names *));
    if (!items)
        return -ENOMEM;
    names->items = items;
    names->capacity = capacity;
    return 0;
}

int recorded_names_learn(struct recorded_names *names, const struct sample_names *news)
{
    struct key key = {news->kind, news->id};
    uint32_t index = (uint32_t)names->count;
    const struct sample_names *known = find_item(names, &key, &index), *copy;

    if (known ? are_equal(known, news) : names->count == RECORDED_NAMES_MAX)
        return 0;
    copy = sample_names_copy(&names->texts, news);
    if (!copy ||
        (!known && (reserve_item(names) < 0 || map_insert(&names->map, key_hash(&key), index) < 0)))
        return -ENOMEM;
    names->items[index] = copy;
    names->count += !known;
    return 1;
}

bool recorded_names_find(void *context, const struct workload_owner *owner,
                         struct workload_names *ret_names)
{
    struct key key = {owner->kind, owner->id};
    uint32_t index;
    const struct sample_names *item = find_item(context, &key, &index);

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
        struct key key = {row->kind, row->id};
        const struct sample_names *item;
        uint32_t index;
        bool is_new = !before || before->kind != row->kind || strcmp(before->id, row->id) != 0;

        before = row;
        item = is_new ? find_item(names, &key, &index) : NULL;
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
