/*
 * Runner: one source on one thread. It reads at its interval and queues what it got; the owner
 * takes batches without ever waiting for the source.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/clock.h"
#include "model/sample.h"
#include "sources/source.h"

struct runner;

struct runner_status {
    bool gone;            /* its thread has ended: stop it */
    bool known;           /* it answered, failed or hangs; not if all it said is that it is gone */
    bool up;              /* the last read succeeded, and none hangs past the deadline */
    uint64_t age_us;      /* since the last success */
    uint64_t duration_us; /* of the last read */
    uint64_t errors;
    char error[256]; /* why it is down; "" if it is up */
};

/*
 * Starts the thread. The unit's state stays the caller's until then, afterwards the runner closes
 * it. Each queued batch writes to `wake_fd` (an eventfd that the caller keeps open). A read that
 * takes longer than `deadline_us` counts as down.
 */
int runner_start(const struct source_unit *unit, const struct clock *clock, uint64_t deadline_us,
                 int wake_fd, struct runner **ret_runner);

/* The oldest batch, or NULL. Give it back with runner_give_back when it is used up. */
struct batch *runner_take(struct runner *runner);
void runner_give_back(struct runner *runner, struct batch *batch);

void runner_get_status(struct runner *runner, struct runner_status *ret_status);
const struct source_unit *runner_unit(const struct runner *runner);

/* Asks the thread to end and does not wait: so that many can be stopped at the same time. It writes
 * to `wake_fd` when it has ended. */
void runner_request_stop(struct runner *runner);
bool runner_has_ended(struct runner *runner);

/*
 * Asks the thread to end and waits for at most `wait_us`. False: it hangs and is left behind. Then
 * it belongs to its thread, which closes and frees it if it ever ends; until then that uses what
 * the source was opened with, and only `wake_fd` may be closed.
 */
bool runner_stop(struct runner *runner, uint64_t wait_us);
