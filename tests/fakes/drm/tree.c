#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_BYTES = 8192, WHOLE_PATH_BYTES = FAKE_PATH_BYTES + 264 };

void fake_die(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    abort();
}

static void whole_path(const struct fake_machine *machine, const char *path,
                       char whole[WHOLE_PATH_BYTES])
{
    if (snprintf(whole, WHOLE_PATH_BYTES, "%s/%s", machine->root, path) >= WHOLE_PATH_BYTES)
        fake_die("%s is too long", path);
}

static bool is_spared(const struct fake_machine *machine, const char *path)
{
    size_t len = strlen(path);

    for (size_t i = 0; i < FAKE_SPARED_MAX; i++) {
        const char *end = machine->spared[i];

        if (end && strlen(end) <= len && strcmp(path + len - strlen(end), end) == 0)
            return true;
    }
    return false;
}

static void make_directories(char *whole, size_t root_len)
{
    for (char *slash = whole + root_len + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        if (mkdir(whole, 0755) < 0 && errno != EEXIST)
            fake_die("mkdir %s: %s", whole, strerror(errno));
        *slash = '/';
    }
}

static int open_file(const struct fake_machine *machine, char *whole)
{
    int fd = open(whole, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    if (fd < 0 && errno == ENOENT) {
        make_directories(whole, strlen(machine->root));
        fd = open(whole, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    }
    if (fd < 0)
        fake_die("open %s: %s", whole, strerror(errno));
    return fd;
}

void fake_tree_put(const struct fake_machine *machine, const char *path, const void *data,
                   size_t len)
{
    char whole[WHOLE_PATH_BYTES], made[WHOLE_PATH_BYTES + 8];
    int fd;

    if (is_spared(machine, path))
        return;
    whole_path(machine, path, whole);
    snprintf(made, sizeof(made), "%s%s", whole, machine->is_replaced ? ".new" : "");
    fd = open_file(machine, made);
    if (pwrite(fd, data, len, 0) != (ssize_t)len || ftruncate(fd, (off_t)len) < 0)
        fake_die("write %s: %s", made, strerror(errno));
    close(fd);
    if (machine->is_replaced && rename(made, whole) < 0)
        fake_die("rename %s: %s", made, strerror(errno));
}

void fake_tree_print(const struct fake_machine *machine, const char *path, const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list arguments;
    int len;

    va_start(arguments, format);
    len = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (len < 0 || len >= TEXT_BYTES)
        fake_die("%s: its text is too long", path);
    fake_tree_put(machine, path, text, (size_t)len);
}

void fake_tree_link(const struct fake_machine *machine, const char *path, const char *target)
{
    char whole[WHOLE_PATH_BYTES];

    whole_path(machine, path, whole);
    make_directories(whole, strlen(machine->root));
    if (symlink(target, whole) < 0 && errno != EEXIST)
        fake_die("symlink %s: %s", whole, strerror(errno));
}

void fake_tree_make_directory(const struct fake_machine *machine, const char *path)
{
    char whole[WHOLE_PATH_BYTES + 1];

    whole_path(machine, path, whole);
    strcat(whole, "/");
    make_directories(whole, strlen(machine->root));
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

void fake_tree_remove(const struct fake_machine *machine, const char *path)
{
    char whole[WHOLE_PATH_BYTES];
    struct stat status;

    whole_path(machine, path, whole);
    if (lstat(whole, &status) < 0)
        return;
    if (nftw(whole, remove_one, 8, FTW_DEPTH | FTW_PHYS) != 0)
        fake_die("remove %s: %s", whole, strerror(errno));
}
