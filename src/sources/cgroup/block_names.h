/* What block devices are called: "8:0" is "sda". Asks the host's sysfs, and remembers. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "host/host.h"
#include "model/usage.h"

enum { BLOCK_NAMES_MAX = 64 };

/* Zeroed, it knows none. */
struct block_names {
    struct {
        uint32_t major, minor;
        char name[USAGE_DEVICE_BYTES];
    } items[BLOCK_NAMES_MAX];
    size_t count;
};

/* A number may get another device. */
void block_names_forget(struct block_names *names);

/* The name of the device, or its number where it has none. */
void block_names_find(struct block_names *names, const struct host *host, uint32_t major,
                      uint32_t minor, char ret_name[static USAGE_DEVICE_BYTES]);
