/*
 * A clock that stands still until the test moves it.
 *
 * Every thread that waits, for descriptors, a condition, another thread or just for time, says so
 * here first. When all of them wait, and nothing that they wait for has happened, the time jumps to
 * the next deadline, but never past the time that the test has allowed. A week takes as long as the
 * work in it.
 *
 * The test sends struct clock_request over the socket FAULT_CLOCK and gets the monotonic time back
 * when that is reached and all is quiet. Between two requests the program still answers what comes
 * in: only its time stands still. A thread that blocks in anything else stops the clock, and
 * with it the test: a hang is found.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "clock_private.h"
#include "shim.h"

struct clock_request {
    uint64_t until_ns; /* monotonic */
    int64_t step_ns;   /* added to the real time at once: the clock is set, or the machine slept */
};

struct clock_state clock_state = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                  .changed = PTHREAD_COND_INITIALIZER};
struct clock_libc clock_libc;

bool clock_is_driven(void)
{
#define FIND(symbol) clock_libc.symbol = shim_next(#symbol);
    if (!clock_libc.write) {
        CLOCK_LIBC(FIND)
    }
    return clock_state.is_on;
}

static struct timespec timespec_of(uint64_t ns)
{
    return (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
}

int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
    uint64_t ns;

    if (!clock_is_driven() || clock == CLOCK_THREAD_CPUTIME_ID || clock == CLOCK_PROCESS_CPUTIME_ID)
        return clock_libc.clock_gettime(clock, ret_time);
    pthread_mutex_lock(&clock_state.lock);
    ns = clock_state.now_ns;
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
        ns += (uint64_t)clock_state.real_offset_ns;
    pthread_mutex_unlock(&clock_state.lock);
    *ret_time = timespec_of(ns);
    return 0;
}

time_t time(time_t *ret_time)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if (ret_time)
        *ret_time = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict ret_time, void *restrict zone)
{
    struct timespec now;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    *ret_time = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

/* The thread that moves the time. */

/* Under the lock. */
static bool is_ready(const struct waiter *waiter)
{
    struct pollfd fds[CLOCK_FDS_MAX];

    if (waiter->is_ready || waiter->is_due)
        return true;
    if (waiter->fd_count > 0)
        memcpy(fds, waiter->fds, waiter->fd_count * sizeof(*fds));
    return waiter->fd_count > 0 && clock_libc.poll(fds, waiter->fd_count, 0) != 0;
}

/* Under the lock: until all wait, for nothing but time. Returns the next deadline. */
static uint64_t wait_for_quiet(void)
{
    for (;;) {
        uint64_t deadline_ns = CLOCK_NEVER;
        bool is_quiet = clock_state.running == 0;

        for (struct waiter *waiter = clock_state.waiters; is_quiet && waiter;
             waiter = waiter->next) {
            is_quiet = !is_ready(waiter);
            if (waiter->deadline_ns < deadline_ns)
                deadline_ns = waiter->deadline_ns;
        }
        if (is_quiet)
            return deadline_ns;
        /* One that is ready goes on, and waits again. */
        clock_libc.pthread_cond_wait(&clock_state.changed, &clock_state.lock);
    }
}

/* The first whose time has come, if any. */
static struct waiter *find_due(void)
{
    for (struct waiter *waiter = clock_state.waiters; waiter; waiter = waiter->next)
        if (!waiter->is_due && waiter->deadline_ns <= clock_state.now_ns)
            return waiter;
    return NULL;
}

/* The lock is held before and after. Nobody else runs but those who were woken here. */
static void wake_due(void)
{
    struct waiter *waiter;

    while ((waiter = find_due())) {
        pthread_cond_t *condition = waiter->condition;
        pthread_mutex_t *mutex = waiter->mutex;

        waiter->is_due = true;
        if (!condition) {
            (void)!clock_libc.write(waiter->fds[waiter->fd_count].fd, &(uint64_t){1},
                                    sizeof(uint64_t));
            continue;
        }
        for (struct waiter *other = clock_state.waiters; other; other = other->next)
            other->is_ready |= other->condition == condition;
        pthread_mutex_unlock(&clock_state.lock); /* who waits takes the two in the other order */
        pthread_mutex_lock(mutex);
        clock_libc.pthread_cond_broadcast(condition);
        pthread_mutex_unlock(mutex);
        pthread_mutex_lock(&clock_state.lock);
    }
}

static void *conduct(void *argument)
{
    struct clock_request request;

    (void)argument;
    while (clock_libc.recv(clock_state.fd, &request, sizeof(request), 0) == sizeof(request)) {
        uint64_t deadline_ns, now_ns;

        pthread_mutex_lock(&clock_state.lock);
        deadline_ns = wait_for_quiet();
        clock_state.real_offset_ns += request.step_ns;
        while (clock_state.now_ns < request.until_ns) {
            clock_state.now_ns = deadline_ns < request.until_ns ? deadline_ns : request.until_ns;
            wake_due();
            deadline_ns = wait_for_quiet();
        }
        now_ns = clock_state.now_ns;
        pthread_mutex_unlock(&clock_state.lock);
        (void)!clock_libc.send(clock_state.fd, &now_ns, sizeof(now_ns), MSG_NOSIGNAL);
    }
    _exit(EXIT_FAILURE); /* the test is gone, and without it no time passes */
}

void clock_start(void)
{
    const char *fd = getenv("FAULT_CLOCK");
    struct timespec real, monotonic;
    pthread_t conductor;
    sigset_t all, before;

    if (clock_is_driven() || !fd)
        return;
    clock_libc.clock_gettime(CLOCK_REALTIME, &real);
    clock_libc.clock_gettime(CLOCK_MONOTONIC, &monotonic);
    clock_state.fd = atoi(fd);
    clock_state.now_ns = clock_ns_of(&monotonic);
    clock_state.real_offset_ns = (int64_t)(clock_ns_of(&real) - clock_ns_of(&monotonic));
    clock_state.running = 1;
    clock_state.is_on = true;
    /* The program has not blocked its signals yet; they are not for this thread. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (clock_libc.pthread_create(&conductor, NULL, conduct, NULL) != 0)
        abort();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}
