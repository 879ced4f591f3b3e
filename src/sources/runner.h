/*
 * Runner: one source on one thread. It reads at its interval and queues the batches; the owner
 * takes them and never waits for the source.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/clock.h"
#include "model/sample.h"
#include "sources/source.h"

struct runner;

struct runner_status {
    bool gone;            /* the last read returned -ENODEV, and the thread ends: stop it */
    bool has_ended;       /* the thread has: stopping it does not wait */
    bool known;           /* it answered, failed or hangs; false if all it did was to be gone */
    bool up;              /* the last read succeeded, and none hangs past the deadline */
    uint64_t age_us;      /* since the last success */
    uint64_t duration_us; /* of the last read, or of the one that hangs */
    uint64_t errors;
    uint64_t reads;  /* how many have ended */
    char error[256]; /* why it is down; "" if it is up */
};

/*
 * Starts the thread, which owns the unit's state from then on; after a failure the caller keeps it.
 * Each queued batch writes to `wake_fd`, an eventfd that the caller keeps open until the runner is
 * stopped. A read that takes longer than `deadline_us` counts as down.
 */
int runner_start(const struct source_unit *unit, const struct clock *clock, uint64_t deadline_us,
                 int wake_fd, struct runner **ret_runner);

/* The oldest batch, or NULL. Return it with runner_recycle when it is used up. */
struct batch *runner_next_batch(struct runner *runner);
void runner_recycle(struct runner *runner, struct batch *batch);

void runner_get_status(struct runner *runner, struct runner_status *ret_status);
const struct source_unit *runner_unit(const struct runner *runner);

/* Asks for one more read, out of turn, and does not wait. It has ended when `reads` of the status
 * has reached what this returns. */
uint64_t runner_request_read(struct runner *runner);

/* Asks the thread to end and does not wait, so that many can end at the same time. The thread
 * writes to `wake_fd` when it ends. */
void runner_request_stop(struct runner *runner);

/*
 * Asks the thread to end and waits for at most `wait_us`. True: the source is closed and the runner
 * freed. False: the thread hangs and is detached; it closes and frees both itself if it ever ends,
 * so what the source was opened with must stay, but `wake_fd` may be closed. Accepts NULL.
 */
bool runner_stop(struct runner *runner, uint64_t wait_us);
