/* The emission factors of the collector: what each provider reported, and which one is in force. */
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
    const struct options *options;
    struct price_factor in_force; /* not known: no emissions are wanted */
    uint64_t since_us;            /* in real time */
    char announced[24];           /* the provider that was logged last */
    struct {
        bool has_answered;
        int result;
    } logged[CHOICE_MAX]; /* of each poll, whichever process made it */
};

/* It must stay where it is, and the options must outlive it. */
int emissions_init(struct emissions *emissions, const struct options *options,
                   const struct clock *clock, struct error *err);

/* The job of the fetcher, with the keys of now. 0 or -errno, with what to do. */
int emissions_make_job(const struct emissions *emissions, struct emissions_job *ret_job,
                       struct error *err);

/* The result of a poll; logged once per change, also of the kind of failure. */
void emissions_take_record(struct emissions *emissions, const struct channel_factor *record);

/* Chooses the factor in force now. True: the source or the value has changed; or the clock was set
 * back behind its beginning, and earlier factors must not apply again. */
bool emissions_refresh(struct emissions *emissions);

/* Packs the factors that providers reported, or unpacks those that were packed so long ago. */
void emissions_code_state(struct emissions *emissions, uint64_t elapsed_us, struct coder *coder);

/* Logs the provider in force if it has changed and any provider is polled; the first time also
 * whether the constant is implausible. */
void emissions_announce(struct emissions *emissions);

/* Adds the factors to the snapshot. 0 or -ENOMEM. */
int emissions_describe(const struct emissions *emissions, struct snapshot *snapshot);
