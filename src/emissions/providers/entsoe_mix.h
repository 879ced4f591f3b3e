/* What each kind of plant generated during the last day, by the quarter hour, and what that emits.
 * Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "emissions/providers/entsoe_factors.h"

enum {
    ENTSOE_QUARTERS_OF_HOUR = 4,
    ENTSOE_HOURS = 25, /* the last is the one that is going on */
    ENTSOE_QUARTERS = ENTSOE_HOURS * ENTSOE_QUARTERS_OF_HOUR,
    ENTSOE_KW_MAX = 1000000000, /* of one kind: half of what the whole continent could */
};

#define ENTSOE_QUARTER_US (UINT64_C(900000000))

struct entsoe_mix {
    uint64_t start_us; /* on the hour */
    bool is_known[ENTSOE_KINDS_MAX][ENTSOE_QUARTERS];
    uint32_t kw[ENTSOE_KINDS_MAX][ENTSOE_QUARTERS];
};

void entsoe_mix_init(struct entsoe_mix *mix, uint64_t now_us);

/* `kw` during [from_us, to_us): what lies outside of the day is cut, what is known is replaced.
 * Both times are on quarters. */
void entsoe_mix_put(struct entsoe_mix *mix, unsigned kind, uint64_t from_us, uint64_t to_us,
                    uint32_t kw);

/*
 * The newest whole hour of which every kind that matters is known: some come hours later than
 * others, and without them the grid would look cleaner or dirtier than it is. 0, or -ENODATA: there
 * is none, or nothing was generated.
 */
int entsoe_mix_newest(const struct entsoe_mix *mix, const struct entsoe_factors *factors,
                      uint64_t *ret_hour_us, uint64_t *ret_mg_per_kwh);
