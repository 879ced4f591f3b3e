/* Trees of ordinary files below a directory of the test's own: what sysfs, procfs and cgroups are
 * for code under test. */
#pragma once

#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/macros.h"

enum { TREE_PATH_BYTES = 8192 };

/* Overwrites, and cuts afterwards: a file that is cut to nothing first is flushed to the disk by
 * some file systems, which takes milliseconds. */
static void tree_write_fd(int fd, const char *text)
{
    size_t len = strlen(text);

    assert_int_equal(pwrite(fd, text, len, 0), len);
    assert_int_equal(ftruncate(fd, (off_t)len), 0);
}

/* Opens a file, and makes it and the directories around it if need be. */
static int tree_open(const char *root, const char *name)
{
    char path[TREE_PATH_BYTES];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
        *slash = '/';
    }
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    return fd;
}

/* A file that is there is overwritten, not replaced: a descriptor that is open reads the new text.
 */
static void tree_write(const char *root, const char *name, const char *text)
{
    _cleanup_close_ int fd = tree_open(root, name);

    tree_write_fd(fd, text);
}

static int tree_remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

/* Removes a file, or a directory with all that is in it; "" is the root itself. */
static void tree_remove(const char *root, const char *name)
{
    char path[TREE_PATH_BYTES];

    snprintf(path, sizeof(path), "%s/%s", root, name);
    assert_int_equal(nftw(path, tree_remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}
