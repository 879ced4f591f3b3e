#include "sources/bmc/bmc_meter.h"

#include <errno.h>

#include "core/macros.h"

int bmc_meter_add(struct bmc_meter *meter, const struct bmc_reading *reading, struct batch *batch,
                  struct error *err)
{
    struct sample power = {
        .kind = SAMPLE_NODE_POWER,
        .t_us = reading->t_us,
        .node_power = {.source = meter->source, .power_mw = reading->power_mw},
    };
    struct sample energy = {.kind = SAMPLE_METER, .t_us = reading->t_us};
    uint64_t still_us;

    if (!meter->has_reading || !reading->is_repeated)
        meter->changed_us = reading->mono_us;
    meter->has_reading = true;
    still_us = reading->mono_us - meter->changed_us;
    if (still_us >= reading->frozen_us)
        return error_set(err, -ESTALE,
                         "the BMC has reported %.8g W for %llu s without any change: its reading "
                         "is stale; it may need a reset (ipmitool mc reset cold)",
                         (double)reading->power_mw / 1000,
                         (unsigned long long)(still_us / USEC_PER_SEC));
    meter->integrator.stale_us = BMC_HOLD_US;
    integrator_add(&meter->integrator, reading->mono_us, reading->power_mw * 1000);
    energy.meter = (struct sample_meter){
        .source = meter->source,
        .kind = METER_NODE,
        .id = meter->source,
        .counter_uj = meter->integrator.energy_uj,
        .breaks = meter->integrator.breaks,
        .integrated = true,
    };
    if (batch_add(batch, &power) < 0 || batch_add(batch, &energy) < 0)
        return error_set(err, -ENOMEM, "out of memory");
    return 0;
}
