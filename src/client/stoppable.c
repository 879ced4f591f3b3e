#include "client/stoppable.h"

#include "core/lock.h"

int stoppable_init(struct stoppable *stoppable)
{
    *stoppable = (struct stoppable){0};
    pthread_mutex_init(&stoppable->lock, NULL);
    lock_condition_init(&stoppable->wake);
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

    while (!stoppable->stop && lock_wait_until(&stoppable->wake, &stoppable->lock, until_us))
        ;
}

void stoppable_close(struct stoppable *stoppable)
{
    struct http_client *client;

    pthread_mutex_lock(&stoppable->lock);
    client = TAKE_PTR(stoppable->client);
    pthread_mutex_unlock(&stoppable->lock);
    http_client_free(client);
}
