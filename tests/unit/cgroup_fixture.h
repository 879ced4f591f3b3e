/* A procfs and a sysfs with cgroup hierarchies made of ordinary files, and a reader over them. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/cgroup_verdict.h"
#include "core/fs.h"
#include "core/macros.h"
#include "sources/cgroup/reader.h"

#define MOUNT(path, type, options)                                                                 \
    "33 31 0:30 / /sys/fs/cgroup" path " rw,nosuid shared:11 - " type " x rw" options "\n"

struct fixture {
    char path[40];
    struct host host;
    struct cgroup_reader *reader;
};

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

static void make_parents(const struct fixture *fixture, char *path)
{
    for (char *at = strchr(path + strlen(fixture->path) + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
        *at = '/';
    }
}

/* In the fixture's directory, or below the root of the cgroups. */
static void put(const struct fixture *fixture, const char *name, const char *text)
{
    char path[5000];
    _cleanup_close_ int fd = -1;

    snprintf(path, sizeof(path), "%s/%s", fixture->path, name);
    make_parents(fixture, path);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(fs_write_all(fd, text, strlen(text)), 0);
}

static void put_cgroup(const struct fixture *fixture, const char *name, const char *text)
{
    char path[5000];

    snprintf(path, sizeof(path), "sys/fs/cgroup/%s", name);
    put(fixture, path, text);
}

static void remove_cgroup(const struct fixture *fixture, const char *name)
{
    char path[5000];

    snprintf(path, sizeof(path), "%s/sys/fs/cgroup/%s", fixture->path, name);
    assert_int_equal(nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    if (!fixture)
        return -1;
    strcpy(fixture->path, "/tmp/test_cgroup.XXXXXX");
    if (!mkdtemp(fixture->path))
        return -1;
    *state = fixture;
    return 0;
}

static int open_in(const struct fixture *fixture, const char *name)
{
    char path[64];

    snprintf(path, sizeof(path), "%s/%s", fixture->path, name);
    assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
    return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void open_host(struct fixture *fixture, const char *mountinfo)
{
    put(fixture, "proc/self/mountinfo", mountinfo);
    fixture->host = (struct host){open_in(fixture, "proc"), open_in(fixture, "sys"),
                                  open_in(fixture, "."), NULL};
}

static void start_reader(struct fixture *fixture, const char *mountinfo)
{
    open_host(fixture, mountinfo);
    assert_int_equal(cgroup_reader_new(&fixture->host, cgroup_verdict_find, NULL, &fixture->reader),
                     0);
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    cgroup_reader_free(fixture->reader);
    host_close(&fixture->host);
    nftw(fixture->path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(fixture);
    return 0;
}

static size_t count_items(const struct fixture *fixture)
{
    size_t count;

    (void)cgroup_reader_items(fixture->reader, &count);
    return count;
}

/* NULL: there is none. */
static const struct usage_owner *find_item(const struct fixture *fixture, const char *id)
{
    size_t count;
    const struct usage_owner *items = cgroup_reader_items(fixture->reader, &count);

    for (size_t i = 0; i < count; i++)
        if (strcmp(items[i].owner.id, id) == 0)
            return &items[i];
    return NULL;
}

static const struct usage_owner *get_item(const struct fixture *fixture, const char *id)
{
    const struct usage_owner *item = find_item(fixture, id);

    assert_non_null(item);
    return item;
}

static void assert_value(const struct fixture *fixture, const char *id, enum usage_field field,
                         uint64_t value)
{
    const struct usage_owner *item = get_item(fixture, id);

    assert_true(usage_has(&item->usage, field));
    assert_int_equal(item->usage.values[field], value);
}

static void assert_absent(const struct fixture *fixture, const char *id, enum usage_field field)
{
    assert_false(usage_has(&get_item(fixture, id)->usage, field));
}
