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

enum {
    AMD_METRICS_BYTES = 8192, /* no revision is larger */
    AMD_PARTITIONS_MAX = 8,
    AMD_XCCS_MAX = 8,
};

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
    AMD_GFX_ACTIVITY_SUM, /* percent, added up once per firmware cycle */
    AMD_MEMORY_ACTIVITY_SUM,
    AMD_CYCLES,   /* of the firmware: accumulation_counter */
    AMD_CLOCK_NS, /* of the driver, when the table was made: system_clock_counter */
    AMD_METRICS,
};

struct amd_metrics {
    uint8_t format, content; /* revision */
    uint32_t valid;          /* a bit for each metric: absent is never zero */
    uint32_t wide;           /* a bit for each valid field of 64 bits; other counters wrap at 32 */
    uint64_t values[AMD_METRICS];

    /* 1.6 to 1.8: of each partition the busy time (gfx_busy_acc) of its XCCs, summed over those
     * that are known. */
    size_t partition_count; /* 0: the table has none */
    struct {
        bool has_busy;
        uint64_t busy_sum;
    } partitions[AMD_PARTITIONS_MAX];

    /* 1.9 has no partitions, only gfx_busy_acc of each XCC of the GPU. With n XCCs and p
     * partitions, the first n / p belong to partition 0, and so on (XCP_INST_MASK in amdgpu). */
    size_t xcc_count; /* 0: unknown */
    uint64_t xcc_busy[AMD_XCCS_MAX];
};

/* `data` may be unaligned, and longer than the table. Of an unknown revision no metric is valid.
 * -EINVAL: not such a table, cut off, or its size is not that of its revision. */
int amd_metrics_parse(const void *data, size_t size, struct amd_metrics *ret_metrics);

/* Exact, rounded down; saturates instead of overflowing. */
uint64_t amd_energy_uj(uint64_t count);
