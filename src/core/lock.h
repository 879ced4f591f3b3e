/* A mutex that is held to the end of a block, whichever way it is left. */
#pragma once

#include <pthread.h>

static inline pthread_mutex_t *lock_take(pthread_mutex_t *mutex)
{
    pthread_mutex_lock(mutex);
    return mutex;
}

static inline void lock_release(pthread_mutex_t **mutex)
{
    pthread_mutex_unlock(*mutex);
}

/* A declaration: what is declared after it is read under the lock. */
#define HOLD_LOCK(mutex)                                                                           \
    __attribute__((cleanup(lock_release), unused)) pthread_mutex_t *held_lock_ = lock_take(mutex)
