#include "attribution/gpu/intensity/intensity.h"

#include <math.h>

#include "attribution/gpu/intensity/linear.h"
#include "attribution/gpu/intensity/mixture.h"
#include "core/macros.h"

/* Fits soon after a new tenant comes to work, then less and less often. A fit of many tenants costs
 * more than in proportion. */
static const uint64_t FIT_MIN_US = 10 * USEC_PER_SEC, FIT_MAX_US = 40 * USEC_PER_SEC;
enum { FIT_ROUNDS = 12, FEW_TENANTS = 6 };

static const double HALF_LIFE_US = 600 * (double)USEC_PER_SEC;

/* The shares of a state count as this many draws for a slot in it. */
static const double STATE_DRAWS = 10, STATE_DRAW_FLOOR = 0.02;

/* Those of a slot in which the time of each tenant is counted. */
static const double COUNTED_DRAWS = 1000;

/* Errors of the model, relative to the energy of the others (measured on days of real programs). */
static const double MODEL_ERROR = 0.12, MODEL_ERROR_ALONE = 0.04, MODEL_PART_MIN = 0.03;

/* Watts that nobody explains can be of one tenant alone: all of them if the others have more than a
 * third. */
static const double OTHERS_DOUBT = 3;

/* One may have begun to do something else just when another came to work: that is unlikely only if
 * they come and go often. The same if the states contradict what is remembered. */
static const double CHANGE_ERROR = 0.5;
enum { FEW_TURNS = 3 };
static const uint64_t REST_US = 2 * USEC_PER_SEC;

void intensity_remember_alone(struct intensity *intensity, const struct slot *slot)
{
    struct state described;
    uint32_t tenant, workers;

    if (!states_describe(slot, &described))
        return;
    workers = described.listed & ~slot->servers;
    if (workers == 0 || (workers & (workers - 1)))
        return;
    tenant = (uint32_t)__builtin_ctz(workers);
    if (tenant == TENANT_OTHERS || (described.won[tenant] <= 0 && workers != slot->clients))
        return;
    intensity_measure(intensity, tenant, &described);
    if (!intensity->memory)
        return;
    programs_measure(&intensity->memory->exact, intensity->keys[tenant].exact, &described,
                     slot->end_us);
    programs_measure(&intensity->memory->families, intensity->keys[tenant].coarse, &described,
                     slot->end_us);
}

static void count_turns(struct intensity *intensity, const struct slot *slot)
{
    for (uint32_t t = 0; t < TENANTS_MAX; t++) {
        if (slot->won[t] == 0)
            continue;
        intensity->turns[t] += slot->end_us > intensity->worked_us[t] + REST_US;
        intensity->worked_us[t] = slot->end_us;
    }
}

static uint64_t shortest_interval_us(const struct intensity *intensity)
{
    uint64_t tenants = (uint64_t)__builtin_popcount(intensity->known);

    return MIN(MAX(FIT_MIN_US * tenants / FEW_TENANTS, FIT_MIN_US), FIT_MAX_US);
}

void intensity_learn(struct intensity *intensity, const struct slot *slot)
{
    uint64_t elapsed_us;

    states_learn(&intensity->states, slot);
    intensity_remember_alone(intensity, slot);
    count_turns(intensity, slot);
    if (intensity->fitted_us == 0)
        intensity->fitted_us = slot->end_us;
    if (intensity->fit_interval_us == 0 || intensity_has_unknown(intensity, slot))
        intensity->fit_interval_us = shortest_interval_us(intensity);
    elapsed_us = slot->end_us - intensity->fitted_us;
    if (elapsed_us < intensity->fit_interval_us)
        return;
    intensity->fitted_us = slot->end_us;
    intensity->fit_interval_us = MIN(2 * intensity->fit_interval_us, FIT_MAX_US);
    states_fade(&intensity->states, linear_steady(exp2(-(double)elapsed_us / HALF_LIFE_US)));
    intensity_fit(intensity, FIT_ROUNDS);
}

void intensity_forget(struct intensity *intensity, uint32_t tenant)
{
    states_forget(&intensity->states, tenant);
    intensity->keys[tenant] = (struct program_key){0};
    intensity->anchors[tenant] = (struct anchor){0};
    intensity->known &= ~(1U << tenant);
    intensity->certain &= ~(1U << tenant);
    intensity->alone[tenant] = (struct anchor){0};
    intensity->turns[tenant] = 0;
    intensity->worked_us[tenant] = 0;
    intensity->anchored &= ~(1U << tenant);
    intensity->measured &= ~(1U << tenant);
    intensity->contradicted &= ~(1U << tenant);
}

struct intensity_memory intensity_memory(const struct intensity *intensity, uint32_t tenants)
{
    return (struct intensity_memory){
        .programs = intensity->memory ? programs_count(&intensity->memory->exact) : 0,
        .recalled = (size_t)__builtin_popcount(intensity->anchored & tenants),
        .suspended = (size_t)__builtin_popcount(intensity->contradicted & tenants),
    };
}

void intensity_keep(struct intensity *intensity, uint32_t tenants)
{
    states_keep(&intensity->states, tenants);
}

bool intensity_has_unknown(const struct intensity *intensity, const struct slot *slot)
{
    struct state described;
    uint32_t winners = 0;

    if (!states_describe(slot, &described))
        return false;
    for (uint32_t t = 0; t < TENANTS_MAX; t++)
        winners |= described.won[t] > 0 ? 1U << t : 0;
    return winners & ~intensity->known;
}

/* How far off the model itself is: little if everybody with a part in it was seen alone. */
static double model_error(const struct intensity *intensity, const struct mixture *mixture)
{
    for (size_t i = 0; i < mixture->tenant_count; i++)
        if (mixture->parts[i] > MODEL_PART_MIN &&
            !(intensity->measured & (1U << mixture->tenants[i])))
            return MODEL_ERROR;
    return MODEL_ERROR_ALONE;
}

/* Can one of the tenants be another than it was? */
static double change_error(const struct intensity *intensity, const struct mixture *mixture)
{
    for (size_t i = 0; i < mixture->tenant_count; i++) {
        uint32_t t = mixture->tenants[i];

        if (mixture->parts[i] > MODEL_PART_MIN &&
            ((intensity->contradicted & (1U << t)) ||
             (!(intensity->measured & (1U << t)) && intensity->turns[t] < FEW_TURNS)))
            return CHANGE_ERROR;
    }
    return 0;
}

/* How far the watts of a state are from those of its tenants, as a logarithm. They need not agree:
 * what is remembered of programs weighs, too. */
static double unexplained_watts(const struct intensity *intensity, const struct state *state)
{
    double watts = states_watts(&intensity->states, &state->mean), explained = 0, present = 0;

    for (uint32_t t = 0; t < TENANTS_MAX; t++) {
        explained += state->share[t] * intensity->watts[t];
        present += state->share[t];
    }
    if (present <= 0 || explained <= 0 || watts <= 0)
        return 0;
    return linear_steady(log(explained / present / watts));
}

/* Weights the parts of a mixture by watts, with the errors of both. A tenant's energy e is known
 * with a covariance C; its share s changes with (e_i - s), so that the variance of the share is
 * C_ii - 2 s (C 1)_i + s^2 1'C1. The covariance of the parts is that of the state: what is off in
 * a state is off in all of its slots. */
static void weigh_parts(const struct intensity *intensity, const struct mixture *mixture,
                        const struct mixture *whole, const struct state *state,
                        struct intensity_shares *shares)
{
    double own[PARTS_MAX] = {0}, with_all[PARTS_MAX] = {0}, of_all = 0, total = 0, gain = 0,
           unexplained, change;
    double model = model_error(intensity, mixture), misfit = intensity->misfit[mixture->tenants[0]];
    const double *watts = intensity->watts;
    size_t n = mixture->tenant_count;

    for (size_t i = 0; i < n; i++) {
        uint32_t t = mixture->tenants[i];

        for (size_t k = 0; k < n; k++) {
            uint32_t u = mixture->tenants[k];
            double covariance =
                mixture->parts[i] * mixture->parts[k] * intensity->watts_error[t][u] +
                watts[t] * watts[u] * misfit * whole->covariance[i * mixture->count + k];

            own[i] += i == k ? covariance : 0;
            with_all[i] += covariance;
            of_all += covariance;
        }
        total += mixture->parts[i] * watts[t];
        gain += mixture->parts[i] * watts[t] *
                states_clock_gain(&intensity->states, watts[t], state->mean.log_clock);
    }
    gain = total > 0 ? gain / total : 0;
    unexplained = fabs(unexplained_watts(intensity, state));
    change = change_error(intensity, mixture);
    for (size_t i = 0; i < n; i++) {
        uint32_t t = mixture->tenants[i];
        double energy = mixture->parts[i] * watts[t], share, variance, by_clock, by_model, others;

        if (mixture->parts[i] <= 0)
            continue;
        share = energy / total;
        variance = own[i] - 2 * share * with_all[i] + share * share * of_all;
        by_clock = intensity->clock_error[t] * (1 - share); /* alone it has all, at any clock */
        by_model = model * (1 - share);
        others = MIN(OTHERS_DOUBT * (1 - share), 1.0);
        shares->of[t] = share;
        shares->error[t] =
            sqrt(MAX(variance, 0.0) / (energy * energy) + by_clock * by_clock + gain * gain +
                 by_model * by_model + unexplained * unexplained * others * others);
        shares->doubt[t] = change * others;
    }
}

/* Whoever works now need not be who worked mostly while the device was in this state: counted time
 * tells it. */
static bool take_counted_shares(const struct slot *slot, const struct mixture *mixture,
                                struct state *state)
{
    double sum = 0;

    for (size_t i = 0; i < mixture->tenant_count; i++)
        sum += slot->won[mixture->tenants[i]];
    if (!slot->is_counted || sum <= 0)
        return false;
    for (size_t i = 0; i < mixture->tenant_count; i++)
        state->share[mixture->tenants[i]] = slot->won[mixture->tenants[i]] / sum;
    return true;
}

bool intensity_divide(const struct intensity *intensity, const struct slot *slot,
                      struct intensity_shares *ret_shares)
{
    struct mixture mixture, whole;
    struct state described, state;
    size_t nearest;
    double sum = 0, draws;

    if (!states_describe(slot, &described) || described.has_gpm != intensity->states.has_gpm)
        return false;
    nearest = states_nearest(&intensity->states, &described, intensity->known);
    described.listed &= intensity->known;
    if (nearest == SIZE_MAX || described.listed == 0)
        return false;
    /* Now, and not at the last fit: the state may be new since. */
    state = intensity->states.all[nearest];
    state.listed = described.listed;
    intensity_estimate_shares(intensity, &state, &whole);
    mixture_widen(&whole);
    mixture_begin(&mixture, described.listed);
    draws = take_counted_shares(slot, &mixture, &state) ? COUNTED_DRAWS : STATE_DRAWS;
    for (size_t i = 0; i < mixture.tenant_count; i++)
        sum += state.share[mixture.tenants[i]];
    mixture.parts[mixture.count - 1] = 0;
    for (size_t i = 0; i < mixture.tenant_count; i++) {
        double part =
            sum > 0 ? state.share[mixture.tenants[i]] / sum : 1.0 / (double)mixture.tenant_count;

        mixture.parts[i] = part;
        mixture_add_expectation(&mixture, i, part, draws / (part * (1 - part) + STATE_DRAW_FLOOR));
    }
    mixture_add_features(&mixture, intensity, &described);
    mixture_solve(&mixture);
    *ret_shares = (struct intensity_shares){0};
    weigh_parts(intensity, &mixture, &whole, &state, ret_shares);
    return true;
}
