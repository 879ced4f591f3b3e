#include "sources/cgroup/parse.h"

#include <errno.h>

#include "core/macros.h"
#include "core/parse.h"

enum { CPUS_MAX = 0xffff }; /* numbers; kernels are built for 8192 */

/* False after the last line. A line without an end is not believed: the start of a number is a
 * number, too. */
static bool next_line(struct span *text, struct span *ret_line)
{
    if (text->len == 0 || !memchr(text->data, '\n', text->len))
        return false;
    *ret_line = span_cut(text, '\n');
    return true;
}

int cgroup_parse_number(struct span text, uint64_t *ret_value)
{
    struct span line;

    if (!next_line(&text, &line) || text.len > 0)
        return -EINVAL;
    return span_equals(line, "max") ? -ERANGE : parse_u64_max(line, USAGE_VALUE_MAX, ret_value);
}

int cgroup_parse_quota(struct span text, uint64_t *ret_thousandths)
{
    struct span line, quota;
    uint64_t quota_us, period_us;

    if (!next_line(&text, &line) || text.len > 0)
        return -EINVAL;
    quota = span_cut(&line, ' ');
    if (span_equals(quota, "max") || span_equals(quota, "-1"))
        return -ERANGE;
    if (parse_u64_max(quota, USAGE_VALUE_MAX / 1000, &quota_us) < 0 ||
        parse_u64_max(line, USAGE_VALUE_MAX, &period_us) < 0 || period_us == 0)
        return -EINVAL;
    *ret_thousandths = quota_us * 1000 / period_us;
    return 0;
}

/* Ranges ascend and do not overlap, as the kernel prints them. */
int cgroup_parse_cpuset(struct span text, uint64_t *ret_cpus)
{
    struct span line;
    uint64_t cpus = 0, next = 0;

    if (!next_line(&text, &line) || text.len > 0 || line.len == 0)
        return -EINVAL;
    while (line.len > 0) {
        struct span last = span_cut(&line, ','), first = span_cut(&last, '-');
        uint64_t from, to;

        if (parse_u64_max(first, CPUS_MAX, &from) < 0 || from < next)
            return -EINVAL;
        to = from;
        if (last.data > first.data + first.len &&
            (parse_u64_max(last, CPUS_MAX, &to) < 0 || to < from))
            return -EINVAL;
        cpus += to - from + 1;
        next = to + 1;
    }
    *ret_cpus = cpus;
    return 0;
}

/* A block device. The kernel's numbers have 12 and 20 bits. */
struct device {
    uint32_t major, minor;
};

enum { DEVICE_MAJOR_MAX = (1 << 12) - 1, DEVICE_MINOR_MAX = (1 << 20) - 1 };

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

/* The first value stays. */
static void set_io(struct usage *usage, struct device device, unsigned field, uint64_t value)
{
    struct usage_io *io = usage_add_io(usage, device.major, device.minor);

    if (!io || (io->valid & 1U << field))
        return;
    io->values[field] = value;
    io->valid |= 1U << field;
}

static void set_field(struct usage *usage, const struct cgroup_key *key, struct device device,
                      uint64_t value)
{
    if (key->field < CGROUP_IO)
        usage_set(usage, (enum usage_field)key->field, value);
    else
        set_io(usage, device, key->field - CGROUP_IO, value);
}

/* USER_HZ is 100 on all that we run on; ticks only divide, see cgroup_divide_cpu. */
static const struct {
    uint32_t multiplier, divisor;
} units[] = {
    [CGROUP_AS_IS] = {1, 1}, [CGROUP_NANOSECONDS] = {1, 1000}, [CGROUP_TICKS] = {10000, 1}};

/* True if the format has such a key, whatever the value is. */
static bool take_value(const struct cgroup_format *format, struct span name, struct device device,
                       struct span text, struct usage *usage)
{
    for (size_t i = 0; name.len > 0 && i < CGROUP_KEYS_MAX && format->keys[i].name; i++) {
        const struct cgroup_key *key = &format->keys[i];
        uint64_t value;

        /* The first letter sorts out most lines of memory.stat, cheaply. */
        if (key->name[0] != name.data[0] || !span_equals(name, key->name))
            continue;
        if (parse_u64_max(text, USAGE_VALUE_MAX / units[key->unit].multiplier, &value) == 0)
            set_field(usage, key, device,
                      value * units[key->unit].multiplier / units[key->unit].divisor);
        return true;
    }
    return false;
}

static void parse_one(const struct cgroup_format *format, struct span text, struct usage *usage)
{
    const struct cgroup_key *key = &format->keys[0];
    uint64_t value;

    if (cgroup_parse_number(text, &value) == 0)
        set_field(usage, key, (struct device){0}, value / units[key->unit].divisor);
}

/* Lines of "KEY VALUE". */
static void parse_keyed(const struct cgroup_format *format, struct span text, struct usage *usage)
{
    size_t left = 0; /* memory.stat is long, and our keys are not at its end */
    struct span line;

    while (left < CGROUP_KEYS_MAX && format->keys[left].name)
        left++;
    while (left > 0 && next_line(&text, &line)) {
        struct span key = span_cut(&line, ' ');

        left -= take_value(format, key, (struct device){0}, line, usage);
    }
}

/* How long tasks waited: lines of "some|full avg10=... avg60=... avg300=... total=MICROSECONDS". */
static void parse_pressure(const struct cgroup_format *format, struct span text,
                           struct usage *usage)
{
    struct span line;

    while (next_line(&text, &line)) {
        struct span key = span_cut(&line, ' ');

        while (line.len > 0) {
            struct span word = span_cut(&line, ' ');

            if (span_strip_prefix(&word, "total="))
                take_value(format, key, (struct device){0}, word, usage);
        }
    }
}

/* Lines of "MAJOR:MINOR KEY=VALUE ...". A device may have no values, and some kernels forget to end
 * such a line: "253:0 8:0 rbytes=...". */
static void parse_io(const struct cgroup_format *format, struct span text, struct usage *usage)
{
    struct span line;

    while (next_line(&text, &line)) {
        struct device device;
        bool has_device = false;

        while (line.len > 0) {
            struct span word = span_cut(&line, ' ');

            if (!memchr(word.data, '=', word.len)) {
                has_device = parse_device(word, &device);
            } else if (has_device) {
                struct span key = span_cut(&word, '=');

                take_value(format, key, device, word, usage);
            }
        }
    }
}

/* Lines of "MAJOR:MINOR Read|Write|... VALUE". */
static void parse_blkio(const struct cgroup_format *format, struct span text, struct usage *usage)
{
    struct span line;

    while (next_line(&text, &line)) {
        struct span name = span_cut(&line, ' '), key = span_cut(&line, ' ');
        struct device device;

        if (parse_device(name, &device))
            take_value(format, key, device, line, usage);
    }
}

static void parse_rdma_pair(struct span pair, struct usage_rdma *rdma)
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

/* Verbs objects: lines of "DEVICE hca_handle=N hca_object=N". cgroups do not count traffic. */
static void parse_rdma(const struct cgroup_format *format, struct span text, struct usage *usage)
{
    struct span line;

    (void)format;
    while (next_line(&text, &line)) {
        struct span device = span_cut(&line, ' ');
        struct usage_rdma rdma = {.device = ""};

        if (device.len == 0 || memchr(device.data, '\0', device.len))
            continue;
        if (device.len >= sizeof(rdma.device)) {
            usage->left_out++;
            continue;
        }
        memcpy(rdma.device, device.data, device.len);
        if (usage_find_rdma(usage, rdma.device))
            continue;
        if (usage->rdma_count == usage->rdma_room) {
            usage->left_out++;
            continue;
        }
        while (line.len > 0)
            parse_rdma_pair(span_cut(&line, ' '), &rdma);
        if (rdma.has_handles || rdma.has_objects)
            usage->rdma[usage->rdma_count++] = rdma;
    }
}

enum { V1 = false, V2 = true, ALWAYS = CONTROLLERS };

/* clang-format off */
#define KEY(name, field)  {name, USAGE_##field, CGROUP_AS_IS}
#define IO(name, field)   {name, CGROUP_IO + USAGE_IO_##field, CGROUP_AS_IS}
#define ONE(field)        parse_one, {KEY(NULL, field)}
#define STALLS(resource)  \
    parse_pressure, {KEY("some", resource##_SOME_US), KEY("full", resource##_FULL_US)}
#define BLKIO_BYTES       parse_blkio, {IO("Read", READ_BYTES), IO("Write", WRITTEN_BYTES)}
#define BLKIO_COUNTS      parse_blkio, {IO("Read", READS), IO("Write", WRITES)}
#define NO_KEYS           {KEY(NULL, FIELDS)}

/*
 * blkio: what throttling counts, then CFQ and BFQ. The files without "_recursive" lack what is
 * below, so that a job on a kernel that has no others shows no IO rather than a wrong one.
 * memory.max is no counter: it is read less often, and further up, too (limits.c).
 */
const struct cgroup_format cgroup_formats[] = {
    {V1, CONTROLLER_CPUACCT, "cpuacct.usage", parse_one,
     {{NULL, USAGE_CPU_US, CGROUP_NANOSECONDS}}},
    {V1, CONTROLLER_CPUACCT, "cpuacct.stat", parse_keyed,
     {{"user", USAGE_CPU_USER_US, CGROUP_TICKS}, {"system", USAGE_CPU_SYSTEM_US, CGROUP_TICKS}}},
    {V1, CONTROLLER_CPU, "cpu.stat", parse_keyed,
     {KEY("nr_periods", CPU_PERIODS), KEY("nr_throttled", CPU_THROTTLED_PERIODS),
      {"throttled_time", USAGE_CPU_THROTTLED_US, CGROUP_NANOSECONDS}}},
    {V2, ALWAYS, "cpu.stat", parse_keyed,
     {KEY("usage_usec", CPU_US), KEY("user_usec", CPU_USER_US), KEY("system_usec", CPU_SYSTEM_US),
      KEY("nr_periods", CPU_PERIODS), KEY("nr_throttled", CPU_THROTTLED_PERIODS),
      KEY("throttled_usec", CPU_THROTTLED_US)}},
    {V2, ALWAYS, "cpu.pressure", STALLS(CPU)},

    {V1, CONTROLLER_MEMORY, "memory.stat", parse_keyed,
     {KEY("hierarchical_memory_limit", MEMORY_LIMIT_BYTES), KEY("total_cache", MEMORY_CACHE_BYTES),
      KEY("total_rss", MEMORY_RSS_BYTES), KEY("total_swap", MEMORY_SWAP_BYTES),
      KEY("total_inactive_file", MEMORY_INACTIVE_FILE_BYTES)}},
    {V1, CONTROLLER_MEMORY, "memory.usage_in_bytes", ONE(MEMORY_USED_BYTES)},
    {V1, CONTROLLER_MEMORY, "memory.failcnt", ONE(MEMORY_FAILURES)},
    {V1, CONTROLLER_MEMORY, "memory.oom_control", parse_keyed, {KEY("oom_kill", MEMORY_OOM_KILLS)}},
    {V2, CONTROLLER_MEMORY, "memory.stat", parse_keyed,
     {KEY("anon", MEMORY_RSS_BYTES), KEY("file", MEMORY_CACHE_BYTES),
      KEY("inactive_file", MEMORY_INACTIVE_FILE_BYTES)}},
    {V2, CONTROLLER_MEMORY, "memory.current", ONE(MEMORY_USED_BYTES)},
    {V2, CONTROLLER_MEMORY, "memory.swap.current", ONE(MEMORY_SWAP_BYTES)},
    {V2, CONTROLLER_MEMORY, "memory.events", parse_keyed,
     {KEY("max", MEMORY_FAILURES), KEY("oom_kill", MEMORY_OOM_KILLS)}},
    {V2, ALWAYS, "memory.pressure", STALLS(MEMORY)},

    {V1, CONTROLLER_IO, "blkio.throttle.io_service_bytes_recursive", BLKIO_BYTES},
    {V1, CONTROLLER_IO, "blkio.io_service_bytes_recursive", BLKIO_BYTES},
    {V1, CONTROLLER_IO, "blkio.bfq.io_service_bytes_recursive", BLKIO_BYTES},
    {V1, CONTROLLER_IO, "blkio.throttle.io_serviced_recursive", BLKIO_COUNTS},
    {V1, CONTROLLER_IO, "blkio.io_serviced_recursive", BLKIO_COUNTS},
    {V1, CONTROLLER_IO, "blkio.bfq.io_serviced_recursive", BLKIO_COUNTS},
    {V2, CONTROLLER_IO, "io.stat", parse_io,
     {IO("rbytes", READ_BYTES), IO("wbytes", WRITTEN_BYTES), IO("rios", READS),
      IO("wios", WRITES)}},
    {V2, ALWAYS, "io.pressure", STALLS(IO)},

    {V1, CONTROLLER_PIDS, "pids.current", ONE(PIDS)},
    {V2, CONTROLLER_PIDS, "pids.current", ONE(PIDS)},
    {V1, CONTROLLER_RDMA, "rdma.current", parse_rdma, NO_KEYS},
    {V2, CONTROLLER_RDMA, "rdma.current", parse_rdma, NO_KEYS},
    {.name = NULL},
};
/* clang-format on */

uint32_t cgroup_format_fields(const struct cgroup_format *format)
{
    uint32_t fields = 0;

    if (format->parse == parse_rdma)
        return CGROUP_RDMA_BIT;
    if (format->parse == parse_one)
        return USAGE_BIT(format->keys[0].field);
    for (size_t i = 0; i < CGROUP_KEYS_MAX && format->keys[i].name; i++)
        fields |= USAGE_BIT(format->keys[i].field);
    return fields;
}

void cgroup_divide_cpu(struct usage *usage, const struct usage *last)
{
    const uint32_t all =
        USAGE_BIT(USAGE_CPU_US) | USAGE_BIT(USAGE_CPU_USER_US) | USAGE_BIT(USAGE_CPU_SYSTEM_US);
    uint64_t *user = &usage->values[USAGE_CPU_USER_US];
    uint64_t *system = &usage->values[USAGE_CPU_SYSTEM_US];
    uint64_t total = usage->values[USAGE_CPU_US], ticks = *user + *system;
    uint64_t last_user = last->values[USAGE_CPU_USER_US];
    uint64_t last_system = last->values[USAGE_CPU_SYSTEM_US];

    if ((usage->valid & all) != all)
        return;
    /* All of it is user time where no tick has hit yet, as in the kernel's cputime_adjust(). */
    *user = ticks == 0 ? total : (uint64_t)((unsigned __int128)total * *user / ticks);
    if ((last->valid & all) == all && total >= last_user + last_system)
        *user = MIN(MAX(*user, last_user), total - last_system);
    *system = total - *user;
}

void cgroup_keep_fields(const struct usage *last, uint32_t fields, struct usage *usage)
{
    for (unsigned field = 0; field < USAGE_FIELDS; field++)
        if (last->valid & fields & USAGE_BIT(field))
            usage_set(usage, (enum usage_field)field, last->values[field]);
    for (size_t i = 0; i < last->io_count; i++)
        for (unsigned field = 0; field < USAGE_IO_FIELDS; field++)
            if (last->io[i].valid & fields >> CGROUP_IO & 1U << field)
                set_io(usage, (struct device){last->io[i].major, last->io[i].minor}, field,
                       last->io[i].values[field]);
    if (fields & CGROUP_RDMA_BIT) {
        usage->rdma_count = MIN(last->rdma_count, usage->rdma_room);
        for (size_t i = 0; i < usage->rdma_count; i++)
            usage->rdma[i] = last->rdma[i];
    }
}
