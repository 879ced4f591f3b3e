/* A root, a newline and the text of a /proc/PID/cgroup: rewriting stays in its buffer, and doing it
 * from the node's own root changes nothing. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "host/host.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
    return 0;
}
