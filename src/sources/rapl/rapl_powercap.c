/*
 * RAPL by the files of powercap. The descriptors stay open; a read is one system call.
 *
 * Directories are numbered in the order of registration; the file `name` in them says what they
 * are. Every socket has a zone that is plainly called "dram": its parent names the socket.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/fs.h"
#include "core/parse.h"
#include "sources/rapl/rapl.h"

enum { NUMBER_BYTES = 32 };

int rapl_parse_directory(struct span text, struct rapl_directory *ret_directory)
{
    struct rapl_directory directory = {.is_mmio = false};
    struct span rest = text, control = span_cut(&rest, ':'), zone = span_cut(&rest, ':');
    uint32_t number;

    directory.is_mmio = span_equals(control, "intel-rapl-mmio");
    directory.parent_len = (size_t)(zone.data + zone.len - text.data);
    directory.is_below = directory.parent_len < text.len;
    if ((!directory.is_mmio && !span_equals(control, "intel-rapl")) ||
        text.len >= sizeof(directory.name) || rapl_parse_hex(zone, RAPL_NUMBER_MAX, &number) < 0 ||
        (directory.is_below && rapl_parse_hex(rest, RAPL_NUMBER_MAX, &number) < 0))
        return -EINVAL;
    memcpy(directory.name, text.data, text.len);
    *ret_directory = directory;
    return 0;
}

int rapl_parse_name(struct span text, enum meter_kind *ret_kind, char ret_id[static RAPL_ID_BYTES])
{
    static const struct {
        const char *name;
        enum meter_kind kind;
    } zones[] = {
        {"core", METER_CORE},
        {"uncore", METER_UNCORE},
        {"dram", METER_DRAM},
        {"psys", METER_PSYS}, /* of the first socket */
    };
    enum meter_kind kind = METER_KINDS;
    uint32_t socket = 0, die = 0;
    bool has_die = false;
    int r = 0;

    for (size_t i = 0; i < ARRAY_SIZE(zones); i++)
        if (span_equals(text, zones[i].name))
            kind = zones[i].kind;
    if (span_strip_prefix(&text, "psys-")) {
        kind = METER_PSYS;
        r = rapl_parse_number(text, &socket);
    } else if (span_strip_prefix(&text, "package-")) {
        struct span number = span_cut(&text, '-');

        kind = METER_PACKAGE;
        has_die = text.data > number.data + number.len;
        r = rapl_parse_number(number, &socket);
        if (r == 0 && has_die)
            r = span_strip_prefix(&text, "die-") ? rapl_parse_number(text, &die) : -EINVAL;
    }
    if (r < 0 || kind == METER_KINDS)
        return -EINVAL;
    *ret_kind = kind;
    rapl_print_id(socket, has_die ? &die : NULL, ret_id);
    return 0;
}

/* The MSR (or TPMI) view before the MMIO one, zones in their order, a zone before those below. */
static int compare_directories(const void *a, const void *b)
{
    const struct rapl_directory *x = a, *y = b;

    return x->is_mmio != y->is_mmio ? x->is_mmio - y->is_mmio : strverscmp(x->name, y->name);
}

static size_t list_directories(const struct rapl *rapl,
                               struct rapl_directory directories[static RAPL_METERS_MAX])
{
    DIR *dir = fs_open_dir(rapl->host->sysfs_fd, "class/powercap");
    const struct dirent *entry;
    size_t count = 0;

    while (dir && count < RAPL_METERS_MAX && (entry = readdir(dir)))
        count += rapl_parse_directory(span_of(entry->d_name), &directories[count]) == 0;
    if (dir)
        closedir(dir);
    qsort(directories, count, sizeof(*directories), compare_directories);
    return count;
}

static int read_name(const struct rapl *rapl, const char *directory, size_t len,
                     enum meter_kind *ret_kind, char ret_id[static RAPL_ID_BYTES])
{
    char buffer[RAPL_TEXT_BYTES];
    struct span text;
    int r = rapl_read_file(rapl, buffer, &text, "class/powercap/%.*s/name", (int)len, directory);

    return r < 0 ? r : rapl_parse_name(text, ret_kind, ret_id);
}

/* 0, -ENOENT where the directory leads nowhere, or another error where it is no meter. */
static int identify(const struct rapl *rapl, const struct rapl_directory *directory,
                    struct rapl_meter *meter)
{
    enum meter_kind parent_kind = METER_PACKAGE;
    int r = read_name(rapl, directory->name, strlen(directory->name), &meter->kind, meter->id);

    if (r < 0)
        return r;
    if (directory->is_below != (meter->kind != METER_PACKAGE && meter->kind != METER_PSYS))
        return -EINVAL;
    if (directory->is_below)
        r = read_name(rapl, directory->name, directory->parent_len, &parent_kind, meter->id);
    if (r < 0)
        return r;
    /*
     * AMD: `core` is the energy of one core, whichever was asked. Linux 6.9 to 6.11 show the
     * register of the package once for each of its core complex dies ("powercap: intel_rapl: Fix
     * the energy-pkg event for AMD CPUs").
     */
    if (parent_kind != METER_PACKAGE || (rapl->is_amd && meter->kind != METER_PACKAGE))
        return -EINVAL;
    if (rapl->is_amd)
        meter->id[strcspn(meter->id, "-")] = '\0';
    return 0;
}

/* Of the text of a file, as sysfs writes it. */
static int parse_uj(struct span text, uint64_t *ret_uj)
{
    (void)span_strip_suffix(&text, "\n");
    return parse_u64(text, ret_uj) < 0 ? -EBADMSG : 0;
}

static int open_zone(struct rapl *rapl, const char *directory, struct rapl_meter *meter)
{
    char path[2 * RAPL_DIRECTORY_BYTES], buffer[RAPL_TEXT_BYTES];
    struct span text;
    uint64_t range_uj;

    snprintf(path, sizeof(path), "class/powercap/%s/energy_uj", directory);
    meter->fd = openat(rapl->host->sysfs_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (meter->fd < 0)
        return -errno;
    /* Without a range a wrap cannot be recognised: every step back is a break. */
    if (rapl_read_file(rapl, buffer, &text, "class/powercap/%s/max_energy_range_uj", directory) <
            0 ||
        parse_uj(text, &range_uj) < 0)
        range_uj = 0;
    rapl_add(rapl, meter, range_uj);
    return 0;
}

enum meter_limit rapl_parse_constraint(struct span text)
{
    int limit = 0;

    while (limit < METER_LIMITS && !span_equals(text, meter_limit_words[limit]))
        limit++;
    return (enum meter_limit)limit;
}

/* Above any that a register can hold: such a value is an error of the firmware. */
static const uint64_t LIMIT_MAX_UW = 100000 * (uint64_t)1000000;

/* The constraints of a zone, which the firmware and tools may change at any time. */
static struct meter_limits read_limits(const struct rapl *rapl, const char *directory)
{
    struct meter_limits limits = {{0}};
    char buffer[RAPL_TEXT_BYTES];
    struct span text;
    uint64_t uw;

    if (rapl_read_file(rapl, buffer, &text, "class/powercap/%s/enabled", directory) < 0 ||
        !span_equals(text, "1"))
        return limits;
    for (unsigned i = 0; i < METER_LIMITS; i++) {
        enum meter_limit limit;

        if (rapl_read_file(rapl, buffer, &text, "class/powercap/%s/constraint_%u_name", directory,
                           i) < 0)
            return limits;
        limit = rapl_parse_constraint(text);
        if (limit < METER_LIMITS &&
            rapl_read_file(rapl, buffer, &text, "class/powercap/%s/constraint_%u_power_limit_uw",
                           directory, i) == 0 &&
            parse_u64_max(text, LIMIT_MAX_UW, &uw) == 0)
            limits.uw[limit] = uw;
    }
    return limits;
}

/* Of several meters with one kind and id, the first counts. */
static int powercap_find(struct rapl *rapl, struct error *err)
{
    struct rapl_directory directories[RAPL_METERS_MAX];
    size_t count = list_directories(rapl, directories), gone = 0;
    bool any = false, denied = false, skips_mmio = false;
    struct meter_limits limits;

    for (size_t i = 0; i < rapl->meter_count; i++)
        rapl->meters[i].has_limits = false;
    for (size_t i = 0; i < count && !(directories[i].is_mmio && skips_mmio); i++) {
        struct rapl_meter meter = {.fd = -1};
        int r = identify(rapl, &directories[i], &meter);

        gone += r == -ENOENT;
        if (r < 0)
            continue;
        /* MMIO is a second view of the same joules, under the same names. */
        skips_mmio |= meter.kind == METER_PACKAGE && !directories[i].is_mmio;
        if (!rapl_is_open(rapl, meter.kind, meter.id))
            r = open_zone(rapl, directories[i].name, &meter);
        if (r == 0) {
            limits = read_limits(rapl, directories[i].name);
            rapl_set_limits(rapl, &meter, &limits);
        }
        any |= r == 0;
        denied |= r == -EACCES || r == -EPERM;
    }
    if (any)
        return 0;
    if (denied)
        return error_set(err, -EACCES, "only root may read energy_uj in class/powercap of sysfs");
    if (count > 0 && gone == count)
        return error_set(err, -EACCES,
                         "the container hides the zones of powercap: mount the host's /sys and "
                         "set --path.sysfs to it");
    return error_set(err, -ENODEV, "no zone of RAPL in class/powercap of sysfs");
}

static int powercap_read(const struct rapl *rapl, const struct rapl_meter *meter, uint64_t *ret_uj)
{
    char text[NUMBER_BYTES];
    ssize_t len = rapl->calls->pread(meter->fd, text, sizeof(text), 0);

    if (len < 0)
        return errno == ENOENT || errno == ENXIO ? -ENODEV : -errno;
    return parse_uj((struct span){text, (size_t)len}, ret_uj);
}

const struct rapl_backend rapl_powercap = {
    .name = "powercap",
    .max_gap_us = UINT64_MAX,
    .is_lasting = true,
    .find = powercap_find,
    .read = powercap_read,
};
