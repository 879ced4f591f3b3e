#include "sources/cgroup/rdma.h"

#include "core/parse.h"
#include "sources/cgroup/keyed.h"

static void take_pair(struct span pair, struct usage_rdma *rdma)
{
    struct span key = span_cut(&pair, '=');
    uint64_t value;

    if (parse_u64_max(pair, USAGE_VALUE_MAX, &value) < 0)
        return;
    if (span_equals(key, "hca_handle")) {
        rdma->has_handles = true;
        rdma->handles = value;
    } else if (span_equals(key, "hca_object")) {
        rdma->has_objects = true;
        rdma->objects = value;
    }
}

static bool is_known(const struct usage *usage, struct span device)
{
    for (size_t i = 0; i < usage->rdma_count; i++)
        if (span_equals(device, usage->rdma[i].device))
            return true;
    return false;
}

void rdma_parse(struct span text, struct usage *usage)
{
    struct span line;

    while (keyed_next_line(&text, &line)) {
        struct span device = span_cut(&line, ' ');
        struct usage_rdma rdma = {.device = ""};

        if (device.len == 0 || memchr(device.data, '\0', device.len) || is_known(usage, device))
            continue;
        if (device.len >= sizeof(rdma.device) || usage->rdma_count == usage->rdma_room) {
            usage->left_out++;
            continue;
        }
        memcpy(rdma.device, device.data, device.len);
        while (line.len > 0)
            take_pair(span_cut(&line, ' '), &rdma);
        if (rdma.has_handles || rdma.has_objects)
            usage->rdma[usage->rdma_count++] = rdma;
    }
}
