#include "run/run_history.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/macros.h"
#include "core/siphash.h"
#include "run/compare.h"

enum { FILE_NAME_BYTES = 32 };

/* Nobody else can have put something into it. */
static bool is_private(int fd, mode_t type)
{
    struct stat st;

    return fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == type && st.st_uid == geteuid() &&
           (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* Takes over the descriptor of the directory above. */
static int enter(int above_fd, const char *name)
{
    _cleanup_close_ int parent_fd = above_fd;
    int fd;

    if (mkdirat(parent_fd, name, 0700) < 0 && errno != EEXIST)
        return -errno;
    fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (!is_private(fd, S_IFDIR)) {
        close(fd);
        return -EPERM;
    }
    return fd;
}

int run_history_open(const char *state_home, const char *home)
{
    static const char *const below_state[] = {"wattribute", "run"};
    static const char *const below_home[] = {".local", "state"};
    bool is_given = state_home && state_home[0] == '/';
    int fd;

    if (!is_given && (!home || home[0] != '/'))
        return -ENOENT;
    fd = open(is_given ? state_home : home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (!is_private(fd, S_IFDIR)) {
        close(fd);
        return -EPERM;
    }
    for (size_t i = 0; i < ARRAY_SIZE(below_home) && !is_given && fd >= 0; i++)
        fd = enter(fd, below_home[i]);
    for (size_t i = 0; i < ARRAY_SIZE(below_state) && fd >= 0; i++)
        fd = enter(fd, below_state[i]);
    return fd;
}

/* Of the words, so that "a b" is not "a" "b". */
static void print_name(char *const *argv, char name[static FILE_NAME_BYTES])
{
    static const uint64_t key[2] = {0, 0};
    struct siphash hash = siphash_begin(key);

    for (size_t i = 0; argv[i]; i++)
        siphash_add(&hash, (struct span){argv[i], strlen(argv[i]) + 1});
    snprintf(name, FILE_NAME_BYTES, "%016" PRIx64 ".json", siphash_end(&hash));
}

int run_history_read(int dir_fd, char *const *argv, char **ret_data, size_t *ret_len)
{
    _cleanup_close_ int fd = -1;
    char name[FILE_NAME_BYTES];

    print_name(argv, name);
    /* A pipe in its place must not block. */
    fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (!is_private(fd, S_IFREG))
        return -EPERM;
    return fs_read_fd(fd, RUN_REPORT_CAP_BYTES, ret_data, ret_len);
}

/* So that the directory does not grow for ever. */
static void forget_oldest(int dir_fd)
{
    DIR *dir = fs_open_dir(dir_fd, ".");
    const struct dirent *entry;
    char oldest[NAME_MAX + 1] = "";
    time_t oldest_s = 0;
    size_t count = 0;
    struct stat st;

    while (dir && (entry = readdir(dir))) {
        if (fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
            continue;
        if (count++ == 0 || st.st_mtime < oldest_s) {
            oldest_s = st.st_mtime;
            snprintf(oldest, sizeof(oldest), "%s", entry->d_name);
        }
    }
    if (dir)
        closedir(dir);
    if (count > RUN_HISTORY_MAX)
        (void)unlinkat(dir_fd, oldest, 0);
}

int run_history_write(int dir_fd, char *const *argv, struct span report)
{
    char name[FILE_NAME_BYTES], partial[FILE_NAME_BYTES + 16];
    int fd, r;

    print_name(argv, name);
    snprintf(partial, sizeof(partial), ".%s.%d", name, (int)getpid());
    (void)unlinkat(dir_fd, partial, 0); /* of a process that was killed and had our pid */
    fd = openat(dir_fd, partial, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    r = fs_write_all(fd, report.data, report.len);
    if (close(fd) < 0 && r == 0)
        r = -errno;
    if (r == 0 && renameat(dir_fd, partial, dir_fd, name) < 0)
        r = -errno;
    if (r < 0)
        (void)unlinkat(dir_fd, partial, 0);
    else
        forget_oldest(dir_fd);
    return r;
}
