/* The calls that wait, by the clock of the test. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock_private.h"
#include "shim.h"

static _Thread_local int wake_fd = -1;

/* Under the lock. */
static uint64_t deadline_after(uint64_t ns)
{
    return ns > CLOCK_NEVER - clock_state.now_ns ? CLOCK_NEVER : clock_state.now_ns + ns;
}

/* Waiting, from the side of the waiting thread. Under the lock. */

static void begin_wait(struct waiter *waiter)
{
    waiter->next = clock_state.waiters;
    clock_state.waiters = waiter;
    if (--clock_state.running == 0)
        clock_libc.pthread_cond_signal(&clock_state.changed);
}

static void end_wait(struct waiter *waiter)
{
    struct waiter **at = &clock_state.waiters;
    uint64_t drained;

    while (*at != waiter)
        at = &(*at)->next;
    *at = waiter->next;
    clock_state.running++;
    if ((waiter->is_due || waiter->is_join) && !waiter->condition)
        (void)!clock_libc.read(wake_fd, &drained, sizeof(drained));
}

static void ensure_wake_fd(void)
{
    if (wake_fd < 0)
        wake_fd = clock_libc.eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_fd < 0)
        abort();
}

/* Until one of them is ready, or the time is over. The lock is held before and after. */
static void wait_for(struct waiter *waiter)
{
    ensure_wake_fd();
    waiter->fds[waiter->fd_count] = (struct pollfd){.fd = wake_fd, .events = POLLIN};
    begin_wait(waiter);
    pthread_mutex_unlock(&clock_state.lock);
    while (clock_libc.poll(waiter->fds, waiter->fd_count + 1, -1) < 0 && errno == EINTR)
        ;
    pthread_mutex_lock(&clock_state.lock);
    end_wait(waiter);
}

static int poll_for(struct pollfd *fds, nfds_t count, uint64_t ns)
{
    struct pollfd all[CLOCK_FDS_MAX + 1];
    int ready = clock_libc.poll(fds, count, 0);
    struct waiter waiter = {.fds = all, .fd_count = count};

    if (ready != 0 || ns == 0)
        return ready;
    if (count > CLOCK_FDS_MAX)
        abort();
    if (count > 0)
        memcpy(all, fds, count * sizeof(*fds));
    pthread_mutex_lock(&clock_state.lock);
    waiter.deadline_ns = deadline_after(ns);
    wait_for(&waiter);
    pthread_mutex_unlock(&clock_state.lock);
    return clock_libc.poll(fds, count, 0);
}

static uint64_t ns_of_ms(int timeout_ms)
{
    return timeout_ms < 0 ? CLOCK_NEVER : (uint64_t)timeout_ms * 1000000;
}

static int virtual_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    return poll_for(fds, count, ns_of_ms(timeout_ms));
}

static int virtual_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                         const sigset_t *mask)
{
    (void)mask; /* signals are read from a signalfd */
    return poll_for(fds, count, timeout ? clock_ns_of(timeout) : CLOCK_NEVER);
}

static int virtual_epoll_wait(int fd, struct epoll_event *events, int max, int timeout_ms)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    int count = clock_libc.epoll_wait(fd, events, max, 0);

    if (count != 0 || timeout_ms == 0)
        return count;
    virtual_poll(&ready, 1, timeout_ms);
    return clock_libc.epoll_wait(fd, events, max, 0);
}

static int virtual_nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)left;
    poll_for(NULL, 0, clock_ns_of(time));
    return 0;
}

/* Conditions. Those who signal hold the mutex, as all do here. */

static int wait_for_condition(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t ns)
{
    struct waiter waiter = {.deadline_ns = ns, .condition = condition, .mutex = mutex};

    pthread_mutex_lock(&clock_state.lock);
    waiter.is_due = ns <= clock_state.now_ns;
    if (!waiter.is_due) {
        begin_wait(&waiter);
        pthread_mutex_unlock(&clock_state.lock);
        clock_libc.pthread_cond_wait(condition, mutex);
        pthread_mutex_lock(&clock_state.lock);
        end_wait(&waiter);
    }
    pthread_mutex_unlock(&clock_state.lock);
    return waiter.is_due ? ETIMEDOUT : 0;
}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    if (!clock_is_driven())
        return clock_libc.pthread_cond_wait(condition, mutex);
    return wait_for_condition(condition, mutex, CLOCK_NEVER);
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                           const struct timespec *until)
{
    if (!clock_is_driven())
        return clock_libc.pthread_cond_timedwait(condition, mutex, until);
    return wait_for_condition(condition, mutex, clock_ns_of(until));
}

/* Wakes all: so it is known who goes on. */
int pthread_cond_broadcast(pthread_cond_t *condition)
{
    if (!clock_is_driven())
        return clock_libc.pthread_cond_broadcast(condition);
    pthread_mutex_lock(&clock_state.lock);
    for (struct waiter *waiter = clock_state.waiters; waiter; waiter = waiter->next)
        waiter->is_ready |= waiter->condition == condition;
    pthread_mutex_unlock(&clock_state.lock);
    return clock_libc.pthread_cond_broadcast(condition);
}

int pthread_cond_signal(pthread_cond_t *condition)
{
    if (!clock_is_driven())
        return clock_libc.pthread_cond_signal(condition);
    return pthread_cond_broadcast(condition);
}

/* Threads. */

static void *run_thread(void *argument)
{
    struct thread *thread = argument, **at = &clock_state.threads;
    void *result;

    shim_is_program = true;
    result = thread->run(thread->argument);

    pthread_mutex_lock(&clock_state.lock);
    while (*at != thread)
        at = &(*at)->next;
    *at = thread->next;
    for (struct waiter *waiter = clock_state.waiters; waiter; waiter = waiter->next)
        if (waiter->is_join && pthread_equal(waiter->joined, pthread_self())) {
            waiter->is_ready = true;
            (void)!clock_libc.write(waiter->fds[0].fd, &(uint64_t){1}, sizeof(uint64_t));
        }
    if (--clock_state.running == 0)
        clock_libc.pthread_cond_signal(&clock_state.changed);
    pthread_mutex_unlock(&clock_state.lock);
    if (wake_fd >= 0)
        clock_libc.close(wake_fd);
    free(thread);
    return result;
}

static int virtual_pthread_create(pthread_t *ret_id, const pthread_attr_t *attributes,
                                  void *(*run)(void *), void *argument)
{
    struct thread *thread = malloc(sizeof(*thread));
    int r;

    if (!thread)
        return EAGAIN;
    *thread = (struct thread){.run = run, .argument = argument};
    pthread_mutex_lock(&clock_state.lock); /* it cannot end before it is in the list */
    r = clock_libc.pthread_create(&thread->id, attributes, run_thread, thread);
    if (r == 0) {
        *ret_id = thread->id;
        thread->next = clock_state.threads;
        clock_state.threads = thread;
        clock_state.running++;
    } else {
        free(thread);
    }
    pthread_mutex_unlock(&clock_state.lock);
    return r;
}

/* Under the lock. */
static bool has_ended(pthread_t id)
{
    for (const struct thread *thread = clock_state.threads; thread; thread = thread->next)
        if (pthread_equal(thread->id, id))
            return false;
    return true;
}

static int join_until(pthread_t id, void **ret_result, uint64_t deadline_ns)
{
    struct pollfd fds[1];
    struct waiter waiter = {.deadline_ns = deadline_ns, .fds = fds, .is_join = true, .joined = id};
    bool is_over;

    pthread_mutex_lock(&clock_state.lock);
    if (!has_ended(id) && deadline_ns > clock_state.now_ns)
        wait_for(&waiter);
    is_over = has_ended(id);
    pthread_mutex_unlock(&clock_state.lock);
    return is_over ? clock_libc.pthread_join(id, ret_result) : ETIMEDOUT;
}

int pthread_join(pthread_t id, void **ret_result)
{
    if (!clock_is_driven())
        return clock_libc.pthread_join(id, ret_result);
    return join_until(id, ret_result, CLOCK_NEVER);
}

int pthread_clockjoin_np(pthread_t id, void **ret_result, clockid_t clock,
                         const struct timespec *until)
{
    if (!clock_is_driven())
        return clock_libc.pthread_clockjoin_np(id, ret_result, clock, until);
    return join_until(id, ret_result, clock_ns_of(until));
}

void *clock_replacement(const char *symbol)
{
    static const struct {
        const char *symbol;
        void *function;
    } replaced[] = {
        {"__poll_chk", virtual_poll},
        {"__ppoll_chk", virtual_ppoll},
        {"epoll_wait", virtual_epoll_wait},
        {"nanosleep", virtual_nanosleep},
        {"poll", virtual_poll},
        {"ppoll", virtual_ppoll},
        {"pthread_create", virtual_pthread_create},
    };

    if (!getenv("FAULT_CLOCK"))
        return NULL;
    for (size_t i = 0; i < sizeof(replaced) / sizeof(replaced[0]); i++)
        if (strcmp(symbol, replaced[i].symbol) == 0)
            return replaced[i].function;
    return NULL;
}
