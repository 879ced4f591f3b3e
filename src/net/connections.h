/*
 * Connections: what each one does, how long it may, and who has to go when there are too many.
 *
 * The limits are absolute: libmicrohttpd's own timeout starts over with every byte, so a client
 * that drips one byte a second would stay for ever. Nothing here knows HTTP.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "core/clock.h"

enum connection_phase {
    CONNECTION_FRESH, /* from accept to the end of the first request's headers */
    CONNECTION_IDLE,  /* from a response to the end of the next request's headers */
    CONNECTION_BUSY,  /* from there to the end of the response */
    CONNECTION_CUT,   /* shut down, until its owner notices and closes it */
    CONNECTION_PHASES,
};

/* To be embedded by its owner. */
struct connection_state {
    TAILQ_ENTRY(connection_state) by_phase;
    int fd; /* the owner's */
    enum connection_phase phase;
    uint64_t since_us;   /* when the phase began */
    bool waits_for_body; /* busy, but it is we who are slow */
};

TAILQ_HEAD(connection_states, connection_state);

struct connections {
    const struct clock *clock;
    size_t count;
    struct connection_states phases[CONNECTION_PHASES]; /* each with the oldest first */
};

void connections_init(struct connections *connections, const struct clock *clock);
void connections_add(struct connections *connections, struct connection_state *state, int fd);
void connections_remove(struct connections *connections, struct connection_state *state);
void connections_enter(struct connections *connections, struct connection_state *state,
                       enum connection_phase phase);

/* Shuts the socket down. Its owner reads an end of file at its next run, and closes. */
void connections_cut(struct connections *connections, struct connection_state *state);

/* Cuts all that are past the limit of their phase. */
void connections_enforce_limits(struct connections *connections);

/* When that is next due; UINT64_MAX: never, as things stand. */
uint64_t connections_next_limit_us(const struct connections *connections);

/*
 * Whom to cut for a newcomer, or NULL: who has waited longest without a complete request. So a
 * crowd of idle or dripping connections pushes out its own, and a scraper that sends its request is
 * never in line. Where all are being answered, the slowest reader, after a second of grace.
 */
struct connection_state *connections_victim(struct connections *connections);

/* Who has been sent a response for the longest time, or NULL. */
struct connection_state *connections_slowest_reader(struct connections *connections);

bool connections_any_busy(const struct connections *connections);
