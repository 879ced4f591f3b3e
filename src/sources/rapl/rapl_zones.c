#include "sources/rapl/rapl_zones.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/macros.h"
#include "core/parse.h"

enum { NAME_BYTES = 64, MODALIAS_BYTES = 8192 };
enum { NUMBER_MAX = 0xffff }; /* of sockets, dies and zones */

static const char *const control_types[] = {"intel-rapl", "intel-rapl-mmio"}; /* by is_mmio */

void rapl_place_id(const struct rapl_place *place, char id[RAPL_ID_BYTES])
{
    if (place->has_die)
        snprintf(id, RAPL_ID_BYTES, "%u-die-%u", place->socket, place->die);
    else
        snprintf(id, RAPL_ID_BYTES, "%u", place->socket);
}

/* X86_VENDOR_AMD and X86_VENDOR_HYGON of the kernel's asm/processor.h. */
bool rapl_modalias_is_amd(struct span modalias)
{
    return span_strip_prefix(&modalias, "cpu:type:x86,ven0002") ||
           span_strip_prefix(&modalias, "cpu:type:x86,ven0009");
}

bool rapl_is_amd(int sysfs_fd)
{
    char text[MODALIAS_BYTES];
    size_t len;

    return fs_read_at(sysfs_fd, "devices/system/cpu/modalias", text, sizeof(text), &len) == 0 &&
           rapl_modalias_is_amd((struct span){text, len});
}

static int parse_hex(struct span text, uint32_t *ret_value)
{
    uint32_t value = 0;

    if (text.len == 0)
        return -EINVAL;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];

        if (c >= '0' && c <= '9')
            value = value * 16 + (uint32_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value * 16 + (uint32_t)(c - 'a') + 10;
        else
            return -EINVAL;
        if (value > NUMBER_MAX)
            return -EINVAL;
    }
    *ret_value = value;
    return 0;
}

int rapl_parse_directory(struct span text, struct rapl_directory *ret_directory)
{
    struct rapl_directory directory = {.is_mmio = false};
    struct span control = span_cut(&text, ':'), zone = span_cut(&text, ':');

    directory.is_mmio = span_equals(control, control_types[true]);
    if (!directory.is_mmio && !span_equals(control, control_types[false]))
        return -EINVAL;
    if (parse_hex(zone, &directory.zone) < 0)
        return -EINVAL;
    directory.is_below = text.data > zone.data + zone.len;
    if (directory.is_below && parse_hex(text, &directory.below) < 0)
        return -EINVAL;
    *ret_directory = directory;
    return 0;
}

static int parse_number(struct span text, uint32_t *ret_value)
{
    uint64_t value;
    int r = parse_u64_max(text, NUMBER_MAX, &value);

    if (r == 0)
        *ret_value = (uint32_t)value;
    return r < 0 ? -EINVAL : 0;
}

/* What follows "package-": a socket, and a die where the kernel counts by die. */
static int parse_package(struct span text, struct rapl_place *ret_place)
{
    struct rapl_place place = {.has_die = false};
    struct span socket = span_cut(&text, '-');

    place.has_die = text.data > socket.data + socket.len;
    if (parse_number(socket, &place.socket) < 0 ||
        (place.has_die &&
         (!span_strip_prefix(&text, "die-") || parse_number(text, &place.die) < 0)))
        return -EINVAL;
    *ret_place = place;
    return 0;
}

int rapl_parse_name(struct span text, enum meter_kind *ret_kind, struct rapl_place *ret_place)
{
    struct rapl_place place = {.socket = 0};
    enum meter_kind kind;
    int r = 0;

    (void)span_strip_suffix(&text, "\n");
    if (span_equals(text, "core")) {
        kind = METER_CORE;
    } else if (span_equals(text, "uncore")) {
        kind = METER_UNCORE;
    } else if (span_equals(text, "dram")) {
        kind = METER_DRAM;
    } else if (span_equals(text, "psys")) { /* of the first socket */
        kind = METER_PSYS;
    } else if (span_strip_prefix(&text, "psys-")) {
        kind = METER_PSYS;
        r = parse_number(text, &place.socket);
    } else if (span_strip_prefix(&text, "package-")) {
        kind = METER_PACKAGE;
        r = parse_package(text, &place);
    } else {
        r = -EINVAL;
    }
    if (r < 0)
        return r;
    *ret_kind = kind;
    *ret_place = place;
    return 0;
}

static void print_directory(const struct rapl_directory *directory, char *text)
{
    int len = snprintf(text, RAPL_DIRECTORY_BYTES, "%s:%x", control_types[directory->is_mmio],
                       directory->zone);

    if (directory->is_below)
        snprintf(text + len, RAPL_DIRECTORY_BYTES - (size_t)len, ":%x", directory->below);
}

static int read_name(int powercap_fd, struct rapl_directory directory, enum meter_kind *ret_kind,
                     struct rapl_place *ret_place)
{
    char parent[RAPL_DIRECTORY_BYTES], path[RAPL_DIRECTORY_BYTES + 8], text[NAME_BYTES];
    size_t len;
    int r;

    print_directory(&directory, parent);
    snprintf(path, sizeof(path), "%s/name", parent);
    r = fs_read_at(powercap_fd, path, text, sizeof(text), &len);
    return r < 0 ? r : rapl_parse_name((struct span){text, len}, ret_kind, ret_place);
}

static int read_parent(int powercap_fd, struct rapl_directory directory,
                       struct rapl_place *ret_place)
{
    enum meter_kind kind;
    struct rapl_place place;
    int r;

    directory.is_below = false;
    r = read_name(powercap_fd, directory, &kind, &place);
    if (r < 0)
        return r;
    if (kind != METER_PACKAGE)
        return -EINVAL;
    *ret_place = place;
    return 0;
}

/* 0, -ENOENT where the directory leads nowhere, or another error where it is no meter. */
static int identify(int powercap_fd, const struct rapl_directory *directory,
                    enum meter_kind *ret_kind, struct rapl_place *ret_place)
{
    enum meter_kind kind;
    struct rapl_place place;
    int r = read_name(powercap_fd, *directory, &kind, &place);

    if (r < 0)
        return r;
    if (directory->is_below != (kind != METER_PACKAGE && kind != METER_PSYS))
        return -EINVAL;
    if (directory->is_below)
        r = read_parent(powercap_fd, *directory, &place);
    if (r < 0)
        return r;
    *ret_kind = kind;
    *ret_place = place;
    return 0;
}

static void add(struct rapl_zones *zones, const struct rapl_directory *directory,
                enum meter_kind kind, const struct rapl_place *place)
{
    struct rapl_zone zone = {.kind = kind};

    rapl_place_id(place, zone.id);
    print_directory(directory, zone.directory);
    zones->items[zones->count++] = zone; /* there is room for every directory */
}

/*
 * AMD: `core` is the energy of one core, whichever was asked. Linux 6.9 to 6.11 show the register
 * of the package once for each of its core complex dies ("powercap: intel_rapl: Fix the energy-pkg
 * event for AMD CPUs").
 */
static bool is_wanted(bool is_amd, enum meter_kind kind, struct rapl_place *place)
{
    if (is_amd)
        place->has_die = false;
    return !is_amd || kind == METER_PACKAGE;
}

/* The MSR (or TPMI) view before the MMIO one, zones in their order, a zone before those below. */
static int compare_directories(const void *a, const void *b)
{
    const struct rapl_directory *x = a, *y = b;

    if (x->is_mmio != y->is_mmio)
        return x->is_mmio ? 1 : -1;
    if (x->zone != y->zone)
        return x->zone < y->zone ? -1 : 1;
    if (x->is_below != y->is_below)
        return x->is_below ? 1 : -1;
    return x->below < y->below ? -1 : x->below > y->below;
}

static int list_directories(int powercap_fd, struct rapl_directory *directories, size_t *ret_count)
{
    _cleanup_close_ int fd = fcntl(powercap_fd, F_DUPFD_CLOEXEC, 0);
    const struct dirent *entry;
    size_t count = 0;
    DIR *dir;

    if (fd < 0)
        return -errno;
    dir = fdopendir(fd);
    if (!dir)
        return -errno;
    (void)TAKE_FD(fd);
    while (count < RAPL_ZONES_MAX && (entry = readdir(dir)))
        count += rapl_parse_directory(span_of(entry->d_name), &directories[count]) == 0;
    closedir(dir);
    qsort(directories, count, sizeof(*directories), compare_directories);
    *ret_count = count;
    return 0;
}

int rapl_zones_find(int sysfs_fd, bool is_amd, struct rapl_zones *ret_zones)
{
    struct rapl_directory directories[RAPL_ZONES_MAX];
    struct rapl_zones zones = {.count = 0};
    _cleanup_close_ int powercap_fd =
        openat(sysfs_fd, "class/powercap", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool skips_mmio = false;
    size_t count = 0, gone = 0;
    int r;

    if (powercap_fd < 0)
        return -errno;
    r = list_directories(powercap_fd, directories, &count);
    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++) {
        enum meter_kind kind;
        struct rapl_place place;

        if (directories[i].is_mmio && skips_mmio)
            break;
        r = identify(powercap_fd, &directories[i], &kind, &place);
        gone += r == -ENOENT;
        if (r < 0 || !is_wanted(is_amd, kind, &place))
            continue;
        add(&zones, &directories[i], kind, &place);
        /* MMIO is a second view of the same joules, under the same names. */
        skips_mmio |= kind == METER_PACKAGE && !directories[i].is_mmio;
    }
    zones.are_hidden = count > 0 && gone == count;
    *ret_zones = zones;
    return 0;
}
