#include "client/stoppable.h"

#include <errno.h>
#include <time.h>

#include "core/lock.h"
#include "core/macros.h"

int stoppable_init(struct stoppable *stoppable)
{
    pthread_condattr_t attributes;

    *stoppable = (struct stoppable){0};
    pthread_mutex_init(&stoppable->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&stoppable->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    return http_client_new(&stoppable->client);
}

void stoppable_done(struct stoppable *stoppable)
{
    http_client_free(stoppable->client);
    pthread_cond_destroy(&stoppable->wake);
    pthread_mutex_destroy(&stoppable->lock);
}

void stoppable_stop(struct stoppable *stoppable)
{
    HOLD_LOCK(&stoppable->lock);

    if (!stoppable->stop && stoppable->client)
        http_client_cancel(stoppable->client);
    stoppable->stop = true;
    pthread_cond_signal(&stoppable->wake);
}

bool stoppable_is_stopped(struct stoppable *stoppable)
{
    HOLD_LOCK(&stoppable->lock);

    return stoppable->stop;
}

void stoppable_pause(struct stoppable *stoppable, uint64_t until_us)
{
    HOLD_LOCK(&stoppable->lock);
    struct timespec until = {.tv_sec = (time_t)(until_us / USEC_PER_SEC),
                             .tv_nsec = (long)(until_us % USEC_PER_SEC) * 1000};
    int r = 0;

    while (!stoppable->stop && r != ETIMEDOUT)
        r = pthread_cond_timedwait(&stoppable->wake, &stoppable->lock, &until);
}

void stoppable_close(struct stoppable *stoppable)
{
    struct http_client *client;

    pthread_mutex_lock(&stoppable->lock);
    client = TAKE_PTR(stoppable->client);
    pthread_mutex_unlock(&stoppable->lock);
    http_client_free(client);
}
