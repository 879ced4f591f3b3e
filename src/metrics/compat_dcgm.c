/* The names of dcgm-exporter: one row for each device, never one for each pod. */
#include <ctype.h>
#include <stdio.h>

#include "core/macros.h"
#include "metrics/compat.h"

/* MiB, percent and watts, as DCGM has them. */
static const struct {
    enum metric metric;
    enum gpu_gauge gauge;
    unsigned shift, digits;
} gauges[] = {
    {METRIC_DCGM_SM_CLOCK, GPU_GAUGE_SM_CLOCK_MHZ, 0, WHOLE},
    {METRIC_DCGM_MEMORY_CLOCK, GPU_GAUGE_MEMORY_CLOCK_MHZ, 0, WHOLE},
    {METRIC_DCGM_MEMORY_TEMPERATURE, GPU_GAUGE_MEMORY_TEMPERATURE_C, 0, WHOLE},
    {METRIC_DCGM_TEMPERATURE, GPU_GAUGE_TEMPERATURE_C, 0, WHOLE},
    {METRIC_DCGM_POWER, GPU_GAUGE_POWER_MW, 0, MILLI},
    {METRIC_DCGM_PCIE_REPLAYS, GPU_GAUGE_PCIE_REPLAYS, 0, WHOLE},
    {METRIC_DCGM_UTILIZATION, GPU_GAUGE_UTILISATION_PERCENT, 0, WHOLE},
    {METRIC_DCGM_MEMORY_UTILIZATION, GPU_GAUGE_MEMORY_UTILISATION_PERCENT, 0, WHOLE},
    {METRIC_DCGM_MEMORY_FREE, GPU_GAUGE_MEMORY_FREE_BYTES, 20, WHOLE},
    {METRIC_DCGM_MEMORY_USED, GPU_GAUGE_MEMORY_USED_BYTES, 20, WHOLE},
    {METRIC_DCGM_MEMORY_RESERVED, GPU_GAUGE_MEMORY_RESERVED_BYTES, 20, WHOLE},
};

/* "0000:17:00.0" is "00000000:17:00.0" there, in capitals. */
static void bus_label(struct text *text, const char *pci)
{
    char bus[32];

    snprintf(bus, sizeof(bus), "%s%s", pci[0] ? "0000" : "", pci);
    for (char *c = bus; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    text_label(text, "pci_bus_id", bus);
}

/* `instance` of MIG; or NULL. */
static void begin_row(struct text *text, const struct snapshot *snapshot,
                      const struct snapshot_gpu *gpu, const struct snapshot_instance *instance)
{
    char device[32] = "";

    if (gpu->has_minor)
        snprintf(device, sizeof(device), "nvidia%u", gpu->minor);
    text_sample(text);
    text_label_u64(text, "gpu", gpu->gpu);
    text_label(text, "UUID", gpu->uuid);
    bus_label(text, gpu->pci);
    text_label(text, "device", device);
    text_label(text, "modelName", gpu->name);
    if (instance) {
        text_label(text, "GPU_I_PROFILE", instance->profile);
        text_label_u64(text, "GPU_I_ID", instance->gpu_instance);
    }
    /* Releases write one or the other. */
    text_label(text, "Hostname", snapshot->node);
    text_label(text, "hostname", snapshot->node);
    text_label(text, "DCGM_FI_DRIVER_VERSION", gpu->driver);
}

static void gauge_rows(struct text *text, const struct snapshot *snapshot,
                       const struct snapshot_gpu *gpu, size_t which)
{
    enum gpu_gauge gauge = gauges[which].gauge;
    bool is_of_parts =
        false; /* memory: its parts have rows, and the board, which is their sum, none */

    for (size_t i = 0; i < gpu->instance_count && gauges[which].shift > 0; i++) {
        const struct snapshot_instance *instance = &gpu->instances[i];

        if (!(instance->valid >> gauge & 1))
            continue;
        is_of_parts = true;
        begin_row(text, snapshot, gpu, instance);
        text_value(text, (int64_t)(instance->gauges[gauge] >> gauges[which].shift),
                   gauges[which].digits);
    }
    if (is_of_parts || !(gpu->valid >> gauge & 1))
        return;
    begin_row(text, snapshot, gpu, NULL);
    text_value(text, (int64_t)(gpu->gauges[gauge] >> gauges[which].shift), gauges[which].digits);
}

static void energy(struct text *text, const struct snapshot *snapshot)
{
    text_family(text, METRIC_DCGM_ENERGY);
    for (size_t i = 0; i < snapshot->gpu_count; i++) {
        const struct snapshot_meter *meter = compat_gpu_counter(snapshot, &snapshot->gpus[i]);

        if (!meter)
            continue;
        begin_row(text, snapshot, &snapshot->gpus[i], NULL);
        text_value(text, (int64_t)(meter->counter_uj / 1000), WHOLE);
    }
}

void compat_dcgm_books(struct text *text, const struct snapshot *snapshot, enum expose expose)
{
    (void)expose; /* devices are always shown */
    for (size_t which = 0; which < ARRAY_SIZE(gauges); which++) {
        text_family(text, gauges[which].metric);
        for (size_t i = 0; i < snapshot->gpu_count; i++)
            gauge_rows(text, snapshot, &snapshot->gpus[i], which);
    }
    energy(text, snapshot);
}
