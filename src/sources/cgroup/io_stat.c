#include "sources/cgroup/io_stat.h"

#include "core/macros.h"
#include "core/parse.h"
#include "sources/cgroup/keyed.h"

/* The kernel's numbers have 12 and 20 bits. */
enum { DEVICE_MAJOR_MAX = (1 << 12) - 1, DEVICE_MINOR_MAX = (1 << 20) - 1 };

struct device {
    uint32_t major, minor;
};

static bool parse_device(struct span text, struct device *ret_device)
{
    struct span first = span_cut(&text, ':');
    uint64_t major, minor;

    if (parse_u64_max(first, DEVICE_MAJOR_MAX, &major) < 0 ||
        parse_u64_max(text, DEVICE_MINOR_MAX, &minor) < 0)
        return false;
    *ret_device = (struct device){(uint32_t)major, (uint32_t)minor};
    return true;
}

static void set_value(struct usage *usage, struct device device, enum usage_io_field field,
                      uint64_t value)
{
    struct usage_io *io = usage_add_io(usage, device.major, device.minor);

    if (!io || (io->valid & 1U << field))
        return;
    io->values[field] = value;
    io->valid |= 1U << field;
}

static void take_value(struct usage *usage, struct device device, enum usage_io_field field,
                       struct span text)
{
    uint64_t value;

    if (parse_u64_max(text, USAGE_VALUE_MAX, &value) == 0)
        set_value(usage, device, field, value);
}

static void take_pair(struct usage *usage, struct device device, struct span pair)
{
    static const struct {
        const char *key;
        enum usage_io_field field;
    } keys[] = {
        {"rbytes", USAGE_IO_READ_BYTES},
        {"wbytes", USAGE_IO_WRITTEN_BYTES},
        {"rios", USAGE_IO_READS},
        {"wios", USAGE_IO_WRITES},
    };
    struct span key = span_cut(&pair, '=');

    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        if (span_equals(key, keys[i].key))
            take_value(usage, device, keys[i].field, pair);
}

void io_stat_parse(struct span text, struct usage *usage)
{
    struct span line;

    while (keyed_next_line(&text, &line)) {
        struct device device;
        bool has_device = false;

        while (line.len > 0) {
            struct span word = span_cut(&line, ' ');

            if (!memchr(word.data, '=', word.len))
                has_device = parse_device(word, &device);
            else if (has_device)
                take_pair(usage, device, word);
        }
    }
}

static void parse_blkio(struct span text, enum usage_io_field read, enum usage_io_field written,
                        struct usage *usage)
{
    struct span line;

    while (keyed_next_line(&text, &line)) {
        struct span name = span_cut(&line, ' '), operation = span_cut(&line, ' ');
        struct device device;

        if (!parse_device(name, &device))
            continue;
        if (span_equals(operation, "Read"))
            take_value(usage, device, read, line);
        else if (span_equals(operation, "Write"))
            take_value(usage, device, written, line);
    }
}

void io_stat_parse_blkio_bytes(struct span text, struct usage *usage)
{
    parse_blkio(text, USAGE_IO_READ_BYTES, USAGE_IO_WRITTEN_BYTES, usage);
}

void io_stat_parse_blkio_counts(struct span text, struct usage *usage)
{
    parse_blkio(text, USAGE_IO_READS, USAGE_IO_WRITES, usage);
}

void io_stat_keep(const struct usage *last, uint32_t fields, struct usage *usage)
{
    for (size_t i = 0; i < last->io_count; i++)
        for (enum usage_io_field field = 0; field < USAGE_IO_FIELDS; field++)
            if (last->io[i].valid & fields & 1U << field)
                set_value(usage, (struct device){last->io[i].major, last->io[i].minor}, field,
                          last->io[i].values[field]);
}
