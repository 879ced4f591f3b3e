/* The emission factors of the collector: what is known of each, and which is in force. */
#pragma once

#include <stdbool.h>

#include "app/emissions_config.h"
#include "core/clock.h"
#include "model/snapshot.h"

struct emissions {
    struct emissions_config config;
    const struct clock *clock;
    struct price_factor in_force; /* not known: no emissions are wanted */
};

int emissions_init(struct emissions *emissions, const struct options *options,
                   const struct clock *clock, struct error *err);

/* The answer to an inquiry (its index in the config), and that there was none. The factor's
 * provider, zone and kind are not looked at: they are the inquiry's. */
void emissions_take(struct emissions *emissions, size_t inquiry,
                    const struct emission_factor *factor, uint64_t taken_us);
void emissions_miss(struct emissions *emissions, size_t inquiry);

/* Looks which is in force now. True: another one, or another figure, than before. */
bool emissions_refresh(struct emissions *emissions);

/* Adds the factors to the snapshot. 0 or -ENOMEM. */
int emissions_describe(const struct emissions *emissions, struct snapshot *snapshot);
