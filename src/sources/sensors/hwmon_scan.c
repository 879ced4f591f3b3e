#include "sources/sensors/hwmon_scan.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/macros.h"
#include "core/parse.h"
#include "sources/counter.h"
#include "sources/overlap.h"

enum { CHIPS_MAX = 256, CHIP_NUMBER_MAX = 99999, CHANNELS_MAX = 1024, TEXT_BYTES = 128 };

/* hwmonN is another chip after the next boot; the device behind it is the same. */
struct chip {
    uint32_t number;
    char address[64];
};

struct scanner {
    const struct host *host;
    struct hwmon_scan *scan;
    struct chip chips[CHIPS_MAX];
    size_t chip_count;
};

static const struct {
    enum meter_kind kind;
    const char *what;
} rail_meters[] = {
    [HWMON_RAIL_MODULE] = {METER_MODULE, "Grace module with its GPU"},
    [HWMON_RAIL_GRACE] = {METER_PACKAGE, "Grace socket with its memory"},
    [HWMON_RAIL_CPU] = {METER_CORE, "cores of a Grace socket"},
    [HWMON_RAIL_SYSIO] = {METER_UNCORE, "fabric and IO of a Grace socket"},
};

static int compare_chips(const void *left, const void *right)
{
    const struct chip *a = left, *b = right;
    int order = strverscmp(a->address, b->address);

    return order ? order : (a->number > b->number) - (a->number < b->number);
}

static void read_address(const struct scanner *scanner, struct chip *chip)
{
    char path[HWMON_PATH_BYTES], target[256];
    const char *slash;
    ssize_t n;

    snprintf(path, sizeof(path), "class/hwmon/hwmon%u/device", chip->number);
    n = readlinkat(scanner->host->sysfs_fd, path, target, sizeof(target) - 1);
    target[MAX(n, 0)] = '\0';
    slash = strrchr(target, '/');
    snprintf(chip->address, sizeof(chip->address), "%.63s", slash ? slash + 1 : target);
}

static void list_chips(struct scanner *scanner)
{
    DIR *directory = fs_open_dir(scanner->host->sysfs_fd, "class/hwmon");
    const struct dirent *entry;

    if (!directory)
        return;
    while (scanner->chip_count < CHIPS_MAX && (entry = readdir(directory))) {
        struct span name = span_of(entry->d_name);
        struct chip *chip = &scanner->chips[scanner->chip_count];
        uint64_t number;

        if (!span_strip_prefix(&name, "hwmon") || parse_u64_max(name, CHIP_NUMBER_MAX, &number) < 0)
            continue;
        chip->number = (uint32_t)number;
        read_address(scanner, chip);
        scanner->chip_count++;
    }
    closedir(directory);
    qsort(scanner->chips, scanner->chip_count, sizeof(*scanner->chips), compare_chips);
}

/* Where the chip has this file: in its own directory, or, with older kernels, in its device's. */
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

static struct span read_file(const struct scanner *scanner, const struct chip *chip,
                             const char *name, char text[static TEXT_BYTES])
{
    char path[HWMON_PATH_BYTES];
    size_t len;

    if (!find_file(scanner, chip, name, path) ||
        fs_read_at(scanner->host->sysfs_fd, path, text, TEXT_BYTES, &len) < 0)
        return (struct span){NULL, 0};
    return (struct span){text, len};
}

static bool says(const struct scanner *scanner, const struct chip *chip, const char *name,
                 const char *answer)
{
    char text[TEXT_BYTES];
    struct span said = read_file(scanner, chip, name, text);

    span_strip_suffix(&said, "\n");
    return said.len > 0 && span_equals(said, answer);
}

/* The best of what the channel offers: a counter before a mean before an instant. */
static bool choose_file(const struct scanner *scanner, const struct chip *chip, unsigned channel,
                        struct hwmon_found *found)
{
    static const struct {
        const char *quantity, *reading;
    } choices[] = {{"energy", "input"}, {"power", "average"}, {"power", "input"}};
    char name[32];

    for (size_t i = 0; i < ARRAY_SIZE(choices); i++) {
        snprintf(name, sizeof(name), "%s%u_enable", choices[i].quantity, channel);
        if (says(scanner, chip, name, "0"))
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

static struct hwmon_found *look_up(struct hwmon_scan *scan, enum meter_kind kind, const char *id)
{
    for (size_t i = 0; i < scan->count; i++)
        if (scan->found[i].kind == kind && strcmp(scan->found[i].id, id) == 0)
            return &scan->found[i];
    return NULL;
}

static void add(struct scanner *scanner, const struct chip *chip, unsigned channel,
                struct hwmon_found found)
{
    struct hwmon_scan *scan = scanner->scan;
    struct hwmon_found *same = look_up(scan, found.kind, found.id);

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

static void add_power_meter(struct scanner *scanner, const struct chip *chip)
{
    struct hwmon_found found = {METER_NODE, .id = "hwmon", .what = "ACPI power meter"};
    char text[TEXT_BYTES];
    struct span label = read_file(scanner, chip, "power1_oem_info", text);
    enum hwmon_rail rail;
    uint32_t socket;

    if (says(scanner, chip, "power1_is_battery", "1"))
        return;
    if (label.len > 0 && hwmon_parse_rail(label, &rail, &socket) == 0) {
        if (rail == HWMON_RAIL_UNKNOWN)
            return;
        found.kind = rail_meters[rail].kind;
        found.what = rail_meters[rail].what;
        snprintf(found.id, sizeof(found.id), "%u", socket);
    }
    add(scanner, chip, 1, found);
}

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
        add(scanner, chip, channel, found);
    }
}

static void add_chips(struct scanner *scanner)
{
    uint32_t socket = 0;

    for (size_t i = 0; i < scanner->chip_count; i++) {
        const struct chip *chip = &scanner->chips[i];
        struct hwmon_found found = {METER_PACKAGE, .what = "AMD's socket power"};
        char text[TEXT_BYTES];

        switch (hwmon_parse_chip(read_file(scanner, chip, "name", text))) {
        case HWMON_POWER_METER:
            add_power_meter(scanner, chip);
            break;
        case HWMON_AMD_ENERGY:
            add_amd_energy(scanner, chip);
            break;
        case HWMON_CPU_POWER:
            snprintf(found.id, sizeof(found.id), "%u", socket++);
            add(scanner, chip, 1, found);
            break;
        case HWMON_OTHER:
            break;
        }
    }
}

/* Some boards measure only the rails of a socket: then its cores are all that is known of it. */
static void promote_cores(struct hwmon_scan *scan)
{
    for (size_t i = 0; i < scan->count; i++)
        if (scan->found[i].kind == METER_CORE && !look_up(scan, METER_PACKAGE, scan->found[i].id))
            scan->found[i].kind = METER_PACKAGE;
}

static void leave_to_others(struct hwmon_scan *scan, const struct host *host,
                            const struct source_switches *switches)
{
    size_t kept = 0;

    if (!overlap_rapl_measures(host, switches, METER_PACKAGE) &&
        !overlap_cray_measures_package(host, switches))
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

    *ret_scan = (struct hwmon_scan){0};
    list_chips(&scanner);
    add_chips(&scanner);
    promote_cores(ret_scan);
    leave_to_others(ret_scan, host, switches);
}

/* From here on: names and texts. */

enum { SOCKET_MAX = 255 };

/* Of the kernel's documentation of hwmon, and the drivers. */
static const struct {
    const char *name;
    enum hwmon_chip chip;
} chips[] = {
    {"power_meter", HWMON_POWER_METER},
    {"amd_energy", HWMON_AMD_ENERGY},
    {"amd_hsmp_hwmon", HWMON_CPU_POWER},
    {"fam15h_power", HWMON_CPU_POWER},
};

static const struct {
    const char *name;
    enum hwmon_rail rail;
} rails[] = {
    {"Module", HWMON_RAIL_MODULE},
    {"Grace", HWMON_RAIL_GRACE},
    {"CPU", HWMON_RAIL_CPU},
    {"SysIO", HWMON_RAIL_SYSIO},
};

/* The largest positive of 16 bits, in W. What else means "unknown" is more than a node can draw:
 * 4294967295000 of the ACPI meter, 65535000000. */
static const uint64_t SATURATED_UW = 32767000000;

static struct span without_end(struct span text)
{
    while (text.len > 0 && (text.data[text.len - 1] == '\n' || text.data[text.len - 1] == ' '))
        text.len--;
    return text;
}

enum hwmon_chip hwmon_parse_chip(struct span name)
{
    for (size_t i = 0; i < ARRAY_SIZE(chips); i++)
        if (span_equals(without_end(name), chips[i].name))
            return chips[i].chip;
    return HWMON_OTHER;
}

int hwmon_parse_power(struct span text, uint64_t *ret_uw)
{
    uint64_t power_uw;
    int r = parse_u64(without_end(text), &power_uw);

    if (r == -ERANGE)
        return -ENODATA;
    if (r < 0)
        return r;
    /* A node that runs draws something: 0 is a sensor that is off. */
    if (power_uw == 0 || power_uw == SATURATED_UW || power_uw >= PLAUSIBLE_POWER_MAX_UW)
        return -ENODATA;
    *ret_uw = power_uw;
    return 0;
}

int hwmon_parse_energy(struct span text, uint64_t *ret_uj)
{
    return parse_u64(without_end(text), ret_uj);
}

int hwmon_parse_rail(struct span text, enum hwmon_rail *ret_rail, uint32_t *ret_socket)
{
    static const char SEPARATOR[] = " Power Socket ";
    struct span whole = without_end(text), name, number;
    const char *at =
        whole.len > 0 ? memmem(whole.data, whole.len, SEPARATOR, strlen(SEPARATOR)) : NULL;
    enum hwmon_rail rail = HWMON_RAIL_UNKNOWN;
    uint64_t socket;

    if (!at)
        return -EINVAL;
    name = (struct span){whole.data, (size_t)(at - whole.data)};
    number = (struct span){at, whole.len - name.len};
    if (!span_strip_prefix(&number, SEPARATOR) || parse_u64_max(number, SOCKET_MAX, &socket) < 0)
        return -EINVAL;
    for (size_t i = 0; i < ARRAY_SIZE(rails); i++)
        if (span_equals(name, rails[i].name))
            rail = rails[i].rail;
    *ret_rail = rail;
    *ret_socket = (uint32_t)socket;
    return 0;
}

int hwmon_parse_socket(struct span text, uint32_t *ret_socket)
{
    struct span number = without_end(text);
    uint64_t socket;

    if (!span_strip_prefix(&number, "Esocket") || parse_u64_max(number, SOCKET_MAX, &socket) < 0)
        return -EINVAL;
    *ret_socket = (uint32_t)socket;
    return 0;
}
