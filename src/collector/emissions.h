/* The emission factors of the collector: what is known of each, and which is in force. */
#pragma once

#include <stdbool.h>

#include "config/emissions_config.h"
#include "core/clock.h"
#include "model/snapshot.h"
#include "process/channel.h"
#include "process/job.h"

struct emissions {
    struct emissions_config config;
    const struct clock *clock;
    struct price_factor in_force; /* not known: no emissions are wanted */
    uint64_t since_us;            /* in real time */
    char announced[24];           /* the provider that was logged last */
    const struct options *options;
};

/* It must stay where it is, and the options must outlive it. */
int emissions_init(struct emissions *emissions, const struct options *options,
                   const struct clock *clock, struct error *err);

/* Is any provider asked? */
bool emissions_are_fetched(const struct emissions *emissions);

/* What the process that asks them is told, with the keys as they are now. 0 or -errno, with what to
 * do. */
int emissions_make_job(const struct emissions *emissions, struct emissions_job *ret_job,
                       struct error *err);

/* What that process reports. */
void emissions_take_record(struct emissions *emissions, const struct channel_factor *record);

/* The answer to an inquiry (its index in the config), and that there was none. The factor's
 * provider, zone and kind are not looked at: they are the inquiry's. */
void emissions_take(struct emissions *emissions, size_t inquiry,
                    const struct emission_factor *factor, uint64_t taken_us);
void emissions_miss(struct emissions *emissions, size_t inquiry);

/* Looks which is in force now. True: another one, or another figure, than before; or the clock was
 * set back behind its beginning, and those of the time before must not hold once more. */
bool emissions_refresh(struct emissions *emissions);

/* Logs whose factor is in force, if that is another's than before and anybody is asked; the first
 * time also that the constant is hardly any grid's. */
void emissions_announce(struct emissions *emissions);

/* Adds the factors to the snapshot. 0 or -ENOMEM. */
int emissions_describe(const struct emissions *emissions, struct snapshot *snapshot);
