/* Every metric family there is, in the order in which it is shown: one table. */
#pragma once

enum metric {
    METRIC_PROCESS_ENERGY,
    METRIC_PROCESS_ENERGY_SUM, /* --compat=my-gpu-exporter, text 0.0.4 only */
    METRIC_PROCESS_SM_UTILIZATION,
    METRIC_PROCESS_MEMORY_UTILIZATION,
    METRIC_PROCESS_MEMORY_USED,
    METRIC_PROCESS_START_TIME,
    METRIC_PROCESS_ACTIVE,
    METRIC_COMPAT_GPU_ENERGY, /* --compat=my-gpu-exporter */
    METRIC_METER_ENERGY,
    METRIC_METER_HARDWARE_ENERGY,
    METRIC_ENERGY_PENDING,
    METRIC_UNOWNED_ENERGY,
    METRIC_WORKLOAD_ENERGY,
    METRIC_WORKLOAD_POWER,
    METRIC_WORKLOAD_CONFIDENCE,
    METRIC_GPU_INFO,
    METRIC_GPU_POWER,
    METRIC_GPU_POWER_LIMIT,
    METRIC_GPU_UTILIZATION,
    METRIC_GPU_MEMORY_UTILIZATION,
    METRIC_GPU_CLOCK,
    METRIC_GPU_TEMPERATURE,
    METRIC_LEDGER_IMBALANCE,
    METRIC_SOURCE_UP,
    METRIC_SOURCE_AGE,
    METRIC_SOURCE_DURATION,
    METRIC_SOURCE_ERRORS,
    METRIC_SOURCE_RESETS,
    METRIC_SAMPLES_DROPPED,
    METRIC_SERIES_DROPPED,
    METRIC_REPLAY_ACTIVE,
    METRIC_FRONT_STARTS,
    METRIC_BUILD_INFO,
    METRIC_SELF_CPU,
    METRIC_SELF_MEMORY,
    METRIC_SELF_START_TIME,
    METRIC_COUNT,
};

enum metric_type { METRIC_GAUGE, METRIC_COUNTER };

/* What stands before the name. */
enum metric_prefix {
    METRIC_PREFIX_PROCESS, /* --metric-prefix */
    METRIC_PREFIX_OWN,     /* wattribute_ */
    METRIC_PREFIX_NONE,    /* names that every Prometheus client has */
};

struct metric_name {
    enum metric_prefix prefix;
    const char *name; /* without `_total`: counters get it where it belongs */
    enum metric_type type;
    const char *unit; /* the last word of the name, or NULL */
    const char *help;
};

extern const struct metric_name metric_names[METRIC_COUNT];
