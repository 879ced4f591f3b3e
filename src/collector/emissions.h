/* The emission factors of the collector: what is known of each, which is in force, and the asker
 * that tells them, if anybody is asked. */
#pragma once

#include <stdbool.h>

#include "collector/asker_process.h"
#include "config/emissions_config.h"
#include "config/file_stamp.h"
#include "core/clock.h"
#include "model/snapshot.h"

struct emissions {
    struct emissions_config config;
    const struct clock *clock;
    struct price_factor in_force; /* not known: no emissions are wanted */
    uint64_t since_us;            /* in real time */
    char announced[24];           /* the provider that was logged last */
    struct asker_flags flags;
    const char *keys_path; /* "": there is none */
    struct file_stamp keys_mark;
    int keys_fd; /* the newest that are good, sealed; -1: nobody is asked */
    struct asker_process asker;
};

/* It must stay where it is, and the options must outlive it. */
int emissions_init(struct emissions *emissions, const struct options *options,
                   const struct clock *clock, struct error *err);

/* Starts the asker if there is somebody to ask and none runs. Its channel, asker.fd, is -1 or to be
 * watched; emissions_read takes what it says. On failure it is due again at asker.restart_us. */
int emissions_start(struct emissions *emissions, struct error *err);
void emissions_read(struct emissions *emissions);

/* Looks whether the keys' file has changed, and logs it. If it is good, another asker follows, soon
 * and with the new keys; else this one goes on with the old ones. */
void emissions_look_at_keys(struct emissions *emissions);

/* After SIGCHLD. */
void emissions_reap(struct emissions *emissions);

/* Ends the asker, after `wait_us` by force, and forgets the keys. */
void emissions_stop(struct emissions *emissions, uint64_t wait_us);

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
