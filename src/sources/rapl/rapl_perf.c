/*
 * RAPL by perf's PMU `power`: an event for each domain and each CPU of its mask, which has one CPU
 * of each package. The events count from 0 when they are opened.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/parse.h"
#include "sources/rapl/rapl.h"

#define PMU "bus/event_source/devices/power/"

enum { CPUS_MAX = 256, SCALE_BYTES = 64, SHIFT_MAX = 63 };

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

int rapl_parse_scale(struct span text, uint8_t *ret_shift)
{
    char number[SCALE_BYTES], *end;
    int exponent;
    double scale;

    if (text.len == 0 || text.len >= sizeof(number) || memchr(text.data, '\0', text.len))
        return -EINVAL;
    memcpy(number, text.data, text.len);
    number[text.len] = '\0';
    scale = strtod(number, &end);
    if (*end != '\0' || !(scale > 0 && scale <= 1) || frexp(scale, &exponent) != 0.5)
        return -EINVAL;
    if (1 - exponent > SHIFT_MAX)
        return -ERANGE;
    *ret_shift = (uint8_t)(1 - exponent);
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
    uint32_t sockets[CPUS_MAX];
    char ids[CPUS_MAX][RAPL_ID_BYTES];
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
        if (i != index && pmu->sockets[i] == pmu->sockets[index])
            return true;
    return false;
}

static int read_pmu(const struct rapl *rapl, struct pmu *pmu)
{
    uint32_t cpus[CPUS_MAX];
    char buffer[RAPL_TEXT_BYTES];
    struct span text;
    uint64_t type = 0;
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
        pmu->cpus[pmu->cpu_count] = cpus[i];
        pmu->cpu_count +=
            read_topology(rapl, cpus[i], "physical_package_id", &pmu->sockets[pmu->cpu_count]) == 0;
    }
    /* A package that has several CPUs in the mask is counted by die, named as powercap does; but
     * AMD's counter is the package's on each of them: Linux 6.9 to 6.11 list one for each core
     * complex die ("perf/x86/rapl: Fix the energy-pkg event for AMD CPUs"). */
    for (size_t i = 0; i < pmu->cpu_count; i++) {
        uint32_t die;
        bool has_die = !rapl->is_amd && shares_socket(pmu, i) &&
                       read_topology(rapl, pmu->cpus[i], "die_id", &die) == 0;

        rapl_print_id(pmu->sockets[i], has_die ? &die : NULL, pmu->ids[i]);
    }
    return 0;
}

static int read_event(const struct rapl *rapl, const char *name, uint8_t *ret_event,
                      uint8_t *ret_shift)
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
    return r < 0 ? r : rapl_parse_scale(text, ret_shift);
}

/* Opens the event on every CPU; stops when that is forbidden, as it then is for all. */
static int open_event(struct rapl *rapl, const struct pmu *pmu, enum meter_kind kind,
                      const char *name)
{
    uint8_t event, shift;
    int result = -ENODEV, r = read_event(rapl, name, &event, &shift);

    if (r < 0)
        return r;
    for (size_t i = 0; i < pmu->cpu_count; i++) {
        struct perf_event_attr attr = {.size = sizeof(attr), .type = pmu->type, .config = event};
        struct rapl_meter meter = {.kind = kind, .shift = shift};

        memcpy(meter.id, pmu->ids[i], sizeof(meter.id));
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
    unsigned __int128 uj;
    /* Not pread: these descriptors cannot seek. */
    ssize_t len = rapl->calls->read(meter->fd, &count, sizeof(count));

    if (len < 0)
        return -errno;
    if (len == 0) /* its CPU is gone */
        return -ENODEV;
    if (len != sizeof(count))
        return -EBADMSG;
    uj = (unsigned __int128)count * 1000000 >> meter->shift;
    if (uj > UINT64_MAX)
        return -EBADMSG;
    *ret_uj = (uint64_t)uj;
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
