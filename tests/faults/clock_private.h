/* What the files of the clock share. */
#pragma once

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CLOCK_FDS_MAX = 64 };
#define CLOCK_NEVER UINT64_MAX

struct thread {
    struct thread *next;
    pthread_t id;
    void *(*run)(void *);
    void *argument;
};

/* One wait of one thread; on its stack. */
struct waiter {
    struct waiter *next;
    uint64_t deadline_ns;
    struct pollfd *fds; /* the last is wake_fd */
    size_t fd_count;    /* without it */
    pthread_cond_t *condition;
    pthread_mutex_t *mutex;
    pthread_t joined;
    bool is_join, is_due, is_ready; /* is_ready: it will go on without more time */
};

struct clock_state {
    bool is_on;
    int fd; /* to the test */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* nobody runs any more */
    uint64_t now_ns;
    int64_t real_offset_ns;
    struct thread *threads;
    size_t running; /* threads that do not wait */
    struct waiter *waiters;
};

extern struct clock_state clock_state;

/* libc's own: in these files nothing that has a wrapper is called by its name. */
#define CLOCK_LIBC(X)                                                                              \
    X(clock_gettime)                                                                               \
    X(close)                                                                                       \
    X(epoll_wait)                                                                                  \
    X(eventfd)                                                                                     \
    X(poll)                                                                                        \
    X(pthread_clockjoin_np)                                                                        \
    X(pthread_cond_broadcast)                                                                      \
    X(pthread_cond_signal)                                                                         \
    X(pthread_cond_timedwait)                                                                      \
    X(pthread_cond_wait)                                                                           \
    X(pthread_create)                                                                              \
    X(pthread_join)                                                                                \
    X(read)                                                                                        \
    X(recv)                                                                                        \
    X(send)                                                                                        \
    X(write)
struct clock_libc {
#define CLOCK_DECLARE(symbol) __typeof__(symbol) *symbol;
    CLOCK_LIBC(CLOCK_DECLARE)
};
extern struct clock_libc clock_libc;

/* False: the time is the real one. */
bool clock_is_driven(void);

static inline uint64_t clock_ns_of(const struct timespec *time)
{
    return (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec;
}
