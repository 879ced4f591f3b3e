/*
 * A client whose thread another one can stop: in a request or in a pause, it ends at once.
 *
 * Connections are closed by the thread that made them: who stops it may sit in a sandbox in which
 * that is not permitted.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/http_client.h"

struct stoppable {
    struct http_client *client; /* NULL: closed */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stop;
};

/* 0 or -ENOMEM; stoppable_done is called in any case. */
int stoppable_init(struct stoppable *stoppable);
void stoppable_done(struct stoppable *stoppable);

/* From any thread. Only the first time counts: what its thread does to take its leave, after
 * http_client_resume, is not cut short by a second. */
void stoppable_stop(struct stoppable *stoppable);

/* By its own thread. The pause is until then by the monotonic clock. */
bool stoppable_is_stopped(struct stoppable *stoppable);
void stoppable_pause(struct stoppable *stoppable, uint64_t until_us);
void stoppable_close(struct stoppable *stoppable);
