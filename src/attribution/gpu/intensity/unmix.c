#include "attribution/gpu/intensity/unmix.h"

#include <math.h>

#include "attribution/gpu/intensity/linear.h"
#include "core/macros.h"

/* Relative to the largest of the tenants. The watts are not quite additive: clients that share the
 * power limit slow each other down. */
static const double UNIT_NOISE = 0.11, WATTS_NOISE = 0.3;
static const double UNIT_MIN = 0.01; /* units that nobody uses more are ignored */

/* Programs that look alike are expected to run as much as each other, within this. Beside an
 * unknown one, which may show what they would, that holds for all. */
static const double AMOUNT_SPREAD = 1, AMOUNT_SPREAD_BESIDE = 0.4;

/* Nobody runs more than when it was alone, but for noise: else it is another program by now. */
static const double AMOUNT_MAX = 1, AMOUNT_NOISE = 0.15;

/* What programs show alone: the mean, and how much they differ (52 runs of real programs on an H200
 * with a limit of 700 W; none of them used fp64 and fp16, others could). */
static const double TYPICAL[FEATURE_COUNT] = {
    [UNIT_SM] = 0.62,   [UNIT_OCCUPANCY] = 0.29, [UNIT_INTEGER] = 0.18, [UNIT_TENSOR] = 0.11,
    [UNIT_DRAM] = 0.25, [UNIT_FP32] = 0.04,      [FEATURE_POWER] = 300,
};
static const double TYPICAL_SPREAD[FEATURE_COUNT] = {
    [UNIT_SM] = 0.3,     [UNIT_OCCUPANCY] = 0.22, [UNIT_INTEGER] = 0.2,
    [UNIT_TENSOR] = 0.2, [UNIT_DRAM] = 0.22,      [UNIT_FP64] = 0.1,
    [UNIT_FP32] = 0.06,  [UNIT_FP16] = 0.1,       [FEATURE_POWER] = 170,
};
static const double TYPICAL_LIMIT_W = 700;

/* The tenants of a slot, and what each shows alone. */
struct mixed {
    size_t count;
    uint32_t tenants[TENANTS_MAX];
    double signatures[TENANTS_MAX][FEATURE_COUNT];
    double device[FEATURE_COUNT];
    double precision[FEATURE_COUNT]; /* 0: ignored */
    size_t feature_count;
    double matrix[TENANTS_MAX * TENANTS_MAX], linear[TENANTS_MAX], amounts[TENANTS_MAX];
};

/* False if one of them is unknown. */
static bool recall_signatures(const struct intensity *intensity, uint32_t tenants,
                              struct mixed *mixed, bool *ret_is_measured)
{
    *ret_is_measured = true;
    for (uint32_t t = 0; t < TENANTS_MAX; t++) {
        const struct anchor *anchor = &intensity->anchors[t];
        double *signature = mixed->signatures[mixed->count];

        if (!(tenants & (1U << t)))
            continue;
        if (anchor->weight <= 0 || !anchor->has_gpm)
            return false;
        for (size_t u = 0; u < UNIT_COUNT; u++)
            signature[u] = anchor->activity.units[u];
        signature[FEATURE_POWER] = states_watts(&intensity->states, &anchor->activity);
        mixed->tenants[mixed->count++] = t;
        *ret_is_measured &= anchor->is_measured;
    }
    return mixed->count > 0;
}

/* What the device shows per second, busy or not. */
static bool read_device(const struct intensity *intensity, const struct slot *slot,
                        struct mixed *mixed)
{
    struct slot_reading reading;
    struct state described;
    double busy;

    if (!slot_read(slot, &reading) || !states_describe(slot, &described) || !described.has_gpm)
        return false;
    busy = reading.busy_s * 1e6 / (double)(slot->end_us - slot->start_us);
    for (size_t u = 0; u < UNIT_COUNT; u++)
        mixed->device[u] = busy * described.mean.units[u];
    mixed->device[FEATURE_POWER] = busy * states_watts(&intensity->states, &described.mean);
    return true;
}

/* Of the features of a slot, those that others showed are as uncertain as these. */
static void weigh_features(struct mixed *mixed, double limit_watts, double unknown)
{
    for (size_t f = 0; f < FEATURE_COUNT; f++) {
        double most = 0, noise = f == FEATURE_POWER ? WATTS_NOISE : UNIT_NOISE;
        double part = f == FEATURE_POWER && limit_watts > 0
                          ? unknown * limit_watts / TYPICAL_LIMIT_W
                          : unknown;
        double spread = part * TYPICAL_SPREAD[f];

        for (size_t i = 0; i < mixed->count; i++)
            most = MAX(most, mixed->signatures[i][f]);
        if (most < UNIT_MIN)
            continue;
        mixed->device[f] -= part * TYPICAL[f];
        mixed->precision[f] = 1 / (noise * noise * most * most + spread * spread);
        mixed->feature_count++;
    }
}

static void find_amounts(struct mixed *mixed, double spread)
{
    size_t n = mixed->count;
    double alike = 1 / (spread * spread);

    for (size_t i = 0; i < n; i++) {
        const double *mine = mixed->signatures[i];

        mixed->amounts[i] = 1.0 / (double)n; /* nearer than 0 */
        for (size_t k = 0; k < n; k++) {
            double sum = alike * ((i == k) - 1.0 / (double)n);

            for (size_t f = 0; f < FEATURE_COUNT; f++)
                sum += mixed->precision[f] * mine[f] * mixed->signatures[k][f];
            mixed->matrix[i * n + k] = sum;
        }
        for (size_t f = 0; f < FEATURE_COUNT; f++)
            mixed->linear[i] += mixed->precision[f] * mine[f] * mixed->device[f];
    }
    linear_minimise_positive(mixed->matrix, mixed->linear, n, mixed->amounts);
}

static double misfit_of(const struct mixed *mixed)
{
    size_t freedom = mixed->feature_count > mixed->count ? mixed->feature_count - mixed->count : 1;
    double sum = 0;

    for (size_t f = 0; f < FEATURE_COUNT; f++) {
        double off = mixed->device[f];

        for (size_t i = 0; i < mixed->count; i++)
            off -= mixed->amounts[i] * mixed->signatures[i][f];
        sum += mixed->precision[f] * off * off;
    }
    for (size_t i = 0; i < mixed->count; i++) {
        double off = MAX(mixed->amounts[i] - AMOUNT_MAX, 0.0) / AMOUNT_NOISE;

        sum += off * off;
    }
    return sum / (double)freedom;
}

/* The variance of each share s of the energies e, whose covariance is C: a share changes with
 * (e_i - s), so that it is C_ii - 2 s (C 1)_i + s^2 1'C1, over the square of the sum. */
static void find_variances(const struct mixed *mixed, const struct unmixed *unmixed,
                           double *ret_variances)
{
    double factor[TENANTS_MAX * TENANTS_MAX], covariance[TENANTS_MAX * TENANTS_MAX], of_all = 0;
    double with_all[TENANTS_MAX] = {0}, total = unmixed->explained_w;
    size_t n = mixed->count;

    for (size_t i = 0; i < n * n; i++)
        factor[i] = mixed->matrix[i];
    if (!linear_factor(factor, n)) {
        for (size_t i = 0; i < n; i++)
            ret_variances[mixed->tenants[i]] = 1;
        return;
    }
    linear_invert(factor, n, covariance);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            covariance[i * n + k] *=
                mixed->signatures[i][FEATURE_POWER] * mixed->signatures[k][FEATURE_POWER];
            with_all[i] += covariance[i * n + k];
            of_all += covariance[i * n + k];
        }
    for (size_t i = 0; i < n; i++) {
        uint32_t t = mixed->tenants[i];
        double share = unmixed->watts[t] / total;

        ret_variances[t] =
            (covariance[i * n + i] - 2 * share * with_all[i] + share * share * of_all) /
            (total * total);
    }
}

bool unmix_slot(const struct intensity *intensity, const struct slot *slot, uint32_t tenants,
                double unknown, struct unmixed *ret_unmixed, double *ret_variances)
{
    struct mixed mixed = {.count = 0};
    struct unmixed unmixed = {.explained_w = 0};

    if (!recall_signatures(intensity, tenants, &mixed, &unmixed.is_measured) ||
        !read_device(intensity, slot, &mixed))
        return false;
    unmixed.measured_w = mixed.device[FEATURE_POWER];
    weigh_features(&mixed, intensity->states.limit_watts, unknown);
    find_amounts(&mixed, unknown > 0 ? AMOUNT_SPREAD_BESIDE : AMOUNT_SPREAD);
    for (size_t i = 0; i < mixed.count; i++) {
        double watts = mixed.amounts[i] * mixed.signatures[i][FEATURE_POWER];

        unmixed.amounts[mixed.tenants[i]] = mixed.amounts[i];
        unmixed.watts[mixed.tenants[i]] = watts;
        unmixed.explained_w += watts;
    }
    if (unmixed.explained_w <= 0)
        return false;
    unmixed.misfit = misfit_of(&mixed);
    if (ret_variances)
        find_variances(&mixed, &unmixed, ret_variances);
    *ret_unmixed = unmixed;
    return true;
}
