/* Dividing a slot by what is known, and how far that can be off. */
#include <math.h>

#include "attribution/intensity/mixture.h"
#include "core/macros.h"

/* What the state says of a slot's shares, in draws. */
static const double STATE_DRAWS = 10, STATE_DRAW_FLOOR = 0.02;

/* How far the share of a tenant can be off, for what is not known of watts and of parts. */
static double share_variance(const struct intensity *intensity, const struct mixture *mixture,
                             size_t i, double share, double total)
{
    double by_watts[PARTS_MAX], by_parts[PARTS_MAX], variance = 0;
    size_t n = mixture->count;

    for (size_t k = 0; k < n; k++) {
        uint32_t t = mixture->tenants[k];
        double own = k == i, watts = t == SWITCHED ? 0 : intensity->watts[t];

        by_watts[k] = t == SWITCHED ? 0 : (own - share) * mixture->parts[k] / total;
        by_parts[k] = (own - share) * watts / total;
    }
    for (size_t k = 0; k < n; k++) {
        for (size_t m = 0; m < n; m++) {
            uint32_t t = mixture->tenants[k], u = mixture->tenants[m];

            if (t != SWITCHED && u != SWITCHED)
                variance += by_watts[k] * by_watts[m] * intensity->watts_error[t][u];
            variance += by_parts[k] * by_parts[m] * mixture->covariance[k * n + m];
        }
    }
    return MAX(variance, 0.0);
}

static void weigh(const struct intensity *intensity, const struct mixture *mixture,
                  struct intensity_shares *shares)
{
    double total = 0;

    for (size_t i = 0; i < mixture->count; i++)
        if (mixture->tenants[i] != SWITCHED)
            total += mixture->parts[i] * intensity->watts[mixture->tenants[i]];
    for (size_t i = 0; i < mixture->count; i++) {
        uint32_t t = mixture->tenants[i];
        double error = t == SWITCHED ? 0 : intensity->clock_error[t];

        if (t == SWITCHED || mixture->parts[i] <= 0)
            continue;
        shares->of[t] = mixture->parts[i] * intensity->watts[t] / total;
        error *= 1 - shares->of[t]; /* what is alone pays all, at any clock */
        shares->error[t] = sqrt(share_variance(intensity, mixture, i, shares->of[t], total) /
                                    (shares->of[t] * shares->of[t]) +
                                error * error);
    }
}

bool intensity_has_stranger(const struct intensity *intensity, const struct slot *slot)
{
    struct state described;
    uint32_t winners = 0;
    bool has_gpm;

    if (!states_describe(slot, &described, &has_gpm))
        return false;
    for (uint32_t t = 0; t < TENANTS_MAX; t++)
        winners |= described.won[t] > 0 ? 1U << t : 0;
    return winners & ~intensity->known;
}

bool intensity_divide(const struct intensity *intensity, const struct slot *slot,
                      struct intensity_shares *ret_shares)
{
    const struct state *state;
    struct mixture mixture;
    struct state described;
    size_t nearest;
    bool has_gpm;
    double sum = 0;

    if (!states_describe(slot, &described, &has_gpm) || has_gpm != intensity->states.has_gpm)
        return false;
    described.listed &= intensity->known;
    nearest = states_nearest(&intensity->states, &described, intensity->known);
    if (nearest == SIZE_MAX || described.listed == 0)
        return false;
    state = &intensity->states.all[nearest];
    mixture_begin(&mixture, described.listed);
    for (size_t i = 0; i < mixture.count; i++)
        if (mixture.tenants[i] != SWITCHED)
            sum += state->share[mixture.tenants[i]];
    for (size_t i = 0; i < mixture.count; i++) {
        bool is_switched = mixture.tenants[i] == SWITCHED;
        double part;

        if (is_switched)
            part = 0;
        else if (sum > 0)
            part = state->share[mixture.tenants[i]] / sum;
        else
            part = 1.0 / (double)(mixture.count - (mixture.count > 1));
        mixture.parts[i] = part;
        mixture_add_expectation(&mixture, i, part,
                                is_switched ? 1 / (MIXTURE_SWITCHING * MIXTURE_SWITCHING)
                                            : STATE_DRAWS / (part * (1 - part) + STATE_DRAW_FLOOR));
    }
    mixture_add_features(&mixture, intensity, &described);
    mixture_solve(&mixture);
    *ret_shares = (struct intensity_shares){0};
    weigh(intensity, &mixture, ret_shares);
    return true;
}
