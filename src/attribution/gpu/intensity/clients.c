#include "attribution/gpu/intensity/clients.h"

#include <math.h>

#include "attribution/gpu/intensity/linear.h"
#include "attribution/gpu/intensity/unmix.h"
#include "core/macros.h"

static const double BUSY_MIN = 0.5; /* of a slot; below it a client came or went */
static const double FADE = 0.9998;  /* per slot: a half-life of about 12 minutes */
static const double WEIGHT_MAX = 25;

/* The error of a group's watts: relative and absolute. */
static const double WATTS_NOISE = 0.08, WATTS_FLOOR = 4, WATTS_MIN = 0.5;

/* Watts that clients are not known to draw may be all of one of them, and then what is known of
 * them is wrong by about as much again: the fit follows the watts that it cannot explain. */
static const double UNEXPLAINED_ERROR = 2;

/* Programs that explain the board worse are others than they were. Right ones had misfits of 0.01
 * to 0.1, and of 0.4 where they got in each other's way; of wrong ones two of three had more than
 * 0.6 (measured, H200). */
static const double MISFIT_MAX = 0.6, MISFIT_MIN = 0.05;
static const double JOULES_MAX = 10000; /* what a group's means are worth at most */

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

static void learn_watts(struct client_group *group, double watts)
{
    double above = watts - group->watts;

    group->weight += 1;
    group->watts += above / MIN(group->weight, WEIGHT_MAX);
    group->variance +=
        (above * (watts - group->watts) - group->variance) / MIN(group->weight, WEIGHT_MAX);
}

void clients_learn(struct clients *clients, const struct intensity *intensity,
                   const struct slot *slot)
{
    double duration_s = (double)(slot->end_us - slot->start_us) / 1e6, watts;
    struct slot_reading reading;
    struct unmixed unmixed;
    struct client_group *group;
    bool is_busy, is_unmixed;

    if (!slot_read(slot, &reading))
        return;
    is_busy = reading.busy_s >= BUSY_MIN * duration_s;
    is_unmixed = unmix_slot(intensity, slot, slot_workers(slot), &unmixed, NULL);
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
    if (is_busy && !slot->has_changed) /* else they were not all there at the same time */
        learn_watts(group, watts);
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

static double size_of(const struct clients *clients, uint32_t present)
{
    double size = 0;

    for (uint32_t t = 0; t < TENANTS_MAX; t++)
        if (present & (1U << t))
            size += clients->sizes[t] > 0 ? clients->sizes[t] : 1;
    return size;
}

/* How far the known watts of clients are from those of a slot, relative to these; or, if that is
 * more, how much those who are present vary anyway. At most 1. */
static double unexplained_part(const struct clients *clients, uint32_t present, double explained_w,
                               double measured_w)
{
    const struct client_group *group = clients_find(clients, present);
    double off = fabs(explained_w - measured_w) / MAX(measured_w, WATTS_MIN);
    double spread = group ? sqrt(group->variance) / MAX(group->watts, WATTS_MIN) : 0;

    return MIN(MAX(off, spread), 1.0);
}

/*
 * By presence: the watts of each client are those that explain best what the groups draw. Before
 * anything is known they are in proportion to the sizes. They are of the time that was learned
 * last, and those of a slot need not be: what they miss of it, either way, goes by the sizes.
 */
static bool divide_by_presence(const struct clients *clients, uint32_t present, double measured_w,
                               struct intensity_shares *ret_shares)
{
    double matrix[TENANTS_MAX * TENANTS_MAX] = {0}, inverse[TENANTS_MAX * TENANTS_MAX];
    double watts[TENANTS_MAX] = {0}, sum = 0, weights = 0, total = 0, mean;
    double missed, unexplained, size = size_of(clients, present);
    size_t n = TENANTS_MAX;

    for (size_t g = 0; g < clients->count; g++) {
        const struct client_group *group = &clients->groups[g];

        if (!group->is_clients_only)
            continue;
        sum += group->weight * group->watts / size_of(clients, group->present);
        weights += group->weight;
    }
    mean = weights > 0 ? sum / weights : 0; /* of a client of size 1 while it is present */
    if (mean <= 0)
        return false;
    for (size_t g = 0; g < clients->count; g++) {
        const struct client_group *group = &clients->groups[g];
        double noise = WATTS_NOISE * group->watts + WATTS_FLOOR;
        double precision = MIN(group->weight, WEIGHT_MAX) / (noise * noise + group->variance);
        double above = group->watts - mean * size_of(clients, group->present);

        for (uint32_t i = 0; i < n && group->is_clients_only; i++) {
            if (!(group->present & (1U << i)))
                continue;
            watts[i] += precision * above;
            for (uint32_t k = 0; k < n; k++)
                if (group->present & (1U << k))
                    matrix[i * n + k] += precision;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        double expected = mean * size_of(clients, 1U << i);

        matrix[i * n + i] += 1 / (expected * expected);
    }
    if (!linear_factor(matrix, n))
        return false;
    linear_solve(matrix, n, watts);
    linear_invert(matrix, n, inverse);
    *ret_shares = (struct intensity_shares){0};
    for (uint32_t i = 0; i < n; i++) {
        watts[i] = MAX(mean * size_of(clients, 1U << i) + watts[i], WATTS_MIN);
        total += present & (1U << i) ? watts[i] : 0;
    }
    missed = fabs(total - measured_w) / MAX(total, measured_w);
    unexplained = unexplained_part(clients, present, total, measured_w);
    for (uint32_t i = 0; i < n; i++) {
        double part = size_of(clients, 1U << i) / size, share, known, unknown;

        if (!(present & (1U << i)))
            continue;
        share = (1 - missed) * watts[i] / total + missed * part;
        known = sqrt(inverse[i * n + i]) / watts[i] * (1 - share);
        unknown = part < 1 ? UNEXPLAINED_ERROR * unexplained * MAX(part, 1 - part) / share : 0;
        ret_shares->of[i] = share;
        ret_shares->error[i] = hypot(known, unknown);
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
        unmix_slot(intensity, slot, present, &unmixed, variances)) {
        divide_unmixed(group, &unmixed, variances,
                       are_confirmed(clients, present) ? 0 : UNCONFIRMED_ERROR, ret_shares);
        return true;
    }
    /* Samples do tell MPS as a whole from a process beside it. */
    return present == slot->clients &&
           divide_by_presence(clients, present, slot_watts(intensity, slot), ret_shares);
}

void clients_forget(struct clients *clients, uint32_t tenant)
{
    clients->amounts[tenant] = (struct client_amount){0};
    clients->sizes[tenant] = 0;
    for (size_t i = clients->count; i-- > 0;)
        if (clients->groups[i].present & (1U << tenant))
            clients->groups[i] = clients->groups[--clients->count];
}
