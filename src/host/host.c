#include "host/host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/macros.h"

/* A node with 250 pods has some 2000 cgroups. No runtime nests them 24 deep. */
enum { CGROUPS_MAX = 100000, DEPTH_MAX = 24, PROCS_BYTES = 1 << 20, FILE_BYTES = 64 * 1024 };

static const char UNIFIED[] = "0::"; /* before the path of cgroup v2 in /proc/PID/cgroup */

int host_open(const char *procfs_path, const char *sysfs_path, const char *rootfs_path,
              struct host *ret_host, struct error *err)
{
    const struct {
        const char *flag, *path;
    } roots[] = {{"--path.procfs", procfs_path},
                 {"--path.sysfs", sysfs_path},
                 {"--path.rootfs", rootfs_path}};
    int fds[] = {-1, -1, -1};

    for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
        fds[i] = open(roots[i].path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fds[i] < 0) {
            int r = -errno;

            host_close(
                &(struct host){.procfs_fd = fds[0], .sysfs_fd = fds[1], .rootfs_fd = fds[2]});
            return error_set(err, r, "cannot open %s '%s': %s; set it to the mount point",
                             roots[i].flag, roots[i].path, strerror(-r));
        }
    }
    *ret_host = (struct host){.procfs_fd = fds[0], .sysfs_fd = fds[1], .rootfs_fd = fds[2]};
    (void)!getrandom(&ret_host->program_secret, sizeof(ret_host->program_secret), 0);
    /* Without it, processes count as outside: `check` and a metric report that. */
    (void)host_find_cgroup_root(ret_host, &ret_host->cgroup_root);
    ret_host->cgroup_views = cgroup_views_open(ret_host);
    return 0;
}

void host_close(struct host *host)
{
    cleanup_close(&host->procfs_fd);
    cleanup_close(&host->sysfs_fd);
    cleanup_close(&host->rootfs_fd);
    free(host->cgroup_root);
    cgroup_views_close(host->cgroup_views);
    explicit_bzero(&host->program_secret, sizeof(host->program_secret));
    *host = (struct host){.procfs_fd = -1, .sysfs_fd = -1, .rootfs_fd = -1};
}

bool host_is_outside(struct span path)
{
    return span_equals(path, "/..") || span_strip_prefix(&path, "/../");
}

struct search {
    const char *pid;
    size_t left; /* cgroups that may still be visited */
    char path[PATH_MAX];
};

static bool holds_process(int dir_fd, const char *pid)
{
    _cleanup_free_ char *data = NULL;
    struct span text = {0};

    if (fs_read_all_at(dir_fd, "cgroup.procs", PROCS_BYTES, &data, &text.len) < 0)
        return false;
    text.data = data;
    while (text.len > 0)
        if (span_equals(span_cut(&text, '\n'), pid))
            return true;
    return false;
}

/* 0: search->path is the cgroup of the process. */
static int search_dir(struct search *search, int parent_fd, const char *name, size_t path_len,
                      unsigned depth)
{
    DIR *dir = fs_open_dir(parent_fd, name);
    const struct dirent *entry;
    int r = -ENOENT;

    if (!dir)
        return -ENOENT;
    if (search->left == 0)
        r = -EAGAIN;
    else if (search->left--, holds_process(dirfd(dir), search->pid))
        r = 0;
    while (r == -ENOENT && depth < DEPTH_MAX && (entry = readdir(dir))) {
        size_t len = strlen(entry->d_name);

        if (entry->d_type != DT_DIR || entry->d_name[0] == '.' ||
            path_len + 1 + len >= sizeof(search->path))
            continue;
        search->path[path_len] = '/';
        memcpy(search->path + path_len + 1, entry->d_name, len + 1);
        r = search_dir(search, dirfd(dir), entry->d_name, path_len + 1 + len, depth + 1);
    }
    if (r < 0)
        search->path[path_len] = '\0';
    closedir(dir);
    return r;
}

int host_find_cgroup_root(const struct host *host, char **ret_root)
{
    static const char *const mounts[] = {"fs/cgroup/unified", "fs/cgroup"};
    char init[FILE_BYTES], own[FILE_BYTES], pid[32];
    struct search search = {.pid = pid, .left = CGROUPS_MAX, .path = ""};
    size_t init_len, own_len;
    struct span below, root;
    ssize_t pid_len;
    int r;

    r = fs_read_at(host->procfs_fd, "1/cgroup", init, sizeof(init), &init_len);
    if (r < 0)
        return r;
    if (!host_is_outside(span_find_line((struct span){init, init_len}, UNIFIED))) {
        *ret_root = NULL;
        return 0;
    }
    r = fs_read_at(host->procfs_fd, "self/cgroup", own, sizeof(own), &own_len);
    if (r < 0)
        return r;
    /* Our pid in that procfs, and so in the tree. */
    pid_len = readlinkat(host->procfs_fd, "self", pid, sizeof(pid) - 1);
    if (pid_len < 0)
        return -errno;
    pid[pid_len] = '\0';
    r = -ENOENT;
    for (size_t i = 0; i < ARRAY_SIZE(mounts) && r == -ENOENT; i++)
        r = search_dir(&search, host->sysfs_fd, mounts[i], 0, 0);
    if (r < 0)
        return r;
    /* We may have been moved below the root. */
    root = span_of(search.path);
    below = span_find_line((struct span){own, own_len}, UNIFIED);
    if (!span_equals(below, "/")) {
        if (root.len < below.len ||
            memcmp(root.data + root.len - below.len, below.data, below.len) != 0)
            return -ENOENT;
        root.len -= below.len;
    }
    *ret_root = strndup(root.data, root.len);
    return *ret_root ? 0 : -ENOMEM;
}

int host_apply_cgroup_root(struct span root, char *text, size_t size_bytes, size_t *len)
{
    struct span path = span_find_line((struct span){text, *len}, UNIFIED);
    size_t at = (size_t)(path.data - text), old_len = path.len, new_len;

    if (path.len == 0)
        return 0;
    while (host_is_outside(path)) {
        const char *slash = memrchr(root.data, '/', root.len);

        if (!slash)
            return 0;
        root.len = (size_t)(slash - root.data);
        span_strip_prefix(&path, "/..");
    }
    if (root.len > 0 && span_equals(path, "/"))
        span_strip_prefix(&path, "/");
    else if (root.len == 0 && path.len == 0)
        root = span_of("/");
    new_len = *len - old_len + root.len + path.len;
    if (new_len >= size_bytes)
        return -EFBIG;
    /* The rest of the path moves together with the lines after it. */
    memmove(text + at + root.len, path.data, *len - (size_t)(path.data - text));
    memcpy(text + at, root.data, root.len);
    text[new_len] = '\0';
    *len = new_len;
    return 0;
}
