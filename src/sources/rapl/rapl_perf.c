/*
 * RAPL by perf's PMU `power`: an event for each domain and each CPU of its mask, which has one CPU
 * of each package. The events count from 0 when they are opened.
 */
#include <errno.h>

#include "core/parse.h"
#include "sources/rapl/rapl.h"

#define PMU "bus/event_source/devices/power/"

typedef unsigned __int128 u128;

enum { CPUS_MAX = 256 };
enum { POWER_MAX = 38, DIGITS_MAX = 38 }; /* of ten, that an u128 holds */
enum { MICRO = 6 };

int rapl_parse_event(struct span text, uint8_t *ret_event)
{
    uint32_t value;

    if (!span_strip_prefix(&text, "event=") ||
        (span_strip_prefix(&text, "0x") ? rapl_parse_hex(text, UINT8_MAX, &value)
                                        : rapl_parse_number(text, &value)) < 0 ||
        value > UINT8_MAX)
        return -EINVAL;
    *ret_event = (uint8_t)value;
    return 0;
}

/* The digits before an exponent, and how many of them are behind the point. */
static int parse_mantissa(struct span text, u128 *ret_value, int *ret_decimals)
{
    bool has_point = false;
    u128 value = 0;
    int digits = 0, decimals = 0;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];

        if (c == '.' && !has_point) {
            has_point = true;
            continue;
        }
        if (!parse_is_digit(c))
            return -EINVAL;
        if (++digits > DIGITS_MAX)
            return -ERANGE;
        value = value * 10 + (unsigned)(c - '0');
        decimals += has_point;
    }
    if (digits == 0)
        return -EINVAL;
    *ret_value = value;
    *ret_decimals = decimals;
    return 0;
}

static int parse_exponent(struct span text, int *ret_exponent)
{
    bool is_negative = span_strip_prefix(&text, "-");
    uint64_t value;
    int r;

    if (!is_negative)
        (void)span_strip_prefix(&text, "+");
    r = parse_u64_max(text, POWER_MAX, &value);
    if (r == 0)
        *ret_exponent = is_negative ? -(int)value : (int)value;
    return r;
}

/* value * 10^exponent, in lowest terms. */
static int make_fraction(u128 value, int exponent, struct rapl_scale *ret_scale)
{
    u128 numerator = value, denominator = 1, divisor, remainder;

    if (exponent < -POWER_MAX || value == 0)
        return -ERANGE;
    for (; exponent < 0; exponent++)
        denominator *= 10;
    for (; exponent > 0; exponent--) {
        if (numerator > UINT64_MAX)
            return -ERANGE;
        numerator *= 10;
    }
    divisor = numerator;
    for (u128 other = denominator; other != 0; other = remainder) {
        remainder = divisor % other;
        divisor = other;
    }
    numerator /= divisor;
    denominator /= divisor;
    if (numerator > UINT64_MAX || denominator > UINT64_MAX)
        return -ERANGE;
    *ret_scale = (struct rapl_scale){(uint64_t)numerator, (uint64_t)denominator};
    return 0;
}

int rapl_parse_scale(struct span text, struct rapl_scale *ret_scale)
{
    struct span mantissa = span_cut(&text, 'e');
    u128 value;
    int decimals, exponent = 0, r = parse_mantissa(mantissa, &value, &decimals);

    if (r == 0 && text.data > mantissa.data + mantissa.len)
        r = parse_exponent(text, &exponent);
    return r < 0 ? r : make_fraction(value, exponent - decimals + MICRO, ret_scale);
}

int rapl_scale_apply(const struct rapl_scale *scale, uint64_t counts, uint64_t *ret_uj)
{
    u128 uj = (u128)counts * scale->numerator / scale->denominator;

    if (uj > UINT64_MAX)
        return -ERANGE;
    *ret_uj = (uint64_t)uj;
    return 0;
}

int rapl_parse_cpus(struct span text, uint32_t *cpus, size_t max, size_t *ret_count)
{
    size_t count = 0;

    while (text.len > 0) {
        struct span range = span_cut(&text, ','), begin = span_cut(&range, '-');
        uint32_t first, last;

        if (rapl_parse_number(begin, &first) < 0)
            return -EINVAL;
        last = first;
        if (range.data > begin.data + begin.len && rapl_parse_number(range, &last) < 0)
            return -EINVAL;
        if (first > last)
            return -EINVAL;
        for (uint32_t cpu = first; cpu <= last; cpu++) {
            if (count == max)
                return -ERANGE;
            cpus[count++] = cpu;
        }
    }
    *ret_count = count;
    return 0;
}

/* From here on: the PMU. */

struct pmu {
    uint32_t type;
    size_t cpu_count;
    uint32_t cpus[CPUS_MAX];
    struct rapl_place places[CPUS_MAX];
};

static int read_topology(const struct rapl *rapl, uint32_t cpu, const char *file,
                         uint32_t *ret_value)
{
    char buffer[RAPL_TEXT_BYTES];
    struct span text;
    int r = rapl_read_file(rapl, buffer, &text, "devices/system/cpu/cpu%u/topology/%s", cpu, file);

    return r < 0 ? r : rapl_parse_number(text, ret_value);
}

static bool shares_socket(const struct pmu *pmu, size_t index)
{
    for (size_t i = 0; i < pmu->cpu_count; i++)
        if (i != index && pmu->places[i].socket == pmu->places[index].socket)
            return true;
    return false;
}

static int read_pmu(const struct rapl *rapl, struct pmu *pmu)
{
    uint32_t cpus[CPUS_MAX];
    char buffer[RAPL_TEXT_BYTES];
    struct span text;
    uint64_t type;
    size_t count = 0;
    int r = rapl_read_file(rapl, buffer, &text, PMU "type");

    if (r == 0)
        r = parse_u64_max(text, UINT32_MAX, &type);
    if (r == 0)
        r = rapl_read_file(rapl, buffer, &text, PMU "cpumask");
    if (r == 0)
        r = rapl_parse_cpus(text, cpus, CPUS_MAX, &count);
    if (r < 0)
        return r;
    pmu->type = (uint32_t)type;
    pmu->cpu_count = 0;
    for (size_t i = 0; i < count; i++) {
        struct rapl_place place = {.has_die = false};

        if (read_topology(rapl, cpus[i], "physical_package_id", &place.socket) < 0)
            continue;
        pmu->cpus[pmu->cpu_count] = cpus[i];
        pmu->places[pmu->cpu_count++] = place;
    }
    /* A package that has several CPUs in the mask is counted by die, named as powercap does; but
     * AMD's counter is the package's on each of them: Linux 6.9 to 6.11 list one for each core
     * complex die ("perf/x86/rapl: Fix the energy-pkg event for AMD CPUs"). */
    for (size_t i = 0; i < pmu->cpu_count && !rapl->is_amd; i++)
        pmu->places[i].has_die =
            shares_socket(pmu, i) &&
            read_topology(rapl, pmu->cpus[i], "die_id", &pmu->places[i].die) == 0;
    return 0;
}

static int read_event(const struct rapl *rapl, const char *name, uint8_t *ret_event,
                      struct rapl_scale *ret_scale)
{
    char buffer[RAPL_TEXT_BYTES];
    struct span text;
    int r = rapl_read_file(rapl, buffer, &text, PMU "events/%s", name);

    if (r == 0)
        r = rapl_parse_event(text, ret_event);
    if (r == 0)
        r = rapl_read_file(rapl, buffer, &text, PMU "events/%s.unit", name);
    if (r == 0)
        r = span_equals(text, "Joules") ? 0 : -EINVAL;
    if (r == 0)
        r = rapl_read_file(rapl, buffer, &text, PMU "events/%s.scale", name);
    return r < 0 ? r : rapl_parse_scale(text, ret_scale);
}

/* Opens the event on every CPU; stops when that is forbidden, as it then is for all. */
static int open_event(struct rapl *rapl, const struct pmu *pmu, enum meter_kind kind,
                      const char *name)
{
    struct rapl_scale scale;
    uint8_t event;
    int result = -ENODEV, r = read_event(rapl, name, &event, &scale);

    if (r < 0)
        return r;
    for (size_t i = 0; i < pmu->cpu_count; i++) {
        struct perf_event_attr attr = {.size = sizeof(attr), .type = pmu->type, .config = event};
        struct rapl_meter meter = {.kind = kind, .scale = scale};

        rapl_place_id(&pmu->places[i], meter.id);
        if (!rapl_is_open(rapl, kind, meter.id)) {
            meter.fd = rapl->calls->perf_event_open(&attr, (int)pmu->cpus[i]);
            if (meter.fd == -EACCES || meter.fd == -EPERM)
                return -EACCES;
            if (meter.fd < 0)
                continue;
            rapl_add(rapl, &meter, 0);
        }
        result = 0;
    }
    return result;
}

/*
 * The package comes first, and without it there is nothing: virtual machines show a PMU with one
 * event or the other that does not count. AMD has no other: until Linux 5.17 all of Intel's events
 * were listed.
 */
static int perf_find(struct rapl *rapl, struct error *err)
{
    static const struct {
        const char *name;
        enum meter_kind kind;
    } events[] = {
        {"energy-pkg", METER_PACKAGE}, {"energy-ram", METER_DRAM},  {"energy-cores", METER_CORE},
        {"energy-gpu", METER_UNCORE},  {"energy-psys", METER_PSYS},
    };
    struct pmu pmu;

    if (read_pmu(rapl, &pmu) < 0)
        return error_set(err, -ENODEV, "no 'power' among perf's event sources");
    for (size_t i = 0; i < (rapl->is_amd ? 1 : ARRAY_SIZE(events)); i++) {
        int r = open_event(rapl, &pmu, events[i].kind, events[i].name);

        if (r == -EACCES)
            return error_set(err, -EACCES,
                             "perf events are not permitted (kernel.perf_event_paranoid)");
        if (r < 0 && events[i].kind == METER_PACKAGE)
            return error_set(err, -ENODEV, "perf's 'power' does not count packages");
    }
    return 0;
}

static int perf_read(const struct rapl *rapl, const struct rapl_meter *meter, uint64_t *ret_uj)
{
    uint64_t count;
    /* Not pread: these descriptors cannot seek. */
    ssize_t len = rapl->calls->read(meter->fd, &count, sizeof(count));

    if (len < 0)
        return -errno;
    if (len == 0) /* its CPU is gone */
        return -ENODEV;
    if (len != sizeof(count) || rapl_scale_apply(&meter->scale, count, ret_uj) < 0)
        return -EBADMSG;
    return 0;
}

/* The kernel adds up differences of 31 bits, taken by a timer that is made for 200 W: a hotter
 * package is only counted right if it is read in between. */
const struct rapl_backend rapl_perf = {
    .name = "perf",
    .max_gap_us = 30000000,
    .find = perf_find,
    .read = perf_read,
};
