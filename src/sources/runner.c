#include "sources/runner.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "core/macros.h"
#include "core/rate_limit.h"

/* If the owner leaves so many batches, reading pauses: memory stays bounded. */
enum { QUEUE_MAX = 64 };

/* The share of a CPU that `attend` may use: tenants can cause any number of events. Each call is
 * charged the wake-up, too. */
enum { ATTEND_PERCENT = 2, ATTEND_BURST_US = 100000, WAKE_UP_US = 10 };

struct runner {
    struct source_unit unit;
    const struct clock *clock;
    uint64_t deadline_us;
    int wake_fd;
    int request_fd; /* an eventfd, readable once the thread should end or read */
    atomic_bool is_to_end;
    pthread_t thread;

    bool is_requested; /* the next read */
    int event_fd;      /* the source's; -1: none */
    uint64_t attend_us;
    struct allowance allowance;

    pthread_mutex_t lock;              /* of everything below */
    struct batch *queue, **queue_tail; /* oldest first */
    size_t queued;
    struct batch *spare; /* used batches, so that a steady state allocates nothing */
    bool reading;
    uint64_t read_began_us, last_ok_us;
    bool is_detached;            /* the thread owns the runner */
    struct runner_status status; /* of the last read */
};

static uint64_t clock_us(const struct runner *runner)
{
    return runner->clock->monotonic_us(runner->clock);
}

static struct batch *obtain_batch(struct runner *runner)
{
    struct batch *batch;

    pthread_mutex_lock(&runner->lock);
    batch = runner->queued < QUEUE_MAX ? runner->spare : NULL;
    if (batch)
        runner->spare = batch->next;
    else if (runner->queued < QUEUE_MAX && (batch = malloc(sizeof(*batch))))
        batch_init(batch);
    runner->reading = batch != NULL;
    runner->read_began_us = clock_us(runner);
    pthread_mutex_unlock(&runner->lock);
    return batch;
}

/* Fails only when the counter is full, and then the reader is awake anyway. */
static void eventfd_signal(int fd)
{
    static const uint64_t one = 1;

    (void)!write(fd, &one, sizeof(one));
}

static void keep_result(struct runner *runner, struct batch *batch, int result,
                        const struct error *err)
{
    struct runner_status *status = &runner->status;
    uint64_t now_us;
    bool has_owner;

    pthread_mutex_lock(&runner->lock);
    now_us = clock_us(runner);
    runner->reading = false;
    status->duration_us = now_us - runner->read_began_us;
    status->up = result >= 0;
    status->gone = result == -ENODEV;
    status->known |= !status->gone;
    status->errors += result < 0;
    status->reads++;
    snprintf(status->error, sizeof(status->error), "%.255s", result < 0 ? err->text : "");
    if (result >= 0)
        runner->last_ok_us = now_us;
    batch->next = NULL;
    *runner->queue_tail = batch;
    runner->queue_tail = &batch->next;
    runner->queued++;
    has_owner = !runner->is_detached;
    pthread_mutex_unlock(&runner->lock);
    if (has_owner)
        eventfd_signal(runner->wake_fd);
}

/* Waiting uses the system's time, whatever the clock. */

static uint64_t real_us(void)
{
    return clock_system.monotonic_us(&clock_system);
}

static uint64_t cpu_us(void)
{
    struct timespec used;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * USEC_PER_SEC + (uint64_t)used.tv_nsec / 1000;
}

/* Counts as a read: if it blocks for longer than the deadline, the source is down. */
static void attend(struct runner *runner)
{
    uint64_t began_us = cpu_us(), wanted_us;

    pthread_mutex_lock(&runner->lock);
    runner->reading = true;
    runner->read_began_us = clock_us(runner);
    pthread_mutex_unlock(&runner->lock);
    wanted_us = runner->unit.ops->attend(runner->unit.state);
    pthread_mutex_lock(&runner->lock);
    runner->reading = false;
    pthread_mutex_unlock(&runner->lock);
    runner->attend_us = wanted_us == SOURCE_NEVER ? SOURCE_NEVER : real_us() + wanted_us;
    allowance_use(&runner->allowance, cpu_us() - began_us + WAKE_UP_US, real_us());
}

/* Sleeps until then, or until an event of the source. False: there is a request. */
static bool sleep_until(const struct runner *runner, uint64_t until_us, int event_fd,
                        bool *ret_event)
{
    struct pollfd fds[] = {{.fd = runner->request_fd, .events = POLLIN},
                           {.fd = event_fd, .events = POLLIN}};
    uint64_t now_us = real_us(), left_us = until_us - MIN(until_us, now_us);
    struct timespec left = {.tv_sec = (time_t)(left_us / USEC_PER_SEC),
                            .tv_nsec = (long)(left_us % USEC_PER_SEC * 1000)};
    bool is_ready = ppoll(fds, ARRAY_SIZE(fds), &left, NULL) > 0;

    *ret_event = is_ready && fds[1].revents;
    return !is_ready || !fds[0].revents;
}

/* Sleeps until the next multiple of the interval, or until a read is requested, and attends to the
 * source meanwhile. False: the thread should end. */
static bool wait_for_next(struct runner *runner, uint64_t *due_us)
{
    /* After a hang, go on from now instead of catching up on every missed read. */
    *due_us = MAX(*due_us + runner->unit.interval_us, real_us());
    if (runner->unit.ops->attend)
        runner->attend_us = 0;
    do {
        uint64_t free_us = allowance_next_us(&runner->allowance);
        bool may_attend = free_us <= real_us(), has_event;
        uint64_t next_us = may_attend ? runner->attend_us : free_us, requests;

        if (!sleep_until(runner, MIN(*due_us, next_us), may_attend ? runner->event_fd : -1,
                         &has_event)) {
            (void)!read(runner->request_fd, &requests, sizeof(requests));
            runner->is_requested = true;
            *due_us = real_us();
            return !atomic_load(&runner->is_to_end);
        }
        if (may_attend && (has_event || runner->attend_us <= real_us()))
            attend(runner);
    } while (real_us() < *due_us);
    return true;
}

static void read_until_stopped(struct runner *runner)
{
    uint64_t due_us = real_us();

    do {
        struct batch *batch = obtain_batch(runner);
        struct error err = {""};
        int r;

        if (!batch)
            continue;
        batch->is_requested = runner->is_requested;
        runner->is_requested = false;
        r = runner->unit.ops->read(runner->unit.state, batch, &err);
        keep_result(runner, batch, r, &err);
        if (r == -ENODEV)
            break;
        if (r > 0)
            due_us = real_us();
    } while (wait_for_next(runner, &due_us));
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

static void free_runner(struct runner *runner)
{
    runner->unit.ops->close(runner->unit.state);
    free_batches(runner->queue);
    free_batches(runner->spare);
    cleanup_close(&runner->request_fd);
    pthread_mutex_destroy(&runner->lock);
    free(runner);
}

static void *run(void *arg)
{
    struct runner *runner = arg;
    bool is_detached;

    read_until_stopped(runner);
    pthread_mutex_lock(&runner->lock);
    runner->status.has_ended = true;
    is_detached = runner->is_detached;
    if (!is_detached)
        eventfd_signal(runner->wake_fd); /* under the lock: once detached, the fd may be closed */
    pthread_mutex_unlock(&runner->lock);
    if (is_detached)
        free_runner(runner);
    return NULL;
}

int runner_start(const struct source_unit *unit, const struct clock *clock, uint64_t deadline_us,
                 int wake_fd, struct runner **ret_runner)
{
    struct runner *runner = calloc(1, sizeof(*runner));
    const struct source_ops *ops = unit->ops;
    int r;

    if (!runner)
        return -ENOMEM;
    *runner = (struct runner){
        .unit = *unit,
        .clock = clock,
        .deadline_us = deadline_us,
        .wake_fd = wake_fd,
        .request_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
        .event_fd = ops->event_fd ? ops->event_fd(unit->state) : -1,
        .attend_us = SOURCE_NEVER,
        .allowance = {.percent = ATTEND_PERCENT, .burst_us = ATTEND_BURST_US},
        .last_ok_us = clock->monotonic_us(clock),
        .status.up = true,
    };
    runner->queue_tail = &runner->queue;
    pthread_mutex_init(&runner->lock, NULL);
    r = runner->request_fd >= 0 ? -pthread_create(&runner->thread, NULL, run, runner) : -errno;
    if (r < 0) {
        cleanup_close(&runner->request_fd);
        free(runner);
        return r;
    }
    *ret_runner = runner;
    return 0;
}

struct batch *runner_next_batch(struct runner *runner)
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

void runner_recycle(struct runner *runner, struct batch *batch)
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

    pthread_mutex_lock(&runner->lock);
    /* Under the lock: a read that begins or ends meanwhile must not be later than now. */
    now_us = clock_us(runner);
    *ret_status = runner->status;
    ret_status->age_us = now_us - runner->last_ok_us;
    if (runner->reading && now_us - runner->read_began_us > runner->deadline_us) {
        ret_status->known = true;
        ret_status->up = false;
        ret_status->duration_us = now_us - runner->read_began_us;
        snprintf(ret_status->error, sizeof(ret_status->error),
                 "does not answer within its deadline");
    }
    pthread_mutex_unlock(&runner->lock);
}

const struct source_unit *runner_unit(const struct runner *runner)
{
    return &runner->unit;
}

uint64_t runner_request_read(struct runner *runner)
{
    uint64_t number;

    pthread_mutex_lock(&runner->lock);
    /* The one in progress may have begun before what is to be read. */
    number = runner->status.reads + 1 + runner->reading;
    pthread_mutex_unlock(&runner->lock);
    eventfd_signal(runner->request_fd);
    return number;
}

void runner_request_stop(struct runner *runner)
{
    atomic_store(&runner->is_to_end, true);
    eventfd_signal(runner->request_fd);
}

bool runner_stop(struct runner *runner, uint64_t wait_us)
{
    struct timespec until;
    bool has_ended;

    if (!runner)
        return true;
    runner_request_stop(runner);

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(wait_us % USEC_PER_SEC * 1000);
    until.tv_sec += (time_t)(wait_us / USEC_PER_SEC) + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (pthread_clockjoin_np(runner->thread, NULL, CLOCK_MONOTONIC, &until) != 0) {
        pthread_mutex_lock(&runner->lock);
        has_ended = runner->status.has_ended;
        runner->is_detached = !has_ended;
        if (!has_ended)
            pthread_detach(runner->thread);
        pthread_mutex_unlock(&runner->lock);
        if (!has_ended)
            return false;
        pthread_join(runner->thread, NULL);
    }
    free_runner(runner);
    return true;
}
