#include "sources/overlap.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>

#include "core/fs.h"
#include "core/macros.h"
#include "core/span.h"

static bool can_open(int dir_fd, const char *path)
{
    _cleanup_close_ int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    return fd >= 0;
}

static bool is_zone_of(int powercap_fd, const char *zone, enum meter_kind kind)
{
    char path[300], text[64];
    struct span name = {text, 0};

    snprintf(path, sizeof(path), "%s/name", zone);
    if (fs_read_at(powercap_fd, path, text, sizeof(text), &name.len) < 0)
        return false;
    span_strip_suffix(&name, "\n");
    if (kind == METER_PACKAGE ? !span_strip_prefix(&name, "package-") : !span_equals(name, "dram"))
        return false;
    snprintf(path, sizeof(path), "%s/energy_uj", zone);
    return can_open(powercap_fd, path);
}

bool overlap_rapl_measures(const struct host *host, const struct source_switches *switches,
                           enum meter_kind kind)
{
    DIR *directory =
        source_is_off(switches, "rapl") ? NULL : fs_open_dir(host->sysfs_fd, "class/powercap");
    const struct dirent *entry;
    bool found = false;

    if (!directory)
        return false;
    while (!found && (entry = readdir(directory))) {
        struct span name = span_of(entry->d_name);

        found = span_strip_prefix(&name, "intel-rapl:") &&
                is_zone_of(dirfd(directory), entry->d_name, kind);
    }
    closedir(directory);
    return found;
}

bool overlap_measures_package(const struct host *host, const struct source_switches *switches)
{
    return overlap_rapl_measures(host, switches, METER_PACKAGE) ||
           (!source_is_off(switches, "cray") &&
            can_open(host->sysfs_fd, "cray/pm_counters/cpu_energy"));
}
