#include "sources/cgroup/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/macros.h"
#include "sources/cgroup/files.h"
#include "sources/cgroup/parse.h"
#include "sources/cgroup/recent.h"

enum {
    BUFFER_BYTES = 64 << 10, /* the longest are memory.stat and io.stat, of a few KiB */
    FILES_FOR_OTHERS = 1024,
    FILES_USUAL_MAX = 1024,
    ENDED_MAX = 4096, /* that wait to be reported; more find no room until then */
    /* Watches are counted by user, and root's are not only ours. */
    WATCHES_SHARE = 8,
    WATCHES_USUAL_MAX = 8192,
};

#define NO_LIMIT UINT64_MAX
_Static_assert(CGROUP_FILES_MAX <= 64, "a bit for each file");

struct workload {
    struct cgroup_handle node;
    bool has_ended;
    int fds[CGROUP_FILES_MAX];
    size_t fd_count;
    uint64_t opened; /* bits of the files that were open at some time */
    uint32_t first_turn;
    bool must_open;
    bool is_read; /* at least once */
    bool is_late; /* it appeared after the first cycle */
    uint64_t limit_bytes;
    uint64_t around_id; /* once it has ended: of the item that it was in, or 0 */
};

struct cgroup_reader {
    struct hierarchies hierarchies;
    struct cgroup_files files;
    struct cgroup_tree tree;
    struct usage_owner *items;  /* by id */
    struct workload *workloads; /* of the items */
    size_t count, capacity;
    size_t kept_files, kept_files_max;
    uint64_t last_id;
    bool has_reported;
    uint32_t turn; /* rescans, from 1 on */
    struct recents youngs;
    bool is_started; /* what appears from now on has just begun */
    bool is_attending;
    struct cgroup_reader_stats stats;
    struct usage_room room;
    char buffer[BUFFER_BYTES];
};

/* NULL: it has ended. */
static struct cgroup_node *get_node(const struct cgroup_reader *reader,
                                    const struct workload *workload)
{
    return cgroup_nodes_get(&reader->tree.nodes, workload->node);
}

/* From here on: the descriptors of a workload. */

static void close_files(struct cgroup_reader *reader, struct workload *workload)
{
    for (size_t i = 0; i < reader->files.count; i++) {
        cleanup_close(&workload->fds[i]);
        workload->fds[i] = -1;
    }
    reader->kept_files -= workload->fd_count;
    workload->fd_count = 0;
}

/* The directory of a workload in each hierarchy, opened when it is needed. */
struct directories {
    int fds[HIERARCHIES_MAX];
    bool are_tried[HIERARCHIES_MAX];
};

static int open_directory(const struct cgroup_reader *reader, const struct workload *workload,
                          int hierarchy, struct directories *directories)
{
    const struct cgroup_node *node = get_node(reader, workload);

    if (directories->are_tried[hierarchy])
        return directories->fds[hierarchy];
    directories->are_tried[hierarchy] = true;
    directories->fds[hierarchy] =
        node ? cgroup_tree_open(&reader->tree, node, (size_t)hierarchy) : -ENOENT;
    return directories->fds[hierarchy];
}

static void close_directories(struct directories *directories)
{
    for (size_t i = 0; i < HIERARCHIES_MAX; i++)
        if (directories->are_tried[i])
            cleanup_close(&directories->fds[i]);
}

static bool is_out_of_files(int error)
{
    return error == -EMFILE || error == -ENFILE || error == -ENOMEM;
}

/* 0 or -errno. */
static int open_file(struct cgroup_reader *reader, struct workload *workload, size_t index,
                     struct directories *directories)
{
    const struct cgroup_file *file = &reader->files.items[index];
    int dir_fd = open_directory(reader, workload, file->hierarchy, directories), fd;

    if (dir_fd < 0)
        return dir_fd;
    fd = openat(dir_fd, file->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    workload->fds[index] = fd;
    workload->opened |= (uint64_t)1 << index;
    workload->fd_count++;
    reader->kept_files++;
    return 0;
}

/* Those that are not open yet. A controller may be enabled later. */
static void open_files(struct cgroup_reader *reader, struct workload *workload)
{
    struct directories directories = {.are_tried = {false}};
    uint32_t told = 0;
    int r = 0;

    for (size_t i = 0; i < reader->files.count && !is_out_of_files(r); i++) {
        const struct cgroup_file *file = &reader->files.items[i];

        if (workload->fds[i] < 0 && cgroup_file_is_wanted(file, told))
            r = open_file(reader, workload, i, &directories);
        if (workload->fds[i] >= 0)
            told |= file->tells;
    }
    close_directories(&directories);
    workload->must_open = is_out_of_files(r);
    if (!workload->must_open)
        return;
    reader->stats.unread++;
    close_files(reader, workload);
}

/* Young ones are looked at again soon, others less and less often. */
static bool is_due(const struct cgroup_reader *reader, const struct workload *workload)
{
    uint32_t age = reader->turn - workload->first_turn;

    return (age & (age - 1)) == 0;
}

/* From here on: limits of cgroup v2. They count for all below, and they hardly ever change. */

static uint64_t read_limit(struct cgroup_reader *reader, const struct cgroup_node *node)
{
    int root_fd = reader->hierarchies.fds[reader->hierarchies.unified];
    char path[CGROUP_PATH_BYTES], name[CGROUP_PATH_BYTES + sizeof("/memory.max")];
    struct span text = {reader->buffer, 0};
    uint64_t limit_bytes;

    /* The root has none. */
    if (node->depth == 0 || !cgroup_nodes_get_path(&reader->tree.nodes, node, path))
        return NO_LIMIT;
    snprintf(name, sizeof(name), "%s/memory.max", path + 1);
    if (fs_read_at(root_fd, name, reader->buffer, sizeof(reader->buffer), &text.len) < 0 ||
        cgroup_parse_number(text, &limit_bytes) < 0)
        return NO_LIMIT;
    return limit_bytes;
}

static uint64_t find_limit(struct cgroup_reader *reader, struct cgroup_node *node)
{
    struct cgroup_node *parent = cgroup_nodes_get(&reader->tree.nodes, node->parent);

    if (node->limit_turn != reader->turn) {
        uint64_t above = parent ? find_limit(reader, parent) : NO_LIMIT;

        node->limit_bytes = MIN(read_limit(reader, node), above);
        node->limit_turn = reader->turn;
    }
    return node->limit_bytes;
}

/* Whoever made it may still be about to limit it, or what it is in. */
static void forget_limits(const struct cgroup_reader *reader, struct cgroup_node *node)
{
    for (; node; node = cgroup_nodes_get(&reader->tree.nodes, node->parent))
        node->limit_turn = 0;
}

static bool has_limits(const struct cgroup_reader *reader)
{
    int unified = reader->hierarchies.unified;

    return unified != HIERARCHY_NONE && reader->hierarchies.homes[CONTROLLER_MEMORY] == unified;
}

/* From here on: one cycle. */

static void read_file(struct cgroup_reader *reader, const struct cgroup_file *file, int fd,
                      const struct usage *last, struct usage *usage)
{
    ssize_t len = pread(fd, reader->buffer, sizeof(reader->buffer), 0);

    reader->stats.files_read++;
    if (len >= 0 && (size_t)len < sizeof(reader->buffer))
        cgroup_file_parse_usage(file, (struct span){reader->buffer, (size_t)len}, usage);
    else if (len < 0 && errno == ENODEV)
        cgroup_file_keep_usage(file, last, usage);
    else
        reader->stats.files_failed++;
}

/* Without memory some devices are missing until the next cycle. */
static void read_files(struct cgroup_reader *reader, struct workload *workload, struct usage *usage)
{
    struct usage now = usage_in(&reader->room);

    for (size_t i = 0; i < reader->files.count; i++)
        if (workload->fds[i] >= 0)
            read_file(reader, &reader->files.items[i], workload->fds[i], usage, &now);
        else if (workload->opened & (uint64_t)1 << i)
            cgroup_file_keep_usage(&reader->files.items[i], usage, &now);
    cpu_stat_divide(&now, usage);
    usage_set(&now, USAGE_MEMORY_LIMIT_BYTES, workload->limit_bytes);
    (void)usage_copy(usage, &now);
    workload->is_read = true;
}

static void read_workload(struct cgroup_reader *reader, size_t index, bool rescan)
{
    struct workload *workload = &reader->workloads[index];
    struct usage *usage = &reader->items[index].usage;
    struct cgroup_node *node = get_node(reader, workload);
    bool may_keep =
        reader->kept_files - workload->fd_count + reader->files.count <= reader->kept_files_max;

    if (!node)
        return;
    if (workload->must_open || (rescan && is_due(reader, workload)))
        open_files(reader, workload);
    if (workload->is_late && workload->first_turn == reader->turn)
        forget_limits(reader, node);
    if (has_limits(reader))
        workload->limit_bytes = find_limit(reader, node);
    if (workload->fd_count > 0)
        read_files(reader, workload, usage);
    else
        usage_forget_gauges(usage);
    if (may_keep)
        return;
    reader->stats.unkept++;
    close_files(reader, workload);
    workload->must_open = true;
}

static void free_item(struct usage_owner *item)
{
    usage_done(&item->usage);
    usage_done(&item->before);
}

static bool has_ended(const struct workload *workload)
{
    return workload->has_ended;
}

/* It came and went between two cycles. */
static bool was_never_read(const struct workload *workload)
{
    return workload->has_ended && !workload->is_read;
}

static void move_item(struct cgroup_reader *reader, size_t from, size_t to)
{
    struct cgroup_node *node = get_node(reader, &reader->workloads[from]);

    reader->items[to] = reader->items[from];
    reader->workloads[to] = reader->workloads[from];
    if (node)
        node->workload = (uint32_t)to;
}

static void remove_items(struct cgroup_reader *reader, bool (*is_meant)(const struct workload *))
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

static uint32_t find_around(const struct cgroup_reader *reader, const struct workload *workload)
{
    const struct cgroup_node *node = get_node(reader, workload), *around;

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
        read_workload(reader, i, rescan);
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
    read_workload(reader, index, false);
    node = get_node(reader, &reader->workloads[index]);
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
    size_t capacity = MAX(reader->capacity * 2, (size_t)16);
    struct usage_owner *items;
    struct workload *workloads;

    if (reader->count < reader->capacity)
        return true;
    items = realloc(reader->items, capacity * sizeof(*items));
    if (!items)
        return false;
    reader->items = items;
    workloads = realloc(reader->workloads, capacity * sizeof(*workloads));
    if (!workloads)
        return false;
    reader->workloads = workloads;
    reader->capacity = capacity;
    return true;
}

static bool take_appeared(void *context, struct cgroup_node *node,
                          const struct workload_owner *owner)
{
    struct cgroup_reader *reader = context;
    struct workload *workload;

    if (reader->count >= reader->tree.workloads_max + ENDED_MAX || !make_room(reader))
        return false;
    node->workload = (uint32_t)reader->count;
    workload = &reader->workloads[reader->count];
    *workload = (struct workload){.node = node->self,
                                  .first_turn = reader->turn,
                                  .must_open = true,
                                  .limit_bytes = NO_LIMIT,
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
        read_workload(reader, node->workload, false);
}

static void take_ended(void *context, struct cgroup_node *node)
{
    struct cgroup_reader *reader = context;
    const struct cgroup_node *around = cgroup_nodes_find_around(&reader->tree.nodes, node);
    struct workload *workload = &reader->workloads[node->workload];
    struct usage_owner *item = &reader->items[node->workload];

    close_files(reader, workload);
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
        close_files(reader, &reader->workloads[i]);
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
