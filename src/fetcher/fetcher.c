#include "fetcher/fetcher.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

#include "core/clock.h"
#include "core/json_reader.h"
#include "core/log.h"
#include "core/macros.h"
#include "fetcher/silence.h"
#include "process/channel.h"
#include "process/child.h"

/* Between two lookups of a name that has no address. */
static const uint64_t LOOKUP_MIN_US = 5 * USEC_PER_SEC, LOOKUP_MAX_US = 60 * USEC_PER_SEC;

/* A lookup hangs if it takes longer. glibc's own limits (see RES_OPTIONS) sum up to half of it. */
static const uint64_t LOOKUP_HANGS_US = 60 * USEC_PER_SEC;

static uint64_t now_us(void)
{
    return clock_system.monotonic_us(&clock_system);
}

bool fetcher_attend(int channel_fd)
{
    struct channel_ping ping;
    int r;

    while ((r = channel_receive_ping(channel_fd, &ping)) == 0)
        /* If there is no room for it, the next one is answered. */
        (void)channel_send(channel_fd, &ping, sizeof(ping), -1);
    return r != -EAGAIN;
}

bool fetcher_wait(int channel_fd, uint64_t until_us)
{
    struct pollfd channel = {.fd = channel_fd, .events = POLLIN};

    for (;;) {
        uint64_t now = now_us(), left_us = until_us - MIN(until_us, now);
        int timeout_ms =
            until_us == UINT64_MAX ? -1 : (int)MIN((left_us + 999) / 1000, (uint64_t)3600000);

        if (poll(&channel, 1, timeout_ms) > 0 && fetcher_attend(channel_fd))
            return true;
        if (timeout_ms >= 0 && now_us() >= until_us)
            return false;
    }
}

/* Something that blocks in glibc, on a thread of its own. */
struct errand {
    void (*run)(void *context);
    void *context;
    int done_fd; /* eventfd */
};

static void *run_errand(void *argument)
{
    const struct errand *errand = argument;

    errand->run(errand->context);
    (void)eventfd_write(errand->done_fd, 1);
    return NULL;
}

/* Answers pings while a lookup blocks, unless that hangs: then the collector ends this process. */
static void attend_lookup(int channel_fd, void (*run)(void *context), void *context)
{
    struct errand errand = {run, context, eventfd(0, EFD_CLOEXEC)};
    struct pollfd fds[] = {{.fd = errand.done_fd, .events = POLLIN},
                           {.fd = channel_fd, .events = POLLIN}};
    uint64_t hangs_us = now_us() + LOOKUP_HANGS_US;
    pthread_t thread;

    if (errand.done_fd < 0 || pthread_create(&thread, NULL, run_errand, &errand) != 0) {
        cleanup_close(&errand.done_fd);
        run(context); /* without a thread the collector may take it for a hang */
        return;
    }
    while (poll(fds, ARRAY_SIZE(fds), -1) >= 0 && fds[0].revents == 0)
        if (now_us() >= hangs_us || fetcher_attend(channel_fd))
            break;
    pthread_join(thread, NULL);
    close(errand.done_fd);
}

struct host_lookup {
    struct fetcher_peer *peer;
    struct error err;
    int result;
};

static void look_up_host(void *context)
{
    struct host_lookup *lookup = context;
    struct fetcher_peer *peer = lookup->peer;

    lookup->result = lookup_host(peer->what, peer->host, peer->port, peer->resolve, &lookup->err);
}

/* A directory of resolv.conf that was made after the sandbox is out of reach for this process. */
static int look_up(struct fetcher_peer *peer)
{
    uint64_t pause_us = LOOKUP_MIN_US, since_us = 0;
    struct host_lookup lookup = {.peer = peer};

    for (;;) {
        attend_lookup(peer->channel_fd, look_up_host, &lookup);
        if (lookup.result == 0)
            return 0;
        peer->report(peer->context, lookup.err.text);
        if (silence_is_long(&since_us, lookup.result, now_us()))
            return -EHOSTUNREACH;
        if (fetcher_wait(peer->channel_fd, now_us() + pause_us))
            return -ECANCELED;
        pause_us = MIN(2 * pause_us, LOOKUP_MAX_US);
    }
}

int fetcher_peer_open(struct fetcher_peer *peer, struct error *err)
{
    int r = http_trust_new(&peer->trust_options, &peer->trust, err);

    if (r < 0)
        return r;
    r = http_client_new(&peer->client);
    if (r < 0)
        return error_set(err, r, "out of memory");
    http_client_watch(peer->client, peer->channel_fd, fetcher_attend);
    r = fetcher_enter_sandbox(peer->user, peer->channel_fd, "", err);
    if (r == 0)
        r = look_up(peer);
    return r < 0 ? r : sandbox_filter_calls(SYSCALL_FILELESS_CLIENT, err);
}

void fetcher_peer_close(struct fetcher_peer *peer)
{
    http_client_free(peer->client);
    http_trust_free(peer->trust);
}

/* Makes glibc load its resolver libraries, which it cannot inside the sandbox. The name never
 * resolves (RFC 6761), so every method is tried. */
static void load_resolver(void *context)
{
    struct addrinfo *found;

    (void)context;
    if (getaddrinfo("wattribute.invalid.", NULL, NULL, &found) == 0)
        freeaddrinfo(found);
}

/*
 * Whole directories: files such as resolv.conf and CA bundles are replaced by rename, and lookups
 * must go on for months. All of /etc is no loss for a process without rights; one that had to stay
 * root sees the /etc of its container, and the keys there are its own.
 */
static int limit_files(const char *ca_path, struct error *err)
{
    char ca_directory[PATH_MAX]; /* "" for one in the root directory, which would be no limit */
    const char *slash = strrchr(ca_path, '/');
    const char *const paths[] = {
        "/etc",
        "/usr",       /* targets of /etc/ssl/certs, TLS policies */
        "/nix/store", /* targets of all of /etc on NixOS */
        "/var/lib/ca-certificates",
        /* targets of resolv.conf, wherever it is now */
        "/run/systemd/resolve",
        "/run/resolvconf",
        "/run/NetworkManager",
        "/run/netconfig",
        "/etc/resolv.conf",
        ca_path,
        ca_directory,
        NULL,
    };

    snprintf(ca_directory, sizeof(ca_directory), "%.*s", slash ? (int)(slash - ca_path) : 0,
             ca_path);
    return sandbox_limit_files(paths, err);
}

int fetcher_enter_sandbox(enum sandbox_user user, int channel_fd, const char *ca_path,
                          struct error *err)
{
    int r = sandbox_drop_privileges(user, err);

    if (r < 0)
        return r;
    attend_lookup(channel_fd, load_resolver, NULL);
    r = limit_files(ca_path, err);
    return r < 0 ? r : sandbox_filter_calls(SYSCALL_CLIENT, err);
}

static int run(const struct fetcher_job *job, struct error *err)
{
    if (json_seed() < 0)
        return error_set(err, -ENOMEM, "out of memory");
    switch (job->kind) {
    case FETCHER_BMC:
        return fetch_bmc(job, CHILD_CHANNEL_FD, CHILD_MORE_FD, err);
    case FETCHER_KUBERNETES:
        return fetch_kubernetes(job, CHILD_CHANNEL_FD, err);
    case FETCHER_EMISSIONS:
        return fetch_emissions(job, CHILD_CHANNEL_FD, err);
    case FETCHER_KINDS:
        break;
    }
    return error_set(err, -EPROTO, "unknown kind of fetcher");
}

int fetcher_main(void)
{
    struct job block = {0};
    struct fetcher_job job;
    struct error err;
    int r;

    prctl(PR_SET_NAME, "wattribute"); /* started as /proc/self/exe */
    child_ignore_signals();
    sandbox_forbid_dumps();
    r = fetcher_job_read(CHILD_JOB_FD, &block, &job);
    close(CHILD_JOB_FD);
    if (r < 0) {
        log_error("a fetcher has no job: only the collector starts it", "error", strerror(-r));
        return 1;
    }
    log_configure(job.log.level, job.log.format);
    /* One heap for all threads: to shrink a thread's own, glibc reads a file in /proc. */
    mallopt(M_ARENA_MAX, 1);
    /* glibc's own limits for a lookup are 5 s, twice for each server. */
    setenv("RES_OPTIONS", "timeout:2 attempts:2", 1);
    r = run(&job, &err);
    if (r < 0 && r != -ECANCELED && r != -EHOSTUNREACH)
        log_error(err.text);
    explicit_bzero(&job, sizeof(job));
    job_done(&block);
    if (r == -EHOSTUNREACH)
        return FETCHER_RESTART;
    return r == 0 || r == -ECANCELED ? 0 : 1;
}
