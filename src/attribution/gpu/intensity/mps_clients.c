#include "attribution/gpu/intensity/mps_clients.h"

#include <math.h>

#include "attribution/gpu/intensity/linear.h"
#include "core/macros.h"

static const double BUSY_MIN = 0.5; /* of a slot; below it a client came or went */
static const double FADE = 0.9998;  /* per slot: a half-life of about 12 minutes */
static const double WEIGHT_MAX = 25;

/* The error of a group's watts: relative and absolute. */
static const double WATTS_NOISE = 0.08, WATTS_FLOOR = 4, WATTS_MIN = 0.5;

void mps_clients_learn(struct mps_clients *clients, const struct slot *slot, double idle_watts)
{
    double duration_s = (double)(slot->end_us - slot->start_us) / 1e6, watts;
    struct mps_group *group = NULL, *least = &clients->groups[0];
    struct slot_reading reading;

    if (!slot_read(slot, &reading) || reading.busy_s < BUSY_MIN * duration_s)
        return;
    for (size_t i = 0; i < clients->count; i++) {
        clients->groups[i].weight *= FADE;
        if (clients->groups[i].clients == slot->clients)
            group = &clients->groups[i];
        else if (clients->groups[i].weight < least->weight)
            least = &clients->groups[i];
    }
    if (!group) { /* the rarest makes room */
        group = clients->count < MPS_GROUPS_MAX ? &clients->groups[clients->count++] : least;
        *group = (struct mps_group){.clients = slot->clients};
    }
    watts = MAX((double)slot->energy_uj / 1e6 / duration_s - idle_watts, 0.0);
    group->weight += 1;
    group->watts += (watts - group->watts) / MIN(group->weight, WEIGHT_MAX);
}

bool mps_clients_divide(const struct mps_clients *clients, uint32_t present,
                        struct intensity_shares *ret_shares)
{
    double matrix[TENANTS_MAX * TENANTS_MAX] = {0}, inverse[TENANTS_MAX * TENANTS_MAX];
    double watts[TENANTS_MAX] = {0}, sum = 0, weights = 0, total = 0, mean;
    size_t n = TENANTS_MAX;

    for (size_t g = 0; g < clients->count; g++) {
        const struct mps_group *group = &clients->groups[g];

        sum += group->weight * group->watts / __builtin_popcount(group->clients);
        weights += group->weight;
    }
    mean = weights > 0 ? sum / weights : 0; /* of a client while it is present */
    if (mean <= 0)
        return false;
    for (size_t g = 0; g < clients->count; g++) {
        const struct mps_group *group = &clients->groups[g];
        double noise = WATTS_NOISE * group->watts + WATTS_FLOOR;
        double precision = MIN(group->weight, WEIGHT_MAX) / (noise * noise);
        double above = group->watts - mean * __builtin_popcount(group->clients);

        for (uint32_t i = 0; i < n; i++) {
            if (!(group->clients & (1U << i)))
                continue;
            watts[i] += precision * above;
            for (uint32_t k = 0; k < n; k++)
                if (group->clients & (1U << k))
                    matrix[i * n + k] += precision;
        }
    }
    for (size_t i = 0; i < n; i++)
        matrix[i * n + i] += 1 / (mean * mean);
    if (!linear_factor(matrix, n))
        return false;
    linear_solve(matrix, n, watts);
    linear_invert(matrix, n, inverse);
    *ret_shares = (struct intensity_shares){0};
    for (uint32_t i = 0; i < n; i++) {
        watts[i] = MAX(mean + watts[i], WATTS_MIN);
        total += present & (1U << i) ? watts[i] : 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!(present & (1U << i)))
            continue;
        ret_shares->of[i] = watts[i] / total;
        ret_shares->error[i] = sqrt(inverse[i * n + i]) / watts[i] * (1 - ret_shares->of[i]);
    }
    return true;
}

void mps_clients_forget(struct mps_clients *clients, uint32_t tenant)
{
    for (size_t i = clients->count; i-- > 0;)
        if (clients->groups[i].clients & (1U << tenant))
            clients->groups[i] = clients->groups[--clients->count];
}
