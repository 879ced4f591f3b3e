#include "run/own_cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/macros.h"
#include "core/parse.h"
#include "core/span.h"

#define NAME_PREFIX "wattribute-run-"

enum {
    CGROUP_FILE_BYTES = 64 << 10,
    PROCS_BYTES = 4 << 20,
    VALUE_BYTES = 4096,
    MOVE_PASSES = 16, /* while processes fork */
    NAMES_MAX = 1000, /* of containers whose first process is a `run` */
    DEPTH_MAX = 16,   /* of a `run` in a `run` */
};

/* Is this process in the cgroup of this directory? */
static bool is_ours(int dir_fd)
{
    _cleanup_free_ char *data = NULL;
    struct span rest = {NULL, 0};
    uint64_t pid;

    if (fs_read_all_at(dir_fd, "cgroup.procs", PROCS_BYTES, &data, &rest.len) < 0)
        return false;
    rest.data = data;
    while (rest.len > 0)
        if (parse_u64(span_cut(&rest, '\n'), &pid) == 0 && pid == (uint64_t)getpid())
            return true;
    return false;
}

static int open_ours(const char *point, const char *path)
{
    char whole[PATH_MAX];
    int fd = -1;

    if (snprintf(whole, sizeof(whole), "%s%s", point, path) < (int)sizeof(whole))
        fd = open(whole, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && !is_ours(fd)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Our cgroup in this hierarchy. A container may see its own part of the tree alone, mounted where
 * the whole is expected. -1: it cannot be seen. */
static int open_hierarchy(const char *controller, const char *path)
{
    FILE *mounts = setmntent("/proc/self/mounts", "re");
    char text[2 * PATH_MAX];
    struct mntent mount;
    int fd = -1;

    if (!mounts)
        return -1;
    while (fd < 0 && getmntent_r(mounts, &mount, text, sizeof(text))) {
        bool is_it = controller ? strcmp(mount.mnt_type, "cgroup") == 0 &&
                                      hasmntopt(&mount, controller) != NULL
                                : strcmp(mount.mnt_type, "cgroup2") == 0;

        if (is_it)
            fd = open_ours(mount.mnt_dir, path);
        if (is_it && fd < 0)
            fd = open_ours(mount.mnt_dir, "");
    }
    endmntent(mounts);
    return fd;
}

static bool has_item(struct span list, const char *item)
{
    while (list.len > 0)
        if (span_equals(span_cut(&list, ','), item))
            return true;
    return false;
}

/* "N:CONTROLLERS:PATH"; "0::PATH" of v2 */
static int open_parent(const char *controller)
{
    char text[CGROUP_FILE_BYTES], path[PATH_MAX];
    struct span rest = {text, 0};

    if (fs_read_at(AT_FDCWD, "/proc/self/cgroup", text, sizeof(text), &rest.len) < 0)
        return -1;
    while (rest.len > 0) {
        struct span line = span_cut(&rest, '\n'), controllers;

        span_cut(&line, ':');
        controllers = span_cut(&line, ':');
        if (line.len >= sizeof(path) ||
            (controller ? !has_item(controllers, controller) : controllers.len > 0))
            continue;
        snprintf(path, sizeof(path), "%.*s", (int)line.len, line.data);
        return open_hierarchy(controller, path);
    }
    return -1;
}

static int write_pid(int dir_fd, pid_t pid)
{
    _cleanup_close_ int fd = openat(dir_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    char text[16];
    int len = snprintf(text, sizeof(text), "%d\n", (int)pid);

    if (fd < 0)
        return -errno;
    return write(fd, text, (size_t)len) == len ? 0 : -errno;
}

static void move_all(int from_fd, int to_fd)
{
    _cleanup_free_ char *data = NULL;
    struct span rest = {NULL, 0};
    uint64_t pid;

    if (fs_read_all_at(from_fd, "cgroup.procs", PROCS_BYTES, &data, &rest.len) < 0)
        return;
    rest.data = data;
    while (rest.len > 0)
        if (parse_u64_max(span_cut(&rest, '\n'), INT_MAX, &pid) == 0 && pid > 0)
            (void)write_pid(to_fd, (pid_t)pid);
}

/*
 * A `run` locks its directory as long as it lives. A process number would not tell whether it does:
 * one in another PID namespace has a number of its own.
 */
static bool is_abandoned(int dir_fd)
{
    return flock(dir_fd, LOCK_EX | LOCK_NB) == 0;
}

/* Removes those of a `run` that was killed: nobody does otherwise. What runs in them is moved
 * to `to_fd`; -1: they stay. */
static void sweep(int parent_fd, int to_fd, unsigned depth)
{
    DIR *dir = fs_open_dir(parent_fd, ".");
    const struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        _cleanup_close_ int fd = -1;

        if (strncmp(entry->d_name, NAME_PREFIX, strlen(NAME_PREFIX)) != 0)
            continue;
        fd = openat(parent_fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || !is_abandoned(fd))
            continue;
        if (depth < DEPTH_MAX)
            sweep(fd, to_fd, depth + 1);
        if (to_fd >= 0)
            move_all(fd, to_fd);
        (void)unlinkat(parent_fd, entry->d_name, AT_REMOVEDIR); /* fails if it is in use */
    }
    if (dir)
        closedir(dir);
}

static bool is_at(int fd, int parent_fd, const char *name)
{
    struct stat ours, there;

    return fstat(fd, &ours) == 0 && fstatat(parent_fd, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

/* One that nobody else has, and that nobody sweeps from now on. */
static int make_dir(struct own_cgroup_dir *dir, int parent_fd, const char *name)
{
    int r = 0;

    *dir = (struct own_cgroup_dir){.parent_fd = parent_fd, .fd = -1};
    if (parent_fd < 0)
        return -ENOENT;
    sweep(parent_fd, -1, 0);
    if (mkdirat(parent_fd, name, 0755) < 0)
        r = -errno;
    if (r == 0) {
        dir->fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        r = dir->fd < 0 ? -errno : 0;
    }
    /* Another one may have swept it before it was locked, and may have made one of that name. */
    if (r == 0 && (!is_abandoned(dir->fd) || !is_at(dir->fd, parent_fd, name)))
        r = -EEXIST;
    if (r < 0) {
        cleanup_close(&dir->fd);
        close(parent_fd);
        *dir = (struct own_cgroup_dir){-1, -1};
    }
    return r;
}

/* With a number more where its name is taken. */
static int make_new_dir(struct own_cgroup *cgroup, struct own_cgroup_dir *dir,
                        const char *controller, unsigned number)
{
    int r = -EEXIST;

    for (unsigned attempt = 0; attempt < NAMES_MAX && (r == -EEXIST || r == -ENOENT); attempt++) {
        int parent_fd = open_parent(controller);

        if (parent_fd < 0)
            return -ENOENT;
        snprintf(cgroup->name, sizeof(cgroup->name), NAME_PREFIX "%d-%u", (int)getpid(), number);
        if (attempt > 0)
            snprintf(cgroup->name, sizeof(cgroup->name), NAME_PREFIX "%d-%u-%u", (int)getpid(),
                     number, attempt);
        r = make_dir(dir, parent_fd, cgroup->name);
    }
    return r;
}

/* In v1, where both may be of one hierarchy. */
static void make_memory(struct own_cgroup *cgroup)
{
    int parent_fd = open_parent("memory");

    if (parent_fd >= 0 && is_at(cgroup->cpu.fd, parent_fd, cgroup->name))
        cgroup->memory =
            (struct own_cgroup_dir){parent_fd, fcntl(cgroup->cpu.fd, F_DUPFD_CLOEXEC, 0)};
    else
        (void)make_dir(&cgroup->memory, parent_fd, cgroup->name);
}

int own_cgroup_make(struct own_cgroup *cgroup, unsigned number, struct error *err)
{
    uint64_t ignored;
    int r;

    *cgroup = (struct own_cgroup){.cpu = {-1, -1}, .memory = {-1, -1}, .is_v2 = true};
    r = make_new_dir(cgroup, &cgroup->cpu, NULL, number);
    if (r == 0 && own_cgroup_read_cpu(cgroup, &ignored) < 0)
        r = -ENODATA; /* v2 without its CPU time: a hybrid */
    if (r < 0) {
        int r2;

        (void)own_cgroup_remove(cgroup);
        cgroup->is_v2 = false;
        r2 = make_new_dir(cgroup, &cgroup->cpu, "cpuacct", number);
        r = r2 == -ENOENT ? r : r2;
        if (r2 == 0)
            make_memory(cgroup);
    }
    if (r == 0)
        return 0;
    return error_set(err, r, "no cgroup can be made below the one of this process: %s",
                     r == -ENOENT ? "it cannot be seen" : strerror(-r));
}

int own_cgroup_enter(const struct own_cgroup *cgroup, pid_t pid)
{
    int r = write_pid(cgroup->cpu.fd, pid);

    if (r == 0 && cgroup->memory.fd >= 0)
        (void)write_pid(cgroup->memory.fd, pid); /* else its memory is read from its processes */
    return r;
}

static int read_value(int dir_fd, const char *file, const char *prefix, uint64_t *ret_value)
{
    char text[VALUE_BYTES];
    struct span rest = {text, 0};
    int r = fs_read_at(dir_fd, file, text, sizeof(text), &rest.len);

    if (r < 0)
        return r;
    if (prefix)
        rest = span_find_line(rest, prefix);
    return parse_u64(span_cut(&rest, '\n'), ret_value) < 0 ? -EBADMSG : 0;
}

int own_cgroup_read_cpu(const struct own_cgroup *cgroup, uint64_t *ret_cpu_us)
{
    uint64_t value;
    int r = cgroup->is_v2 ? read_value(cgroup->cpu.fd, "cpu.stat", "usage_usec ", &value)
                          : read_value(cgroup->cpu.fd, "cpuacct.usage", NULL, &value);

    if (r == 0)
        *ret_cpu_us = cgroup->is_v2 ? value : value / 1000; /* v1: ns */
    return r;
}

int own_cgroup_read_memory(const struct own_cgroup *cgroup, uint64_t *ret_bytes)
{
    int r = cgroup->is_v2 ? read_value(cgroup->cpu.fd, "memory.current", NULL, ret_bytes)
            : cgroup->memory.fd >= 0
                ? read_value(cgroup->memory.fd, "memory.usage_in_bytes", NULL, ret_bytes)
                : -ENODATA;

    return r == -ENOENT ? -ENODATA : r;
}

static bool remove_dir(struct own_cgroup_dir *dir, const char *name)
{
    bool is_gone = dir->fd < 0;

    for (int i = 0; i < MOVE_PASSES && !is_gone; i++) {
        sweep(dir->fd, dir->parent_fd, 0);
        move_all(dir->fd, dir->parent_fd);
        is_gone = unlinkat(dir->parent_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT;
    }
    cleanup_close(&dir->fd);
    cleanup_close(&dir->parent_fd);
    *dir = (struct own_cgroup_dir){-1, -1};
    return is_gone;
}

bool own_cgroup_remove(struct own_cgroup *cgroup)
{
    bool is_gone = cgroup->name[0] == '\0' || remove_dir(&cgroup->cpu, cgroup->name);

    return (cgroup->name[0] == '\0' || remove_dir(&cgroup->memory, cgroup->name)) && is_gone;
}
