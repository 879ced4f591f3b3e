#include "sources/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "core/macros.h"
#include "sources/counter.h"
#include "sources/redfish_reading.h"

/* For how long the power between two readings is believed, and silence is no failure. */
static const uint64_t HOLD_US = 30 * USEC_PER_SEC;
/* As for IPMI: a node's power moves by a watt within minutes. */
static const uint64_t FROZEN_US = 600 * USEC_PER_SEC;

/* Of one read: what a flood of them may take. */
enum { READINGS_MAX = 64 };

struct redfish {
    const struct source_context *context;
    uint64_t heard_us; /* the last reading came, or the source was opened */
    uint64_t taken_us; /* the last reading that was taken; 0: none */
    uint64_t last_mw, moved_us;
    struct integrator integrator;
    int result; /* of the last reading */
    struct error why;
};

int redfish_reading_send(int fd, const struct redfish_reading *reading)
{
    return send(fd, reading, sizeof(*reading), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

int redfish_reading_receive(int fd, struct redfish_reading *ret_reading)
{
    struct redfish_reading reading;
    ssize_t n = recv(fd, &reading, sizeof(reading), MSG_DONTWAIT | MSG_TRUNC);

    if (n < 0)
        return -errno;
    if (n != sizeof(reading) || reading.result > 0 ||
        !memchr(reading.why, '\0', sizeof(reading.why)))
        return -EPROTO;
    *ret_reading = reading;
    return 0;
}

static int redfish_open(const struct source_context *context, void **ret_state, struct error *err)
{
    struct redfish *redfish;

    if (!context->redfish_fd || context->replay_path)
        return -ENODEV;
    redfish = calloc(1, sizeof(*redfish));
    if (!redfish)
        return error_set(err, -ENOMEM, "out of memory");
    redfish->context = context;
    redfish->heard_us = context->clock->monotonic_us(context->clock);
    redfish->integrator.stale_us = HOLD_US;
    *ret_state = redfish;
    return 0;
}

/* A BMC that hangs may go on to tell the last that it measured. */
static int check_moves(struct redfish *redfish, const struct redfish_reading *reading,
                       struct error *err)
{
    uint64_t still_us;

    if (redfish->taken_us == 0 || reading->power_mw != redfish->last_mw) {
        redfish->last_mw = reading->power_mw;
        redfish->moved_us = reading->taken_us;
        return 0;
    }
    still_us = reading->taken_us - redfish->moved_us;
    if (still_us < FROZEN_US)
        return 0;
    return error_set(err, -ESTALE,
                     "the BMC has said %llu.%03u W for %llu s without any change: its reading is "
                     "stale; it may need a reset",
                     (unsigned long long)(reading->power_mw / 1000),
                     (unsigned)(reading->power_mw % 1000),
                     (unsigned long long)(still_us / USEC_PER_SEC));
}

static int emit(struct redfish *redfish, const struct redfish_reading *reading, uint64_t now_us,
                struct batch *batch, struct error *err)
{
    const struct clock *clock = redfish->context->clock;
    struct sample sample = {
        .kind = SAMPLE_NODE_POWER,
        .t_us = clock->realtime_us(clock) - (now_us - reading->taken_us),
        .node_power = {.source = "redfish", .power_mw = reading->power_mw},
    };
    int r = batch_add(batch, &sample);

    integrator_add(&redfish->integrator, reading->taken_us, reading->power_mw * 1000);
    sample.kind = SAMPLE_METER;
    sample.meter = (struct sample_meter){
        .source = "redfish",
        .kind = METER_NODE,
        .id = "redfish",
        .counter_uj = redfish->integrator.energy_uj,
        .breaks = redfish->integrator.breaks,
        .integrated = true,
    };
    if (r == 0)
        r = batch_add(batch, &sample);
    return r < 0 ? error_set(err, r, "out of memory") : 0;
}

/* Its sender has checked it too, but talks to strangers. */
static bool is_sound(const struct redfish *redfish, const struct redfish_reading *reading,
                     uint64_t now_us)
{
    return reading->power_mw > 0 && reading->power_mw < PLAUSIBLE_POWER_MAX_UW / 1000 &&
           reading->taken_us > redfish->taken_us && reading->taken_us <= now_us &&
           now_us - reading->taken_us <= HOLD_US;
}

static int take(struct redfish *redfish, const struct redfish_reading *reading, uint64_t now_us,
                struct batch *batch, struct error *err)
{
    int r;

    if (reading->result < 0)
        return error_set(err, reading->result == -ENODEV ? -EIO : reading->result, "%.*s",
                         (int)sizeof(reading->why) - 1, reading->why);
    if (!is_sound(redfish, reading, now_us))
        return error_set(err, -EBADMSG, "a reading of the BMC is out of time or out of range");
    r = check_moves(redfish, reading, err);
    redfish->taken_us = reading->taken_us;
    return r < 0 ? r : emit(redfish, reading, now_us, batch, err);
}

static int redfish_read(void *state, struct batch *batch, struct error *err)
{
    struct redfish *redfish = state;
    const struct clock *clock = redfish->context->clock;
    struct redfish_reading reading;

    for (int i = 0; i < READINGS_MAX; i++) {
        int r = redfish_reading_receive(*redfish->context->redfish_fd, &reading);
        uint64_t now_us = clock->monotonic_us(clock);

        if (r == -EAGAIN)
            break;
        redfish->heard_us = now_us;
        redfish->why.text[0] = '\0';
        redfish->result = r < 0 ? error_set(&redfish->why, r, "a reading of the BMC is none")
                                : take(redfish, &reading, now_us, batch, &redfish->why);
    }
    /* After a failure the next reading may be minutes away. */
    if (redfish->result == 0 && clock->monotonic_us(clock) - redfish->heard_us > HOLD_US)
        redfish->result =
            error_set(&redfish->why, -ETIMEDOUT, "nothing was heard of the BMC for %llu s",
                      (unsigned long long)(HOLD_US / USEC_PER_SEC));
    return redfish->result < 0 ? error_set(err, redfish->result, "%s", redfish->why.text) : 0;
}

static void redfish_close(void *state)
{
    free(state);
}

const struct source_ops redfish_source = {
    .name = "redfish",
    .flag = "collector.redfish",
    .help = "read the node's power over Redfish, if --redfish.url is set",
    .interval_us = USEC_PER_SEC,
    .interval_max_us = 5 * USEC_PER_SEC,
    .open = redfish_open,
    .read = redfish_read,
    .close = redfish_close,
};
