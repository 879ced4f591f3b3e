/* Weighs the claimants of a window: by time share, and by what was learned of their power. */
#include "attribution/gpu/gpu.h"

#include <math.h>

#include "core/macros.h"

/* A relative error of this size halves the confidence in a share. */
static const double DOUBTFUL_ERROR = 0.08;

/* Nine of ten shares were off by less than this many standard errors (measured, all recordings). */
static const double BOUND_ERRORS = 1.3;

/* When a process came and went, and what it did then, is known no better. */
static const double PRESENCE_ERROR_US = 0.4 * (double)USEC_PER_SEC;

/* The same bound of a time share, relative to the energy of the others. */
static const double TIMESHARE_ERROR = 0.5;

/* Beside clients of MPS nothing is learned of an unknown program: it may draw anything in its time,
 * as in clients.c. */
static const double BESIDE_ERROR = 1.3 * 1.414;

/* Of shares by a rule, without a single sample: one may have used everything, or nothing. */
static const double EQUAL_ERROR = 1000;

/* The sum of weights in windows without samples. */
static const double WEIGHT_SCALE = (double)(1ULL << 40);

/* The shares of a window: those of its slots, by their energy above idle. False if there are none,
 * or if they would leave out an active process. */
static bool divide_window(const struct gpu_learning *learning, const struct window *window,
                          struct intensity_shares *ret_shares)
{
    struct intensity_shares sum = {0}, part;
    const struct slot *slot;
    double total = 0;
    size_t cursor = 0;

    while ((slot = slots_of_window(&learning->slots, window->start_us, window->end_us, &cursor))) {
        double seconds = (double)(slot->end_us - slot->start_us) / 1e6;
        double joules =
            (double)slot->energy_uj / 1e6 - seconds * learning->intensity.states.idle_watts;
        bool known;

        if (!slot->clients && intensity_has_unknown(&learning->intensity, slot))
            return false;
        known = slot->clients
                    ? clients_divide(&learning->clients, &learning->intensity, slot, &part)
                    : intensity_divide(&learning->intensity, slot, &part);

        if (!known || joules <= 0)
            continue;
        total += joules;
        for (size_t t = 0; t < TENANTS_MAX; t++) {
            sum.of[t] += joules * part.of[t];
            sum.error[t] += joules * part.of[t] * part.error[t];
            sum.doubt[t] += joules * part.of[t] * part.doubt[t];
        }
    }
    if (total <= 0)
        return false;
    for (size_t t = 0; t < TENANTS_MAX; t++) {
        ret_shares->error[t] = sum.of[t] > 0 ? sum.error[t] / sum.of[t] : 0;
        ret_shares->doubt[t] = sum.of[t] > 0 ? sum.doubt[t] / sum.of[t] : 0;
        ret_shares->of[t] = sum.of[t] / total;
    }
    return true;
}

/* An error as claimants have it: at most all of their share. */
static uint32_t claimant_error(double relative)
{
    return (uint32_t)(CONFIDENCE_ONE * MIN(relative, 1.0) + 0.5);
}

/* Weighs claimants by time share, as long as nothing better is known. Samples do not tell clients
 * of MPS apart: one of several may have used everything, or nothing. */
static void weigh_by_samples(struct claimants *claimants, uint64_t unknown_weight, double error)
{
    double total = (double)unknown_weight;
    size_t clients = 0;

    for (size_t i = 0; i < claimants->count; i++) {
        total += (double)claimants->items[i].weight;
        clients += claimants->items[i].is_mps_client;
    }
    for (size_t i = 0; i < claimants->count; i++) {
        struct claimant *claimant = &claimants->items[i];
        double of_others = claimant->is_mps_client && clients > 1 ? EQUAL_ERROR
                           : clients > 0                          ? MAX(error, BESIDE_ERROR)
                                                                  : error;

        claimant->active_weight = claimant->weight;
        if (total > 0)
            claimant->error = claimant_error(of_others * (1 - (double)claimant->weight / total));
    }
}

/* The relative error of a tenant's time on the board. */
static double presence_error(const struct gpu *gpu, const struct gpu_learning *learning,
                             uint32_t place)
{
    const struct tenant *tenant = &learning->tenants.all[place];
    uint64_t until_us = tenant->ended ? tenant->ended_us : gpu->latest_us;

    return PRESENCE_ERROR_US / (double)MAX(until_us - MIN(until_us, tenant->since_us), 1U);
}

/* The place in a window of a process that may have got one of its own since. */
static uint32_t place_in_window(const struct gpu *gpu, const struct gpu_learning *learning,
                                const struct window *window, const struct intensity_shares *shares,
                                uint32_t process)
{
    uint32_t place = gpu_place_in(gpu, learning, process);

    return place < TENANT_OTHERS && shares->of[place] <= 0 &&
                   learning->tenants.all[place].since_us > window->end_us
               ? TENANT_OTHERS
               : place;
}

/* Weighs claimants by what was learned of them. */
static void weigh_by_power(struct gpu *gpu, const struct gpu_learning *learning,
                           const struct window *window, bool sampled)
{
    struct claimant *claimants = gpu->claimants.items;
    struct intensity_shares shares = {0};
    size_t count = gpu->claimants.count;
    uint64_t weights = 0, others = 0;
    double present = 0;

    if (!learning || !divide_window(learning, window, &shares))
        return;
    for (size_t i = 0; i < count; i++) {
        const struct claimant *claimant = &claimants[i];
        uint32_t place = place_in_window(gpu, learning, window, &shares, claimant->process);

        if (place == TENANT_NONE)
            continue; /* inferred: it keeps the weight of unknown samples */
        weights += claimant->weight;
        if (place == TENANT_OTHERS)
            others += claimant->weight;
        else
            present += shares.of[place];
    }
    if (others > 0)
        present += shares.of[TENANT_OTHERS];
    if (present <= 0 || (sampled && weights == 0)) /* the samples are all of unknown processes */
        return;
    for (size_t i = 0; i < count; i++) {
        struct claimant *claimant = &claimants[i];
        uint32_t place = place_in_window(gpu, learning, window, &shares, claimant->process);
        double share, error, doubt;

        if (place == TENANT_NONE)
            continue;
        share = shares.of[place];
        error = hypot(shares.error[place], presence_error(gpu, learning, place));
        doubt = hypot(error, shares.doubt[place]) / DOUBTFUL_ERROR;
        if (place == TENANT_OTHERS) {
            share *= others > 0 ? (double)claimant->weight / (double)others : 0;
            claimant->error = MAX(claimant->error, claimant_error(shares.error[place]));
        } else {
            claimant->confidence = (uint32_t)(CONFIDENCE_ONE / (1 + doubt * doubt));
            claimant->error = claimant_error(BOUND_ERRORS * error);
        }
        claimant->active_weight =
            (uint64_t)(share / present * (weights > 0 ? (double)weights : WEIGHT_SCALE));
    }
}

void gpu_weigh_claimants(struct gpu *gpu, const struct window *window, bool sampled,
                         uint64_t unknown_weight)
{
    weigh_by_samples(&gpu->claimants, unknown_weight,
                     gpu->samples.are_made && !window->is_by_presence ? TIMESHARE_ERROR
                                                                      : EQUAL_ERROR);
    weigh_by_power(gpu, gpu->learning, window, sampled);
}

void gpu_weigh_part(struct gpu *gpu, const struct window *window, const struct gpu_part *part)
{
    struct claimants *claimants = &gpu->claimants;
    double by_part = part->error / DOUBTFUL_ERROR;

    /* Only vGPUs have samples in MIG mode. */
    bool is_told = gpu->samples.are_counted ? !window->is_by_presence
                                            : !part->instance && gpu->samples.are_made;

    weigh_by_samples(claimants, 0, is_told ? TIMESHARE_ERROR : EQUAL_ERROR);
    if (claimants->count == 1) /* no other process is in it */
        claimants->items[0].confidence = CONFIDENCE_ONE;
    else if (part->instance)
        weigh_by_power(gpu, part->instance->learning, window, false);
    /* The energy of the part is not certain either. */
    for (size_t i = 0; i < claimants->count; i++) {
        struct claimant *claimant = &claimants->items[i];
        double confidence = (double)claimant->confidence / CONFIDENCE_ONE;
        double error = (double)claimant->error / CONFIDENCE_ONE;

        claimant->confidence =
            (uint32_t)(CONFIDENCE_ONE * confidence / (1 + confidence * by_part * by_part));
        claimant->error = claimant_error(hypot(error, BOUND_ERRORS * part->error));
    }
}
