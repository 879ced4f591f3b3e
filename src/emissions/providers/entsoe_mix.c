#include "emissions/providers/entsoe_mix.h"

#include <errno.h>
#include <string.h>

#include "core/macros.h"

/* A kind matters if its peak is more than a fiftieth of all peaks together. */
enum { MATTERS_PART = 50 };

void entsoe_mix_init(struct entsoe_mix *mix, uint64_t now_us)
{
    const uint64_t hour_us = ENTSOE_QUARTERS_OF_HOUR * ENTSOE_QUARTER_US;
    uint64_t hour = now_us / hour_us;

    memset(mix, 0, sizeof(*mix));
    mix->start_us = (hour - MIN(hour, (uint64_t)ENTSOE_HOURS - 1)) * hour_us;
}

static size_t quarter_of(const struct entsoe_mix *mix, uint64_t t_us)
{
    if (t_us <= mix->start_us)
        return 0;
    return MIN((t_us - mix->start_us) / ENTSOE_QUARTER_US, (uint64_t)ENTSOE_QUARTERS);
}

void entsoe_mix_put(struct entsoe_mix *mix, unsigned kind, uint64_t from_us, uint64_t to_us,
                    uint32_t kw)
{
    size_t end = quarter_of(mix, to_us);

    for (size_t i = quarter_of(mix, from_us); i < end; i++) {
        mix->kw[kind][i] = kw;
        mix->is_known[kind][i] = true;
    }
}

static uint32_t peak_of(const struct entsoe_mix *mix, size_t kind)
{
    uint32_t peak_kw = 0;

    for (size_t i = 0; i < ENTSOE_QUARTERS; i++)
        peak_kw = MAX(peak_kw, mix->kw[kind][i]);
    return peak_kw;
}

static void tell_what_matters(const struct entsoe_mix *mix, const struct entsoe_factors *factors,
                              bool matters[ENTSOE_KINDS_MAX])
{
    uint64_t all_kw = 0;

    for (size_t k = 0; k < factors->count; k++)
        all_kw += factors->kinds[k].is_storage ? 0 : peak_of(mix, k);
    for (size_t k = 0; k < factors->count; k++)
        matters[k] =
            !factors->kinds[k].is_storage && (uint64_t)peak_of(mix, k) * MATTERS_PART > all_kw;
}

static bool is_whole(const struct entsoe_mix *mix, size_t hour, size_t kind)
{
    const bool *is_known = &mix->is_known[kind][hour * ENTSOE_QUARTERS_OF_HOUR];

    return is_known[0] && is_known[1] && is_known[2] && is_known[3];
}

static bool has_all_that_matters(const struct entsoe_mix *mix, size_t hour, size_t count,
                                 const bool matters[ENTSOE_KINDS_MAX])
{
    for (size_t k = 0; k < count; k++)
        if (matters[k] && !is_whole(mix, hour, k))
            return false;
    return true;
}

/* Below 32 kinds * 4 quarters * 1e9 kW * 5e6 mg, 6.4e17: twice that fits 64 bits. */
static int weigh(const struct entsoe_mix *mix, const struct entsoe_factors *factors, size_t hour,
                 uint64_t *ret_mg_per_kwh)
{
    uint64_t weighted = 0, all_kw = 0;

    for (size_t k = 0; k < factors->count; k++)
        for (size_t q = 0; q < ENTSOE_QUARTERS_OF_HOUR && !factors->kinds[k].is_storage; q++) {
            uint64_t kw = mix->kw[k][hour * ENTSOE_QUARTERS_OF_HOUR + q];

            weighted += kw * factors->kinds[k].mg_per_kwh;
            all_kw += kw;
        }
    if (all_kw == 0)
        return -ENODATA;
    *ret_mg_per_kwh = (2 * weighted + all_kw) / (2 * all_kw);
    return 0;
}

int entsoe_mix_newest(const struct entsoe_mix *mix, const struct entsoe_factors *factors,
                      uint64_t *ret_hour_us, uint64_t *ret_mg_per_kwh)
{
    bool matters[ENTSOE_KINDS_MAX];

    tell_what_matters(mix, factors, matters);
    for (size_t hour = ENTSOE_HOURS; hour-- > 0;) {
        if (!has_all_that_matters(mix, hour, factors->count, matters) ||
            weigh(mix, factors, hour, ret_mg_per_kwh) < 0)
            continue;
        *ret_hour_us = mix->start_us + hour * ENTSOE_QUARTERS_OF_HOUR * ENTSOE_QUARTER_US;
        return 0;
    }
    return -ENODATA;
}
