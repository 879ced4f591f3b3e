#include "net/http_connection.h"

#include <microhttpd.h>
#include <stddef.h>

struct http_connection *http_connection_of(struct connection_state *state)
{
    return (struct http_connection *)((char *)state - offsetof(struct http_connection, state));
}

void http_connection_wait_in(struct http_connection_list *list, struct http_connection *c)
{
    c->waits_in = list;
    c->state.waits_for_body = true;
    TAILQ_INSERT_TAIL(list, c, by_wait);
    MHD_suspend_connection(c->mhd);
}

void http_connection_answer(struct http_connection *c, enum reply reply)
{
    http_connection_stop_waiting(c);
    c->reply = c->wants_readiness && reply == REPLY_BODY ? REPLY_READY : reply;
    MHD_resume_connection(c->mhd);
}

void http_connection_answer_all(struct http_connection_list *waiting, enum reply reply)
{
    struct http_connection *c;

    while ((c = TAILQ_FIRST(waiting)))
        http_connection_answer(c, reply);
}

void http_connection_stop_waiting(struct http_connection *c)
{
    if (c->waits_in)
        TAILQ_REMOVE(c->waits_in, c, by_wait);
    c->waits_in = NULL;
    c->state.waits_for_body = false;
}
