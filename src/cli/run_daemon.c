/* The daemon that `wattribute run` asks, and what it fails to tell. */
#include <errno.h>
#include <string.h>

#include "cli/run_session.h"
#include "core/macros.h"

/* Its page is a second old, and so are its readings. */
static const uint64_t TIMEOUT_US = USEC_PER_SEC;
/* One that does not answer must not keep `run` from looking for processes. */
static const uint64_t RETRY_US = 5 * USEC_PER_SEC;

static uint64_t now_us(void)
{
    return clock_system.monotonic_us(&clock_system);
}

static int ask(struct run_session *session, struct error *err)
{
    struct span body;
    struct error why = {""};
    int r = daemon_client_get(session->daemon, "/api/v1/node", TIMEOUT_US, &body, err);

    if (r < 0)
        return r;
    r = books_take_document(&session->remote, body, &why);
    return r < 0 ? error_set(err, r, "%s: %.600s", daemon_client_address(session->daemon), why.text)
                 : 0;
}

int run_daemon_open(struct run_session *session, struct error *err)
{
    bool is_named = options_is_given(session->options, "daemon");
    int r = daemon_client_open(session->options, &session->daemon, err);

    if (r == 0)
        r = ask(session, err);
    session->heard_us = now_us();
    if (r == 0)
        return 0;
    daemon_client_close(session->daemon);
    session->daemon = NULL;
    books_done(&session->remote);
    return is_named ? r : 0;
}

/* The time from `from_us` is in no document of it. */
static void lose(struct run_session *session, uint64_t from_us, uint64_t to_us, const char *why)
{
    struct repetition *now = session->now;

    if (!now)
        return;
    from_us = MAX(from_us, now->began_us);
    now->lost_us += to_us - MIN(from_us, to_us);
    if (to_us > from_us)
        error_format(&session->lost_why, "%.900s", why);
}

static bool ends_request(int fd)
{
    (void)fd;
    return true;
}

bool run_daemon_refresh(struct run_session *session, bool may_wait)
{
    uint64_t started_us = session->remote.started_us;
    struct error err = {""};
    int r;

    if (!session->daemon || (!may_wait && now_us() < session->ask_us))
        return false;
    /* The end of the command must be noticed at once. */
    daemon_client_watch(session->daemon, may_wait ? -1 : session->signal_fd, ends_request);
    r = ask(session, &err);
    if (r == -ECANCELED)
        return false;
    if (r < 0) {
        session->ask_us = r == -ETIMEDOUT ? now_us() + RETRY_US : 0;
        session->trouble = err;
        return false;
    }
    if (session->remote.started_us != started_us)
        lose(session, session->heard_us, now_us(), "it was started anew");
    session->heard_us = now_us();
    session->trouble.text[0] = '\0';
    return true;
}

void run_daemon_end(struct run_session *session)
{
    if (session->daemon && session->trouble.text[0])
        lose(session, session->heard_us, session->now->ended_us, session->trouble.text);
}

void run_daemon_explain(const struct run_session *session, uint64_t lost_us, struct report *report)
{
    if (lost_us > 0)
        report_add(report, "daemon", VERDICT_MISSING,
                   "see its log (journalctl -u wattribute), and run the command again",
                   "for %.1f s it told nothing: %s; what only it can read is not counted then",
                   (double)lost_us / 1e6, session->lost_why.text);
}
