/* The node's power as its BMC reports it, integrated to energy. Pure. */
#pragma once

#include "core/error.h"
#include "model/counter.h"
#include "model/sample.h"

/* How long the power between two readings is believed, and how long one that never changes: a
 * node's power moves by a watt within minutes. */
#define BMC_HOLD_US   (30 * USEC_PER_SEC)
#define BMC_FROZEN_US (600 * USEC_PER_SEC)

/* Zeroed but for its source, it has no reading. */
struct bmc_meter {
    const char *source; /* and the meter's id */
    struct integrator integrator;
    bool has_reading;
    uint64_t changed_us; /* when a reading last differed from the one before */
};

struct bmc_reading {
    uint64_t power_mw;
    uint64_t mono_us, t_us; /* when it was taken, by the monotonic clock and since the epoch */
    bool is_repeated;       /* everything in it is as in the last one */
    uint64_t frozen_us;     /* for how long that is believed */
};

/* 0; -ESTALE with a text: a BMC that hangs may go on to report its last reading; or -ENOMEM. */
int bmc_meter_add(struct bmc_meter *meter, const struct bmc_reading *reading, struct batch *batch,
                  struct error *err);
