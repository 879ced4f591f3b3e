#include "host/cgroup_hierarchy.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/macros.h"
#include "host/host.h"

enum { MOUNTINFO_BYTES = 16 << 20 }; /* nodes with many pods have thousands of mounts */

static bool is_octal(char c)
{
    return c >= '0' && c <= '7';
}

/* "\040" is a blank; tab, newline and backslash are escaped, too. False: it does not fit. */
static bool unescape(struct span text, char *buffer, size_t size_bytes)
{
    size_t len = 0;

    for (size_t i = 0; i < text.len; i++) {
        const char *at = text.data + i;

        if (len + 1 >= size_bytes)
            return false;
        buffer[len] = *at;
        if (*at == '\\' && text.len - i > 3 && (at[1] == '0' || at[1] == '1') && is_octal(at[2]) &&
            is_octal(at[3])) {
            buffer[len] = (char)((at[1] - '0') << 6 | (at[2] - '0') << 3 | (at[3] - '0'));
            i += 3;
        }
        if (buffer[len++] == '\0')
            return false;
    }
    buffer[len] = '\0';
    return len > 0;
}

static uint32_t controller_bit(struct span name)
{
    static const char *const names[CONTROLLERS] = {"cpu",  "cpuacct", "memory", "blkio",
                                                   "pids", "rdma",    "hugetlb"};

    for (size_t i = 0; i < CONTROLLERS; i++)
        if (span_equals(name, names[i]))
            return (uint32_t)1 << i;
    return 0;
}

/* "/", or "/../.." as seen from a cgroup namespace further down. */
static bool is_whole_tree(struct span root)
{
    if (root.len == 0 || root.data[0] != '/')
        return false;
    while (root.len > 0) {
        struct span component = span_cut(&root, '/');

        if (component.len > 0 && !span_equals(component, ".."))
            return false;
    }
    return true;
}

/* "36 35 0:30 ROOT POINT OPTIONS [OPTIONAL ...] - TYPE SOURCE SUPER-OPTIONS": proc_pid_mountinfo(5)
 */
bool hierarchy_parse_mount(struct span line, struct hierarchy_mount *ret_mount)
{
    struct span root, point, type, options;
    bool unified;

    for (int i = 0; i < 3; i++)
        span_cut(&line, ' ');
    root = span_cut(&line, ' ');
    point = span_cut(&line, ' ');
    while (line.len > 0 && !span_equals(span_cut(&line, ' '), "-"))
        ;
    type = span_cut(&line, ' ');
    span_cut(&line, ' ');
    options = span_cut(&line, ' ');
    unified = span_equals(type, "cgroup2");
    if (!unified && !span_equals(type, "cgroup"))
        return false;
    if (!is_whole_tree(root) || !unescape(point, ret_mount->point, sizeof(ret_mount->point)))
        return false;
    ret_mount->unified = unified;
    ret_mount->is_cpuset = false;
    ret_mount->controllers = 0;
    ret_mount->options[0] = '\0';
    if (!unified && !unescape(options, ret_mount->options, sizeof(ret_mount->options)))
        memcpy(ret_mount->options, "-", sizeof("-"));
    while (!unified && options.len > 0) {
        struct span name = span_cut(&options, ',');

        ret_mount->controllers |= controller_bit(name);
        ret_mount->is_cpuset |= span_equals(name, "cpuset");
    }
    return true;
}

/* The node's /sys may be mounted anywhere in our own tree. */
static int open_point(const struct host *host, const char *point)
{
    const char *in_sysfs = strstr(point, "/fs/cgroup");
    int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

    if (in_sysfs)
        return openat(host->sysfs_fd, in_sysfs + 1, flags);
    return openat(host->rootfs_fd, point[1] ? point + 1 : ".", flags);
}

static bool has_magic(int fd, long a, long b)
{
    struct statfs fs;

    return fstatfs(fd, &fs) == 0 && (fs.f_type == a || fs.f_type == b);
}

/*
 * A mount point of another namespace may lead to something else in ours: an empty directory where
 * /sys was mounted without what is below it, or the container's own part of the tree. The root of a
 * real tree has the inode 1. In a tree that stands in for /proc nothing is real.
 */
static bool is_whole(const struct host *host, int fd)
{
    struct stat st;

    if (!has_magic(host->procfs_fd, PROC_SUPER_MAGIC, PROC_SUPER_MAGIC))
        return true;
    return has_magic(fd, CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC) && fstat(fd, &st) == 0 &&
           st.st_ino == 1;
}

static void visit_mounts(const struct host *host, const char *mountinfo,
                         void (*visit)(void *, const struct hierarchy_mount *, int), void *context)
{
    _cleanup_close_ int fd = openat(host->procfs_fd, mountinfo, O_RDONLY | O_CLOEXEC);
    _cleanup_free_ char *data = NULL;
    struct hierarchy_mount mount;
    struct span text = {NULL, 0};

    if (fd < 0 || fs_read_fd(fd, MOUNTINFO_BYTES, &data, &text.len) < 0)
        return;
    text.data = data;
    while (text.len > 0) {
        _cleanup_close_ int root_fd = -1;

        if (!hierarchy_parse_mount(span_cut(&text, '\n'), &mount) || mount.point[0] != '/')
            continue;
        root_fd = open_point(host, mount.point);
        if (root_fd >= 0 && is_whole(host, root_fd))
            visit(context, &mount, root_fd);
    }
}

void hierarchy_each_mount(const struct host *host,
                          void (*visit)(void *context, const struct hierarchy_mount *mount,
                                        int root_fd),
                          void *context)
{
    visit_mounts(host, "self/mountinfo", visit, context);
    /* The node's own fill in what our namespace lacks: a container may have only /sys. */
    visit_mounts(host, "1/mountinfo", visit, context);
}

/* Unless others have all of its controllers already. */
static void add_mount(void *context, const struct hierarchy_mount *mount, int root_fd)
{
    struct hierarchies *hierarchies = context;
    bool is_new = mount->unified && hierarchies->unified == HIERARCHY_NONE;
    int index = (int)hierarchies->count, fd;

    for (size_t i = 0; i < CONTROLLERS; i++)
        is_new |= (mount->controllers & 1U << i) && hierarchies->homes[i] == HIERARCHY_NONE;
    if (mount->is_cpuset && hierarchies->cpuset_fd < 0)
        hierarchies->cpuset_fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
    if (hierarchies->count == HIERARCHIES_MAX || !is_new)
        return;
    fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return;
    hierarchies->fds[hierarchies->count++] = fd;
    if (mount->unified)
        hierarchies->unified = index;
    for (size_t i = 0; i < CONTROLLERS; i++)
        if ((mount->controllers & 1U << i) && hierarchies->homes[i] == HIERARCHY_NONE)
            hierarchies->homes[i] = index;
}

int hierarchies_open(const struct host *host, struct hierarchies *ret_hierarchies)
{
    struct hierarchies found = {.unified = HIERARCHY_NONE, .cpuset_fd = -1};

    for (size_t i = 0; i < CONTROLLERS; i++)
        found.homes[i] = HIERARCHY_NONE;
    hierarchy_each_mount(host, add_mount, &found);
    if (found.count == 0) {
        cleanup_close(&found.cpuset_fd);
        return -ENOENT;
    }
    for (size_t i = 0; i < CONTROLLERS; i++)
        if (found.homes[i] == HIERARCHY_NONE)
            found.homes[i] = found.unified;
    *ret_hierarchies = found;
    return 0;
}

void hierarchies_close(struct hierarchies *hierarchies)
{
    if (hierarchies->count == 0) /* or zeroed: then the descriptor below is not ours */
        return;
    for (size_t i = 0; i < hierarchies->count; i++)
        cleanup_close(&hierarchies->fds[i]);
    cleanup_close(&hierarchies->cpuset_fd);
    hierarchies->count = 0;
}
