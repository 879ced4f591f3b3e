#include "sources/cgroup/parse.h"

#include <errno.h>

#include "core/macros.h"
#include "core/parse.h"

/* "KEY VALUE" lines. A line that is not of this form, or has no end, is not believed: the start of
 * a number is a number, too. */
struct keyed_field {
    const char *key;
    enum usage_field field;
    uint32_t multiplier, divisor; /* of the file's unit into ours */
};

/* False behind the last line. */
static bool next_line(struct span *text, struct span *ret_line)
{
    const char *end = text->len ? memchr(text->data, '\n', text->len) : NULL;

    if (!end)
        return false;
    *ret_line = (struct span){text->data, (size_t)(end - text->data)};
    *text = (struct span){end + 1, text->len - ret_line->len - 1};
    return true;
}

static const struct keyed_field *find_field(const struct keyed_field *fields, size_t count,
                                            struct span key)
{
    for (size_t i = 0; i < count; i++)
        if (key.len > 0 && fields[i].key[0] == key.data[0] && span_equals(key, fields[i].key))
            return &fields[i];
    return NULL;
}

static void parse_keyed(struct span text, const struct keyed_field *fields, size_t count,
                        struct usage *usage)
{
    size_t left = count; /* memory.stat is long, and what we want is not at its end */
    struct span line;

    while (left > 0 && next_line(&text, &line)) {
        struct span key = span_cut(&line, ' ');
        const struct keyed_field *field = find_field(fields, count, key);
        uint64_t value;

        if (!field)
            continue;
        left--;
        if (parse_u64_max(line, USAGE_VALUE_MAX / field->multiplier, &value) == 0)
            usage_set(usage, field->field, value * field->multiplier / field->divisor);
    }
}

int cgroup_parse_number(struct span text, uint64_t *ret_value)
{
    struct span line;

    if (!next_line(&text, &line) || text.len > 0)
        return -EINVAL;
    return span_equals(line, "max") ? -ERANGE : parse_u64_max(line, USAGE_VALUE_MAX, ret_value);
}

enum {
    NS_PER_US = 1000,
    TICK_US =
        10000, /* USER_HZ is 100 on all that we run on; it only divides, see cpu_stat_divide */
};

void cpu_stat_parse(struct span text, struct usage *usage)
{
    static const struct keyed_field fields[] = {
        {"usage_usec", USAGE_CPU_US, 1, 1},
        {"user_usec", USAGE_CPU_USER_US, 1, 1},
        {"system_usec", USAGE_CPU_SYSTEM_US, 1, 1},
        {"nr_periods", USAGE_CPU_PERIODS, 1, 1},
        {"nr_throttled", USAGE_CPU_THROTTLED_PERIODS, 1, 1},
        {"throttled_usec", USAGE_CPU_THROTTLED_US, 1, 1},
    };

    parse_keyed(text, fields, ARRAY_SIZE(fields), usage);
}

void cpu_stat_parse_v1(struct span text, struct usage *usage)
{
    static const struct keyed_field fields[] = {
        {"nr_periods", USAGE_CPU_PERIODS, 1, 1},
        {"nr_throttled", USAGE_CPU_THROTTLED_PERIODS, 1, 1},
        {"throttled_time", USAGE_CPU_THROTTLED_US, 1, NS_PER_US},
    };

    parse_keyed(text, fields, ARRAY_SIZE(fields), usage);
}

void cpu_stat_parse_cpuacct(struct span text, struct usage *usage)
{
    static const struct keyed_field fields[] = {
        {"user", USAGE_CPU_USER_US, TICK_US, 1},
        {"system", USAGE_CPU_SYSTEM_US, TICK_US, 1},
    };

    parse_keyed(text, fields, ARRAY_SIZE(fields), usage);
}

void cpu_stat_parse_cpuacct_usage(struct span text, struct usage *usage)
{
    uint64_t used_ns;

    if (cgroup_parse_number(text, &used_ns) == 0)
        usage_set(usage, USAGE_CPU_US, used_ns / NS_PER_US);
}

static uint64_t user_part(uint64_t total, uint64_t user, uint64_t system)
{
    /* As the kernel does where no tick has hit yet (cputime_adjust). */
    if (user + system == 0)
        return total;
    return (uint64_t)((unsigned __int128)total * user / (user + system));
}

void cpu_stat_divide(struct usage *usage, const struct usage *last)
{
    const uint32_t all =
        USAGE_BIT(USAGE_CPU_US) | USAGE_BIT(USAGE_CPU_USER_US) | USAGE_BIT(USAGE_CPU_SYSTEM_US);
    uint64_t *user = &usage->values[USAGE_CPU_USER_US];
    uint64_t *system = &usage->values[USAGE_CPU_SYSTEM_US];
    uint64_t total = usage->values[USAGE_CPU_US];
    uint64_t last_user = last->values[USAGE_CPU_USER_US];
    uint64_t last_system = last->values[USAGE_CPU_SYSTEM_US];

    if ((usage->valid & all) != all)
        return;
    *user = user_part(total, *user, *system);
    if ((last->valid & all) == all && total >= last_user + last_system)
        *user = MIN(MAX(*user, last_user), total - last_system);
    *system = total - *user;
}

void memory_stat_parse(struct span text, struct usage *usage)
{
    static const struct keyed_field fields[] = {
        {"anon", USAGE_MEMORY_RSS_BYTES, 1, 1},
        {"file", USAGE_MEMORY_CACHE_BYTES, 1, 1},
        {"inactive_file", USAGE_MEMORY_INACTIVE_FILE_BYTES, 1, 1},
    };

    parse_keyed(text, fields, ARRAY_SIZE(fields), usage);
}

void memory_stat_parse_events(struct span text, struct usage *usage)
{
    static const struct keyed_field fields[] = {
        {"max", USAGE_MEMORY_FAILURES, 1, 1},
        {"oom_kill", USAGE_MEMORY_OOM_KILLS, 1, 1},
    };

    parse_keyed(text, fields, ARRAY_SIZE(fields), usage);
}

void memory_stat_parse_v1(struct span text, struct usage *usage)
{
    static const struct keyed_field fields[] = {
        {"hierarchical_memory_limit", USAGE_MEMORY_LIMIT_BYTES, 1, 1},
        {"total_cache", USAGE_MEMORY_CACHE_BYTES, 1, 1},
        {"total_rss", USAGE_MEMORY_RSS_BYTES, 1, 1},
        {"total_swap", USAGE_MEMORY_SWAP_BYTES, 1, 1},
        {"total_inactive_file", USAGE_MEMORY_INACTIVE_FILE_BYTES, 1, 1},
    };

    parse_keyed(text, fields, ARRAY_SIZE(fields), usage);
}

void memory_stat_parse_oom_control(struct span text, struct usage *usage)
{
    static const struct keyed_field fields[] = {{"oom_kill", USAGE_MEMORY_OOM_KILLS, 1, 1}};

    parse_keyed(text, fields, ARRAY_SIZE(fields), usage);
}

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

static void take_io_pair(struct usage *usage, struct device device, struct span pair)
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

    while (next_line(&text, &line)) {
        struct device device;
        bool has_device = false;

        while (line.len > 0) {
            struct span word = span_cut(&line, ' ');

            if (!memchr(word.data, '=', word.len))
                has_device = parse_device(word, &device);
            else if (has_device)
                take_io_pair(usage, device, word);
        }
    }
}

static void parse_blkio(struct span text, enum usage_io_field read, enum usage_io_field written,
                        struct usage *usage)
{
    struct span line;

    while (next_line(&text, &line)) {
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

static bool find_total(struct span line, uint64_t *ret_us)
{
    while (line.len > 0) {
        struct span word = span_cut(&line, ' ');

        if (span_strip_prefix(&word, "total="))
            return parse_u64_max(word, USAGE_VALUE_MAX, ret_us) == 0;
    }
    return false;
}

static void parse_pressure(struct span text, enum usage_field some, enum usage_field full,
                           struct usage *usage)
{
    struct span line;

    while (next_line(&text, &line)) {
        uint64_t total_us;

        if (!find_total(line, &total_us))
            continue;
        if (span_strip_prefix(&line, "some "))
            usage_set(usage, some, total_us);
        else if (span_strip_prefix(&line, "full "))
            usage_set(usage, full, total_us);
    }
}

void pressure_parse_cpu(struct span text, struct usage *usage)
{
    parse_pressure(text, USAGE_CPU_SOME_US, USAGE_CPU_FULL_US, usage);
}

void pressure_parse_memory(struct span text, struct usage *usage)
{
    parse_pressure(text, USAGE_MEMORY_SOME_US, USAGE_MEMORY_FULL_US, usage);
}

void pressure_parse_io(struct span text, struct usage *usage)
{
    parse_pressure(text, USAGE_IO_SOME_US, USAGE_IO_FULL_US, usage);
}

static void take_rdma_pair(struct span pair, struct usage_rdma *rdma)
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

static bool is_known_rdma(const struct usage *usage, struct span device)
{
    for (size_t i = 0; i < usage->rdma_count; i++)
        if (span_equals(device, usage->rdma[i].device))
            return true;
    return false;
}

void rdma_parse(struct span text, struct usage *usage)
{
    struct span line;

    while (next_line(&text, &line)) {
        struct span device = span_cut(&line, ' ');
        struct usage_rdma rdma = {.device = ""};

        if (device.len == 0 || memchr(device.data, '\0', device.len) ||
            is_known_rdma(usage, device))
            continue;
        if (device.len >= sizeof(rdma.device) || usage->rdma_count == usage->rdma_room) {
            usage->left_out++;
            continue;
        }
        memcpy(rdma.device, device.data, device.len);
        while (line.len > 0)
            take_rdma_pair(span_cut(&line, ' '), &rdma);
        if (rdma.has_handles || rdma.has_objects)
            usage->rdma[usage->rdma_count++] = rdma;
    }
}
