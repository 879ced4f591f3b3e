/* A procfs and a sysfs with cgroup hierarchies made of ordinary files, and a reader over them. */
#pragma once

#include "tree_fixture.h"

#include <stdlib.h>

#include "collector/source_set.h"
#include "core/macros.h"
#include "sources/cgroup/reader.h"

#define MOUNT(path, type, options)                                                                 \
    "33 31 0:30 / /sys/fs/cgroup" path " rw,nosuid shared:11 - " type " x rw" options "\n"

struct fixture {
    char path[40];
    struct host host;
    struct cgroup_reader *reader;
};

/* In the fixture's directory, or below the root of the cgroups. */
static void put(const struct fixture *fixture, const char *name, const char *text)
{
    tree_write(fixture->path, name, text);
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

    snprintf(path, sizeof(path), "sys/fs/cgroup/%s", name);
    tree_remove(fixture->path, path);
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    if (!fixture)
        return -1;
    /* A tmpfs: as in a cgroup file system, no directory gets the inode number of another. */
    strcpy(fixture->path, "/dev/shm/test_cgroup.XXXXXX");
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
    fixture->host = (struct host){.procfs_fd = open_in(fixture, "proc"),
                                  .sysfs_fd = open_in(fixture, "sys"),
                                  .rootfs_fd = open_in(fixture, ".")};
}

static void start_reader(struct fixture *fixture, const char *mountinfo)
{
    open_host(fixture, mountinfo);
    assert_int_equal(
        cgroup_reader_new(&fixture->host, source_set_classify_cgroup, &fixture->reader), 0);
}

/* At most half of the watches are on cgroup.events. */
static void cap_watches(struct cgroup_reader *reader, size_t watches)
{
    reader->tree.watches_max = watches;
    reader->tree.events_watches_max = MIN(watches / 2, reader->tree.events_watches_max);
}

/* A cycle after a report of the one before. */
static void read_next(struct fixture *fixture, bool rescan)
{
    cgroup_reader_set_reported(fixture->reader);
    cgroup_reader_read(fixture->reader, rescan);
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    cgroup_reader_free(fixture->reader);
    host_close(&fixture->host);
    tree_remove(fixture->path, "");
    free(fixture);
    return 0;
}

static size_t count_items(const struct fixture *fixture)
{
    return fixture->reader->count;
}

/* NULL: there is none. */
static const struct usage_owner *find_item(const struct fixture *fixture, const char *id)
{
    const struct usage_owner *items = fixture->reader->items;
    size_t count = fixture->reader->count;

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
