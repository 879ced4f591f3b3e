/*
 * Asks a BMC for the node's power, again and again, on a thread that may take its time. Whatever
 * the BMC does costs its own readings: each question has a deadline, and a failure is followed by a
 * pause that grows to five minutes.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/clock.h"
#include "fetcher/redfish_finder.h"

struct redfish_client;

struct redfish_client_options {
    struct redfish_session_options session; /* `send` and its context are filled in */
    uint64_t interval_us;                   /* between two readings */
    uint64_t delay_us;                      /* before the first question */
    const struct clock *clock;

    /* Called by redfish_client_run, with each reading: 0, with the power and when it was read by
     * the monotonic clock, or -errno with a text. */
    void (*take)(void *context, int result, uint64_t power_mw, uint64_t taken_us, const char *why);

    /* And when another place of the power was found. */
    void (*found)(void *context, const struct redfish_place *place);
    void *context;
};

/* What libraries need from outside of a sandbox is fetched here. 0 or -ENOMEM. */
int redfish_client_new(const struct redfish_client_options *options,
                       struct redfish_client **ret_client);

/* Blocks until it is stopped, then logs out, for which it takes at most two seconds. To be called
 * once. */
void redfish_client_run(struct redfish_client *client);

/* From any thread: ends the run, or one that is still to come. */
void redfish_client_stop(struct redfish_client *client);

/* Accepts NULL. */
void redfish_client_free(struct redfish_client *client);
