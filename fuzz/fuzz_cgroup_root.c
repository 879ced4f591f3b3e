/*
 * A root, a newline and the text of a /proc/PID/cgroup: rewriting stays in its buffer, and doing it
 * from the node's own root changes nothing. So does marking what is delegated, and a path below one
 * that a tenant was given never loses its mark.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "host/host.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Directories whose names end so are a tenant's, or gone. */
static int look_up(const void *context, struct span controllers, const char *path,
                   uint32_t *ret_delegated_to)
{
    char last = path[0] ? path[strlen(path) - 1] : 'g';

    (void)context;
    if (span_equals(controllers, "unseen"))
        return -ENODEV;
    *ret_delegated_to = last == 't' ? 1000 : last == '0' ? 0 : CGROUP_NOT_DELEGATED;
    return last == 'g' ? -ENOENT : 0;
}

static void mark(char *buffer, size_t room, size_t len)
{
    struct span text = {buffer, len};

    cgroup_mark_file(look_up, NULL, buffer, room, &len);
    if (len >= room || buffer[len] != '\0')
        abort();
    text = (struct span){buffer, len};
    while (text.len > 0) {
        struct span path = span_cut(&text, '\n'), component;
        struct cgroup_mark found;

        span_cut(&path, ':');
        /* Nothing that the kernel writes. */
        if (span_equals(span_cut(&path, ':'), "unseen") || path.len < 2 || path.data[0] != '/' ||
            path.data[1] == '/' || memchr(path.data, '\0', path.len) || host_is_outside(path))
            continue;
        path = cgroup_mark_find(path, &found) ? found.above : path;
        while (path.len > 0) { /* nothing is below one that is a tenant's */
            component = span_cut(&path, '/');
            if (path.len > 0 && component.len > 0 &&
                memchr("t0g", component.data[component.len - 1], 3))
                abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = {(const char *)data, size};
    struct span root = span_cut(&text, '\n');
    /* Room for most of it, so that both outcomes are seen. */
    size_t len = text.len, room = text.len + 1 + root.len / 2;
    _cleanup_free_ char *buffer = malloc(room);

    if (!buffer)
        return 0;
    if (text.len > 0)
        memcpy(buffer, text.data, text.len);
    buffer[text.len] = '\0';
    if (host_apply_cgroup_root(span_of(""), buffer, room, &len) != 0 || len != text.len ||
        memcmp(buffer, text.len ? text.data : "", len) != 0)
        abort();
    if (host_apply_cgroup_root(root, buffer, room, &len) == 0 &&
        (len >= room || buffer[len] != '\0'))
        abort();
    mark(buffer, room, len);
    return 0;
}
