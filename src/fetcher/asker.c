#include "fetcher/asker.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "client/stoppable.h"
#include "config/asker_keys.h"
#include "core/clock.h"
#include "core/json_reader.h"
#include "core/log.h"
#include "core/macros.h"
#include "fetcher/asker_inquiry.h"
#include "process/channel.h"
#include "process/child.h"
#include "process/sandbox.h"
#include "process/sandbox_files.h"

/* A provider that is asked, by a thread of its own so that one that hangs holds up nobody, and what
 * was said of it last. */
struct subject {
    size_t index; /* of the flags */
    const char *provider, *zone;
    int channel_fd;
    struct stoppable asking;
    struct poll *inquiry; /* NULL: it cannot be asked */
    bool has_answered;
    int last_result;
    pthread_t thread;
    bool is_started;
};

struct desk {
    int channel_fd;
    struct asker_keys keys;
    struct subject subjects[ASKER_INQUIRIES_MAX];
    size_t count;
};

static uint64_t now_us(void)
{
    return clock_system.monotonic_us(&clock_system);
}

static void put_printable(char *to, size_t size_bytes, const char *from)
{
    snprintf(to, size_bytes, "%s", from);
    for (; *to; to++)
        if (*to < ' ' || *to > '~')
            *to = '?';
}

/* If the collector is so far behind that there is no room, it has factors enough. */
static void send_result(const struct subject *subject, int result,
                        const struct emission_factor *factor, const char *why)
{
    struct channel_factor record = {
        .index = (uint32_t)subject->index, .result = result, .taken_us = now_us()};

    if (result == 0) {
        record.mg_per_kwh = factor->mg_per_kwh;
        record.time_us = factor->time_us;
        record.is_estimated = factor->is_estimated;
        record.basis = factor->basis;
    } else {
        put_printable(record.why, sizeof(record.why), why[0] ? why : strerror(-result));
    }
    (void)channel_send_factor(subject->channel_fd, &record);
}

/* Once per change, also of the kind of failure. */
static void note(struct subject *subject, int result, const char *why)
{
    if (result < 0 && result != subject->last_result)
        log_warn("a provider of emission factors fails", "provider", subject->provider, "zone",
                 subject->zone, "error", why);
    else if (result == 0 && !subject->has_answered)
        log_info("emission factors are read", "provider", subject->provider, "zone", subject->zone);
    else if (result == 0 && subject->last_result < 0)
        log_info("a provider of emission factors is back", "provider", subject->provider, "zone",
                 subject->zone);
    subject->has_answered = subject->has_answered || result == 0;
    subject->last_result = result;
}

static void *ask_again_and_again(void *argument)
{
    struct subject *subject = argument;

    for (;;) {
        struct emission_factor factor;
        struct error err = {""};
        int r;

        stoppable_pause(&subject->asking, poll_due_us(subject->inquiry));
        if (stoppable_is_stopped(&subject->asking))
            return NULL;
        r = poll_ask(subject->inquiry, &factor, &err);
        if (r == -ECANCELED)
            return NULL;
        note(subject, r, err.text);
        send_result(subject, r, &factor, err.text);
    }
}

static int start(const struct desk *desk, const struct asker_flags *flags, struct subject *subject,
                 struct error *err)
{
    int r = asker_inquiry_open(flags, subject->index, &desk->keys, subject->asking.client,
                               &subject->inquiry, err);

    if (r < 0)
        return r;
    r = -pthread_create(&subject->thread, NULL, ask_again_and_again, subject);
    if (r < 0)
        return error_set(err, r, "cannot start its thread: %s", strerror(-r));
    subject->is_started = true;
    return 0;
}

static void start_all(struct desk *desk, const struct asker_flags *flags)
{
    for (size_t i = 0; i < desk->count; i++) {
        struct subject *subject = &desk->subjects[i];
        struct error err;
        int r = start(desk, flags, subject, &err);

        if (r == 0)
            continue;
        log_warn("a provider of emission factors is not asked", "provider", subject->provider,
                 "error", err.text);
        send_result(subject, r, NULL, err.text);
    }
}

static int take_keys(struct desk *desk, int keys_fd, struct error *err)
{
    int r = asker_keys_unseal(keys_fd, &desk->keys);

    close(keys_fd);
    asker_keys_take_environment(&desk->keys);
    return r < 0 ? error_set(err, r, "no keys from the collector: %s", strerror(-r)) : 0;
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
static int limit_files(const struct asker_flags *flags, struct error *err)
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
        flags->ca_path,
        ca_directory,
        NULL,
    };

    put_directory(ca_directory, sizeof(ca_directory), flags->ca_path);
    return sandbox_limit_files(paths, err);
}

/* A crash must not write the keys to a file. A change of user resets this. */
static void forbid_core(void)
{
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

/* With libcurl, which can be loaded only outside of the sandbox. */
static int open_subjects(struct desk *desk, const struct asker_flags *flags, struct error *err)
{
    int r = 0;

    for (size_t i = 0; i < flags->count && r == 0; i++) {
        struct subject *subject = &desk->subjects[desk->count++];

        *subject = (struct subject){
            .index = i,
            .provider = flags->inquiries[i].provider,
            .zone = flags->inquiries[i].zone,
            .channel_fd = desk->channel_fd,
        };
        r = stoppable_init(&subject->asking);
    }
    if (r == 0)
        r = json_seed();
    return r < 0 ? error_set(err, r, "out of memory") : 0;
}

static int open_desk(struct desk *desk, const struct asker_flags *flags, int keys_fd,
                     struct error *err)
{
    int r;

    forbid_core();
    /* Its threads need no heaps of their own: to shrink one, glibc reads a file of /proc. */
    mallopt(M_ARENA_MAX, 1);
    r = take_keys(desk, keys_fd, err);
    if (r == 0)
        r = open_subjects(desk, flags, err);
    if (r == 0)
        r = sandbox_drop_privileges(SANDBOX_NOBODY, err);
    if (r < 0)
        return r;
    forbid_core();
    load_resolver();
    r = limit_files(flags, err);
    if (r == 0)
        r = sandbox_filter_calls(SYSCALL_CLIENT, err);
    if (r == 0)
        start_all(desk, flags);
    return r;
}

/* Stays also if there is nobody to ask: else it would be started again and again. */
static void wait_for_end(const struct desk *desk)
{
    struct pollfd channel = {.fd = desk->channel_fd}; /* its end is told unasked */

    while (poll(&channel, 1, -1) < 0 && errno == EINTR)
        ;
}

static void close_desk(struct desk *desk)
{
    for (size_t i = 0; i < desk->count; i++)
        stoppable_stop(&desk->subjects[i].asking);
    for (size_t i = 0; i < desk->count; i++) {
        struct subject *subject = &desk->subjects[i];

        if (subject->is_started)
            pthread_join(subject->thread, NULL);
        poll_free(subject->inquiry);
        stoppable_done(&subject->asking);
    }
    asker_keys_wipe(&desk->keys);
}

int asker_run(const struct asker_flags *flags, int channel_fd, int keys_fd)
{
    struct desk desk = {.channel_fd = channel_fd};
    struct error err;
    int r;

    child_ignore_signals();
    r = open_desk(&desk, flags, keys_fd, &err);
    if (r == 0)
        wait_for_end(&desk);
    else
        log_error(err.text);
    close_desk(&desk);
    return r < 0 ? 1 : 0;
}
