#include "net/connections.h"

#include <sys/socket.h>

#include "core/macros.h"

/* Prometheus scrapes at most every two minutes. */
static const uint64_t phase_limit_us[] = {
    [CONNECTION_FRESH] = 5 * USEC_PER_SEC,
    [CONNECTION_IDLE] = 120 * USEC_PER_SEC,
    [CONNECTION_BUSY] = 30 * USEC_PER_SEC,
};

/* How long a response takes at least before it may be cut short to make room. */
static const uint64_t BUSY_GRACE_US = USEC_PER_SEC;

static uint64_t now_us(const struct connections *connections)
{
    return connections->clock->monotonic_us(connections->clock);
}

void connections_init(struct connections *connections, const struct clock *clock)
{
    *connections = (struct connections){.clock = clock};
    for (size_t i = 0; i < CONNECTION_PHASES; i++)
        TAILQ_INIT(&connections->phases[i]);
}

void connections_add(struct connections *connections, struct connection_state *state, int fd)
{
    state->fd = fd;
    state->phase = CONNECTION_FRESH;
    state->since_us = now_us(connections);
    TAILQ_INSERT_TAIL(&connections->phases[CONNECTION_FRESH], state, by_phase);
    connections->count++;
}

void connections_remove(struct connections *connections, struct connection_state *state)
{
    TAILQ_REMOVE(&connections->phases[state->phase], state, by_phase);
    connections->count--;
}

void connections_enter(struct connections *connections, struct connection_state *state,
                       enum connection_phase phase)
{
    TAILQ_REMOVE(&connections->phases[state->phase], state, by_phase);
    state->phase = phase;
    state->since_us = now_us(connections);
    TAILQ_INSERT_TAIL(&connections->phases[phase], state, by_phase);
}

void connections_cut(struct connections *connections, struct connection_state *state)
{
    shutdown(state->fd, SHUT_RDWR);
    connections_enter(connections, state, CONNECTION_CUT);
}

void connections_enforce_limits(struct connections *connections)
{
    uint64_t now = now_us(connections);
    struct connection_state *state;

    for (size_t phase = 0; phase < CONNECTION_CUT; phase++)
        while ((state = TAILQ_FIRST(&connections->phases[phase])) &&
               now - state->since_us >= phase_limit_us[phase])
            connections_cut(connections, state);
}

uint64_t connections_next_limit_us(const struct connections *connections)
{
    uint64_t next_us = UINT64_MAX;

    for (size_t phase = 0; phase < CONNECTION_CUT; phase++) {
        const struct connection_state *state = TAILQ_FIRST(&connections->phases[phase]);

        if (state)
            next_us = MIN(next_us, state->since_us + phase_limit_us[phase]);
    }
    return next_us;
}

struct connection_state *connections_slowest_reader(struct connections *connections)
{
    struct connection_state *state = TAILQ_FIRST(&connections->phases[CONNECTION_BUSY]);

    while (state && state->waits_for_body)
        state = TAILQ_NEXT(state, by_phase);
    return state;
}

struct connection_state *connections_victim(struct connections *connections)
{
    struct connection_state *fresh = TAILQ_FIRST(&connections->phases[CONNECTION_FRESH]);
    struct connection_state *idle = TAILQ_FIRST(&connections->phases[CONNECTION_IDLE]);
    struct connection_state *reader = connections_slowest_reader(connections);

    if (fresh && (!idle || fresh->since_us <= idle->since_us))
        return fresh;
    if (idle)
        return idle;
    return reader && now_us(connections) - reader->since_us >= BUSY_GRACE_US ? reader : NULL;
}

bool connections_any_busy(const struct connections *connections)
{
    return !TAILQ_EMPTY(&connections->phases[CONNECTION_BUSY]);
}
