#include "process/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/macros.h"
#include "process/channel.h"
#include "process/signals.h"

static const uint64_t BACKOFF_MIN_US = 100000, BACKOFF_MAX_US = 5 * USEC_PER_SEC;
enum { KILLED_MS = 1000 }; /* for the kernel to end one that was killed */

/* Above every number that a child's descriptors get, so that placing one never closes another. */
enum { FDS_MAX = 2 + CHILD_MORE_MAX, HIGH_FD = CHILD_CHANNEL_FD + FDS_MAX };

void child_init(struct child *child, const char *verb)
{
    *child = (struct child){
        .verb = verb, .channel_fd = -1, .restart_us = UINT64_MAX, .backoff_us = BACKOFF_MIN_US};
}

static int place_fds(const int *fds, size_t count, posix_spawn_file_actions_t *actions,
                     int *high_fds)
{
    for (size_t i = 0; i < count; i++) {
        high_fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, HIGH_FD);
        if (high_fds[i] < 0)
            return -errno;
        if (posix_spawn_file_actions_adddup2(actions, high_fds[i], CHILD_CHANNEL_FD + (int)i))
            return -ENOMEM;
    }
    /* Ours are all close-on-exec, but those of libraries (curl's) need not be. */
    if (posix_spawn_file_actions_addclosefrom_np(actions, CHILD_CHANNEL_FD + (int)count))
        return -ENOMEM;
    return 0;
}

/* "LD_LIBRARY_PATH=..." of our own environment, which the loader of a child needs, or NULL. */
static char *library_path(void)
{
    static const char name[] = "LD_LIBRARY_PATH";
    /* Not secure_getenv: the loader of a program with capabilities ignores what it should. */
    char *value = getenv(name);

    return value ? value - sizeof(name) : NULL; /* where its name begins */
}

static int spawn(const struct child *child, const int *fds, size_t count, pid_t *ret_pid)
{
    char *const argv[] = {"wattribute", (char *)child->verb, (char *)child->label, NULL};
    char *const env[] = {library_path(), NULL};
    int high_fds[FDS_MAX];
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t all;
    int r;

    for (size_t i = 0; i < ARRAY_SIZE(high_fds); i++)
        high_fds[i] = -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    /* A signal to the whole unit or group must not end a child that cannot ignore it yet. */
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &all);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    r = place_fds(fds, count, &actions, high_fds);
    if (r == 0)
        r = -posix_spawn(ret_pid, "/proc/self/exe", &actions, &attributes, argv, env);
    for (size_t i = 0; i < ARRAY_SIZE(high_fds); i++)
        cleanup_close(&high_fds[i]);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return r;
}

static uint64_t back_off(struct child *child, uint64_t now_us)
{
    uint64_t restart_us = now_us + child->backoff_us;

    child->backoff_us = MIN(child->backoff_us * 2, BACKOFF_MAX_US);
    return restart_us;
}

static int fail_start(struct child *child, int code, uint64_t now_us, struct error *err)
{
    const char *remedy = "";

    if (code == -ENOENT)
        remedy = "; mount /proc";
    else if (code == -EAGAIN)
        remedy = "; raise the limit of processes (TasksMax=, ulimit -u, --pids-limit)";
    child->restart_us = back_off(child, now_us);
    return error_set(err, code, "cannot start the %s process from /proc/self/exe: %s%s",
                     child->verb, strerror(-code), remedy);
}

static void send_ping(struct child *child)
{
    struct channel_ping ping = {++child->pings};

    /* One that has no room for it does not read, and will not answer. */
    (void)channel_send(child->channel_fd, &ping, sizeof(ping), -1);
}

int child_start(struct child *child, int job_fd, const int *fds, size_t fd_count, uint64_t now_us,
                struct error *err)
{
    _cleanup_close_ int ours = -1, theirs = -1;
    int all[FDS_MAX];
    pid_t pid;
    int r = job_fd < 0 ? job_fd : channel_open(&ours, &theirs);

    if (r < 0)
        return fail_start(child, r, now_us, err);
    all[0] = theirs;
    all[1] = job_fd;
    for (size_t i = 0; i < fd_count; i++)
        all[2 + i] = fds[i];
    r = spawn(child, all, 2 + fd_count, &pid);
    if (r < 0)
        return fail_start(child, r, now_us, err);
    child->pid = pid;
    child->channel_fd = TAKE_FD(ours);
    child->starts++;
    child->started_us = now_us;
    child->restart_us = UINT64_MAX;
    child->pings = child->pongs = 0;
    child->has_hung = false;
    send_ping(child); /* its answer tells that it is up */
    return 0;
}

static void close_channel(struct child *child)
{
    cleanup_close(&child->channel_fd);
    child->channel_fd = -1;
}

int child_watch(struct child *child, int epoll_fd, uint32_t event, struct error *err)
{
    struct epoll_event channel = {.events = EPOLLIN, .data.u32 = event};
    int r;

    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, child->channel_fd, &channel) == 0)
        return 0;
    r = error_set(err, -errno, "cannot watch its channel: %s", strerror(errno));
    (void)child_kill(child);
    return r;
}

int child_ping(struct child *child)
{
    if (child->channel_fd < 0)
        return 0;
    /* The first one was sent at the start, which is no period ago. */
    if (child->pings >= MAX(child->pongs, (uint64_t)1) + CHILD_PINGS_MAX) {
        child->has_hung = true;
        child->hangs++;
        return child_kill(child) < 0 ? -EPERM : -ETIMEDOUT;
    }
    send_ping(child);
    return 0;
}

int child_note_pong(struct child *child, const struct channel_ping *ping)
{
    if (ping->number <= child->pongs || ping->number > child->pings)
        return -EPROTO;
    child->pongs = ping->number;
    return 0;
}

bool child_reap(struct child *child, uint64_t now_us, int *ret_status)
{
    if (child->pid == 0 || waitpid(child->pid, ret_status, WNOHANG) != child->pid)
        return false;
    close_channel(child);
    child->pid = 0;
    if (child->is_replaced || now_us - child->started_us >= CHILD_HEALTHY_US) {
        child->early_ends = 0;
        child->backoff_us = BACKOFF_MIN_US;
        child->restart_us = now_us;
    } else {
        child->early_ends++;
        child->restart_us = back_off(child, now_us);
    }
    child->is_replaced = false;
    return true;
}

bool child_is_failing(const struct child *child)
{
    return child->early_ends >= CHILD_FAILING_ENDS;
}

const char *child_describe_end(int status, char *text, size_t size_bytes)
{
    const char *name = sigabbrev_np(WTERMSIG(status));

    if (WIFSIGNALED(status))
        snprintf(text, size_bytes, "signal %d (SIG%s)", WTERMSIG(status), name ? name : "RT");
    else
        snprintf(text, size_bytes, "exit status %d", WEXITSTATUS(status));
    return text;
}

void child_replace(struct child *child)
{
    close_channel(child);
    child->is_replaced = child->pid > 0;
}

int child_kill(struct child *child)
{
    close_channel(child);
    return child->pid > 0 && kill(child->pid, SIGKILL) < 0 ? -errno : 0;
}

void child_stop(struct child *child, uint64_t wait_us)
{
    close_channel(child);
    if (child->pid > 0) {
        _cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, child->pid, 0);
        struct pollfd poll_fd = {.fd = pidfd, .events = POLLIN};

        if (pidfd < 0 || poll(&poll_fd, 1, (int)(wait_us / 1000)) != 1)
            (void)child_kill(child);
        /* Root without CAP_KILL cannot kill one that has changed its user: do not wait for it. */
        waitpid(child->pid, NULL, poll(&poll_fd, 1, KILLED_MS) == 1 ? 0 : WNOHANG);
        child->pid = 0;
    }
}

void child_ignore_signals(void)
{
    /* A terminal sends them to the whole process group, systemctl kill to the whole unit. */
    static const int of_all[] = {SIGINT, SIGTERM, SIGQUIT, SIGXCPU, SIGHUP, SIGUSR1};
    sigset_t none;

    for (size_t i = 0; i < ARRAY_SIZE(of_all); i++)
        signal(of_all[i], SIG_IGN);
    signals_ignore_stray();
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}
