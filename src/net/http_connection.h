/*
 * A connection and the request in hand on it: what that is about, whom it waits for, and what it
 * gets.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "net/connections.h"
#include "net/http_replies.h"
#include "net/tls.h"

struct MHD_Connection;

struct http_connection {
    struct connection_state state;
    TAILQ_ENTRY(http_connection) by_wait;
    struct http_connection_list *waits_in; /* suspended, and in this list; NULL: not */
    struct MHD_Connection *mhd;
    struct tls_session tls;       /* zeros: none */
    bool is_parked;               /* suspended in the middle of its handshake */
    uint64_t check_id;            /* of its password, while that is being checked */
    bool is_admitted;             /* the request in hand may be answered */
    struct http_variant *variant; /* what the request in hand is about, or NULL */
    bool wants_readiness;         /* all it asks is whether there is a body */
    enum reply reply;             /* what it gets, once that is known */
};

TAILQ_HEAD(http_connection_list, http_connection);

/* Whose state this is. */
struct http_connection *http_connection_of(struct connection_state *state);

/* Suspends it, in this list, until it is answered. */
void http_connection_wait_in(struct http_connection_list *list, struct http_connection *c);
void http_connection_answer(struct http_connection *c, enum reply reply);
void http_connection_answer_all(struct http_connection_list *waiting, enum reply reply);

/* For a request that is over. */
void http_connection_stop_waiting(struct http_connection *c);
