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

void usage_forget_gauges(struct usage *usage)
{
    usage->valid &= USAGE_COUNTERS;
    usage->rdma_count = usage->hugetlb_count = 0;
}

/* From here on: of those with memory of their own. */

void usage_done(struct usage *usage)
{
    free(usage->io);
    free(usage->rdma);
    free(usage->hugetlb);
    *usage = (struct usage){0};
}

/* One more. */
static int grow(void **items, uint8_t *room, size_t count, size_t max, size_t size_bytes)
{
    void *grown;

    if (count < *room || count >= max)
        return 0;
    grown = realloc(*items, (count + 1) * size_bytes);
    if (!grown)
        return -ENOMEM;
    *items = grown;
    *room = (uint8_t)(count + 1);
    return 0;
}

/* NULL with 0: there are too many. */
static int own_io(struct usage *usage, const struct usage_io *like, struct usage_io **ret_io)
{
    int r;

    *ret_io = usage_find_io(usage, like->major, like->minor);
    if (*ret_io)
        return 0;
    r = grow((void **)&usage->io, &usage->io_room, usage->io_count, USAGE_IO_MAX,
             sizeof(*usage->io));
    if (r < 0)
        return r;
    *ret_io = usage_add_io(usage, like->major, like->minor);
    if (*ret_io)
        memcpy((*ret_io)->device, like->device, sizeof(like->device));
    return 0;
}

static int add_io(struct usage *to, const struct usage_io *from, bool is_sum)
{
    struct usage_io *io;
    int r = own_io(to, from, &io);

    for (size_t f = 0; io && f < USAGE_IO_FIELDS; f++)
        if (from->valid & 1U << f)
            io->values[f] = from->values[f] + (is_sum && io->valid & 1U << f ? io->values[f] : 0);
    if (io)
        io->valid |= from->valid;
    return r;
}

static int add_rdma(struct usage *to, const struct usage_rdma *from)
{
    struct usage_rdma *rdma = usage_find_rdma(to, from->device);
    int r;

    if (!rdma) {
        r = grow((void **)&to->rdma, &to->rdma_room, to->rdma_count, USAGE_RDMA_MAX,
                 sizeof(*to->rdma));
        if (r < 0 || to->rdma_count == USAGE_RDMA_MAX)
            return r;
        to->rdma[to->rdma_count++] = *from;
        return 0;
    }
    rdma->has_handles |= from->has_handles;
    rdma->has_objects |= from->has_objects;
    rdma->handles += from->handles;
    rdma->objects += from->objects;
    return 0;
}

static int add_hugetlb(struct usage *to, const struct usage_hugetlb *from)
{
    struct usage_hugetlb *hugetlb = usage_find_hugetlb(to, from->page_bytes);
    int r;

    if (!hugetlb) {
        r = grow((void **)&to->hugetlb, &to->hugetlb_room, to->hugetlb_count, USAGE_HUGETLB_MAX,
                 sizeof(*to->hugetlb));
        if (r < 0 || to->hugetlb_count == USAGE_HUGETLB_MAX)
            return r;
        to->hugetlb[to->hugetlb_count++] = *from;
        return 0;
    }
    hugetlb->used_bytes += from->used_bytes;
    return 0;
}

static int add_devices(struct usage *to, const struct usage *from)
{
    int result = 0, r;

    for (size_t i = 0; i < from->rdma_count; i++)
        if ((r = add_rdma(to, &from->rdma[i])) < 0)
            result = r;
    for (size_t i = 0; i < from->hugetlb_count; i++)
        if ((r = add_hugetlb(to, &from->hugetlb[i])) < 0)
            result = r;
    return result;
}

static void set_fields(struct usage *to, const struct usage *from, uint32_t fields)
{
    for (size_t f = 0; f < USAGE_FIELDS; f++)
        if (from->valid & fields & USAGE_BIT(f))
            to->values[f] = from->values[f];
    to->valid |= from->valid & fields;
}

int usage_copy_counters(struct usage *to, const struct usage *from)
{
    int result = 0, r;

    set_fields(to, from, USAGE_COUNTERS);
    for (size_t i = 0; i < from->io_count; i++)
        if ((r = add_io(to, &from->io[i], false)) < 0)
            result = r;
    return result;
}

int usage_copy(struct usage *to, const struct usage *from)
{
    int r, result;

    to->valid = 0;
    to->io_count = to->rdma_count = to->hugetlb_count = 0;
    set_fields(to, from, ~0U);
    result = usage_copy_counters(to, from);
    r = add_devices(to, from);
    to->left_out = from->left_out;
    return r < 0 ? r : result;
}

static void add_field(struct usage *to, enum usage_field field, uint64_t value)
{
    uint64_t *sum = &to->values[field];

    if (!usage_has(to, field))
        *sum = value;
    else if (field == USAGE_MEMORY_LIMIT_BYTES)
        *sum = MIN(*sum, value);
    else
        *sum += value;
    to->valid |= USAGE_BIT(field);
}

int usage_add(struct usage *to, const struct usage *from)
{
    int result, r;

    for (size_t f = 0; f < USAGE_FIELDS; f++)
        if (from->valid & USAGE_BIT(f))
            add_field(to, (enum usage_field)f, from->values[f]);
    result = add_devices(to, from);
    for (size_t i = 0; i < from->io_count; i++)
        if ((r = add_io(to, &from->io[i], true)) < 0)
            result = r;
    to->left_out += from->left_out;
    return result;
}
