#include "model/usage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"

struct usage_io *usage_find_io(const struct usage *usage, uint32_t major, uint32_t minor)
{
    for (size_t i = 0; i < usage->io_count; i++)
        if (usage->io[i].major == major && usage->io[i].minor == minor)
            return &usage->io[i];
    return NULL;
}

struct usage_io *usage_add_io(struct usage *usage, uint32_t major, uint32_t minor)
{
    struct usage_io *io = usage_find_io(usage, major, minor);

    if (io)
        return io;
    if (usage->io_count == usage->io_room) {
        usage->left_out++;
        return NULL;
    }
    io = &usage->io[usage->io_count++];
    *io = (struct usage_io){.major = major, .minor = minor};
    return io;
}

struct usage_rdma *usage_find_rdma(const struct usage *usage, const char *device)
{
    for (size_t i = 0; i < usage->rdma_count; i++)
        if (strcmp(usage->rdma[i].device, device) == 0)
            return &usage->rdma[i];
    return NULL;
}

struct usage_hugetlb *usage_find_hugetlb(const struct usage *usage, uint64_t page_bytes)
{
    for (size_t i = 0; i < usage->hugetlb_count; i++)
        if (usage->hugetlb[i].page_bytes == page_bytes)
            return &usage->hugetlb[i];
    return NULL;
}

void usage_clear_gauges(struct usage *usage)
{
    usage->valid &= USAGE_COUNTERS;
    usage->rdma_count = usage->hugetlb_count = 0;
}

void usage_done(struct usage *usage)
{
    free(usage->io);
    free(usage->rdma);
    free(usage->hugetlb);
    *usage = (struct usage){0};
}

/* Makes room for one more item. `items` is the address of the pointer to them. */
static int usage_grow(void *items, uint8_t *room, size_t count, size_t size_bytes)
{
    void *old, *grown;

    if (count < *room)
        return 0;
    memcpy(&old, items, sizeof(old));
    grown = realloc(old, (count + 1) * size_bytes);
    if (!grown)
        return -ENOMEM;
    memcpy(items, &grown, sizeof(grown));
    *room = (uint8_t)(count + 1);
    return 0;
}

static int usage_merge_io(struct usage *to, const struct usage_io *from, bool is_sum)
{
    struct usage_io *io = usage_find_io(to, from->major, from->minor);

    if (!io) {
        if (to->io_count == USAGE_IO_MAX) {
            to->left_out++;
            return 0;
        }
        if (usage_grow(&to->io, &to->io_room, to->io_count, sizeof(*io)) < 0)
            return -ENOMEM;
        to->io[to->io_count++] = *from;
        return 0;
    }
    for (size_t f = 0; f < USAGE_IO_FIELDS; f++)
        if (from->valid & 1U << f)
            io->values[f] = from->values[f] + (is_sum && io->valid & 1U << f ? io->values[f] : 0);
    io->valid |= from->valid;
    return 0;
}

static int usage_add_rdma(struct usage *to, const struct usage_rdma *from)
{
    struct usage_rdma *rdma = usage_find_rdma(to, from->device);

    if (rdma) {
        rdma->has_handles |= from->has_handles;
        rdma->has_objects |= from->has_objects;
        rdma->handles += from->handles;
        rdma->objects += from->objects;
    } else if (to->rdma_count < USAGE_RDMA_MAX) {
        if (usage_grow(&to->rdma, &to->rdma_room, to->rdma_count, sizeof(*rdma)) < 0)
            return -ENOMEM;
        to->rdma[to->rdma_count++] = *from;
    }
    return 0;
}

static int usage_add_hugetlb(struct usage *to, const struct usage_hugetlb *from)
{
    struct usage_hugetlb *hugetlb = usage_find_hugetlb(to, from->page_bytes);

    if (hugetlb) {
        hugetlb->used_bytes += from->used_bytes;
    } else if (to->hugetlb_count < USAGE_HUGETLB_MAX) {
        if (usage_grow(&to->hugetlb, &to->hugetlb_room, to->hugetlb_count, sizeof(*hugetlb)) < 0)
            return -ENOMEM;
        to->hugetlb[to->hugetlb_count++] = *from;
    }
    return 0;
}

int usage_copy_counters(struct usage *to, const struct usage *from)
{
    int r = 0;

    for (size_t f = 0; f < USAGE_FIELDS; f++)
        if (from->valid & USAGE_COUNTERS & USAGE_BIT(f))
            to->values[f] = from->values[f];
    to->valid |= from->valid & USAGE_COUNTERS;
    for (size_t i = 0; i < from->io_count; i++)
        r |= usage_merge_io(to, &from->io[i], false);
    return r;
}

int usage_raise(struct usage *usage, const struct usage *other)
{
    int r = 0;

    for (size_t f = 0; f < USAGE_FIELDS; f++)
        if (other->valid & USAGE_COUNTERS & USAGE_BIT(f))
            usage->values[f] = usage_has(usage, (enum usage_field)f)
                                   ? MAX(usage->values[f], other->values[f])
                                   : other->values[f];
    usage->valid |= other->valid & USAGE_COUNTERS;
    for (size_t i = 0; i < other->io_count; i++) {
        const struct usage_io *from = &other->io[i];
        struct usage_io raised = *from, *io = usage_find_io(usage, from->major, from->minor);

        for (size_t f = 0; io && f < USAGE_IO_FIELDS; f++)
            if (io->valid & from->valid & 1U << f)
                raised.values[f] = MAX(io->values[f], from->values[f]);
        r |= usage_merge_io(usage, &raised, false);
    }
    return r;
}

int usage_copy(struct usage *to, const struct usage *from)
{
    to->valid = to->left_out = 0;
    to->io_count = to->rdma_count = to->hugetlb_count = 0;
    return usage_add(to, from);
}

int usage_add(struct usage *to, const struct usage *from)
{
    int r = 0;

    for (size_t f = 0; f < USAGE_FIELDS; f++) {
        uint64_t value = from->values[f];

        if (!(from->valid & USAGE_BIT(f)))
            continue;
        if (!usage_has(to, (enum usage_field)f))
            to->values[f] = value;
        else if (f == USAGE_MEMORY_LIMIT_BYTES || f == USAGE_CPUS_THOUSANDTHS)
            to->values[f] = MIN(to->values[f], value);
        else
            to->values[f] += value;
    }
    to->valid |= from->valid;
    /* Each returns 0 or -ENOMEM. */
    for (size_t i = 0; i < from->io_count; i++)
        r |= usage_merge_io(to, &from->io[i], true);
    for (size_t i = 0; i < from->rdma_count; i++)
        r |= usage_add_rdma(to, &from->rdma[i]);
    for (size_t i = 0; i < from->hugetlb_count; i++)
        r |= usage_add_hugetlb(to, &from->hugetlb[i]);
    to->left_out += from->left_out;
    return r;
}
