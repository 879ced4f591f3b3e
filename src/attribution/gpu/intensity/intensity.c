#include "attribution/gpu/intensity/intensity.h"

#include <math.h>

#include "attribution/gpu/intensity/linear.h"
#include "core/macros.h"

/* Soon after somebody new came to work, then less and less often. */
static const uint64_t REFINE_MIN_US = 10 * USEC_PER_SEC, REFINE_MAX_US = 40 * USEC_PER_SEC;
enum { REFINE_ROUNDS = 12 };

static const double HALF_LIFE_US = 600 * (double)USEC_PER_SEC;

void intensity_learn(struct intensity *intensity, const struct slot *slot)
{
    uint64_t elapsed_us;

    states_learn(&intensity->states, slot);
    if (intensity->refined_us == 0)
        intensity->refined_us = slot->end_us;
    if (intensity->refine_after_us == 0 || intensity_has_stranger(intensity, slot))
        intensity->refine_after_us = REFINE_MIN_US;
    elapsed_us = slot->end_us - intensity->refined_us;
    if (elapsed_us < intensity->refine_after_us)
        return;
    intensity->refined_us = slot->end_us;
    intensity->refine_after_us = MIN(2 * intensity->refine_after_us, REFINE_MAX_US);
    states_fade(&intensity->states, linear_steady(exp2(-(double)elapsed_us / HALF_LIFE_US)));
    intensity_refine(intensity, REFINE_ROUNDS);
}

void intensity_forget(struct intensity *intensity, uint32_t tenant)
{
    states_forget(&intensity->states, tenant);
    intensity->known &= ~(1U << tenant);
    intensity->sure &= ~(1U << tenant);
}
