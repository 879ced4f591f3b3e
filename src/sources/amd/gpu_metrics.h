/*
 * What the firmware of an AMD GPU reports: amdgpu's file gpu_metrics, in any of its revisions.
 * Pure.
 *
 * The layouts are those of the kernel's kgd_pp_interface.h. Of APUs (2.x and 3.0), a value whose
 * unit it does not declare, or which drivers fill in another unit, is left out; hwmon has most of
 * these.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AMD_METRICS_BYTES = 8192 }; /* no revision is larger */

enum amd_metric {
    AMD_ENERGY,      /* 2^-16 J, see amd_energy_uj. In 1.1 to 1.3 some chips count only 32 bits */
    AMD_POWER_MW,    /* of the socket, average or current. Not in 2.x: the unit differs by chip */
    AMD_GFX_PERCENT, /* activity now, at most 100 */
    AMD_MEMORY_PERCENT,
    AMD_EDGE_C,
    AMD_HOTSPOT_C,
    AMD_MEMORY_C,
    AMD_GFX_MHZ, /* current; of several XCCs the first that is known */
    AMD_MEMORY_MHZ,
    AMD_METRICS,
};

struct amd_metrics {
    uint8_t format, content; /* revision */
    bool is_known;           /* the revision; even then it may have no metric */
    uint32_t valid;          /* a bit for each metric: absent is never zero */
    uint64_t values[AMD_METRICS];
};

/* `data` may be unaligned, and longer than the table. Of an unknown revision no metric is valid.
 * -EINVAL: not such a table, cut off, or its size is not that of its revision. */
int amd_metrics_parse(const void *data, size_t size, struct amd_metrics *ret_metrics);

/* Exact, rounded down; saturates instead of overflowing. */
uint64_t amd_energy_uj(uint64_t count);
