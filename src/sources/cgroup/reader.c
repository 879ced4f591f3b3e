#include "sources/cgroup/reader_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "core/array.h"
#include "core/fs.h"
#include "core/macros.h"
#include "sources/cgroup/parse.h"

enum {
    FILES_FOR_OTHERS = 1024,
    FILES_USUAL_MAX = 1024,
    ENDED_MAX = 4096, /* that wait to be reported; more find no room until then */
    /* Watches are counted by user, and root's are not only ours. */
    WATCHES_SHARE = 8,
    WATCHES_USUAL_MAX = 8192,
};

static void free_item(struct usage_owner *item)
{
    usage_done(&item->usage);
    usage_done(&item->before);
}

static bool has_ended(const struct cgroup_workload *workload)
{
    return workload->has_ended;
}

/* It came and went between two cycles. */
static bool was_never_read(const struct cgroup_workload *workload)
{
    return workload->has_ended && !workload->is_read;
}

static void move_item(struct cgroup_reader *reader, size_t from, size_t to)
{
    struct cgroup_node *node = cgroup_workload_node(reader, &reader->workloads[from]);

    reader->items[to] = reader->items[from];
    reader->workloads[to] = reader->workloads[from];
    if (node)
        node->workload = (uint32_t)to;
}

static void remove_items(struct cgroup_reader *reader,
                         bool (*is_meant)(const struct cgroup_workload *))
{
    size_t kept = 0;

    for (size_t i = 0; i < reader->count; i++)
        if (is_meant(&reader->workloads[i]))
            free_item(&reader->items[i]);
        else if (kept++ != i)
            move_item(reader, i, kept - 1);
    reader->count = kept;
}

static uint32_t find_index(const struct cgroup_reader *reader, uint64_t id)
{
    size_t low = 0, high = reader->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (reader->items[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < reader->count && reader->items[low].id == id ? (uint32_t)low : USAGE_AROUND_NONE;
}

static uint32_t find_around(const struct cgroup_reader *reader,
                            const struct cgroup_workload *workload)
{
    const struct cgroup_node *node = cgroup_workload_node(reader, workload), *around;

    if (!node)
        return find_index(reader, workload->around_id);
    around = cgroup_nodes_find_around(&reader->tree.nodes, node);
    return around ? around->workload : USAGE_AROUND_NONE;
}

void cgroup_reader_read(struct cgroup_reader *reader, bool rescan)
{
    rescan |= reader->turn == 0;
    reader->turn += rescan;
    reader->stats = (struct cgroup_reader_stats){0};
    cgroup_tree_update(&reader->tree, rescan);
    remove_items(reader, was_never_read);
    for (size_t i = 0; i < reader->count; i++)
        cgroup_workload_read(reader, i, rescan);
    for (size_t i = 0; i < reader->count; i++)
        reader->items[i].around = find_around(reader, &reader->workloads[i]);
    reader->is_started = true;
}

/* From here on: between two cycles. */

static bool read_young(void *context, uint64_t id)
{
    struct cgroup_reader *reader = context;
    uint32_t index = find_index(reader, id);
    const struct cgroup_node *node;

    if (index == USAGE_AROUND_NONE)
        return true;
    cgroup_workload_read(reader, index, false);
    node = cgroup_workload_node(reader, &reader->workloads[index]);
    return node && node->events_watch != CGROUP_UNWATCHED;
}

uint64_t cgroup_reader_attend(struct cgroup_reader *reader, uint64_t now_us)
{
    uint64_t next_us;

    if (!reader->is_started)
        return CGROUP_READER_NEVER;
    reader->is_attending = true;
    cgroup_tree_attend(&reader->tree);
    next_us = recents_read(&reader->youngs, now_us, read_young, reader);
    reader->is_attending = false;
    return next_us;
}

int cgroup_reader_event_fd(const struct cgroup_reader *reader)
{
    return reader->tree.watch.fd;
}

/* From here on: what the tree tells. */

static bool make_room(struct cgroup_reader *reader)
{
    size_t items = reader->capacity;

    return array_make_room(&reader->items, &items, reader->count, sizeof(*reader->items)) &&
           array_make_room(&reader->workloads, &reader->capacity, reader->count,
                           sizeof(*reader->workloads));
}

static bool take_appeared(void *context, struct cgroup_node *node,
                          const struct workload_owner *owner)
{
    struct cgroup_reader *reader = context;
    struct cgroup_workload *workload;

    if (reader->count >= reader->tree.workloads_max + ENDED_MAX || !make_room(reader))
        return false;
    node->workload = (uint32_t)reader->count;
    workload = &reader->workloads[reader->count];
    *workload = (struct cgroup_workload){.node = node->self,
                                         .first_turn = reader->turn,
                                         .must_open = true,
                                         .limit_bytes = CGROUP_NO_LIMIT,
                                         .is_late = reader->is_started};
    memset(workload->fds, -1, sizeof(workload->fds));
    reader->items[reader->count++] = (struct usage_owner){.owner = *owner,
                                                          .id = ++reader->last_id,
                                                          .is_older = node->is_older,
                                                          .around = USAGE_AROUND_NONE};
    if (reader->is_started)
        recents_add(&reader->youngs, reader->last_id);
    return true;
}

static void take_joined(void *context, struct cgroup_node *node)
{
    struct cgroup_reader *reader = context;

    reader->workloads[node->workload].must_open = true;
}

/* A cycle reads all of them anyway. */
static void take_stirred(void *context, struct cgroup_node *node)
{
    struct cgroup_reader *reader = context;

    if (reader->is_attending)
        cgroup_workload_read(reader, node->workload, false);
}

static void take_ended(void *context, struct cgroup_node *node)
{
    struct cgroup_reader *reader = context;
    const struct cgroup_node *around = cgroup_nodes_find_around(&reader->tree.nodes, node);
    struct cgroup_workload *workload = &reader->workloads[node->workload];
    struct usage_owner *item = &reader->items[node->workload];

    cgroup_workload_close(reader, workload);
    recents_remove(&reader->youngs, item->id);
    workload->has_ended = true;
    workload->around_id = around ? reader->items[around->workload].id : 0;
    item->ended = true;
}

/* From here on: the reader as a whole. */

static size_t find_files_max(void)
{
    struct rlimit limit;
    size_t files = FILES_USUAL_MAX;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) /* a system call filter may forbid it */
        files = (size_t)limit.rlim_cur;
    return MAX(files / 2, files > FILES_FOR_OTHERS ? files - FILES_FOR_OTHERS : 0);
}

static size_t find_watches_max(const struct host *host)
{
    uint64_t watches;
    char text[32];
    size_t len;
    int r;

    r = fs_read_at(host->procfs_fd, "sys/fs/inotify/max_user_watches", text, sizeof(text), &len);
    if (r < 0 || cgroup_parse_number((struct span){text, len}, &watches) < 0)
        watches = WATCHES_USUAL_MAX;
    return (size_t)watches / WATCHES_SHARE;
}

int cgroup_reader_new(const struct host *host, cgroup_find_owner *find_owner, void *context,
                      struct cgroup_reader **ret_reader)
{
    struct cgroup_reader *reader = calloc(1, sizeof(*reader));
    const struct cgroup_observer observer = {.find_owner = find_owner,
                                             .owner_context = context,
                                             .appeared = take_appeared,
                                             .joined = take_joined,
                                             .stirred = take_stirred,
                                             .ended = take_ended,
                                             .context = reader};
    int r;

    if (!reader)
        return -ENOMEM;
    r = hierarchies_open(host, &reader->hierarchies);
    if (r < 0) {
        free(reader);
        return r;
    }
    cgroup_files_choose(&reader->hierarchies, host, &reader->files);
    reader->kept_files_max = find_files_max();
    r = cgroup_tree_init(&reader->tree, &reader->hierarchies, &observer);
    if (r < 0) {
        hierarchies_close(&reader->hierarchies);
        free(reader);
        return r;
    }
    cgroup_tree_set_events_cap(&reader->tree, find_watches_max(host));
    *ret_reader = reader;
    return 0;
}

void cgroup_reader_free(struct cgroup_reader *reader)
{
    if (!reader)
        return;
    for (size_t i = 0; i < reader->count; i++) {
        cgroup_workload_close(reader, &reader->workloads[i]);
        free_item(&reader->items[i]);
    }
    cgroup_tree_done(&reader->tree);
    hierarchies_close(&reader->hierarchies);
    free(reader->items);
    free(reader->workloads);
    free(reader);
}

void cgroup_reader_set_caps(struct cgroup_reader *reader, size_t workloads, size_t files,
                            size_t watches)
{
    reader->kept_files_max = MIN(files, reader->kept_files_max);
    cgroup_tree_set_caps(&reader->tree, workloads, watches);
}

const struct usage_owner *cgroup_reader_items(const struct cgroup_reader *reader, size_t *ret_count)
{
    *ret_count = reader->count;
    return reader->items;
}

void cgroup_reader_set_reported(struct cgroup_reader *reader)
{
    for (size_t i = 0; i < reader->count; i++) {
        (void)usage_copy_counters(&reader->items[i].before, &reader->items[i].usage);
        reader->items[i].is_older |= !reader->has_reported;
    }
    reader->has_reported = true;
    remove_items(reader, has_ended);
}

void cgroup_reader_get_stats(const struct cgroup_reader *reader,
                             struct cgroup_reader_stats *ret_stats)
{
    *ret_stats = reader->stats;
    ret_stats->workloads = reader->tree.workload_count;
    ret_stats->left_out = reader->tree.left_out;
    ret_stats->watched = reader->tree.watch_count;
    ret_stats->listed = reader->tree.unwatched_count;
    ret_stats->told = reader->tree.events_watch_count;
}

void cgroup_reader_for_each_file(const struct cgroup_reader *reader,
                                 void (*take)(void *context, int fd), void *context)
{
    for (size_t i = 0; i < reader->count; i++)
        for (size_t f = 0; f < reader->files.count; f++)
            if (reader->workloads[i].fds[f] >= 0)
                take(context, reader->workloads[i].fds[f]);
}
