#include "identity/process_events.h"

#include <errno.h>
#include <linux/netlink.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/lock.h"
#include "core/macros.h"
#include "core/rate_limit.h"
#include "host/proc.h"
#include "identity/process/connector.h"
#include "identity/process/recent.h"

enum {
    KEEP_SECONDS = 10,
    ARENA_CAP_BYTES = 1 << 20,

    /*
     * Events gather this long before their processes are read: a CUDA context exists 200 ms after
     * its process started at the earliest (cuInit and cuCtxCreate take 100 ms each on an H200 with
     * driver 580). So a fork and its exec are read once, most commands of a shell not at all, and
     * there are at most fifty wake-ups a second.
     */
    GATHER_MS = 20,
    GATHERED_MAX = 512, /* processes */

    READ_INTERVAL_US = 10000, /* a read takes 50 to 80 us: below a hundredth of a core */
    READS_BURST_US = 399 * READ_INTERVAL_US, /* 400 at once */

    /* Consecutive rounds that could not read everything: a second of them is a flood, and
     * listening pauses. */
    FLOOD_ROUNDS = 1000 / GATHER_MS,
    PAUSE_MS = 5000,

    MESSAGES_AT_ONCE = 32,
    RECEIVES_MAX = 64, /* in one round */
};

struct process_events {
    struct proc_reader proc;
    const struct clock *clock;
    int socket_fd;
    int stop_fd; /* an eventfd */
    pthread_t thread;
    struct allowance reads;
    unsigned flood_rounds;
    uint32_t pids[GATHERED_MAX]; /* this round's */
    size_t pid_count;
    struct arena arena; /* for one process */
    atomic_uint_least64_t lost;

    pthread_mutex_t lock; /* for what is below */
    struct recent_processes recent;
};

static void read_process(struct process_events *events, uint64_t now_us, uint32_t pid)
{
    struct sample_process process;

    if (proc_identify(&events->proc, pid, &events->arena, &process) == 0) {
        HOLD_LOCK(&events->lock);

        (void)recent_processes_add(&events->recent, now_us, &process);
    }
    arena_reset(&events->arena);
}

static int ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* Returns how many were lost. */
static uint64_t read_gathered(struct process_events *events)
{
    uint64_t now_us = events->clock->monotonic_us(events->clock), lost = 0;

    qsort(events->pids, events->pid_count, sizeof(events->pids[0]), ascending);
    for (size_t i = 0; i < events->pid_count; i++) {
        if (i > 0 && events->pids[i] == events->pids[i - 1])
            continue;
        if (allowance_take(&events->reads, READ_INTERVAL_US, now_us))
            read_process(events, now_us, events->pids[i]);
        else
            lost++;
    }
    events->pid_count = 0;
    return lost;
}

/* Returns how many were lost: one or none. */
static uint64_t gather_event(struct process_events *events, struct span message,
                             const struct sockaddr_nl *from)
{
    struct process_event event;

    if (from->nl_pid != 0 || process_event_parse(message, &event) < 0 ||
        (event.kind != PROCESS_EVENT_FORK && event.kind != PROCESS_EVENT_EXEC))
        return 0;
    if (events->pid_count == GATHERED_MAX)
        return 1;
    events->pids[events->pid_count++] = event.pid;
    return 0;
}

/* Receives what is queued, up to a bound. Returns how many were lost. */
static uint64_t receive_events(struct process_events *events)
{
    char bytes[MESSAGES_AT_ONCE][PROCESS_CONNECTOR_BYTES];
    struct sockaddr_nl from[MESSAGES_AT_ONCE];
    struct iovec pieces[MESSAGES_AT_ONCE];
    struct mmsghdr messages[MESSAGES_AT_ONCE];
    uint64_t lost = 0;
    int received = MESSAGES_AT_ONCE;

    for (int round = 0; round < RECEIVES_MAX && received != 0; round++) {
        for (size_t i = 0; i < MESSAGES_AT_ONCE; i++) {
            pieces[i] = (struct iovec){&bytes[i], sizeof(bytes[i])};
            messages[i].msg_hdr = (struct msghdr){
                .msg_name = &from[i],
                .msg_namelen = sizeof(from[i]),
                .msg_iov = &pieces[i],
                .msg_iovlen = 1,
            };
        }
        received = recvmmsg(events->socket_fd, messages, MESSAGES_AT_ONCE, MSG_DONTWAIT, NULL);
        if (received < 0 && errno == ENOBUFS)
            lost++;
        else if (received < 0 && errno != EINTR)
            break;
        for (int i = 0; i < received; i++)
            lost += gather_event(events, (struct span){bytes[i], messages[i].msg_len}, &from[i]);
    }
    return lost;
}

/* Waits for an event, too, unless there is a timeout. True: asked to stop. */
static bool wait_for_stop(const struct process_events *events, int timeout_ms)
{
    struct pollfd ready[] = {{.fd = events->stop_fd, .events = POLLIN},
                             {.fd = events->socket_fd, .events = POLLIN}};

    while (poll(ready, timeout_ms < 0 ? 2 : 1, timeout_ms) < 0 && timeout_ms < 0)
        ;
    return ready[0].revents != 0;
}

/* True: asked to stop. */
static bool pause_listening(struct process_events *events)
{
    bool stop;

    process_connector_pause(events->socket_fd, true);
    stop = wait_for_stop(events, PAUSE_MS);
    process_connector_pause(events->socket_fd, false);
    events->flood_rounds = 0;
    return stop;
}

static void *run(void *arg)
{
    struct process_events *events = arg;

    while (!wait_for_stop(events, -1) && !wait_for_stop(events, GATHER_MS)) {
        uint64_t lost = receive_events(events);

        lost += read_gathered(events);
        atomic_fetch_add(&events->lost, lost);
        events->flood_rounds = lost > 0 ? events->flood_rounds + 1 : 0;
        if (events->flood_rounds >= FLOOD_ROUNDS && pause_listening(events))
            break;
    }
    return NULL;
}

static void free_events(struct process_events *events)
{
    process_connector_close(events->socket_fd);
    cleanup_close(&events->stop_fd);
    recent_processes_done(&events->recent);
    arena_done(&events->arena);
    pthread_mutex_destroy(&events->lock);
    free(events);
}

int process_events_start(const struct host *host, const struct clock *clock,
                         struct process_events **ret_events)
{
    struct process_events *events = calloc(1, sizeof(*events));
    int r;

    if (!events)
        return -ENOMEM;
    events->clock = clock;
    events->socket_fd = events->stop_fd = -1;
    proc_reader_init(&events->proc, host);
    arena_init(&events->arena, ARENA_CAP_BYTES);
    events->reads = (struct allowance){.percent = 100, .burst_us = READS_BURST_US};
    pthread_mutex_init(&events->lock, NULL);
    r = process_connector_open(&events->socket_fd);
    if (r == 0 && (events->stop_fd = eventfd(0, EFD_CLOEXEC)) < 0)
        r = -errno;
    if (r == 0)
        r = recent_processes_init(&events->recent, KEEP_SECONDS * USEC_PER_SEC);
    if (r == 0)
        r = -pthread_create(&events->thread, NULL, run, events);
    if (r < 0) {
        free_events(events);
        return r;
    }
    *ret_events = events;
    return 0;
}

void process_events_stop(struct process_events *events)
{
    static const uint64_t one = 1;

    if (!events)
        return;
    while (write(events->stop_fd, &one, sizeof(one)) < 0)
        continue; /* without it the thread would not end */
    pthread_join(events->thread, NULL);
    free_events(events);
}

int process_events_find(struct process_events *events, uint32_t pid,
                        struct sample_process *ret_process, struct arena *arena)
{
    if (!events)
        return -ESRCH;
    HOLD_LOCK(&events->lock);
    return recent_processes_find(&events->recent, events->clock->monotonic_us(events->clock), pid,
                                 arena, ret_process);
}

uint64_t process_events_lost(struct process_events *events)
{
    return atomic_load(&events->lost);
}
