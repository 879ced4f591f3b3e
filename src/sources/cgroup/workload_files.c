/* The files of one workload: opened, kept open and read. */
#include "sources/cgroup/reader_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/macros.h"
#include "sources/cgroup/parse.h"

struct cgroup_node *cgroup_workload_node(const struct cgroup_reader *reader,
                                         const struct cgroup_workload *workload)
{
    return cgroup_nodes_get(&reader->tree.nodes, workload->node);
}

/* From here on: the descriptors of a workload. */

void cgroup_workload_close(struct cgroup_reader *reader, struct cgroup_workload *workload)
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

static int open_directory(const struct cgroup_reader *reader,
                          const struct cgroup_workload *workload, int hierarchy,
                          struct directories *directories)
{
    const struct cgroup_node *node = cgroup_workload_node(reader, workload);

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
static int open_file(struct cgroup_reader *reader, struct cgroup_workload *workload, size_t index,
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
static void open_files(struct cgroup_reader *reader, struct cgroup_workload *workload)
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
    cgroup_workload_close(reader, workload);
}

/* Young ones are looked at again soon, others less and less often. */
static bool is_due(const struct cgroup_reader *reader, const struct cgroup_workload *workload)
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
        return CGROUP_NO_LIMIT;
    snprintf(name, sizeof(name), "%s/memory.max", path + 1);
    if (fs_read_at(root_fd, name, reader->buffer, sizeof(reader->buffer), &text.len) < 0 ||
        cgroup_parse_number(text, &limit_bytes) < 0)
        return CGROUP_NO_LIMIT;
    return limit_bytes;
}

static uint64_t find_limit(struct cgroup_reader *reader, struct cgroup_node *node)
{
    struct cgroup_node *parent = cgroup_nodes_get(&reader->tree.nodes, node->parent);

    if (node->limit_turn != reader->turn) {
        uint64_t above = parent ? find_limit(reader, parent) : CGROUP_NO_LIMIT;

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
static void read_files(struct cgroup_reader *reader, struct cgroup_workload *workload,
                       struct usage *usage)
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

void cgroup_workload_read(struct cgroup_reader *reader, size_t index, bool rescan)
{
    struct cgroup_workload *workload = &reader->workloads[index];
    struct usage *usage = &reader->items[index].usage;
    struct cgroup_node *node = cgroup_workload_node(reader, workload);
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
    cgroup_workload_close(reader, workload);
    workload->must_open = true;
}
