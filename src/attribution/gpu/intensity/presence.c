#include "attribution/gpu/intensity/presence.h"

#include <math.h>

#include "attribution/gpu/intensity/linear.h"
#include "core/macros.h"

/* The error of a group's watts: relative and absolute. */
static const double WATTS_NOISE = 0.08, WATTS_FLOOR = 4, WATTS_MIN = 0.5;

/* Watts that clients are not known to draw may be all of one of them, and then what is known of
 * them is wrong by about as much again: the fit follows the watts that it cannot explain. */
static const double UNEXPLAINED_ERROR = 2;

/* The watts of each client, above idle, and their covariance. */
struct fitted {
    double watts[TENANTS_MAX];
    double covariance[TENANTS_MAX * TENANTS_MAX];
};

/* How many tenants TENANT_OTHERS stands for, which differ from what is expected independently. */
static double others_of(const struct slot *slot)
{
    return MAX(slot->others, 1);
}

/* Sizes of the tenants of a slot, and of all others. */
static void read_sizes(const struct clients *clients, const struct slot *slot, double *ret_sizes)
{
    for (uint32_t t = 0; t < TENANTS_MAX; t++)
        ret_sizes[t] = clients->sizes[t] > 0 ? clients->sizes[t] : 1;
    ret_sizes[TENANT_OTHERS] *= others_of(slot);
}

static double size_of(const double *sizes, uint32_t present)
{
    double size = 0;

    for (uint32_t t = 0; t < TENANTS_MAX; t++)
        size += present & (1U << t) ? sizes[t] : 0;
    return size;
}

/* Of a client of size 1 while it is present; 0: nothing was learned. */
static double mean_watts(const struct clients *clients, const double *sizes)
{
    double sum = 0, weights = 0;

    for (size_t g = 0; g < clients->count; g++) {
        const struct client_group *group = &clients->groups[g];

        if (!group->is_clients_only)
            continue;
        sum += group->weight * group->watts / size_of(sizes, group->present);
        weights += group->weight;
    }
    return weights > 0 ? sum / weights : 0;
}

static double group_precision(const struct client_group *group)
{
    double noise = WATTS_NOISE * group->watts + WATTS_FLOOR;

    return MIN(group->weight, CLIENT_WEIGHT_MAX) / (noise * noise + group->variance);
}

/* Does a group tell what these clients draw? What was seen of the first seconds of a client is how
 * it starts, and tells of that time alone. */
static bool is_evidence(const struct client_group *group, uint32_t present)
{
    return group->is_clients_only && (group->is_settled || group->present == present);
}

/* The watts of each client are those that explain best what the groups draw: these clients, and
 * those that were seen since a slot. Before anything is known they are in proportion to the sizes.
 */
static bool fit_watts(const struct clients *clients, const double *sizes, double others,
                      uint32_t present, uint64_t since, double mean, struct fitted *ret_fitted)
{
    double matrix[TENANTS_MAX * TENANTS_MAX] = {0};
    double *watts = ret_fitted->watts;
    size_t n = TENANTS_MAX;

    *ret_fitted = (struct fitted){0};
    for (size_t g = 0; g < clients->count; g++) {
        const struct client_group *group = &clients->groups[g];
        double precision = group_precision(group);
        double above = group->watts - mean * size_of(sizes, group->present);

        if (!is_evidence(group, present) || (group->present != present && group->seen < since))
            continue;
        for (uint32_t i = 0; i < n; i++) {
            if (!(group->present & (1U << i)))
                continue;
            watts[i] += precision * above;
            for (uint32_t k = 0; k < n; k++)
                if (group->present & (1U << k))
                    matrix[i * n + k] += precision;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        double expected = mean * sizes[i];

        matrix[i * n + i] += (i == TENANT_OTHERS ? others : 1) / (expected * expected);
    }
    if (!linear_factor(matrix, n))
        return false;
    linear_solve(matrix, n, watts);
    linear_invert(matrix, n, ret_fitted->covariance);
    for (uint32_t i = 0; i < n; i++)
        watts[i] += mean * sizes[i];
    return true;
}

/* What the fit would be without a group: only the watts and covariance of these clients. */
static void leave_out(const struct fitted *fitted, const struct client_group *group,
                      uint32_t present, struct fitted *ret_fitted)
{
    double precision = group_precision(group), with[TENANTS_MAX] = {0};
    double off = group->watts, explained = 0, rest;
    size_t n = TENANTS_MAX;

    for (uint32_t k = 0; k < n; k++) {
        if (!(group->present & (1U << k)))
            continue;
        off -= fitted->watts[k];
        for (uint32_t i = 0; i < n; i++)
            with[i] += fitted->covariance[i * n + k];
    }
    for (uint32_t k = 0; k < n; k++)
        explained += group->present & (1U << k) ? precision * with[k] : 0;
    rest = MAX(1 - explained, 1e-9); /* of the evidence; that of sizes remains */
    for (uint32_t i = 0; i < n; i++) {
        if (!(present & (1U << i)))
            continue;
        ret_fitted->watts[i] = fitted->watts[i] - precision * with[i] * off / rest;
        for (uint32_t k = 0; k < n; k++)
            if (present & (1U << k))
                ret_fitted->covariance[i * n + k] =
                    fitted->covariance[i * n + k] + precision * with[i] * with[k] / rest;
    }
}

/* The standard errors of what each client has of the watts of all who are present, in watts: with a
 * covariance C and a share s it is the root of C_ii - 2 s (C 1)_i + s^2 1'C1. A sum that is known
 * well does not say whose it is: what one draws more, the others draw less. */
static void find_errors(const struct fitted *fitted, uint32_t present, double total,
                        double *ret_errors)
{
    double with_all[TENANTS_MAX] = {0}, of_all = 0;
    size_t n = TENANTS_MAX;

    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < n; k++)
            if ((present & (1U << i)) && (present & (1U << k))) {
                with_all[i] += fitted->covariance[i * n + k];
                of_all += fitted->covariance[i * n + k];
            }
    for (uint32_t i = 0; i < n; i++) {
        double share = MAX(fitted->watts[i], WATTS_MIN) / total;
        double own = fitted->covariance[i * n + i];

        ret_errors[i] = sqrt(MAX(own - 2 * share * with_all[i] + share * share * of_all, 0.0));
    }
}

/* Divides the watts of a slot. They are of the time that was learned last, and those of the slot
 * need not be: what they miss of it, either way, goes by the sizes. Returns their sum. */
static double divide_watts(const double *sizes, const struct fitted *fitted, uint32_t present,
                           double measured_w, struct intensity_shares *ret_shares)
{
    double size = size_of(sizes, present), errors[TENANTS_MAX], total = 0, missed;

    for (uint32_t i = 0; i < TENANTS_MAX; i++)
        total += present & (1U << i) ? MAX(fitted->watts[i], WATTS_MIN) : 0;
    missed = fabs(total - measured_w) / MAX(total, measured_w);
    find_errors(fitted, present, total, errors);
    *ret_shares = (struct intensity_shares){0};
    for (uint32_t i = 0; i < TENANTS_MAX; i++) {
        double watts = MAX(fitted->watts[i], WATTS_MIN), share;

        if (!(present & (1U << i)))
            continue;
        share = (1 - missed) * watts / total + missed * sizes[i] / size;
        ret_shares->of[i] = share;
        ret_shares->error[i] = errors[i] / watts;
    }
    return total;
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

/* Widens the errors of shares to what they may be if others are right. */
static void widen(struct intensity_shares *shares, const struct intensity_shares *others)
{
    for (uint32_t t = 0; t < TENANTS_MAX; t++) {
        double apart = fabs(others->of[t] - shares->of[t]) + others->error[t] * others->of[t];

        if (shares->of[t] > 0)
            shares->error[t] = MAX(shares->error[t], apart / shares->of[t]);
    }
}

bool presence_divide(const struct clients *clients, const struct slot *slot, double measured_w,
                     struct intensity_shares *ret_shares)
{
    uint32_t present = slot_workers(slot);
    double sizes[TENANTS_MAX], mean, size, unexplained;
    struct intensity_shares others;
    struct fitted fitted, without;

    read_sizes(clients, slot, sizes);
    mean = mean_watts(clients, sizes);
    size = size_of(sizes, present);
    if (mean <= 0 || !fit_watts(clients, sizes, others_of(slot), present, 0, mean, &fitted))
        return false;
    unexplained =
        unexplained_part(clients, present,
                         divide_watts(sizes, &fitted, present, measured_w, ret_shares), measured_w);
    if (fit_watts(clients, sizes, others_of(slot), present, clients_met(clients, present), mean,
                  &without)) {
        (void)divide_watts(sizes, &without, present, measured_w, &others);
        widen(ret_shares, &others);
    }
    for (size_t g = 0; g < clients->count; g++) {
        const struct client_group *group = &clients->groups[g];

        if (!is_evidence(group, present) || group->present == present)
            continue;
        leave_out(&fitted, group, present, &without);
        (void)divide_watts(sizes, &without, present, measured_w, &others);
        widen(ret_shares, &others);
    }
    for (uint32_t t = 0; t < TENANTS_MAX; t++) {
        double part = sizes[t] / size, share = ret_shares->of[t];

        if ((present & (1U << t)) && part < 1)
            ret_shares->error[t] = hypot(ret_shares->error[t], UNEXPLAINED_ERROR * unexplained *
                                                                   MAX(part, 1 - part) / share);
    }
    if (present & (1U << TENANT_OTHERS)) /* each of them may have used all of that, or nothing */
        ret_shares->error[TENANT_OTHERS] = MAX(ret_shares->error[TENANT_OTHERS], 1.0);
    return true;
}
