#include "host/cgroup_root.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/macros.h"

/* A node with 250 pods has some 2000 cgroups. Depth 24 is far below any that a runtime makes. */
enum { CGROUPS_MAX = 100000, DEPTH_MAX = 24, PROCS_BYTES = 1 << 20, FILE_BYTES = 64 * 1024 };

static const char UNIFIED[] = "0::";

/* Of v2 in a /proc/PID/cgroup, without the newline; empty if there is none. */
static struct span unified_path(struct span text)
{
    while (text.len > 0) {
        struct span line = span_cut(&text, '\n');

        if (span_strip_prefix(&line, UNIFIED))
            return line;
    }
    return (struct span){"", 0};
}

static bool is_outside(struct span path)
{
    return span_equals(path, "/..") || span_strip_prefix(&path, "/../");
}

static bool has_line(struct span text, const char *wanted)
{
    while (text.len > 0)
        if (span_equals(span_cut(&text, '\n'), wanted))
            return true;
    return false;
}

struct search {
    const char *pid;
    size_t left; /* cgroups that may still be looked at */
    char path[PATH_MAX];
};

static bool holds_process(int dir_fd, const char *pid)
{
    _cleanup_close_ int fd = openat(dir_fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    _cleanup_free_ char *data = NULL;
    size_t len;

    return fd >= 0 && fs_read_fd(fd, PROCS_BYTES, &data, &len) == 0 &&
           has_line((struct span){data, len}, pid);
}

static int look_in(struct search *search, int dir_fd, size_t path_len, unsigned depth);

static int look_below(struct search *search, DIR *dir, size_t path_len, unsigned depth)
{
    struct dirent *entry;
    int r = -ENOENT;

    while (r == -ENOENT && (entry = readdir(dir))) {
        size_t len = strlen(entry->d_name);
        int fd;

        if (entry->d_type != DT_DIR || entry->d_name[0] == '.' ||
            path_len + 1 + len >= sizeof(search->path))
            continue;
        fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            continue;
        search->path[path_len] = '/';
        memcpy(search->path + path_len + 1, entry->d_name, len + 1);
        r = look_in(search, fd, path_len + 1 + len, depth + 1);
    }
    return r;
}

/* Takes over the descriptor. 0: search->path is where the process is. */
static int look_in(struct search *search, int dir_fd, size_t path_len, unsigned depth)
{
    DIR *dir = fdopendir(dir_fd);
    int r = -ENOENT;

    if (!dir) {
        close(dir_fd);
        return -ENOMEM;
    }
    if (search->left == 0)
        r = -EAGAIN;
    else if (search->left--, holds_process(dir_fd, search->pid))
        r = 0;
    else if (depth < DEPTH_MAX)
        r = look_below(search, dir, path_len, depth);
    search->path[r == 0 ? strlen(search->path) : path_len] = '\0';
    closedir(dir);
    return r;
}

static int search_tree(const struct host *host, const char *pid, char **ret_path)
{
    static const char *const mounts[] = {"fs/cgroup/unified", "fs/cgroup"};
    struct search search = {.pid = pid, .left = CGROUPS_MAX, .path = ""};
    int r = -ENOENT;

    for (size_t i = 0; i < ARRAY_SIZE(mounts) && r == -ENOENT; i++) {
        int fd = openat(host->sysfs_fd, mounts[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd >= 0)
            r = look_in(&search, fd, 0, 0);
    }
    if (r < 0)
        return r;
    *ret_path = strdup(search.path);
    return *ret_path ? 0 : -ENOMEM;
}

int cgroup_root_find(const struct host *host, char **ret_root)
{
    char init[FILE_BYTES], own[FILE_BYTES], pid[32];
    size_t init_len, own_len;
    _cleanup_free_ char *path = NULL;
    struct span below, found;
    ssize_t pid_len;
    int r;

    r = fs_read_at(host->procfs_fd, "1/cgroup", init, sizeof(init), &init_len);
    if (r < 0)
        return r;
    if (!is_outside(unified_path((struct span){init, init_len}))) {
        *ret_root = NULL;
        return 0;
    }
    r = fs_read_at(host->procfs_fd, "self/cgroup", own, sizeof(own), &own_len);
    if (r < 0)
        return r;
    /* As that procfs, and so the tree, numbers us. */
    pid_len = readlinkat(host->procfs_fd, "self", pid, sizeof(pid) - 1);
    if (pid_len < 0)
        return -errno;
    pid[pid_len] = '\0';
    r = search_tree(host, pid, &path);
    if (r < 0)
        return r;
    /* We may have been moved below the root. */
    found = span_of(path);
    below = unified_path((struct span){own, own_len});
    if (!span_equals(below, "/")) {
        _cleanup_free_ char *suffix = strndup(below.data, below.len);

        if (!suffix)
            return -ENOMEM;
        if (!span_strip_suffix(&found, suffix))
            return -ENOENT;
        path[found.len] = '\0';
    }
    *ret_root = TAKE_PTR(path);
    return 0;
}

/* False: there is none. */
static bool go_up(struct span *path)
{
    const char *slash = memrchr(path->data, '/', path->len);

    if (!slash)
        return false;
    path->len = (size_t)(slash - path->data);
    return true;
}

int cgroup_root_apply(struct span root, char *text, size_t size_bytes, size_t *len)
{
    struct span path = unified_path((struct span){text, *len});
    size_t at = (size_t)(path.data - text), old_len = path.len, new_len;

    if (path.len == 0)
        return 0;
    while (is_outside(path)) {
        if (!go_up(&root))
            return 0;
        span_strip_prefix(&path, "/..");
    }
    if (root.len > 0 && span_equals(path, "/"))
        span_strip_prefix(&path, "/");
    else if (root.len == 0 && path.len == 0)
        root = span_of("/");
    new_len = *len - old_len + root.len + path.len;
    if (new_len >= size_bytes)
        return -EFBIG;
    /* What is left of the path stays together with what follows it. */
    memmove(text + at + root.len, path.data, *len - (size_t)(path.data - text));
    memcpy(text + at, root.data, root.len);
    text[new_len] = '\0';
    *len = new_len;
    return 0;
}
