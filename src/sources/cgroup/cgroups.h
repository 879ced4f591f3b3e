/* The usage of all workloads of the node, from their cgroups, as one sample every few seconds. */
#pragma once

#include "model/usage.h"
#include "sources/source.h"

extern const struct source_ops cgroups_source;

enum { BLOCK_NAMES_MAX = 64 };

/* Names of block devices: "8:0" is "sda". Zeroed, it is empty. */
struct block_names {
    struct {
        uint32_t major, minor;
        char name[USAGE_DEVICE_BYTES];
    } items[BLOCK_NAMES_MAX];
    size_t count; /* set it to 0 now and then: a number may get another device */
};

/* The device's name in the host's sysfs, or its number where it has none. */
void block_names_find(struct block_names *names, const struct host *host, uint32_t major,
                      uint32_t minor, char ret_name[static USAGE_DEVICE_BYTES]);
