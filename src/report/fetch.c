#include "report/fetch.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/array.h"
#include "core/macros.h"

enum {
    ATTEMPTS = 6,
    POINTS_MAX = 10000, /* of a series: servers refuse more than 11,000 */
    AHEAD = 2,          /* tasks that are read ahead, for each thread */
};

/* The answers of a task, in order. */
struct fetched {
    struct answer **answers;
    size_t count, capacity;
    int result;
    struct error err;
    bool is_done;
};

struct fetcher {
    const struct server *server;
    const struct fetch_task *tasks;
    size_t count;
    const struct fetch_consumer *consumer;

    pthread_mutex_t lock; /* over the rest */
    pthread_cond_t changed;
    struct fetched *fetched;
    size_t next, consumed, ahead;
    int64_t points_max[FETCH_KINDS_MAX]; /* that the server did not refuse */
    struct fetch_progress *progress;
    struct server_connection *connections[FETCH_PARALLEL_MAX];
    bool is_stopped;
};

static uint64_t usual_pause_us(unsigned attempt)
{
    return (USEC_PER_SEC / 2) << MIN(attempt, 5U);
}

/* False: it was stopped meanwhile. */
static bool pause_thread(struct fetcher *f, unsigned attempt)
{
    uint64_t us = f->consumer->pause_us ? f->consumer->pause_us(attempt) : usual_pause_us(attempt);
    struct timespec until;
    bool is_stopped;

    clock_gettime(CLOCK_REALTIME, &until);
    us += (uint64_t)until.tv_nsec / 1000;
    until.tv_sec += (time_t)(us / USEC_PER_SEC);
    until.tv_nsec = (long)(us % USEC_PER_SEC * 1000);
    pthread_mutex_lock(&f->lock);
    while (!f->is_stopped && pthread_cond_timedwait(&f->changed, &f->lock, &until) == 0)
        ;
    is_stopped = f->is_stopped;
    pthread_mutex_unlock(&f->lock);
    return !is_stopped;
}

/* How many points of the task to ask for from here on. */
static int64_t points_at_once(struct fetcher *f, const struct fetch_task *task, int64_t from_s)
{
    int64_t left = (task->to_s - from_s) / task->step_s + 1, points;

    pthread_mutex_lock(&f->lock);
    points = MIN(left, f->points_max[task->kind % FETCH_KINDS_MAX]);
    pthread_mutex_unlock(&f->lock);
    return points;
}

static void shrink(struct fetcher *f, const struct fetch_task *task, int64_t refused)
{
    int64_t *most = &f->points_max[task->kind % FETCH_KINDS_MAX];

    pthread_mutex_lock(&f->lock);
    *most = MIN(*most, MAX(refused / 2, (int64_t)1));
    f->progress->refusals++;
    pthread_mutex_unlock(&f->lock);
}

static int keep_answer(struct fetcher *f, struct fetched *fetched, struct answer *answer,
                       bool was_kept, struct error *err)
{
    if (!array_reserve(&fetched->answers, &fetched->capacity, fetched->count, sizeof(void *))) {
        answer_free(answer);
        return error_set(err, -ENOMEM, "out of memory");
    }
    fetched->answers[fetched->count++] = answer;
    pthread_mutex_lock(&f->lock);
    f->progress->samples += answer->sample_count;
    f->progress->requests += !was_kept;
    f->progress->kept += was_kept;
    pthread_mutex_unlock(&f->lock);
    return 0;
}

/* What is not there was named wrongly, unless it has answered before. */
static bool may_work_later(struct fetcher *f, int r)
{
    bool has_answered;

    pthread_mutex_lock(&f->lock);
    has_answered = f->progress->requests > 0;
    pthread_mutex_unlock(&f->lock);
    return r == -EAGAIN || r == -E2BIG || (r == -ECONNREFUSED && has_answered);
}

static int fetch_task(struct fetcher *f, struct server_connection *connection,
                      const struct fetch_task *task, struct fetched *fetched, struct error *err)
{
    int64_t from_s = task->from_s;
    unsigned attempt = 0;

    while (from_s <= task->to_s) {
        int64_t points = points_at_once(f, task, from_s);
        struct server_query query = {task->text, from_s, from_s + (points - 1) * task->step_s,
                                     task->step_s};
        struct answer *answer = NULL;
        bool was_kept;
        int r = server_ask(connection, &query, &answer, &was_kept, err);

        if (r == 0) {
            answer_settle(answer, (double)query.from_s, (double)query.to_s);
            r = keep_answer(f, fetched, answer, was_kept, err);
            from_s = query.to_s + task->step_s;
            attempt = 0;
        } else if (r == -E2BIG && points > 1) {
            shrink(f, task, points);
            r = pause_thread(f, 0) ? 0 : -ECANCELED;
        } else if (may_work_later(f, r) && ++attempt < ATTEMPTS) {
            pthread_mutex_lock(&f->lock);
            f->progress->retries++;
            pthread_mutex_unlock(&f->lock);
            r = pause_thread(f, attempt) ? 0 : -ECANCELED;
        }
        if (r < 0)
            return r;
    }
    return 0;
}

struct worker {
    struct fetcher *fetcher;
    struct server_connection *connection;
    pthread_t thread;
};

static void *work(void *context)
{
    struct worker *worker = context;
    struct fetcher *f = worker->fetcher;

    pthread_mutex_lock(&f->lock);
    while (!f->is_stopped && f->next < f->count) {
        struct fetched fetched = {0};
        size_t index;

        if (f->next >= f->consumed + f->ahead) {
            pthread_cond_wait(&f->changed, &f->lock);
            continue;
        }
        index = f->next++;
        pthread_mutex_unlock(&f->lock);
        fetched.result =
            fetch_task(f, worker->connection, &f->tasks[index], &fetched, &fetched.err);
        fetched.is_done = true;
        pthread_mutex_lock(&f->lock);
        f->fetched[index] = fetched;
        pthread_cond_broadcast(&f->changed);
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

static void fetched_done(struct fetched *fetched)
{
    for (size_t i = 0; i < fetched->count; i++)
        answer_free(fetched->answers[i]);
    free(fetched->answers);
    *fetched = (struct fetched){0};
}

static int take_task(struct fetcher *f, size_t index, struct error *err)
{
    const struct fetch_consumer *consumer = f->consumer;
    struct fetch_progress progress;
    struct fetched fetched;
    int r;

    pthread_mutex_lock(&f->lock);
    while (!f->fetched[index].is_done)
        pthread_cond_wait(&f->changed, &f->lock);
    fetched = f->fetched[index];
    f->fetched[index] = (struct fetched){0};
    f->consumed = index + 1;
    f->progress->done++;
    progress = *f->progress;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    r = fetched.result;
    if (r < 0)
        *err = fetched.err;
    for (size_t i = 0; i < fetched.count && r == 0; i++) {
        r = consumer->take(consumer->context, &f->tasks[index], fetched.answers[i]);
        if (r < 0)
            error_format(err, "%s", r == -ENOMEM ? "out of memory" : "the answer is too large");
    }
    fetched_done(&fetched);
    if (r == 0 && consumer->show && !consumer->show(consumer->context, &progress))
        r = error_set(err, -ECANCELED, "interrupted");
    return r;
}

static void stop(struct fetcher *f)
{
    pthread_mutex_lock(&f->lock);
    f->is_stopped = true;
    for (size_t i = 0; i < ARRAY_SIZE(f->connections); i++)
        if (f->connections[i])
            server_cancel(f->connections[i]);
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

static int run_workers(struct fetcher *f, unsigned parallel, struct error *err)
{
    struct worker workers[FETCH_PARALLEL_MAX] = {{0}};
    size_t started = 0;
    int r = 0;

    for (size_t i = 0; i < parallel && r == 0; i++) {
        workers[i].fetcher = f;
        r = server_connect(f->server, &workers[i].connection, err);
        if (r < 0)
            break;
        f->connections[i] = workers[i].connection;
        r = -pthread_create(&workers[i].thread, NULL, work, &workers[i]);
        if (r < 0)
            error_format(err, "cannot start a thread: %s", strerror(-r));
        else
            started++;
    }
    for (size_t i = 0; i < f->count && r == 0; i++)
        r = take_task(f, i, err);
    stop(f);
    for (size_t i = 0; i < started; i++)
        pthread_join(workers[i].thread, NULL);
    for (size_t i = 0; i < parallel; i++) {
        f->progress->unkept += server_unkept(workers[i].connection);
        server_disconnect(workers[i].connection);
    }
    return r;
}

int fetch_all(const struct server *server, const struct fetch_task *tasks, size_t count,
              unsigned parallel, const struct fetch_consumer *consumer,
              struct fetch_progress *progress, struct error *err)
{
    struct fetcher f = {.server = server,
                        .tasks = tasks,
                        .count = count,
                        .consumer = consumer,
                        .progress = progress};
    int r;

    parallel = MIN(MAX(parallel, 1U), (unsigned)FETCH_PARALLEL_MAX);
    f.ahead = (size_t)parallel * AHEAD;
    for (size_t i = 0; i < FETCH_KINDS_MAX; i++)
        f.points_max[i] = POINTS_MAX;
    f.fetched = calloc(MAX(count, (size_t)1), sizeof(*f.fetched));
    if (!f.fetched)
        return error_set(err, -ENOMEM, "out of memory");
    pthread_mutex_init(&f.lock, NULL);
    pthread_cond_init(&f.changed, NULL);
    r = run_workers(&f, parallel, err);
    for (size_t i = 0; i < count; i++)
        fetched_done(&f.fetched[i]);
    free(f.fetched);
    pthread_cond_destroy(&f.changed);
    pthread_mutex_destroy(&f.lock);
    return r;
}
