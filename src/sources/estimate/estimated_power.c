#include "sources/estimate/estimated_power.h"

#include "core/macros.h"

/* uW x us = pJ */
static const uint64_t PICOJOULES_PER_UJ = 1000000;

static void add_energy(uint64_t *energy_uj, uint64_t *carry_pj, unsigned __int128 energy_pj)
{
    energy_pj += *carry_pj;
    *energy_uj += (uint64_t)(energy_pj / PICOJOULES_PER_UJ);
    *carry_pj = (uint64_t)(energy_pj % PICOJOULES_PER_UJ);
}

/* energy x part / whole, also where the product would not fit. */
static unsigned __int128 part_of(unsigned __int128 energy_pj, uint64_t part, uint64_t whole)
{
    return energy_pj / whole * part + energy_pj % whole * part / whole;
}

void estimated_power_add(struct estimated_power *model, uint64_t t_us, uint64_t busy_us,
                         uint64_t capacity_us)
{
    uint64_t busy, capacity;
    unsigned __int128 dt_us;

    if (model->has_last && t_us >= model->last_us && busy_us >= model->last_busy_us &&
        capacity_us >= model->last_capacity_us) {
        capacity = capacity_us - model->last_capacity_us;
        busy = MIN(busy_us - model->last_busy_us, capacity);
        dt_us = t_us - model->last_us;
        if (capacity == 0)
            return;
        add_energy(&model->idle_uj, &model->idle_carry_pj, model->idle_uw * dt_us);
        add_energy(&model->active_uj, &model->active_carry_pj,
                   part_of((model->full_uw - model->idle_uw) * dt_us, busy, capacity));
    } else if (model->has_last) {
        model->breaks++;
    }
    model->has_last = true;
    model->last_us = t_us;
    model->last_busy_us = busy_us;
    model->last_capacity_us = capacity_us;
}
