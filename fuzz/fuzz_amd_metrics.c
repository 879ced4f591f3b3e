/* A table of gpu_metrics: any bytes give values within their bounds, or one of the reasons. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "sources/amd/gpu_metrics.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_metric(const struct amd_metrics *metrics, enum amd_metric metric)
{
    uint64_t value = metrics->values[metric];

    if (!(metrics->valid >> metric & 1)) {
        if (value != 0)
            abort();
        return;
    }
    if ((metric == AMD_GFX_PERCENT || metric == AMD_MEMORY_PERCENT) && value > 100)
        abort();
    if (metric == AMD_ENERGY && amd_energy_uj(value) < value)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct amd_metrics metrics;

    switch (amd_metrics_parse(data, size, &metrics)) {
    case 0:
        if (size < 4 || metrics.format != data[2] || metrics.content != data[3])
            abort();
        if (metrics.valid >> AMD_METRICS || (metrics.valid && !metrics.is_known))
            abort();
        for (enum amd_metric metric = 0; metric < AMD_METRICS; metric++)
            check_metric(&metrics, metric);
        return 0;
    case -EINVAL:
        return 0;
    default:
        abort();
    }
}
