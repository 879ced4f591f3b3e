/*
 * One byte that chooses the parser, then the text of a cgroup file or of mountinfo: any bytes give
 * values within bounds. To read a text twice changes nothing, as nobody has two values of a kind.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "host/cgroup_hierarchy.h"
#include "sources/cgroup/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct usage *usage)
{
    if (usage->io_count > USAGE_IO_MAX || usage->rdma_count > USAGE_RDMA_MAX ||
        usage->valid >> USAGE_FIELDS)
        abort();
    for (size_t i = 0; i < USAGE_FIELDS; i++)
        if (usage_has(usage, (enum usage_field)i) && usage->values[i] > USAGE_VALUE_MAX)
            abort();
    for (size_t i = 0; i < usage->io_count; i++)
        if (usage->io[i].valid == 0)
            abort();
    for (size_t i = 0; i < usage->rdma_count; i++)
        if (!memchr(usage->rdma[i].device, '\0', sizeof(usage->rdma[i].device)))
            abort();
}

static void parse_mountinfo(struct span text)
{
    struct hierarchy_mount mount;

    while (text.len > 0)
        if (hierarchy_parse_mount(span_cut(&text, '\n'), &mount) &&
            (!memchr(mount.point, '\0', sizeof(mount.point)) ||
             !memchr(mount.options, '\0', sizeof(mount.options)) ||
             (mount.options[0] == '\0') != mount.unified || (mount.unified && mount.controllers)))
            abort();
}

/* Limits are settings, in files of their own. */
static void parse_limits(struct span text)
{
    uint64_t value;

    if (cgroup_parse_quota(text, &value) == 0 && value > USAGE_VALUE_MAX)
        abort();
    if (cgroup_parse_cpuset(text, &value) == 0 && (value == 0 || value > 1 << 16))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* In the order of the corpus. */
    static const struct {
        bool is_v2;
        const char *file;
    } formats[] = {
        {true, "cpu.stat"},
        {false, "cpu.stat"},
        {false, "cpuacct.stat"},
        {false, "cpuacct.usage"},
        {true, "memory.stat"},
        {false, "memory.stat"},
        {true, "memory.events"},
        {false, "memory.oom_control"},
        {true, "io.stat"},
        {false, "blkio.throttle.io_service_bytes_recursive"},
        {false, "blkio.throttle.io_serviced_recursive"},
        {true, "cpu.pressure"},
        {true, "rdma.current"},
    };
    const struct cgroup_format *format = cgroup_formats;
    struct usage_storage room = {0}, room_again = {0};
    struct usage usage = usage_in(&room), again = usage_in(&room_again);
    struct span text;
    size_t choice;

    if (size < 2)
        return 0;
    text = (struct span){(const char *)data + 1, size - 1};
    parse_limits(text);
    choice = (size_t)(data[0] - 'a') % (ARRAY_SIZE(formats) + 1);
    if (choice == ARRAY_SIZE(formats)) {
        parse_mountinfo(text);
        return 0;
    }
    while (format->is_v2 != formats[choice].is_v2 ||
           strcmp(format->name, formats[choice].file) != 0)
        format++;
    format->parse(format, text, &usage);
    check(&usage);
    room_again = room;
    again.valid = usage.valid;
    again.io_count = usage.io_count;
    again.rdma_count = usage.rdma_count;
    memcpy(again.values, usage.values, sizeof(again.values));
    format->parse(format, text, &again);
    if (again.valid != usage.valid || again.io_count != usage.io_count ||
        again.rdma_count != usage.rdma_count ||
        memcmp(usage.values, again.values, sizeof(usage.values)) != 0 ||
        memcmp(&room, &room_again, sizeof(room)) != 0)
        abort();
    cgroup_divide_cpu(&usage, &again);
    check(&usage);
    return 0;
}
