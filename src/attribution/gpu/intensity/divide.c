/* Dividing a slot by what is known, and how far that can be off. */
#include <math.h>

#include "attribution/gpu/intensity/mixture.h"
#include "core/macros.h"

/* What the state says of a slot's shares, in draws. */
static const double STATE_DRAWS = 10, STATE_DRAW_FLOOR = 0.02;

/*
 * How far shares can be off for something that is known with a covariance C, of which each tenant's
 * energy is `slopes` times: the share of tenant i, s, changes with (e_i - s) * slopes, so that its
 * variance is C_ii - 2 s (C 1)_i + s^2 1'C1, each C times the slopes.
 */
struct spread {
    double own[PARTS_MAX], with_all[PARTS_MAX], of_all;
};

static void add_to_spread(struct spread *spread, size_t i, size_t k, double covariance)
{
    if (i == k)
        spread->own[i] += covariance;
    spread->with_all[i] += covariance;
    spread->of_all += covariance;
}

/* For what is not known of watts and of parts. */
static void find_spread(const struct intensity *intensity, const struct mixture *mixture,
                        struct spread *ret_spread)
{
    size_t n = mixture->count;

    *ret_spread = (struct spread){0};
    for (size_t i = 0; i < n; i++) {
        uint32_t t = mixture->tenants[i];

        for (size_t k = 0; k < n && t != SWITCHED; k++) {
            uint32_t u = mixture->tenants[k];

            if (u != SWITCHED)
                add_to_spread(ret_spread, i, k,
                              mixture->parts[i] * mixture->parts[k] * intensity->watts_error[t][u] +
                                  intensity->watts[t] * intensity->watts[u] *
                                      mixture->covariance[i * n + k]);
        }
    }
}

static void weigh(const struct intensity *intensity, const struct mixture *mixture,
                  struct intensity_shares *shares)
{
    struct spread spread;
    double total = 0;

    find_spread(intensity, mixture, &spread);
    for (size_t i = 0; i < mixture->count; i++)
        if (mixture->tenants[i] != SWITCHED)
            total += mixture->parts[i] * intensity->watts[mixture->tenants[i]];
    for (size_t i = 0; i < mixture->count; i++) {
        uint32_t t = mixture->tenants[i];
        double own, variance, by_clock;

        if (t == SWITCHED || mixture->parts[i] <= 0)
            continue;
        own = mixture->parts[i] * intensity->watts[t];
        shares->of[t] = own / total;
        variance = spread.own[i] - 2 * shares->of[t] * spread.with_all[i] +
                   shares->of[t] * shares->of[t] * spread.of_all;
        by_clock = intensity->clock_error[t] * (1 - shares->of[t]); /* alone it pays all, at any */
        shares->error[t] = sqrt(MAX(variance, 0.0) / (own * own) + by_clock * by_clock);
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
