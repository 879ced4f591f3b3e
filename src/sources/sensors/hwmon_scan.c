#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/macros.h"
#include "core/parse.h"
#include "model/counter.h"
#include "sources/overlap.h"
#include "sources/sensors/hwmon.h"

enum { CHIPS_MAX = 256, CHIP_NUMBER_MAX = 99999, CHANNELS_MAX = 1024, TEXT_BYTES = 128 };
enum { SOCKET_MAX = 255 };

/* The largest positive of 16 bits, in W. Other values for "unknown" are more than a node can draw:
 * 4294967295000 of the ACPI meter, 65535000000. */
static const uint64_t SATURATED_UW = 32767000000;

static struct span trim_end(struct span text)
{
    while (text.len > 0 && (text.data[text.len - 1] == '\n' || text.data[text.len - 1] == ' '))
        text.len--;
    return text;
}

int hwmon_parse_power(struct span text, uint64_t *ret_uw)
{
    uint64_t power_uw;
    int r = parse_u64(trim_end(text), &power_uw);

    if (r < 0)
        return r == -ERANGE ? -ENODATA : r;
    /* A node that runs draws something: 0 is a sensor that is off. */
    if (power_uw == 0 || power_uw == SATURATED_UW || power_uw >= PLAUSIBLE_POWER_MAX_UW)
        return -ENODATA;
    *ret_uw = power_uw;
    return 0;
}

static int parse_socket(struct span text, uint32_t *ret_socket)
{
    uint64_t socket;

    if (parse_u64_max(text, SOCKET_MAX, &socket) < 0)
        return -EINVAL;
    *ret_socket = (uint32_t)socket;
    return 0;
}

int hwmon_parse_rail(struct span text, struct hwmon_rail *ret_rail)
{
    static const struct {
        const char *name;
        enum meter_kind kind;
        const char *what;
    } rails[] = {
        /* With the regulators' losses. */
        {"Module", METER_MODULE, "Grace module with its GPU"},
        {"Grace", METER_PACKAGE, "Grace socket with its memory"},
        {"CPU", METER_CORE, "cores of a Grace socket"},
        {"SysIO", METER_UNCORE, "fabric and IO of a Grace socket"},
    };
    static const char separator[] = " Power Socket ";
    struct span number = trim_end(text), name = number;
    struct hwmon_rail rail = {.kind = METER_KINDS};
    const char *at =
        number.len > 0 ? memmem(number.data, number.len, separator, strlen(separator)) : NULL;

    if (!at)
        return -EINVAL;
    name.len = (size_t)(at - name.data);
    number = (struct span){at + strlen(separator), number.len - name.len - strlen(separator)};
    if (parse_socket(number, &rail.socket) < 0)
        return -EINVAL;
    for (size_t i = 0; i < ARRAY_SIZE(rails); i++)
        if (span_equals(name, rails[i].name)) {
            rail.kind = rails[i].kind;
            rail.what = rails[i].what;
        }
    *ret_rail = rail;
    return 0;
}

int hwmon_parse_socket(struct span text, uint32_t *ret_socket)
{
    struct span number = trim_end(text);

    return span_strip_prefix(&number, "Esocket") ? parse_socket(number, ret_socket) : -EINVAL;
}

/* From here on: the scan. */

/* hwmonN is another chip after the next boot; the device behind it is the same. */
struct chip {
    uint32_t number;
    char address[64];
};

struct scanner {
    const struct host *host;
    struct hwmon_scan *scan;
    uint32_t socket_count; /* of chips that have one each */
};

static int compare_chips(const void *left, const void *right)
{
    const struct chip *a = left, *b = right;
    int order = strverscmp(a->address, b->address);

    return order ? order : (a->number > b->number) - (a->number < b->number);
}

static size_t list_chips(const struct host *host, struct chip chips[static CHIPS_MAX])
{
    DIR *directory = fs_open_dir(host->sysfs_fd, "class/hwmon");
    const struct dirent *entry;
    size_t count = 0;

    while (directory && count < CHIPS_MAX && (entry = readdir(directory))) {
        struct span name = span_of(entry->d_name);
        char path[HWMON_PATH_BYTES], target[256];
        const char *slash;
        uint64_t number;
        ssize_t n;

        if (!span_strip_prefix(&name, "hwmon") || parse_u64_max(name, CHIP_NUMBER_MAX, &number) < 0)
            continue;
        snprintf(path, sizeof(path), "class/hwmon/hwmon%u/device", (uint32_t)number);
        n = readlinkat(host->sysfs_fd, path, target, sizeof(target) - 1);
        target[MAX(n, 0)] = '\0';
        slash = strrchr(target, '/');
        chips[count].number = (uint32_t)number;
        snprintf(chips[count].address, sizeof(chips[count].address), "%.63s",
                 slash ? slash + 1 : target);
        count++;
    }
    if (directory)
        closedir(directory);
    qsort(chips, count, sizeof(*chips), compare_chips);
    return count;
}

/* The chip's file is in its own directory or, with older kernels, in its device's. */
static bool find_file(const struct scanner *scanner, const struct chip *chip, const char *name,
                      char path[static HWMON_PATH_BYTES])
{
    static const char *const places[] = {"", "device/"};

    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        snprintf(path, HWMON_PATH_BYTES, "class/hwmon/hwmon%u/%s%s", chip->number, places[i], name);
        if (faccessat(scanner->host->sysfs_fd, path, F_OK, 0) == 0)
            return true;
    }
    path[0] = '\0';
    return false;
}

/* Empty: there is none. */
static struct span read_file(const struct scanner *scanner, const struct chip *chip,
                             const char *name, char text[static TEXT_BYTES])
{
    char path[HWMON_PATH_BYTES];
    size_t len;

    if (!find_file(scanner, chip, name, path) ||
        fs_read_at(scanner->host->sysfs_fd, path, text, TEXT_BYTES, &len) < 0)
        return (struct span){NULL, 0};
    return trim_end((struct span){text, len});
}

static bool file_equals(const struct scanner *scanner, const struct chip *chip, const char *name,
                        const char *expected)
{
    char text[TEXT_BYTES];

    return span_equals(read_file(scanner, chip, name, text), expected);
}

/* The best file of the channel: a counter before a mean before an instant. */
static bool choose_file(const struct scanner *scanner, const struct chip *chip, unsigned channel,
                        struct hwmon_found *found)
{
    static const struct {
        const char *quantity, *reading;
    } choices[] = {{"energy", "input"}, {"power", "average"}, {"power", "input"}};
    char name[32];

    for (size_t i = 0; i < ARRAY_SIZE(choices); i++) {
        snprintf(name, sizeof(name), "%s%u_enable", choices[i].quantity, channel);
        if (file_equals(scanner, chip, name, "0"))
            continue;
        snprintf(name, sizeof(name), "%s%u_%s", choices[i].quantity, channel, choices[i].reading);
        if (!find_file(scanner, chip, name, found->path))
            continue;
        found->counts = i == 0;
        snprintf(name, sizeof(name), "power%u_average_interval", channel);
        if (i != 1 || !find_file(scanner, chip, name, found->refresh))
            find_file(scanner, chip, "update_interval", found->refresh);
        return true;
    }
    return false;
}

static struct hwmon_found *find_found(struct hwmon_scan *scan, enum meter_kind kind, const char *id)
{
    for (size_t i = 0; i < scan->count; i++)
        if (scan->found[i].kind == kind && strcmp(scan->found[i].id, id) == 0)
            return &scan->found[i];
    return NULL;
}

static void found_add(struct scanner *scanner, const struct chip *chip, unsigned channel,
                      struct hwmon_found found)
{
    struct hwmon_scan *scan = scanner->scan;
    struct hwmon_found *same = find_found(scan, found.kind, found.id);

    if (!choose_file(scanner, chip, channel, &found))
        return;
    if (same) {
        if (found.counts && !same->counts)
            *same = found;
        scan->repeated++;
    } else if (scan->count < HWMON_METERS_MAX) {
        scan->found[scan->count++] = found;
    }
}

/* ACPI: a node, or one rail of a Grace module. */
static void add_power_meter(struct scanner *scanner, const struct chip *chip)
{
    struct hwmon_found found = {METER_NODE, .id = "hwmon", .what = "ACPI power meter"};
    char text[TEXT_BYTES];
    struct hwmon_rail rail;

    if (file_equals(scanner, chip, "power1_is_battery", "1"))
        return;
    if (hwmon_parse_rail(read_file(scanner, chip, "power1_oem_info", text), &rail) == 0) {
        if (rail.kind == METER_KINDS)
            return;
        found.kind = rail.kind;
        found.what = rail.what;
        snprintf(found.id, sizeof(found.id), "%u", rail.socket);
    }
    found_add(scanner, chip, 1, found);
}

/* Counters of every core and socket, told apart by label. */
static void add_amd_energy(struct scanner *scanner, const struct chip *chip)
{
    for (unsigned channel = 1; channel <= CHANNELS_MAX; channel++) {
        struct hwmon_found found = {METER_PACKAGE, .what = "amd_energy"};
        char name[32], text[TEXT_BYTES];
        struct span label;
        uint32_t socket;

        snprintf(name, sizeof(name), "energy%u_label", channel);
        label = read_file(scanner, chip, name, text);
        if (label.len == 0)
            return;
        if (hwmon_parse_socket(label, &socket) < 0)
            continue;
        snprintf(found.id, sizeof(found.id), "%u", socket);
        found_add(scanner, chip, channel, found);
    }
}

/* A chip for each socket. */
static void add_cpu_power(struct scanner *scanner, const struct chip *chip)
{
    struct hwmon_found found = {METER_PACKAGE, .what = "AMD's socket power"};

    snprintf(found.id, sizeof(found.id), "%u", scanner->socket_count++);
    found_add(scanner, chip, 1, found);
}

/* Names of the kernel's documentation of hwmon, and of the drivers. All others are a GPU, a power
 * supply, a regulator or a battery, or measure no power. */
static void add_chip(struct scanner *scanner, const struct chip *chip)
{
    static const struct {
        const char *name;
        void (*add)(struct scanner *scanner, const struct chip *chip);
    } drivers[] = {
        {"power_meter", add_power_meter},
        {"amd_energy", add_amd_energy},
        {"amd_hsmp_hwmon", add_cpu_power},
        {"fam15h_power", add_cpu_power},
    };
    char text[TEXT_BYTES];
    struct span name = read_file(scanner, chip, "name", text);

    for (size_t i = 0; i < ARRAY_SIZE(drivers); i++)
        if (span_equals(name, drivers[i].name))
            drivers[i].add(scanner, chip);
}

static void leave_to_others(struct hwmon_scan *scan, const struct host *host,
                            const struct source_switches *switches)
{
    size_t kept = 0;

    if (!overlap_measures_package(host, switches))
        return;
    for (size_t i = 0; i < scan->count; i++)
        if (scan->found[i].kind != METER_PACKAGE)
            scan->found[kept++] = scan->found[i];
    scan->elsewhere = scan->count - kept;
    scan->count = kept;
}

void hwmon_scan(const struct host *host, const struct source_switches *switches,
                struct hwmon_scan *ret_scan)
{
    struct scanner scanner = {.host = host, .scan = ret_scan};
    struct chip chips[CHIPS_MAX];
    size_t count = list_chips(host, chips);

    *ret_scan = (struct hwmon_scan){0};
    for (size_t i = 0; i < count; i++)
        add_chip(&scanner, &chips[i]);
    /* Some boards measure only the rails of a socket: then its cores are all that is known. */
    for (size_t i = 0; i < ret_scan->count; i++)
        if (ret_scan->found[i].kind == METER_CORE &&
            !find_found(ret_scan, METER_PACKAGE, ret_scan->found[i].id))
            ret_scan->found[i].kind = METER_PACKAGE;
    leave_to_others(ret_scan, host, switches);
}
