/* Anchors: remembered programs in a fit, validated against what the board shows. */
#include <math.h>

#include "attribution/gpu/intensity/fit_private.h"
#include "core/macros.h"

/* What a remembered program weighs at most, in slots; if only its coarse key is known, less. */
static const double ANCHOR_MAX = 10, ANCHOR_COARSE_MAX = 3, ANCHOR_MIN = 1;

/* Anchors that explain the states worse by more are wrong. Right ones raised the misfit by at most
 * 4.7, wrong ones by 190 and more (measured, H200). */
static const double CONTRADICTION = 8;

/* Recalls the program of a tenant, by its exact key if that is known. */
void fit_recall_anchor(struct fit *fit, uint32_t tenant)
{
    struct intensity *intensity = fit->intensity;
    const struct program_key *key = &intensity->keys[tenant];
    bool has_gpm = intensity->states.has_gpm;
    const struct program *program =
        programs_recall(&intensity->programs, key->exact, has_gpm, intensity->fitted_us);
    double most = program ? ANCHOR_MAX : ANCHOR_COARSE_MAX;

    if (!program)
        program = programs_recall(&intensity->programs, key->coarse, has_gpm, intensity->fitted_us);
    if (!program || program->slots < ANCHOR_MIN)
        return;
    fit->anchors[tenant].weight = MIN(program->slots, most);
    fit->anchors[tenant].activity = program->mean;
    states_rescale(&intensity->states, &program->mean);
}

/* Tenants (bits) that are listed together with one of these. */
static uint32_t companions_of(const struct states *states, uint32_t tenants)
{
    uint32_t companions = 0;

    for (size_t s = 0; s < states->count; s++)
        if (states->all[s].listed & tenants)
            companions |= states->all[s].listed;
    return companions;
}

/* The anchors whose removal explains the states about as well as the best removal does. */
static uint32_t find_contradicted(struct fit *fit, uint32_t anchors, size_t rounds)
{
    double without[TENANTS_MAX], best = INFINITY;
    uint32_t contradicted = 0;

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

void fit_validate(struct fit *fit, size_t rounds)
{
    struct intensity *intensity = fit->intensity;
    uint32_t anchors = 0, contradicted = 0;
    double without;

    fit_run(fit, 0, rounds);
    without = fit_misfit(fit);
    for (size_t i = 0; i < fit->count; i++)
        anchors |= fit->anchors[fit->tenants[i]].weight > 0 ? 1U << fit->tenants[i] : 0;
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
        anchors &= ~companions_of(&intensity->states, contradicted);
        fit_run(fit, anchors, rounds);
    }
    intensity->anchored = anchors;
    intensity->contradicted = contradicted;
    intensity->misfit =
        MAX(fit_misfit(fit) / (double)(MAX(intensity->states.count, 1U) * FEATURE_COUNT), 1.0);
}
