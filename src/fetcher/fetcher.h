/*
 * Fetcher: a process that asks the network, for one trust domain: the BMC, the Kubernetes API
 * server or the providers of emission factors. It listens to nobody, and all that it can say are
 * readings, names or factors.
 */
#pragma once

#include <stdint.h>

#include "core/error.h"
#include "process/job.h"

/*
 * The hidden verb `fetcher`, as the collector starts it. Reads its job, gives up all that it does
 * not need, and asks until the channel is at its end. Returns the exit status: 0, or 1 when it
 * could not start.
 */
int fetcher_main(void);

/* Each returns when the channel is at its end. 0 or -errno, with a text, when it cannot start. */
int fetch_bmc(const struct fetcher_job *job, int channel_fd, int readings_fd, struct error *err);
int fetch_kubernetes(const struct fetcher_job *job, int channel_fd, struct error *err);
int fetch_emissions(const struct fetcher_job *job, int channel_fd, struct error *err);

/*
 * The first part of the sandbox, for all: libraries must be loaded by then. From here on it is
 * nobody, and opens only what looking up names takes, and what is at `ca_path` ("": nothing).
 */
int fetcher_enter_sandbox(const char *ca_path, struct error *err);

/* True when the channel is at its end; waits for that until then, by the monotonic clock. */
bool fetcher_is_over(int channel_fd, uint64_t until_us);

/* For those that must ask one host alone: what they need of files is a name's address. */

enum { FETCHER_ADDRESS_BYTES = 640 };

/*
 * Looks the host up until it has an address, in the form that curl wants ("" for an address), and
 * calls `report` after each failure. False: the channel ended before.
 */
bool fetcher_look_up(const char *what, const char *host, const char *port, int channel_fd,
                     void (*report)(void *context, const char *why), void *context,
                     char ret_resolve[FETCHER_ADDRESS_BYTES]);
