#include "app/asker.h"

#include <errno.h>
#include <malloc.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "app/asker_inquiry.h"
#include "app/asker_keys.h"
#include "app/channel.h"
#include "app/child.h"
#include "app/sandbox.h"
#include "client/http_client.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/macros.h"

static const uint64_t IDLE_US = 3600 * USEC_PER_SEC; /* that nothing is due, if nobody is asked */

/* A provider that is asked, and what was said of it last. */
struct subject {
    struct inquiry *inquiry; /* NULL: it cannot be asked */
    const char *provider, *zone;
    bool has_answered, is_failing;
};

struct desk {
    int channel_fd;
    struct asker_keys keys;
    struct http_client *client;
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
static void send_result(const struct desk *desk, size_t index, int result,
                        const struct emission_factor *factor, const char *why)
{
    struct channel_factor record = {
        .index = (uint32_t)index, .result = result, .taken_us = now_us()};

    if (result == 0) {
        record.mg_per_kwh = factor->mg_per_kwh;
        record.time_us = factor->time_us;
        record.is_estimated = factor->is_estimated;
        record.basis = factor->basis;
    } else {
        put_printable(record.why, sizeof(record.why), why[0] ? why : strerror(-result));
    }
    (void)channel_send_factor(desk->channel_fd, &record);
}

/* Once per change. */
static void note(struct subject *subject, int result, const char *why)
{
    bool is_failing = result < 0;

    if (is_failing && !subject->is_failing)
        log_warn("a provider of emission factors fails", "provider", subject->provider, "zone",
                 subject->zone, "error", why);
    else if (!is_failing && !subject->has_answered)
        log_info("emission factors are read", "provider", subject->provider, "zone", subject->zone);
    else if (!is_failing && subject->is_failing)
        log_info("a provider of emission factors is back", "provider", subject->provider, "zone",
                 subject->zone);
    subject->has_answered = subject->has_answered || !is_failing;
    subject->is_failing = is_failing;
}

static void ask(struct desk *desk, struct subject *subject)
{
    struct emission_factor factor;
    struct error err = {""};
    int r = inquiry_ask(subject->inquiry, &factor, &err);

    note(subject, r, err.text);
    send_result(desk, (size_t)(subject - desk->subjects), r, &factor, err.text);
}

static void open_inquiries(struct desk *desk, const struct asker_flags *flags)
{
    struct error err;
    int r;

    for (desk->count = 0; desk->count < flags->count; desk->count++) {
        struct subject *subject = &desk->subjects[desk->count];

        subject->provider = flags->inquiries[desk->count].provider;
        subject->zone = flags->inquiries[desk->count].zone;
        r = asker_inquiry_open(flags, desk->count, &desk->keys, desk->client, &subject->inquiry,
                               &err);
        if (r == 0)
            continue;
        log_warn("a provider of emission factors is not asked", "provider", subject->provider,
                 "error", err.text);
        send_result(desk, desk->count, r, NULL, err.text);
    }
}

/* Without the keys of its file it may still have those of the environment, or need none. */
static void read_keys(struct desk *desk, const struct asker_flags *flags)
{
    struct error err;

    if (asker_keys_read(flags->keys_path, &desk->keys, &err) < 0)
        log_warn("the keys of emission factors cannot be read", "error", err.text);
    asker_keys_take_environment(&desk->keys);
}

/* So that glibc loads what it looks up names with, which it cannot inside the sandbox. That name is
 * nobody's (RFC 6761): only that all ways are tried matters. */
static void load_resolver(void)
{
    struct addrinfo *found;

    if (getaddrinfo("wattribute.invalid.", NULL, NULL, &found) == 0)
        freeaddrinfo(found);
}

static int open_desk(struct desk *desk, const struct asker_flags *flags, struct error *err)
{
    int r;

    read_keys(desk, flags);
    /* Its threads need no heaps of their own: to shrink one, glibc reads a file of /proc. */
    mallopt(M_ARENA_MAX, 1);
    r = http_client_new(&desk->client);
    if (r < 0)
        return error_set(err, r, "out of memory");
    r = sandbox_drop_privileges(SANDBOX_NOBODY, err);
    if (r < 0)
        return r;
    load_resolver();
    r = sandbox_filter_calls(SANDBOX_ASKER, err);
    if (r < 0)
        return r;
    open_inquiries(desk, flags);
    return 0;
}

static struct subject *find_next(struct desk *desk)
{
    struct subject *next = NULL;

    for (size_t i = 0; i < desk->count; i++) {
        struct subject *subject = &desk->subjects[i];

        if (subject->inquiry &&
            (!next || inquiry_due_us(subject->inquiry) < inquiry_due_us(next->inquiry)))
            next = subject;
    }
    return next;
}

/* False: the channel is at its end. */
static bool wait_until(const struct desk *desk, uint64_t due_us)
{
    struct pollfd channel = {.fd = desk->channel_fd}; /* its end is told unasked */
    uint64_t now;

    while ((now = now_us()) < due_us) {
        int n = poll(&channel, 1, (int)((MIN(due_us - now, IDLE_US) + 999) / 1000));

        if (n > 0 || (n < 0 && errno != EINTR))
            return false;
    }
    return true;
}

/* Stays also if there is nobody to ask: else it would be started again and again. */
static void serve(struct desk *desk)
{
    for (;;) {
        struct subject *next = find_next(desk);

        if (!wait_until(desk, next ? inquiry_due_us(next->inquiry) : now_us() + IDLE_US))
            return;
        if (next)
            ask(desk, next);
    }
}

int asker_run(const struct asker_flags *flags, int channel_fd)
{
    struct desk desk = {.channel_fd = channel_fd};
    struct error err;
    int r;

    child_ignore_signals();
    r = open_desk(&desk, flags, &err);
    if (r == 0)
        serve(&desk);
    else
        log_error(err.text);
    for (size_t i = 0; i < desk.count; i++)
        inquiry_free(desk.subjects[i].inquiry);
    http_client_free(desk.client);
    asker_keys_wipe(&desk.keys);
    return r < 0 ? 1 : 0;
}
