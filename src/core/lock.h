/* Mutexes held to the end of a block, and waiting by the monotonic clock. */
#pragma once

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct lock_hold {
    pthread_mutex_t *mutex;
};

static inline struct lock_hold lock_take(pthread_mutex_t *mutex)
{
    pthread_mutex_lock(mutex);
    return (struct lock_hold){mutex};
}

static inline void lock_release(const struct lock_hold *hold)
{
    pthread_mutex_unlock(hold->mutex);
}

/* A declaration: those after it are initialised under the lock. */
#define HOLD_LOCK(mutex)                                                                           \
    __attribute__((cleanup(lock_release), unused)) struct lock_hold lock_hold_ = lock_take(mutex)

/* A condition for lock_wait_until. */
static inline void lock_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* As pthread_cond_timedwait, with a monotonic time; UINT64_MAX: for ever. False: it timed out. */
static inline bool lock_wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                   uint64_t until_us)
{
    struct timespec until = {.tv_sec = (time_t)(until_us / 1000000),
                             .tv_nsec = (long)(until_us % 1000000) * 1000};

    if (until_us == UINT64_MAX)
        return pthread_cond_wait(condition, mutex) == 0;
    return pthread_cond_timedwait(condition, mutex, &until) != ETIMEDOUT;
}
