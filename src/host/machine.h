/* The whole machine: CPU time and memory, from /proc/stat and /proc/meminfo. The parsers are pure.
 */
#pragma once

#include <stdint.h>

#include "core/span.h"
#include "host/host.h"

struct machine {
    uint64_t busy_us, capacity_us;            /* of all CPUs, since boot */
    uint64_t memory_bytes, memory_used_bytes; /* used: not available */
};

/* `tick_us`: what /proc counts in. 0 or -EBADMSG. */
int machine_parse_stat(struct span text, uint64_t tick_us, struct machine *machine);
int machine_parse_meminfo(struct span text, struct machine *machine);

/* Reads both. 0 or -errno. */
int machine_read(const struct host *host, struct machine *ret_machine);
