#include "attribution/intensity/intensity.h"

#include "core/macros.h"

static const uint64_t REFINE_US = 10 * USEC_PER_SEC;
enum { REFINE_ROUNDS = 12 };
static const double FADE = 0.99; /* at each refinement: half of it in about 10 minutes */

void intensity_learn(struct intensity *intensity, const struct slot *slot)
{
    states_learn(&intensity->states, slot);
    if (intensity->refined_us == 0)
        intensity->refined_us = slot->end_us;
    if (slot->end_us < intensity->refined_us + REFINE_US)
        return;
    intensity->refined_us = slot->end_us;
    states_fade(&intensity->states, FADE);
    intensity_refine(intensity, REFINE_ROUNDS);
}

void intensity_forget(struct intensity *intensity, uint32_t tenant)
{
    states_forget(&intensity->states, tenant);
    intensity->known &= ~(1U << tenant);
    intensity->sure &= ~(1U << tenant);
}
