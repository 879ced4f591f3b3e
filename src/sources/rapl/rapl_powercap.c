/* RAPL by the files of powercap. The descriptors stay open; a read is one system call. */
#include "sources/rapl/rapl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "core/fs.h"
#include "core/macros.h"
#include "core/parse.h"

enum { NUMBER_BYTES = 32, PATH_BYTES = 128 };

/* Of the text of a file, as sysfs writes it. */
static int parse_uj(struct span text, uint64_t *ret_uj)
{
    (void)span_strip_suffix(&text, "\n");
    return parse_u64(text, ret_uj) < 0 ? -EBADMSG : 0;
}

/* Without a range there is no wrap to be known: whatever goes back is a break. */
static uint64_t read_range(int sysfs_fd, const char *directory)
{
    char path[PATH_BYTES], text[NUMBER_BYTES];
    uint64_t range_uj;
    size_t len;

    snprintf(path, sizeof(path), "class/powercap/%s/max_energy_range_uj", directory);
    if (fs_read_at(sysfs_fd, path, text, sizeof(text), &len) < 0 ||
        parse_uj((struct span){text, len}, &range_uj) < 0)
        return 0;
    return range_uj;
}

static int open_zone(struct rapl *rapl, const struct rapl_zone *zone)
{
    struct rapl_meter meter = {.kind = zone->kind};
    char path[PATH_BYTES];

    snprintf(path, sizeof(path), "class/powercap/%s/energy_uj", zone->directory);
    meter.fd = openat(rapl->host->sysfs_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (meter.fd < 0)
        return -errno;
    memcpy(meter.id, zone->id, sizeof(meter.id));
    rapl_add(rapl, &meter, read_range(rapl->host->sysfs_fd, zone->directory));
    return 0;
}

static int find(struct rapl *rapl, struct error *err)
{
    struct rapl_zones zones = {.count = 0};
    bool any = false, denied = false;

    (void)rapl_zones_find(rapl->host->sysfs_fd, rapl->is_amd, &zones);
    for (size_t i = 0; i < zones.count; i++) {
        int r = 0;

        if (!rapl_is_open(rapl, zones.items[i].kind, zones.items[i].id))
            r = open_zone(rapl, &zones.items[i]);
        any |= r == 0;
        denied |= r == -EACCES || r == -EPERM;
    }
    if (any)
        return 0;
    if (denied)
        return error_set(err, -EACCES, "only root may read energy_uj in class/powercap of sysfs");
    if (zones.are_hidden)
        return error_set(err, -EACCES,
                         "the container hides the zones of powercap: mount the host's /sys and "
                         "give it with --path.sysfs");
    return error_set(err, -ENODEV, "no zone of RAPL in class/powercap of sysfs");
}

static int read_zone(const struct rapl *rapl, const struct rapl_meter *meter, uint64_t *ret_uj)
{
    char text[NUMBER_BYTES];
    ssize_t len = rapl->calls->pread(meter->fd, text, sizeof(text), 0);

    if (len < 0)
        return errno == ENOENT || errno == ENXIO ? -ENODEV : -errno;
    return parse_uj((struct span){text, (size_t)len}, ret_uj);
}

const struct rapl_way rapl_powercap = {
    .name = "powercap",
    .max_gap_us = UINT64_MAX,
    .find = find,
    .read = read_zone,
};
