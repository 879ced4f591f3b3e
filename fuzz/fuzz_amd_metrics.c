/* A table of gpu_metrics: any bytes give values within their bounds, or one of the reasons. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "sources/amd/gpu_metrics.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_counter(enum amd_metric metric)
{
    return metric == AMD_ENERGY || metric == AMD_GFX_ACTIVITY_SUM ||
           metric == AMD_MEMORY_ACTIVITY_SUM || metric == AMD_CYCLES;
}

static void check_metric(const struct amd_metrics *metrics, enum amd_metric metric)
{
    uint64_t value = metrics->values[metric];

    if (!(metrics->valid >> metric & 1)) {
        if (value != 0)
            abort();
        return;
    }
    if (is_counter(metric) && !(metrics->wide >> metric & 1) && value >= UINT32_MAX)
        abort();
    if ((metric == AMD_GFX_PERCENT || metric == AMD_MEMORY_PERCENT) && value > 100)
        abort();
    if (metric == AMD_ENERGY && amd_energy_uj(value) < value)
        abort();
}

static void check_partitions(const struct amd_metrics *metrics)
{
    if (metrics->partition_count > AMD_PARTITIONS_MAX || metrics->xcc_count > AMD_XCCS_MAX)
        abort();
    if (metrics->partition_count > 0 && metrics->xcc_count > 0)
        abort();
    for (size_t i = 0; i < AMD_PARTITIONS_MAX; i++)
        if (metrics->partitions[i].has_busy ? i >= metrics->partition_count
                                            : metrics->partitions[i].busy_sum != 0)
            abort();
    for (size_t i = 0; i < metrics->xcc_count; i++)
        if (metrics->xcc_busy[i] == UINT64_MAX)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct amd_metrics metrics;

    switch (amd_metrics_parse(data, size, &metrics)) {
    case 0:
        if (size < 4 || metrics.format != data[2] || metrics.content != data[3])
            abort();
        if (metrics.valid >> AMD_METRICS || metrics.wide & ~metrics.valid)
            abort();
        for (enum amd_metric metric = 0; metric < AMD_METRICS; metric++)
            check_metric(&metrics, metric);
        check_partitions(&metrics);
        return 0;
    case -EINVAL:
        return 0;
    default:
        abort();
    }
}
