/* The files of cgroups: which ones this machine has; and those of one workload, opened, kept open
 * and read. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/macros.h"
#include "core/parse.h"
#include "sources/cgroup/reader.h"

static struct cgroup_file *file_add(struct cgroup_files *files, int hierarchy)
{
    struct cgroup_file *file = &files->items[files->count];

    if (hierarchy == HIERARCHY_NONE || files->count == CGROUP_FILES_MAX)
        return NULL;
    *file = (struct cgroup_file){.hierarchy = hierarchy};
    files->count++;
    return file;
}

/* Named as by mem_fmt() in the kernel's mm/hugetlb_cgroup.c. */
static void add_hugetlb(struct cgroup_files *files, const struct hierarchies *hierarchies,
                        uint64_t page_kib)
{
    static const char *const sizes[] = {"KB", "MB", "GB"};
    int home = hierarchies->homes[CONTROLLER_HUGETLB];
    struct cgroup_file *file = file_add(files, home);
    unsigned unit = page_kib >= 1 << 20 ? 2 : page_kib >= 1 << 10 ? 1 : 0;

    if (!file)
        return;
    file->page_bytes = page_kib << 10;
    snprintf(file->name, sizeof(file->name), "hugetlb.%llu%s.%s",
             (unsigned long long)page_kib >> (unit * 10), sizes[unit],
             home == hierarchies->unified ? "current" : "usage_in_bytes");
}

void cgroup_files_choose(const struct hierarchies *hierarchies, const struct host *host,
                         struct cgroup_files *ret_files)
{
    DIR *dir = fs_open_dir(host->sysfs_fd, "kernel/mm/hugepages");
    const struct dirent *entry;
    size_t sizes = 0;

    ret_files->count = 0;
    for (const struct cgroup_format *format = cgroup_formats; format->name; format++) {
        int home = format->controller == CONTROLLERS ? hierarchies->unified
                                                     : hierarchies->homes[format->controller];
        struct cgroup_file *file =
            (home == hierarchies->unified) == format->is_v2 ? file_add(ret_files, home) : NULL;

        if (!file)
            continue;
        file->format = format;
        file->fields = cgroup_format_fields(format);
        snprintf(file->name, sizeof(file->name), "%s", format->name);
    }
    while (dir && sizes < USAGE_HUGETLB_MAX && (entry = readdir(dir))) {
        struct span name = span_of(entry->d_name);
        uint64_t page_kib;

        if (!span_strip_prefix(&name, "hugepages-") || !span_strip_suffix(&name, "kB") ||
            parse_u64_max(name, 1 << 30, &page_kib) < 0 || page_kib == 0)
            continue;
        add_hugetlb(ret_files, hierarchies, page_kib);
        sizes++;
    }
    if (dir)
        closedir(dir);
}

static void set_hugetlb(const struct cgroup_file *file, uint64_t used_bytes, struct usage *usage)
{
    if (usage->hugetlb_count < usage->hugetlb_room)
        usage->hugetlb[usage->hugetlb_count++] =
            (struct usage_hugetlb){file->page_bytes, used_bytes};
}

static void parse_file(const struct cgroup_file *file, struct span text, struct usage *usage)
{
    uint64_t used_bytes;

    if (file->format)
        file->format->parse(file->format, text, usage);
    else if (cgroup_parse_number(text, &used_bytes) == 0)
        set_hugetlb(file, used_bytes, usage);
}

/* The file's last values, once its cgroup is gone. */
static void keep_values(const struct cgroup_file *file, const struct usage *last,
                        struct usage *usage)
{
    const struct usage_hugetlb *hugetlb = usage_find_hugetlb(last, file->page_bytes);

    cgroup_keep_fields(last, file->fields, usage);
    if (hugetlb)
        set_hugetlb(file, hugetlb->used_bytes, usage);
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

static bool is_out_of_files(int error)
{
    return error == -EMFILE || error == -ENFILE || error == -ENOMEM;
}

/* The descriptor of the workload's directory in each hierarchy, opened when it is first needed;
 * or -errno. */
struct directories {
    int fds[HIERARCHIES_MAX];
    bool are_tried[HIERARCHIES_MAX];
};

static int open_file(struct cgroup_reader *reader, const struct cgroup_node *node,
                     const struct cgroup_file *file, struct directories *directories)
{
    int *dir_fd = &directories->fds[file->hierarchy], fd;

    if (!directories->are_tried[file->hierarchy])
        *dir_fd = cgroup_tree_open(&reader->tree, node, (size_t)file->hierarchy);
    directories->are_tried[file->hierarchy] = true;
    if (*dir_fd < 0)
        return *dir_fd;
    fd = openat(*dir_fd, file->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* Opens those that are not open yet: a controller may be enabled later. */
static void open_files(struct cgroup_reader *reader, struct cgroup_workload *workload,
                       const struct cgroup_node *node)
{
    struct directories directories = {.are_tried = {false}};
    uint32_t present = 0;
    int fd = 0;

    for (size_t i = 0; i < reader->files.count && !is_out_of_files(fd); i++) {
        const struct cgroup_file *file = &reader->files.items[i];

        if (workload->fds[i] < 0 && !(file->fields & -file->fields & present)) {
            fd = open_file(reader, node, file, &directories);
            if (fd >= 0) {
                workload->fds[i] = fd;
                workload->opened |= (uint64_t)1 << i;
                workload->fd_count++;
                reader->kept_files++;
            }
        }
        if (workload->fds[i] >= 0)
            present |= file->fields;
    }
    for (size_t i = 0; i < HIERARCHIES_MAX; i++)
        if (directories.are_tried[i])
            cleanup_close(&directories.fds[i]);
    workload->must_open = is_out_of_files(fd);
    if (workload->must_open)
        cgroup_workload_close(reader, workload);
}

/* From here on: one read. */

static void read_file(struct cgroup_reader *reader, const struct cgroup_file *file, int fd,
                      const struct usage *last, struct usage *usage)
{
    ssize_t len = pread(fd, reader->buffer, sizeof(reader->buffer), 0);

    if (len >= 0 && (size_t)len < sizeof(reader->buffer))
        parse_file(file, (struct span){reader->buffer, (size_t)len}, usage);
    else if (len < 0 && errno == ENODEV)
        keep_values(file, last, usage);
    else
        reader->files_failed++;
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
            keep_values(&reader->files.items[i], usage, &now);
    cgroup_divide_cpu(&now, usage);
    usage_set(&now, USAGE_MEMORY_LIMIT_BYTES, workload->limits.memory_bytes);
    usage_set(&now, USAGE_CPUS_THOUSANDTHS,
              MIN(workload->limits.quota_thousandths, workload->limits.cpuset_thousandths));
    (void)usage_copy(usage, &now);
    workload->is_read = true;
}

void cgroup_workload_read(struct cgroup_reader *reader, size_t index, bool rescan)
{
    struct cgroup_workload *workload = &reader->workloads[index];
    struct usage *usage = &reader->items[index].usage;
    struct cgroup_node *node = cgroup_nodes_get(&reader->tree.nodes, workload->node);
    uint32_t age = reader->turn - workload->first_turn;
    bool may_keep =
        reader->kept_files - workload->fd_count + reader->files.count <= reader->kept_files_max;

    if (!node)
        return;
    /* New ones are checked for more files soon, others less and less often. */
    if (workload->must_open || (rescan && (age & (age - 1)) == 0))
        open_files(reader, workload, node);
    cgroup_limits_update(reader, workload, node);
    if (workload->fd_count > 0)
        read_files(reader, workload, usage);
    else
        usage_clear_gauges(usage);
    if (may_keep)
        return;
    reader->unkept++;
    cgroup_workload_close(reader, workload);
    workload->must_open = true;
}
