#include "app/front_process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/channel.h"
#include "app/verbs.h"
#include "core/macros.h"

static const uint64_t BACKOFF_MIN_US = 100000, BACKOFF_MAX_US = 5 * USEC_PER_SEC;
static const uint64_t HEALTHY_US = 10 * USEC_PER_SEC; /* who lives this long has no back-off */
enum { KILLED_MS = 1000 }; /* what the kernel may take to end one that was killed */

/* Each start is a login at the BMC, and a front that died could not log out: one that dies again
 * and again must not use up the BMC's sessions. */
static const uint64_t LOGIN_PAUSE_US = 60 * USEC_PER_SEC;

enum { ARGUMENTS_MAX = 32 };

/* Above every number that the front's descriptors get, so that placing one never closes another. */
enum { FDS_MAX = 1 + OPTIONS_LISTEN_MAX + 2, HIGH_FD = VERB_FRONT_CHANNEL_FD + FDS_MAX };

void front_process_init(struct front_process *front, const struct front_process_options *options)
{
    *front = (struct front_process){
        .options = *options,
        .channel_fd = -1,
        .names_fd = -1,
        .power_fd = -1,
        .backoff_us = BACKOFF_MIN_US,
    };
}

/* The front's ends of the channels; -1: none. */
struct channel_ends {
    int channel, names, power;
};

/* The descriptors that VERB_FRONT expects: the channel, the listeners, and where names and readings
 * go to. */
static size_t list_fds(const struct front_process_options *options, const struct channel_ends *ends,
                       int *fds)
{
    size_t count = 0;

    fds[count++] = ends->channel;
    for (size_t i = 0; i < options->listener_count; i++)
        fds[count++] = options->listener_fds[i];
    if (ends->names >= 0)
        fds[count++] = ends->names;
    if (ends->power >= 0)
        fds[count++] = ends->power;
    return count;
}

static int place_fds(const struct front_process_options *options, const struct channel_ends *ends,
                     posix_spawn_file_actions_t *actions, int *high_fds)
{
    int fds[FDS_MAX];
    size_t count = list_fds(options, ends, fds);

    for (size_t i = 0; i < count; i++) {
        high_fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, HIGH_FD);
        if (high_fds[i] < 0)
            return -errno;
        if (posix_spawn_file_actions_adddup2(actions, high_fds[i], VERB_FRONT_CHANNEL_FD + (int)i))
            return -ENOMEM;
    }
    /* Ours are all close-on-exec, but those of libraries (curl's) need not be. */
    if (posix_spawn_file_actions_addclosefrom_np(actions, VERB_FRONT_CHANNEL_FD + (int)count))
        return -ENOMEM;
    return 0;
}

/* "NAME=value" as it stands in our own environment. False if it does not, or does not fit. */
static bool keep_variable(const char *name, char *text, size_t size_bytes)
{
    const char *value = secure_getenv(name);
    int len = value ? snprintf(text, size_bytes, "%s=%s", name, value) : -1;

    return len > 0 && (size_t)len < size_bytes;
}

/* What of the command line is numbers, as text. */
struct numbers {
    char listeners[16], level[16], format[16], interval[24], delay[24];
};

static void write_numbers(const struct front_process *front, struct numbers *numbers)
{
    const struct front_process_options *options = &front->options;

    snprintf(numbers->listeners, sizeof(numbers->listeners), "%zu", options->listener_count);
    snprintf(numbers->level, sizeof(numbers->level), "%d", (int)options->log_level);
    snprintf(numbers->format, sizeof(numbers->format), "%d", (int)options->log_format);
    if (!options->redfish)
        return;
    snprintf(numbers->interval, sizeof(numbers->interval), "%" PRIu64,
             options->redfish->interval_us);
    snprintf(numbers->delay, sizeof(numbers->delay), "%" PRIu64,
             front->starts > 0 ? LOGIN_PAUSE_US : 0);
}

/* As verb_front reads it. */
static void write_arguments(const struct front_process_options *options, struct numbers *numbers,
                            char *argv[ARGUMENTS_MAX])
{
    const struct api_config *api = options->api;
    const struct redfish_flags *redfish = options->redfish;
    size_t count = 0;

    argv[count++] = "wattribute";
    argv[count++] = "front";
    argv[count++] = numbers->listeners;
    argv[count++] = (char *)options->metrics_path;
    argv[count++] = numbers->level;
    argv[count++] = numbers->format;
    argv[count++] = options->has_web_config ? "web-config" : "plain";
    if (api) {
        argv[count++] = "api";
        argv[count++] = (char *)api->host;
        argv[count++] = (char *)api->port;
        argv[count++] = (char *)api->node;
        argv[count++] = (char *)api->directory;
    }
    if (redfish) {
        argv[count++] = "redfish";
        argv[count++] = (char *)redfish->url;
        argv[count++] = (char *)redfish->credentials_path;
        argv[count++] = (char *)redfish->ca_path;
        argv[count++] = (char *)redfish->certificate_sha256;
        argv[count++] = redfish->insecure ? "insecure" : "checked";
        argv[count++] = numbers->interval;
        argv[count++] = numbers->delay;
    }
    argv[count] = NULL;
}

static int spawn(const struct front_process *front, const struct channel_ends *ends, pid_t *ret_pid)
{
    const struct front_process_options *options = &front->options;
    struct numbers numbers = {0};
    char *argv[ARGUMENTS_MAX];
    char library_path[4096];
    char *env[] = {NULL, NULL};
    int high_fds[FDS_MAX];
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    int r;

    /* What else the environment holds is none of its business. */
    if (keep_variable("LD_LIBRARY_PATH", library_path, sizeof(library_path)))
        env[0] = library_path;
    write_numbers(front, &numbers);
    write_arguments(options, &numbers, argv);
    for (size_t i = 0; i < ARRAY_SIZE(high_fds); i++)
        high_fds[i] = -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    /* The collector blocks signals for its signalfd; a child would inherit that. */
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    r = place_fds(options, ends, &actions, high_fds);
    if (r == 0)
        r = -posix_spawn(ret_pid, "/proc/self/exe", &actions, &attributes, argv, env);
    for (size_t i = 0; i < ARRAY_SIZE(high_fds); i++)
        cleanup_close(&high_fds[i]);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return r;
}

static void back_off(struct front_process *front, uint64_t now_us)
{
    front->restart_us = now_us + front->backoff_us;
    front->backoff_us = MIN(front->backoff_us * 2, BACKOFF_MAX_US);
}

int front_process_start(struct front_process *front, uint64_t now_us, struct error *err)
{
    _cleanup_close_ int ours = -1, theirs = -1, our_names = -1, their_names = -1;
    _cleanup_close_ int our_power = -1, their_power = -1;
    int r = channel_open(&ours, &theirs);

    if (r == 0 && front->options.api)
        r = channel_open(&our_names, &their_names);
    if (r == 0 && front->options.redfish)
        r = channel_open(&our_power, &their_power);
    if (r == 0)
        r = spawn(front, &(struct channel_ends){theirs, their_names, their_power}, &front->pid);
    if (r < 0) {
        front->pid = 0;
        back_off(front, now_us);
        return error_set(err, r, "cannot start the front process from /proc/self/exe: %s",
                         strerror(-r));
    }
    front->channel_fd = TAKE_FD(ours);
    front->names_fd = TAKE_FD(our_names);
    front->power_fd = TAKE_FD(our_power);
    front->started_us = now_us;
    front->restart_us = 0;
    front->starts++;
    return 0;
}

static void close_channels(struct front_process *front)
{
    cleanup_close(&front->channel_fd);
    front->channel_fd = -1;
    front_process_close_names(front);
    front_process_close_power(front);
}

void front_process_close_names(struct front_process *front)
{
    cleanup_close(&front->names_fd);
    front->names_fd = -1;
}

void front_process_close_power(struct front_process *front)
{
    cleanup_close(&front->power_fd);
    front->power_fd = -1;
}

bool front_process_reap(struct front_process *front, uint64_t now_us, int *ret_status)
{
    if (front->pid == 0 || waitpid(front->pid, ret_status, WNOHANG) != front->pid)
        return false;
    front->pid = 0;
    close_channels(front);
    if (now_us - front->started_us >= HEALTHY_US) {
        front->backoff_us = BACKOFF_MIN_US;
        front->restart_us = now_us;
    } else {
        back_off(front, now_us);
    }
    return true;
}

void front_process_kill(struct front_process *front)
{
    if (front->pid > 0)
        kill(front->pid, SIGKILL);
}

void front_process_stop(struct front_process *front, uint64_t wait_us)
{
    close_channels(front);
    if (front->pid > 0) {
        _cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, front->pid, 0);
        struct pollfd poll_fd = {.fd = pidfd, .events = POLLIN};

        if (pidfd < 0 || poll(&poll_fd, 1, (int)(wait_us / 1000)) != 1)
            front_process_kill(front);
        /* Root without CAP_KILL cannot end a front that became nobody: it must not hold us up. */
        waitpid(front->pid, NULL, poll(&poll_fd, 1, KILLED_MS) == 1 ? 0 : WNOHANG);
        front->pid = 0;
    }
}
