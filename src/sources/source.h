/*
 * Source: something on the node that can be read. One file each, and one line in table.c.
 *
 * A source runs on a thread of its own (runner.h): `read` may block, and one that hangs costs its
 * own series and nothing else. Sources never log and never see the ledger.
 */
#pragma once

#include <stdint.h>

#include "core/clock.h"
#include "core/error.h"
#include "model/batch.h"
#include "model/host.h"

struct source_context {
    const struct host *host;
    const struct clock *clock;
    uint64_t interval_us;    /* length of a window */
    const char *replay_path; /* NULL: live */
};

struct source_ops {
    const char *name; /* the `source` label */

    /* -ENODEV: not on this machine, or not asked for; silent. Else 0 or -errno with a text. */
    int (*open)(const struct source_context *context, void **ret_state, struct error *err);

    /* Adds what was seen since the last call. 0, or -errno with a text: the source is then down
     * until a later call succeeds. What was added before an error counts. */
    int (*read)(void *state, struct batch *batch, struct error *err);

    void (*close)(void *state);
};

/* Every source there is, ended by NULL. */
extern const struct source_ops *const source_table[];
