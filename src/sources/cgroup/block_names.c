#include "sources/cgroup/block_names.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void block_names_forget(struct block_names *names)
{
    names->count = 0;
}

/* /sys/dev/block/8:0 is a link to .../block/sda. */
static void look_up(const struct host *host, uint32_t major, uint32_t minor,
                    char name[static USAGE_DEVICE_BYTES])
{
    char link[64], target[PATH_MAX];
    const char *last;
    ssize_t len;

    snprintf(name, USAGE_DEVICE_BYTES, "%u:%u", major, minor);
    snprintf(link, sizeof(link), "dev/block/%u:%u", major, minor);
    len = readlinkat(host->sysfs_fd, link, target, sizeof(target) - 1);
    if (len <= 0)
        return;
    target[len] = '\0';
    last = strrchr(target, '/');
    last = last ? last + 1 : target;
    if (last[0] && strlen(last) < USAGE_DEVICE_BYTES)
        memcpy(name, last, strlen(last) + 1);
}

void block_names_find(struct block_names *names, const struct host *host, uint32_t major,
                      uint32_t minor, char ret_name[static USAGE_DEVICE_BYTES])
{
    size_t i = 0;

    while (i < names->count && (names->items[i].major != major || names->items[i].minor != minor))
        i++;
    if (i == names->count) {
        i = i < BLOCK_NAMES_MAX ? i : 0;
        names->items[i].major = major;
        names->items[i].minor = minor;
        look_up(host, major, minor, names->items[i].name);
        names->count += i == names->count;
    }
    memcpy(ret_name, names->items[i].name, USAGE_DEVICE_BYTES);
}
