/*
 * Asker: the process that asks public services for emission factors. It looks up names for months,
 * reads the files that this takes, and holds the keys: none of which the front should have, so the
 * collector starts it beside that one. It listens to nobody; all that it can say are factors.
 */
#pragma once

#include "config/asker_flags.h"
#include "process/child.h"

/* Where it finds the keys (asker_keys_seal). */
enum { ASKER_KEYS_FD = CHILD_CHANNEL_FD + 1 };

/*
 * Gives up all that it does not need, then asks, each provider as often as it has news, until the
 * channel is at its end. Who cannot be asked is left out, and said once. Returns the exit status:
 * 0, or 1 when it could not start.
 */
int asker_run(const struct asker_flags *flags, int channel_fd, int keys_fd);
