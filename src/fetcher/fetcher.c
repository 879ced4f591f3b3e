#include "fetcher/fetcher.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "config/lookup.h"
#include "core/clock.h"
#include "core/json_reader.h"
#include "core/macros.h"
#include "process/child.h"
#include "process/sandbox.h"

/* Between two look-ups of a name that has no address. */
static const uint64_t LOOK_UP_MIN_US = 5 * USEC_PER_SEC, LOOK_UP_MAX_US = 60 * USEC_PER_SEC;

_Static_assert((int)FETCHER_ADDRESS_BYTES == (int)LOOKUP_TEXT_BYTES, "one form of an address");

static uint64_t now_us(void)
{
    return clock_system.monotonic_us(&clock_system);
}

bool fetcher_is_over(int channel_fd, uint64_t until_us)
{
    struct pollfd channel = {.fd = channel_fd}; /* its end is reported unasked */

    for (;;) {
        uint64_t now = now_us(), left_us = until_us - MIN(until_us, now);
        int timeout_ms = until_us == UINT64_MAX ? -1 : (int)MIN((left_us + 999) / 1000, 3600000);

        if (poll(&channel, 1, timeout_ms) > 0)
            return true;
        if (timeout_ms >= 0 && now_us() >= until_us)
            return false;
    }
}

bool fetcher_look_up(const char *what, const char *host, const char *port, int channel_fd,
                     void (*report)(void *context, const char *why), void *context,
                     char ret_resolve[FETCHER_ADDRESS_BYTES])
{
    uint64_t pause_us = LOOK_UP_MIN_US;
    struct error err;

    while (lookup_host(what, host, port, ret_resolve, &err) < 0) {
        report(context, err.text);
        if (fetcher_is_over(channel_fd, now_us() + pause_us))
            return false;
        pause_us = MIN(2 * pause_us, LOOK_UP_MAX_US);
    }
    return true;
}

/* So that glibc loads what it looks up names with, which it cannot inside the sandbox. That name is
 * nobody's (RFC 6761): only that all ways are tried matters. */
static void load_resolver(void)
{
    struct addrinfo *found;

    if (getaddrinfo("wattribute.invalid.", NULL, NULL, &found) == 0)
        freeaddrinfo(found);
}

/* Not where that is the root, which would be no limit. */
static void put_directory(char *to, size_t size_bytes, const char *path)
{
    const char *end = strrchr(path, '/');

    snprintf(to, size_bytes, "%.*s", end ? (int)(end - path) : 0, path);
}

/*
 * Whole directories, for months: who replaces a file there by a new one, as writers of resolv.conf
 * and of authorities do, must not end the look-ups. That this opens all of /etc is no loss for who
 * is nobody; for one that had to stay root, /etc is that of its container, and the keys there are
 * its own.
 */
static int limit_files(const char *ca_path, struct error *err)
{
    char ca_directory[PATH_MAX];
    const char *const paths[] = {
        "/etc",
        "/usr",       /* authorities, to which /etc/ssl/certs links, and policies of TLS */
        "/nix/store", /* where all of /etc may be links to */
        "/var/lib/ca-certificates",
        /* where resolv.conf may be, and wherever it is now */
        "/run/systemd/resolve",
        "/run/resolvconf",
        "/run/NetworkManager",
        "/run/netconfig",
        "/etc/resolv.conf",
        ca_path,
        ca_directory,
        NULL,
    };

    put_directory(ca_directory, sizeof(ca_directory), ca_path);
    return sandbox_limit_files(paths, err);
}

int fetcher_enter_sandbox(const char *ca_path, struct error *err)
{
    int r = sandbox_drop_privileges(err);

    if (r < 0)
        return r;
    load_resolver();
    r = limit_files(ca_path, err);
    return r < 0 ? r : sandbox_filter_calls(SYSCALL_CLIENT, err);
}

static void set_up_libraries(void)
{
    /* Threads need no heaps of their own: to shrink one, glibc reads a file of /proc. */
    mallopt(M_ARENA_MAX, 1);
    /* So that a look-up which nobody answers ends: glibc's own limits are 5 s, twice for each
     * server. */
    setenv("RES_OPTIONS", "timeout:2 attempts:2", 1);
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
    return error_set(err, -EPROTO, "no such fetcher");
}

int fetcher_main(void)
{
    struct job block = {0};
    struct fetcher_job job;
    struct error err;
    int r;

    prctl(PR_SET_NAME, "wattribute"); /* it was started as /proc/self/exe */
    child_ignore_signals();
    sandbox_forbid_dumps();
    r = fetcher_job_read(CHILD_JOB_FD, &block, &job);
    close(CHILD_JOB_FD);
    if (r < 0) {
        log_error("a fetcher has no job: only the collector starts it", "error", strerror(-r));
        return 1;
    }
    log_configure(job.log.level, job.log.format);
    set_up_libraries();
    r = run(&job, &err);
    if (r < 0)
        log_error(err.text);
    explicit_bzero(&job, sizeof(job));
    job_done(&block);
    return r < 0 ? 1 : 0;
}
