/* Anchors: remembered programs in a fit, validated against what the board shows. */
#include <math.h>

#include "attribution/gpu/intensity/fit_private.h"
#include "core/macros.h"

/* What a remembered program weighs at most, in slots; if only its coarse key is known, less. */
static const double ANCHOR_MAX = 10, ANCHOR_COARSE_MAX = 3, ANCHOR_MIN = 1;

/* Anchors that explain the states worse by more are wrong. Once there is more than how a process
 * starts, right ones raised the misfit by less, wrong ones by 8 to 300 (measured, H200). */
static const double CONTRADICTION = 6;

/* Watts with a larger relative error are not remembered, and others count as this many slots. */
static const double LEARNED_ERROR = 0.1, LEARNED_SLOTS_MAX = 5;

/* Anchors that are left out one after the other, at most: each costs a fit. */
enum { LEFT_OUT_MAX = 4 };

/* A fit is never better than this, however well it explains a few states. */
static const double MISFIT_MIN = 0.05;

void intensity_recall(struct intensity *intensity, uint32_t tenant, struct program_key key,
                      uint64_t now_us)
{
    struct program_memory *memory = intensity->memory;
    const struct program *program =
        memory ? programs_recall(&memory->exact, key.exact, now_us) : NULL;
    double most = program ? ANCHOR_MAX : ANCHOR_COARSE_MAX;

    if (!program && memory)
        program = programs_recall(&memory->families, key.coarse, now_us);
    intensity->keys[tenant] = key;
    intensity->anchors[tenant] = (struct anchor){0};
    if (program && program->slots >= ANCHOR_MIN)
        intensity->anchors[tenant] = (struct anchor){
            .weight = MIN(program->slots, most),
            .is_measured = program->is_measured,
            .has_gpm = program->has_gpm,
            .activity = program->mean,
        };
}

void intensity_measure(struct intensity *intensity, uint32_t tenant, const struct state *described)
{
    struct anchor *alone = &intensity->alone[tenant];

    if (alone->weight <= 0 || alone->has_gpm != described->has_gpm)
        *alone = (struct anchor){.is_measured = true, .has_gpm = described->has_gpm};
    alone->weight = MIN(alone->weight + described->weight, PROGRAMS_SLOTS_MAX);
    activity_average(&alone->activity, &described->mean, described->weight / alone->weight);
    if (alone->weight >= INTENSITY_ALONE_MIN) {
        intensity->anchors[tenant] = *alone;
        intensity->anchors[tenant].weight = MIN(alone->weight, ANCHOR_MAX);
    }
}

/* Tenants (bits) that are listed together with one of these. */
static uint32_t companions_of(const struct fit *fit, uint32_t tenants)
{
    uint32_t companions = 0;

    for (size_t s = 0; s < fit->state_count; s++)
        if (fit->states[s]->listed & tenants)
            companions |= fit->states[s]->listed;
    return companions;
}

/* The anchors whose removal explains the states about as well as the best removal does. Of many,
 * all: hardly one would stay without a contradicted companion. */
static uint32_t find_contradicted(struct fit *fit, uint32_t anchors, size_t rounds)
{
    double without[TENANTS_MAX], best = INFINITY;
    uint32_t contradicted = 0;

    if (__builtin_popcount(anchors) > LEFT_OUT_MAX)
        return anchors;
    for (uint32_t t = 0; t < TENANTS_MAX; t++)
        if (anchors & (1U << t)) {
            fit_run(fit, anchors & ~(1U << t), rounds);
            without[t] = fit_misfit(fit);
            best = MIN(best, without[t]);
        }
    for (uint32_t t = 0; t < TENANTS_MAX; t++)
        if ((anchors & (1U << t)) && without[t] <= best + CONTRADICTION)
            contradicted |= 1U << t;
    return contradicted;
}

static bool is_anchored(const struct intensity *intensity, uint32_t tenant)
{
    const struct anchor *anchor = &intensity->anchors[tenant];

    return anchor->weight > 0 && anchor->has_gpm == intensity->states.has_gpm;
}

void fit_validate(struct fit *fit, size_t rounds)
{
    struct intensity *intensity = fit->intensity;
    uint32_t anchors = 0, contradicted = 0;
    double without;

    fit_run(fit, 0, rounds);
    without = fit_misfit(fit);
    for (size_t i = 0; i < fit->count; i++)
        anchors |= is_anchored(intensity, fit->tenants[i]) ? 1U << fit->tenants[i] : 0;
    while (anchors) {
        fit_run(fit, anchors, rounds);
        if (fit_misfit(fit) <= without + CONTRADICTION)
            break;
        contradicted |= find_contradicted(fit, anchors, rounds);
        anchors &= ~contradicted;
    }
    /* The states do not show well which of several is wrong, so its companions are suspended, too.
     */
    if (contradicted) {
        anchors &= ~companions_of(fit, contradicted);
        fit_run(fit, anchors, rounds);
    }
    intensity->anchored |= anchors;
    intensity->contradicted |= contradicted;
    for (size_t i = 0; i < fit->count; i++) {
        uint32_t t = fit->tenants[i];

        if ((anchors & (1U << t)) && intensity->anchors[t].is_measured)
            intensity->measured |= 1U << t;
        intensity->misfit[t] =
            MAX(fit_misfit(fit) / (double)(fit->state_count * FEATURE_COUNT), MISFIT_MIN);
    }
}

/* Remembers what is well known of tenants without an anchor. */
void fit_learn_programs(const struct fit *fit)
{
    struct intensity *intensity = fit->intensity;

    for (size_t i = 0; i < fit->count; i++) {
        uint32_t t = fit->tenants[i];
        double watts = intensity->watts[t], variance = intensity->watts_error[t][t];
        struct program learned = {.used_us = intensity->fitted_us,
                                  .has_gpm = intensity->states.has_gpm};

        if (!intensity->memory || t == TENANT_OTHERS || (fit->anchored & (1U << t)) ||
            variance > LEARNED_ERROR * LEARNED_ERROR * watts * watts)
            continue;
        for (size_t u = 0; u < UNIT_COUNT; u++)
            learned.mean.units[u] = intensity->signatures[t][u];
        learned.mean.power_w = watts;
        learned.slots = MIN(fit_watts_variance(watts) / MAX(variance, 1e-9), LEARNED_SLOTS_MAX);
        programs_learn(&intensity->memory->exact, intensity->keys[t].exact, &learned);
        programs_learn(&intensity->memory->families, intensity->keys[t].coarse, &learned);
    }
}
