#include "sources/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "core/macros.h"
#include "model/counter.h"
#include "sources/bmc/bmc_meter.h"
#include "sources/redfish_reading.h"

/* In one read: a bound for a flood of them. */
enum { READINGS_MAX = 64 };

/* Until the first reading. */
static const uint64_t FIRST_WAIT_US = 10 * USEC_PER_SEC;

struct redfish {
    const struct source_context *context;
    uint64_t received_us; /* when the last reading came, or the source was opened */
    uint64_t taken_us;    /* the time of the last good reading; 0: none */
    uint64_t last_mw;
    struct bmc_meter meter;
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
    if (n != sizeof(reading) || !error_is_result(reading.result) ||
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
    redfish->received_us = context->clock->monotonic_us(context->clock);
    redfish->meter.source = "redfish";
    *ret_state = redfish;
    return 0;
}

/* Its sender has checked it, too, but parses bytes from the network. */
static bool is_sound(const struct redfish *redfish, const struct redfish_reading *reading,
                     uint64_t now_us)
{
    return reading->power_mw > 0 && reading->power_mw < PLAUSIBLE_POWER_MAX_UW / 1000 &&
           reading->taken_us > redfish->taken_us && reading->taken_us <= now_us &&
           now_us - reading->taken_us <= BMC_HOLD_US;
}

static int add_reading(struct redfish *redfish, const struct redfish_reading *reading,
                       uint64_t now_us, struct batch *batch, struct error *err)
{
    const struct clock *clock = redfish->context->clock;
    bool is_repeated = reading->power_mw == redfish->last_mw;

    if (reading->result < 0)
        return error_set(err, reading->result == -ENODEV ? -EIO : reading->result, "%.*s",
                         (int)sizeof(reading->why) - 1, reading->why);
    if (!is_sound(redfish, reading, now_us))
        return error_set(err, -EBADMSG, "a reading of the BMC is out of time or out of range");
    redfish->taken_us = reading->taken_us;
    redfish->last_mw = reading->power_mw;
    return bmc_meter_add(
        &redfish->meter,
        &(struct bmc_reading){.power_mw = reading->power_mw,
                              .mono_us = reading->taken_us,
                              .t_us = clock->realtime_us(clock) - (now_us - reading->taken_us),
                              .is_repeated = is_repeated,
                              .frozen_us = BMC_FROZEN_US},
        batch, err);
}

static int redfish_read(void *state, struct batch *batch, struct error *err)
{
    struct redfish *redfish = state;
    const struct clock *clock = redfish->context->clock;
    uint64_t wait_us = redfish->taken_us > 0 ? BMC_HOLD_US : FIRST_WAIT_US;
    struct redfish_reading reading;

    for (int i = 0; i < READINGS_MAX; i++) {
        int r = redfish_reading_receive(*redfish->context->redfish_fd, &reading);
        uint64_t now_us = clock->monotonic_us(clock);

        if (r == -EAGAIN)
            break;
        redfish->received_us = now_us;
        redfish->why.text[0] = '\0';
        redfish->result = r < 0 ? error_set(&redfish->why, r, "a malformed reading of the BMC")
                                : add_reading(redfish, &reading, now_us, batch, &redfish->why);
    }
    /* After a failure the next reading may be minutes away. */
    if (redfish->result == 0 && clock->monotonic_us(clock) - redfish->received_us > wait_us)
        redfish->result = error_set(&redfish->why, -ETIMEDOUT, "no reading of the BMC for %llu s",
                                    (unsigned long long)(wait_us / USEC_PER_SEC));
    return redfish->result < 0 ? error_set(err, redfish->result, "%s", redfish->why.text) : 0;
}

const struct source_ops redfish_source = {
    .name = "redfish",
    .flag = "collector.redfish",
    .help = "read the node's power over Redfish, if --redfish.url is set",
    .interval_us = USEC_PER_SEC,
    .interval_max_us = 5 * USEC_PER_SEC,
    .open = redfish_open,
    .read = redfish_read,
    .close = free,
};
