#include "sources/runner.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/macros.h"

/* If the owner does not take batches for this long, reading pauses: memory stays bounded. */
enum { QUEUE_MAX = 64 };

struct runner {
    struct source_unit unit;
    const struct clock *clock;
    uint64_t deadline_us;
    int wake_fd;
    pthread_t thread;

    pthread_mutex_t lock; /* everything below */
    pthread_cond_t stop_changed;
    bool stop;
    struct batch *queue, **queue_tail; /* oldest first */
    size_t queued;
    struct batch *spare; /* used batches, so that a steady state allocates nothing */
    bool reading;
    uint64_t read_began_us;
    bool gone;
    bool last_ok, known;
    uint64_t last_ok_us, last_duration_us, errors;
    char last_error[256];
};

static struct batch *obtain_batch(struct runner *runner)
{
    struct batch *batch;

    pthread_mutex_lock(&runner->lock);
    batch = runner->queued < QUEUE_MAX ? runner->spare : NULL;
    if (batch)
        runner->spare = batch->next;
    else if (runner->queued < QUEUE_MAX && (batch = malloc(sizeof(*batch))))
        batch_init(batch);
    if (batch) {
        runner->reading = true;
        runner->read_began_us = runner->clock->monotonic_us(runner->clock);
    }
    pthread_mutex_unlock(&runner->lock);
    return batch;
}

static void keep_result(struct runner *runner, struct batch *batch, int result,
                        const struct error *err)
{
    static const uint64_t one = 1;
    uint64_t now_us;

    pthread_mutex_lock(&runner->lock);
    now_us = runner->clock->monotonic_us(runner->clock);
    runner->reading = false;
    runner->last_duration_us = now_us - runner->read_began_us;
    runner->last_ok = result >= 0;
    runner->gone = result == -ENODEV;
    runner->known |= !runner->gone;
    if (result >= 0) {
        runner->last_ok_us = now_us;
        runner->last_error[0] = '\0';
    } else {
        runner->errors++;
        snprintf(runner->last_error, sizeof(runner->last_error), "%.255s", err->text);
    }
    batch->next = NULL;
    *runner->queue_tail = batch;
    runner->queue_tail = &batch->next;
    runner->queued++;
    pthread_mutex_unlock(&runner->lock);
    /* An eventfd refuses only when its counter is full, and then the owner is awake anyway. */
    (void)!write(runner->wake_fd, &one, sizeof(one));
}

/* Sleeps until the next multiple of the interval. False when asked to stop. */
static bool wait_for_next(struct runner *runner, struct timespec *due)
{
    struct timespec now;
    bool go_on;

    due->tv_nsec += (long)(runner->unit.interval_us % USEC_PER_SEC * 1000);
    due->tv_sec += (time_t)(runner->unit.interval_us / USEC_PER_SEC) + due->tv_nsec / 1000000000;
    due->tv_nsec %= 1000000000;
    /* After a hang, go on from now instead of catching up on every missed round. */
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec > due->tv_sec || (now.tv_sec == due->tv_sec && now.tv_nsec > due->tv_nsec))
        *due = now;
    pthread_mutex_lock(&runner->lock);
    while (!runner->stop &&
           pthread_cond_timedwait(&runner->stop_changed, &runner->lock, due) != ETIMEDOUT)
        ;
    go_on = !runner->stop;
    pthread_mutex_unlock(&runner->lock);
    return go_on;
}

static void *run(void *arg)
{
    struct runner *runner = arg;
    struct timespec due;

    clock_gettime(CLOCK_MONOTONIC, &due);
    do {
        struct batch *batch = obtain_batch(runner);
        struct error err = {""};
        int r;

        if (!batch)
            continue;
        r = runner->unit.ops->read(runner->unit.state, batch, &err);
        keep_result(runner, batch, r, &err);
        if (r == -ENODEV)
            break;
        if (r > 0)
            clock_gettime(CLOCK_MONOTONIC, &due);
    } while (wait_for_next(runner, &due));
    return NULL;
}

int runner_start(const struct source_unit *unit, const struct clock *clock, uint64_t deadline_us,
                 int wake_fd, struct runner **ret_runner)
{
    struct runner *runner = calloc(1, sizeof(*runner));
    pthread_condattr_t monotonic;
    int r;

    if (!runner)
        return -ENOMEM;
    *runner = (struct runner){
        .unit = *unit,
        .clock = clock,
        .deadline_us = deadline_us,
        .wake_fd = wake_fd,
        .last_ok_us = clock->monotonic_us(clock),
        .last_ok = true,
    };
    runner->queue_tail = &runner->queue;
    pthread_mutex_init(&runner->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&runner->stop_changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    r = pthread_create(&runner->thread, NULL, run, runner);
    if (r != 0) {
        free(runner);
        return -r;
    }
    *ret_runner = runner;
    return 0;
}

struct batch *runner_take(struct runner *runner)
{
    struct batch *batch;

    pthread_mutex_lock(&runner->lock);
    batch = runner->queue;
    if (batch) {
        runner->queue = batch->next;
        if (!runner->queue)
            runner->queue_tail = &runner->queue;
        runner->queued--;
    }
    pthread_mutex_unlock(&runner->lock);
    return batch;
}

void runner_give_back(struct runner *runner, struct batch *batch)
{
    batch_reset(batch);
    pthread_mutex_lock(&runner->lock);
    batch->next = runner->spare;
    runner->spare = batch;
    pthread_mutex_unlock(&runner->lock);
}

void runner_get_status(struct runner *runner, struct runner_status *ret_status)
{
    uint64_t now_us;
    bool hangs;

    pthread_mutex_lock(&runner->lock);
    /* Under the lock: a read that begins or ends meanwhile must not be later than now. */
    now_us = runner->clock->monotonic_us(runner->clock);
    hangs = runner->reading && now_us - runner->read_began_us > runner->deadline_us;
    *ret_status = (struct runner_status){
        .gone = runner->gone,
        .known = runner->known || hangs,
        .up = runner->last_ok && !hangs,
        .age_us = now_us - runner->last_ok_us,
        .duration_us = hangs ? now_us - runner->read_began_us : runner->last_duration_us,
        .errors = runner->errors,
    };
    snprintf(ret_status->error, sizeof(ret_status->error), "%s",
             hangs ? "does not answer within its deadline" : runner->last_error);
    pthread_mutex_unlock(&runner->lock);
}

const struct source_unit *runner_unit(const struct runner *runner)
{
    return &runner->unit;
}

static void free_batches(struct batch *batch)
{
    while (batch) {
        struct batch *next = batch->next;

        batch_done(batch);
        free(batch);
        batch = next;
    }
}

void runner_request_stop(struct runner *runner)
{
    pthread_mutex_lock(&runner->lock);
    runner->stop = true;
    pthread_cond_signal(&runner->stop_changed);
    pthread_mutex_unlock(&runner->lock);
}

void runner_stop(struct runner *runner, uint64_t wait_us)
{
    struct timespec until;

    if (!runner)
        return;
    runner_request_stop(runner);

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(wait_us % USEC_PER_SEC * 1000);
    until.tv_sec += (time_t)(wait_us / USEC_PER_SEC) + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (pthread_clockjoin_np(runner->thread, NULL, CLOCK_MONOTONIC, &until) != 0) {
        pthread_detach(runner->thread);
        return;
    }
    runner->unit.ops->close(runner->unit.state);
    free_batches(runner->queue);
    free_batches(runner->spare);
    pthread_cond_destroy(&runner->stop_changed);
    pthread_mutex_destroy(&runner->lock);
    free(runner);
}
