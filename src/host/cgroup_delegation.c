#include "host/cgroup_delegation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "core/parse.h"
#include "host/cgroup_hierarchy.h"
#include "host/host.h"

uint32_t cgroup_delegated_to(const struct stat *st)
{
    bool is_shared = (st->st_mode & S_IWOTH) || ((st->st_mode & S_IWGRP) && st->st_gid != 0);

    return st->st_uid != 0 ? st->st_uid : is_shared ? 0 : CGROUP_NOT_DELEGATED;
}

bool cgroup_mark_find(struct span path, struct cgroup_mark *ret_mark)
{
    for (size_t i = 1; i + 2 < path.len; i++) {
        struct span below = {path.data + i + 2, path.len - i - 2}, uid;
        uint64_t value;

        if (path.data[i] != '/' || path.data[i + 1] != '/')
            continue;
        uid = span_cut(&below, '/');
        if (parse_u64_max(uid, UINT32_MAX - 1, &value) < 0)
            continue;
        *ret_mark = (struct cgroup_mark){{path.data, i}, below, (uint32_t)value};
        return true;
    }
    return false;
}

/* What a path shows: up to `len` it is as it was, and what is below was named by `uid`, or is not
 * known. */
struct limit {
    size_t len;
    bool is_delegated;
    bool is_unseen;
    uint32_t uid;
};

/* The path begins with '/', and the byte after it may be written to. */
static struct limit find_limit(cgroup_look_up *look_up, const void *context,
                               struct span controllers, char *path, size_t len)
{
    for (size_t end = 2; end <= len; end++) {
        char after = path[end];
        uint32_t uid;
        int r;

        if (end < len && after != '/')
            continue;
        path[end] = '\0';
        r = look_up(context, controllers, path + 1, &uid);
        path[end] = after;
        if (r < 0)
            return (struct limit){.len = r == -ENODEV ? len : end, .is_unseen = true};
        if (uid != CGROUP_NOT_DELEGATED)
            return (struct limit){.len = end, .is_delegated = true, .uid = uid};
    }
    return (struct limit){.len = len};
}

/* Replaces what is in `text` from `at` to `end`. False: it does not fit. */
static bool replace_text(char *text, size_t size_bytes, size_t *len, size_t at, size_t end,
                         struct span with)
{
    size_t new_len = *len - (end - at) + with.len;

    if (new_len >= size_bytes)
        return false;
    memmove(text + at + with.len, text + end, *len - end);
    memcpy(text + at, with.data, with.len);
    text[new_len] = '\0';
    *len = new_len;
    return true;
}

/* `roots` is a path that root alone has made in some hierarchy. A process with this path in several
 * was put there by root, whoever owns the others, so one look-up does: v1 has a dozen. */
static void mark_line(cgroup_look_up *look_up, const void *context, char *text, size_t size_bytes,
                      size_t *len, size_t begin, size_t end, struct span *roots)
{
    struct span path = {text + begin, end - begin}, controllers;
    char mark[CGROUP_MARK_BYTES];
    struct limit limit;
    size_t at;

    span_cut(&path, ':');
    controllers = span_cut(&path, ':');
    at = end - path.len;
    if (path.len < 2 || path.data[0] != '/' || path.data[1] == '/' || host_is_outside(path) ||
        (path.len == roots->len && memcmp(path.data, roots->data, path.len) == 0))
        return;
    limit = find_limit(look_up, context, controllers, text + at, path.len);
    if (!limit.is_delegated && !limit.is_unseen)
        *roots = path;
    snprintf(mark, sizeof(mark), "//%u", limit.uid);
    /* Without room for the mark, what is below must not pass for root's. */
    if (!limit.is_delegated ||
        !replace_text(text, size_bytes, len, at + limit.len, at + limit.len, span_of(mark)))
        (void)replace_text(text, size_bytes, len, at + limit.len, end, span_of(""));
}

void cgroup_mark_file(cgroup_look_up *look_up, const void *context, char *text, size_t size_bytes,
                      size_t *len)
{
    struct span roots = {NULL, 0};

    for (size_t at = 0, end, old_len; at < *len; at = end + *len - old_len + 1) {
        const char *newline = memchr(text + at, '\n', *len - at);

        end = newline ? (size_t)(newline - text) : *len;
        old_len = *len;
        mark_line(look_up, context, text, size_bytes, len, at, end, &roots);
    }
}

/* From here on: the file systems. */

/* v2, those of the kernel's controllers in v1, and a few that have only a name. */
enum { VIEWS_MAX = 24 };

struct cgroup_views {
    struct {
        int fd;
        char options[HIERARCHY_OPTIONS_BYTES]; /* as mounted; "" for v2 */
    } items[VIEWS_MAX];
    size_t count;
};

static void add_view(void *context, const struct hierarchy_mount *mount, int fd)
{
    struct cgroup_views *views = context;
    struct stat st;

    for (size_t i = 0; i < views->count; i++)
        if (strcmp(views->items[i].options, mount->options) == 0)
            return;
    if (views->count == VIEWS_MAX || fstat(fd, &st) < 0 || st.st_uid != 0)
        return;
    snprintf(views->items[views->count].options, sizeof(views->items[0].options), "%s",
             mount->options);
    views->items[views->count].fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    views->count += views->items[views->count].fd >= 0;
}

struct cgroup_views *cgroup_views_open(const struct host *host)
{
    struct cgroup_views *views = calloc(1, sizeof(*views));

    if (views)
        hierarchy_each_mount(host, add_view, views);
    return views;
}

void cgroup_views_close(struct cgroup_views *views)
{
    while (views && views->count > 0)
        cleanup_close(&views->items[--views->count].fd);
    free(views);
}

static bool has_option(const char *options, struct span option)
{
    struct span rest = span_of(options);

    while (rest.len > 0) {
        struct span one = span_cut(&rest, ',');

        if (one.len == option.len && memcmp(one.data, option.data, one.len) == 0)
            return true;
    }
    return false;
}

/* -1: the hierarchy cannot be seen. A controller, or a name, is in one hierarchy only, so the first
 * suffices. */
static int find_view(const struct cgroup_views *views, struct span controllers)
{
    struct span first = span_cut(&controllers, ',');

    for (size_t i = 0; i < views->count; i++)
        if (first.len == 0 ? views->items[i].options[0] == '\0'
                           : has_option(views->items[i].options, first))
            return views->items[i].fd;
    return -1;
}

static int look_up(const void *context, struct span controllers, const char *path,
                   uint32_t *ret_delegated_to)
{
    int fd = find_view(context, controllers);
    struct stat st;

    if (fd < 0)
        return -ENODEV;
    if (fstatat(fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -ENOENT;
    *ret_delegated_to = cgroup_delegated_to(&st);
    return 0;
}

void cgroup_views_mark(const struct cgroup_views *views, char *text, size_t size_bytes, size_t *len)
{
    if (views)
        cgroup_mark_file(look_up, views, text, size_bytes, len);
}
