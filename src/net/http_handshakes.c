#include "net/http_handshakes.h"

#include <errno.h>
#include <microhttpd.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "core/macros.h"

enum { RESUMES_PER_RUN = 64 };

int http_handshakes_open(struct http_handshakes *handshakes)
{
    handshakes->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    return handshakes->epoll_fd < 0 ? -errno : 0;
}

void http_handshakes_close(struct http_handshakes *handshakes)
{
    cleanup_close(&handshakes->epoll_fd);
}

static void park(struct http_handshakes *handshakes, struct http_connection *c)
{
    struct epoll_event event = {.events = tls_session_wants_to_write(&c->tls) ? EPOLLOUT : EPOLLIN,
                                .data.ptr = c};

    if (epoll_ctl(handshakes->epoll_fd, EPOLL_CTL_ADD, c->state.fd, &event) < 0)
        return;
    MHD_suspend_connection(c->mhd);
    c->is_parked = true;
}

void http_handshakes_park(struct http_handshakes *handshakes, struct connections *connections)
{
    struct connection_state *state = TAILQ_FIRST(&connections->phases[CONNECTION_FRESH]);

    if (handshakes->epoll_fd < 0)
        return;
    for (; state; state = TAILQ_NEXT(state, by_phase)) {
        struct http_connection *c = http_connection_of(state);

        if (c->tls.is_shaking_hands && !c->is_parked)
            park(handshakes, c);
    }
}

void http_handshakes_resume(struct http_handshakes *handshakes)
{
    struct epoll_event events[RESUMES_PER_RUN];
    int n;

    if (handshakes->epoll_fd < 0)
        return;
    n = epoll_wait(handshakes->epoll_fd, events, ARRAY_SIZE(events), 0);
    for (int i = 0; i < n; i++)
        http_handshakes_unpark(handshakes, events[i].data.ptr);
}

void http_handshakes_unpark(struct http_handshakes *handshakes, struct http_connection *c)
{
    if (!c->is_parked)
        return;
    epoll_ctl(handshakes->epoll_fd, EPOLL_CTL_DEL, c->state.fd, NULL);
    MHD_resume_connection(c->mhd);
    c->is_parked = false;
}

void http_handshakes_unpark_all(struct http_handshakes *handshakes, struct connections *connections)
{
    for (size_t phase = 0; phase < CONNECTION_PHASES; phase++) {
        struct connection_state *state = TAILQ_FIRST(&connections->phases[phase]);

        for (; state; state = TAILQ_NEXT(state, by_phase))
            http_handshakes_unpark(handshakes, http_connection_of(state));
    }
}
