#include "attribution/gpu/intensity/clients.h"

#include <math.h>

#include "attribution/gpu/intensity/linear.h"
#include "attribution/gpu/intensity/presence.h"
#include "attribution/gpu/intensity/unmix.h"
#include "core/macros.h"

static const double BUSY_MIN = 0.5; /* of a slot; below it a client came or went */
enum { START_SLOTS = 25 };          /* of a process; in them it is not what it will be */
static const double FADE = 0.9998;  /* per slot: a half-life of about 12 minutes */

/* Programs that explain the board worse are others than they were. Right ones had misfits of 0.01
 * to 0.1, and of 0.4 where they got in each other's way; of wrong ones two of three had more than
 * 0.6 (measured, H200). */
static const double MISFIT_MAX = 0.6, MISFIT_MIN = 0.05;
static const double JOULES_MAX = 10000; /* what a group's means are worth at most */
static const double SAMPLES_MAX = 100;  /* what its part of the samples is worth at most */

/* The standard error of a share of time, if what is drawn in it is as uncertain as it is much: the
 * root of two, times the part of the others. */
static const double BESIDE_ERROR = 1.414;

/* Errors of unmixing, relative to the energy of the others: less if all were seen alone, and more,
 * with the root of the misfit, if they do not explain the board. */
static const double MODEL_ERROR = 0.12, MODEL_ERROR_ALONE = 0.04, MISFIT_ERROR = 0.3;

/*
 * A program that changed under its command line can look like more of its neighbour and nothing of
 * itself, whatever it did alone. Only if the amount of everybody varies as the device does, and not
 * merely with the others', is that ruled out; else nobody can be sure.
 */
static const double CONFIRMED_SPREAD = 0.3, CONFIRMED_MIN = 0.04; /* of the mean, and in all */
static const double UNCONFIRMED_ERROR = 0.1;                      /* relative to the share */
enum { CONFIRMED_SLOTS = 10 };

const struct client_group *clients_find(const struct clients *clients, uint32_t present)
{
    for (size_t i = 0; i < clients->count; i++)
        if (clients->groups[i].present == present)
            return &clients->groups[i];
    return NULL;
}

uint64_t clients_met(const struct clients *clients, uint32_t present)
{
    uint64_t met = present & (1U << TENANT_OTHERS) ? UINT64_MAX : 0;

    for (uint32_t t = 0; t < TENANTS_MAX; t++)
        if (present & (1U << t))
            met = MAX(met, clients->came[t] > 0 ? clients->came[t] : UINT64_MAX);
    return met;
}

/* The rarest makes room. */
static struct client_group *open_group(struct clients *clients, const struct slot *slot)
{
    uint32_t present = slot_workers(slot);
    const struct client_group *known = clients_find(clients, present);
    struct client_group *group = &clients->groups[0];

    if (known)
        return &clients->groups[known - clients->groups];
    for (size_t i = 1; i < clients->count; i++)
        if (clients->groups[i].weight < group->weight)
            group = &clients->groups[i];
    if (clients->count < CLIENT_GROUPS_MAX)
        group = &clients->groups[clients->count++];
    *group = (struct client_group){.present = present, .is_clients_only = present == slot->clients};
    return group;
}

static bool is_alone(uint32_t present)
{
    return (present & (present - 1)) == 0;
}

static void learn_amounts(struct clients *clients, uint32_t present, const struct unmixed *unmixed)
{
    double all = 0;

    if (unmixed->misfit > MISFIT_MAX || is_alone(present))
        return;
    for (uint32_t t = 0; t < TENANTS_MAX; t++)
        all += unmixed->amounts[t];
    for (uint32_t t = 0; t < TENANTS_MAX; t++) {
        struct client_amount *amount = &clients->amounts[t];
        double now = unmixed->amounts[t], others = all - now;

        if (!(present & (1U << t)))
            continue;
        amount->weight += 1;
        amount->mean += (now - amount->mean) / amount->weight;
        amount->square += (now * now - amount->square) / amount->weight;
        amount->others += (others - amount->others) / amount->weight;
        amount->others_square += (others * others - amount->others_square) / amount->weight;
        amount->product += (now * others - amount->product) / amount->weight;
    }
}

/* The variance of an amount, less what follows the amounts of the others. */
static double own_variance(const struct client_amount *amount)
{
    double variance = amount->square - amount->mean * amount->mean;
    double of_others = amount->others_square - amount->others * amount->others;
    double common = amount->product - amount->mean * amount->others;

    if (common > 0 && of_others > 0)
        variance -= common * common / of_others;
    return MAX(variance, 0.0);
}

static bool are_confirmed(const struct clients *clients, uint32_t present)
{
    if (is_alone(present))
        return true;
    for (uint32_t t = 0; t < TENANTS_MAX; t++) {
        const struct client_amount *amount = &clients->amounts[t];
        double spread = MAX(CONFIRMED_SPREAD * amount->mean, CONFIRMED_MIN);

        if ((present & (1U << t)) &&
            (amount->weight < CONFIRMED_SLOTS || own_variance(amount) < spread * spread))
            return false;
    }
    return true;
}

static void learn_unmixed(struct client_group *group, const struct unmixed *unmixed, double joules)
{
    double part;

    if (joules <= 0 || unmixed->measured_w <= 0)
        return;
    group->unmixed_joules = MIN(group->unmixed_joules + joules, JOULES_MAX);
    part = joules / group->unmixed_joules;
    group->misfit += part * (unmixed->misfit - group->misfit);
    group->unexplained += part * (linear_steady(log(unmixed->explained_w / unmixed->measured_w)) -
                                  group->unexplained);
}

/* Of the board, above idle. */
static double slot_watts(const struct intensity *intensity, const struct slot *slot)
{
    double duration_s = (double)(slot->end_us - slot->start_us) / 1e6;

    return MAX((double)slot->energy_uj / 1e6 / duration_s - intensity->states.idle_watts, 0.0);
}

/* Counts the slots, and from which on each is there. */
static void count_slot(struct clients *clients, uint32_t present)
{
    clients->slots++;
    for (uint32_t t = 0; t < TENANTS_MAX; t++)
        if ((present & (1U << t)) && clients->came[t] == 0)
            clients->came[t] = clients->slots;
}

static void learn_watts(struct client_group *group, double watts)
{
    double above = watts - group->watts;

    group->weight += 1;
    group->watts += above / MIN(group->weight, CLIENT_WEIGHT_MAX);
    group->variance +=
        (above * (watts - group->watts) - group->variance) / MIN(group->weight, CLIENT_WEIGHT_MAX);
}

/* How many samples of a slot the clients and their servers have; the others are of processes beside
 * MPS, and so many. */
static double samples_of_clients(const struct slot *slot, double *ret_beside)
{
    double of_clients = 0;

    *ret_beside = 0;
    for (uint32_t t = 0; t < TENANTS_MAX; t++)
        *((slot->clients | slot->servers) & (1U << t) ? &of_clients : ret_beside) += slot->won[t];
    return of_clients;
}

static void learn_beside(struct client_group *group, const struct slot *slot)
{
    double beside, samples = samples_of_clients(slot, &beside) + beside;

    if (samples <= 0)
        return;
    group->sampled = MIN(group->sampled + samples, SAMPLES_MAX);
    group->beside += (beside - samples * group->beside) / MAX(group->sampled, samples);
}

void clients_learn(struct clients *clients, const struct intensity *intensity,
                   const struct slot *slot)
{
    double duration_s = (double)(slot->end_us - slot->start_us) / 1e6, watts;
    struct slot_reading reading;
    struct unmixed unmixed;
    struct client_group *group;
    bool is_busy, is_unmixed;
    uint64_t met;

    count_slot(clients, slot_workers(slot));
    if (!slot_read(slot, &reading))
        return;
    is_busy = reading.busy_s >= BUSY_MIN * duration_s;
    is_unmixed = unmix_slot(intensity, slot, slot_workers(slot), 0, &unmixed, NULL);
    if (!is_busy && !is_unmixed)
        return;
    for (size_t i = 0; i < clients->count; i++)
        clients->groups[i].weight *= FADE;
    group = open_group(clients, slot);
    watts = slot_watts(intensity, slot);
    if (is_unmixed) {
        learn_unmixed(group, &unmixed, watts * duration_s);
        learn_amounts(clients, group->present, &unmixed);
    }
    learn_beside(group, slot);
    if (is_busy && !slot->has_changed) { /* else they were not all there at the same time */
        learn_watts(group, watts);
        group->seen = clients->slots;
        met = clients_met(clients, group->present);
        group->is_settled |= met < clients->slots && clients->slots - met >= START_SLOTS;
    }
}

bool clients_are_unmixed(const struct client_group *group)
{
    return group->unmixed_joules > 0 && group->misfit <= MISFIT_MAX;
}

static void divide_unmixed(const struct client_group *group, const struct unmixed *unmixed,
                           const double *variances, double unconfirmed,
                           struct intensity_shares *ret_shares)
{
    double misfit = MAX(group->misfit, MISFIT_MIN);
    double by_model = unmixed->is_measured ? MODEL_ERROR_ALONE : MODEL_ERROR;
    double by_misfit = MISFIT_ERROR * sqrt(group->misfit);
    double relative =
        by_model * by_model + by_misfit * by_misfit + group->unexplained * group->unexplained;

    *ret_shares = (struct intensity_shares){0};
    for (uint32_t t = 0; t < TENANTS_MAX; t++) {
        double share = unmixed->watts[t] / unmixed->explained_w, others = 1 - share;

        if (share <= 0)
            continue;
        ret_shares->of[t] = share;
        ret_shares->error[t] = sqrt(misfit * MAX(variances[t], 0.0) / (share * share) +
                                    others * others * relative + unconfirmed * unconfirmed);
    }
}

/* How clients divide what they have together, a part of the slot's energy. `beside` is the usual
 * part of the time of an unknown process. False if nothing tells. */
static bool divide_among_clients(const struct clients *clients, const struct intensity *intensity,
                                 const struct slot *slot, double part, double beside,
                                 struct intensity_shares *ret_shares)
{
    const struct client_group *all = clients_find(clients, slot_workers(slot));
    const struct client_group *group = clients_find(clients, slot->clients);
    bool is_mistaken = (all && all->unmixed_joules > 0) ||
                       (group && group->unmixed_joules > 0 && !clients_are_unmixed(group));
    struct slot alone = *slot;
    struct unmixed unmixed;
    double variances[TENANTS_MAX];

    if (is_alone(slot->clients) && slot->clients != 1U << TENANT_OTHERS) {
        *ret_shares = (struct intensity_shares){0};
        ret_shares->of[__builtin_ctz(slot->clients)] = 1;
        return true;
    }
    if (!is_mistaken && unmix_slot(intensity, slot, slot->clients, beside, &unmixed, variances)) {
        divide_unmixed(&(struct client_group){.misfit = 1}, &unmixed, variances, UNCONFIRMED_ERROR,
                       ret_shares);
        return true;
    }
    alone.listed = slot->clients;
    alone.servers = 0;
    return presence_divide(clients, &alone, part * slot_watts(intensity, slot), ret_shares);
}

/* Beside a process of an unknown program: samples tell it from MPS as a whole, but what either
 * draws in its time may be anything. */
static bool divide_beside(const struct clients *clients, const struct intensity *intensity,
                          const struct slot *slot, struct intensity_shares *ret_shares)
{
    const struct client_group *group = clients_find(clients, slot_workers(slot));
    double beside, samples = samples_of_clients(slot, &beside), part, usual;

    samples += beside;
    if (samples <= 0)
        return false;
    part = 1 - beside / samples;
    usual = group && group->sampled > 0 ? group->beside : beside / samples; /* of one slot: poor */
    if (!divide_among_clients(clients, intensity, slot, part, usual, ret_shares))
        return false;
    for (uint32_t t = 0; t < TENANTS_MAX; t++) {
        double *share = &ret_shares->of[t], *error = &ret_shares->error[t];

        if (slot->clients & (1U << t)) {
            *share *= part;
            *error = hypot(*error, BESIDE_ERROR * usual);
        } else if (!(slot->servers & (1U << t)) && slot->won[t] > 0) {
            *share = slot->won[t] / samples;
            *error = BESIDE_ERROR * (1 - usual * slot->won[t] / beside);
        }
    }
    return true;
}

bool clients_divide(const struct clients *clients, const struct intensity *intensity,
                    const struct slot *slot, struct intensity_shares *ret_shares)
{
    uint32_t present = slot_workers(slot);
    const struct client_group *group = clients_find(clients, present);
    double variances[TENANTS_MAX];
    struct unmixed unmixed;

    if (group && clients_are_unmixed(group) &&
        unmix_slot(intensity, slot, present, 0, &unmixed, variances)) {
        divide_unmixed(group, &unmixed, variances,
                       are_confirmed(clients, present) ? 0 : UNCONFIRMED_ERROR, ret_shares);
        return true;
    }
    return present == slot->clients
               ? presence_divide(clients, slot, slot_watts(intensity, slot), ret_shares)
               : divide_beside(clients, intensity, slot, ret_shares);
}

void clients_forget(struct clients *clients, uint32_t tenant)
{
    clients->amounts[tenant] = (struct client_amount){0};
    clients->came[tenant] = 0;
    clients->sizes[tenant] = 0;
    for (size_t i = clients->count; i-- > 0;)
        if (clients->groups[i].present & (1U << tenant))
            clients->groups[i] = clients->groups[--clients->count];
}
