#include "sources/integrator.h"

/* (P + P') x dt, in uW x us = pJ, is twice the area. */
static const uint64_t HALF_PICOJOULES_PER_UJ = 2000000;

static void add_area(struct integrator *integrator, uint64_t dt_us, uint64_t power_uw)
{
    unsigned __int128 area = (unsigned __int128)integrator->last_power_uw + power_uw;

    area = area * dt_us + integrator->carry;
    integrator->energy_uj += (uint64_t)(area / HALF_PICOJOULES_PER_UJ);
    integrator->carry = (uint64_t)(area % HALF_PICOJOULES_PER_UJ);
}

void integrator_add(struct integrator *integrator, uint64_t t_us, uint64_t power_uw)
{
    if (integrator->has_last) {
        if (t_us < integrator->last_us || t_us - integrator->last_us > integrator->stale_us)
            integrator->breaks++;
        else
            add_area(integrator, t_us - integrator->last_us, power_uw);
    }
    integrator->has_last = true;
    integrator->last_us = t_us;
    integrator->last_power_uw = power_uw;
}
