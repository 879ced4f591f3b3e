/*
 * RAPL by perf's PMU `power`: an event for each domain and each CPU of its mask, which has one of
 * each package. The events count from 0 when they are opened.
 */
#include "sources/rapl/rapl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/fs.h"
#include "core/macros.h"
#include "core/parse.h"

#define PMU "bus/event_source/devices/power/"

enum { TEXT_BYTES = 1024, PATH_BYTES = 128, CPUS_MAX = 256 };
enum { NUMBER_MAX = 0xffff }; /* of sockets and dies */

static const struct {
    const char *name;
    enum meter_kind kind;
} events[] = {
    {"energy-pkg", METER_PACKAGE}, {"energy-ram", METER_DRAM},  {"energy-cores", METER_CORE},
    {"energy-gpu", METER_UNCORE},  {"energy-psys", METER_PSYS},
};

struct pmu {
    uint32_t type;
    size_t cpu_count;
    uint32_t cpus[CPUS_MAX];
    struct rapl_place places[CPUS_MAX];
};

struct event {
    enum meter_kind kind;
    uint8_t number;
    struct rapl_scale scale;
};

/* A file of the PMU, into a buffer of TEXT_BYTES. */
static int read_text(int sysfs_fd, const char *path, char *buffer, struct span *ret_text)
{
    size_t len;
    int r = fs_read_at(sysfs_fd, path, buffer, TEXT_BYTES, &len);

    if (r < 0)
        return r;
    *ret_text = (struct span){buffer, len};
    return 0;
}

static int read_number(int sysfs_fd, const char *path, uint64_t max, uint32_t *ret_value)
{
    char buffer[TEXT_BYTES];
    struct span text;
    uint64_t value;
    int r = read_text(sysfs_fd, path, buffer, &text);

    if (r < 0)
        return r;
    (void)span_strip_suffix(&text, "\n");
    r = parse_u64_max(text, max, &value);
    if (r == 0)
        *ret_value = (uint32_t)value;
    return r;
}

static int read_topology(int sysfs_fd, uint32_t cpu, const char *what, uint32_t *ret_value)
{
    char path[PATH_BYTES];

    snprintf(path, sizeof(path), "devices/system/cpu/cpu%u/topology/%s", cpu, what);
    return read_number(sysfs_fd, path, NUMBER_MAX, ret_value);
}

static bool shares_socket(const struct pmu *pmu, size_t index)
{
    for (size_t i = 0; i < pmu->cpu_count; i++)
        if (i != index && pmu->places[i].socket == pmu->places[index].socket)
            return true;
    return false;
}

/* A package that has several CPUs in the mask is counted by die; as powercap would name it. */
static void find_dies(int sysfs_fd, struct pmu *pmu)
{
    for (size_t i = 0; i < pmu->cpu_count; i++)
        pmu->places[i].has_die =
            shares_socket(pmu, i) &&
            read_topology(sysfs_fd, pmu->cpus[i], "die_id", &pmu->places[i].die) == 0;
}

/* The CPUs of the mask whose package is known. */
static int read_cpus(int sysfs_fd, struct pmu *pmu)
{
    uint32_t cpus[CPUS_MAX];
    char buffer[TEXT_BYTES];
    struct span text;
    size_t count = 0;
    int r = read_text(sysfs_fd, PMU "cpumask", buffer, &text);

    if (r < 0)
        return r;
    r = rapl_parse_cpus(text, cpus, CPUS_MAX, &count);
    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++) {
        struct rapl_place place = {.has_die = false};

        if (read_topology(sysfs_fd, cpus[i], "physical_package_id", &place.socket) < 0)
            continue;
        pmu->cpus[pmu->cpu_count] = cpus[i];
        pmu->places[pmu->cpu_count++] = place;
    }
    return 0;
}

static int read_pmu(int sysfs_fd, bool is_amd, struct pmu *pmu)
{
    int r = read_number(sysfs_fd, PMU "type", UINT32_MAX, &pmu->type);

    pmu->cpu_count = 0;
    if (r == 0)
        r = read_cpus(sysfs_fd, pmu);
    /* AMD's is the package's, whichever CPU is asked; Linux 6.9 to 6.11 list one for each core
     * complex die ("perf/x86/rapl: Fix the energy-pkg event for AMD CPUs"). */
    if (r == 0 && !is_amd)
        find_dies(sysfs_fd, pmu);
    return r;
}

static int read_event_file(int sysfs_fd, const char *name, const char *suffix, char *buffer,
                           struct span *ret_text)
{
    char path[PATH_BYTES];

    snprintf(path, sizeof(path), PMU "events/%s%s", name, suffix);
    return read_text(sysfs_fd, path, buffer, ret_text);
}

static int read_event(int sysfs_fd, const char *name, struct event *ret_event)
{
    char buffer[TEXT_BYTES];
    struct span text;
    int r = read_event_file(sysfs_fd, name, "", buffer, &text);

    if (r < 0)
        return r;
    r = rapl_parse_event(text, &ret_event->number);
    if (r < 0)
        return r;
    r = read_event_file(sysfs_fd, name, ".unit", buffer, &text);
    if (r < 0)
        return r;
    (void)span_strip_suffix(&text, "\n");
    if (!span_equals(text, "Joules"))
        return -EINVAL;
    r = read_event_file(sysfs_fd, name, ".scale", buffer, &text);
    return r < 0 ? r : rapl_parse_scale(text, &ret_event->scale);
}

static int open_event(struct rapl *rapl, const struct pmu *pmu, size_t cpu_index,
                      const struct event *event)
{
    struct perf_event_attr attr = {
        .size = sizeof(attr),
        .type = pmu->type,
        .config = event->number,
    };
    struct rapl_meter meter = {.kind = event->kind, .scale = event->scale};

    rapl_place_id(&pmu->places[cpu_index], meter.id);
    if (rapl_is_open(rapl, meter.kind, meter.id))
        return 0;
    meter.fd = rapl->calls->perf_event_open(&attr, (int)pmu->cpus[cpu_index]);
    if (meter.fd < 0)
        return meter.fd;
    rapl_add(rapl, &meter, 0);
    return 0;
}

/* Opens it on every CPU; stops when that is forbidden, as it then is for all. */
static int open_everywhere(struct rapl *rapl, const struct pmu *pmu, const struct event *event)
{
    int result = -ENODEV;

    for (size_t i = 0; i < pmu->cpu_count; i++) {
        int r = open_event(rapl, pmu, i, event);

        if (r == -EACCES || r == -EPERM)
            return -EACCES;
        if (r == 0)
            result = 0;
    }
    return result;
}

/*
 * The package comes first, and without it there is nothing: virtual machines show a PMU with one
 * event or the other that does not count. Of AMD there is no more: until Linux 5.17 all of Intel's
 * events were listed.
 */
static int find(struct rapl *rapl, struct error *err)
{
    int sysfs_fd = rapl->host->sysfs_fd;
    struct pmu pmu;
    int r = read_pmu(sysfs_fd, rapl->is_amd, &pmu);

    if (r < 0)
        return error_set(err, -ENODEV, "no 'power' among perf's event sources");
    for (size_t i = 0; i < (rapl->is_amd ? 1 : ARRAY_SIZE(events)); i++) {
        struct event event = {.kind = events[i].kind};

        r = read_event(sysfs_fd, events[i].name, &event);
        if (r == 0)
            r = open_everywhere(rapl, &pmu, &event);
        if (r == -EACCES)
            return error_set(err, -EACCES,
                             "perf events are not permitted (kernel.perf_event_paranoid)");
        if (r < 0 && events[i].kind == METER_PACKAGE)
            return error_set(err, -ENODEV, "perf's 'power' does not count packages");
    }
    return 0;
}

static int read_count(const struct rapl *rapl, const struct rapl_meter *meter, uint64_t *ret_uj)
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
 * package is counted right only while somebody reads it. */
const struct rapl_way rapl_perf = {
    .name = "perf",
    .max_gap_us = 30000000,
    .find = find,
    .read = read_count,
};
