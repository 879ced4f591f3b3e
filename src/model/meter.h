/* What devices report: joules, and gauges of GPUs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Something on the node that counts joules. */
enum meter_kind {
    /* Booked: they do not overlap, so that their sum is the energy of the node, as far as it is
     * measured. */
    METER_GPU,
    METER_PACKAGE,
    METER_DRAM,
    METER_NODE_OVERHEAD, /* the node without the others */

    /* Only observed: they contain others, or are contained in them. */
    METER_CORE,
    METER_UNCORE,
    METER_PSYS,
    METER_MODULE,
    METER_NODE,
    METER_KINDS,
};

/* Limits of the power of a meter's device, each over its own time: RAPL's constraints. */
enum meter_limit {
    METER_LIMIT_LONG_TERM,
    METER_LIMIT_SHORT_TERM,
    METER_LIMIT_PEAK_POWER,
    METER_LIMITS,
};

/* Values of the label `limit`. */
extern const char *const meter_limit_words[METER_LIMITS];

struct meter_limits {
    uint64_t uw[METER_LIMITS]; /* 0: there is none, or it is not enforced */
};

/* Values of the label `meter`. */
extern const char *const meter_words[METER_KINDS];

/* Readings of a GPU that are shown as they are: gauges, and counters that the device keeps. */
enum gpu_gauge {
    GPU_GAUGE_POWER_MW,
    GPU_GAUGE_POWER_LIMIT_MW,
    GPU_GAUGE_UTILISATION_PERCENT,
    GPU_GAUGE_MEMORY_UTILISATION_PERCENT,
    GPU_GAUGE_SM_CLOCK_MHZ,
    GPU_GAUGE_MEMORY_CLOCK_MHZ,
    GPU_GAUGE_TEMPERATURE_C,
    GPU_GAUGE_MEMORY_TEMPERATURE_C,
    GPU_GAUGE_PERFORMANCE_STATE,
    GPU_GAUGE_MEMORY_TOTAL_BYTES,
    GPU_GAUGE_MEMORY_RESERVED_BYTES,
    GPU_GAUGE_MEMORY_USED_BYTES, /* without reserved */
    GPU_GAUGE_MEMORY_FREE_BYTES,
    GPU_GAUGE_THROTTLE_MASK, /* why the clock is limited: a series for each reason */
    GPU_GAUGE_ECC_CORRECTED,
    GPU_GAUGE_ECC_UNCORRECTED,
    GPU_GAUGE_PCIE_TX_BYTES,
    GPU_GAUGE_PCIE_RX_BYTES,
    GPU_GAUGE_PCIE_REPLAYS,
    GPU_GAUGE_PCIE_GENERATION,
    GPU_GAUGE_PCIE_WIDTH,
    GPU_GAUGE_NVLINK_TX_KIB,
    GPU_GAUGE_NVLINK_RX_KIB,
    GPU_GAUGE_COUNT,
};

/* Where a GPU instance is on its board. Only a privileged reader is told. */
struct mig_placement {
    bool is_known;
    uint32_t profile;     /* the driver's number of its profile: 19 is 1g.10gb of an H100 */
    uint32_t start, size; /* memory slices, from 0 */
};
