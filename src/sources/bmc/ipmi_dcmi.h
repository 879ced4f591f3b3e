/*
 * DCMI Get Power Reading (DCMI 1.5, 6.6.1): the bytes of the question, and what an answer says.
 * Pure; ipmi_device.h carries them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "core/span.h"

enum { DCMI_NETFN = 0x2c, DCMI_GET_POWER_READING = 0x02, DCMI_POWER_REQUEST_BYTES = 4 };

extern const uint8_t dcmi_power_request[DCMI_POWER_REQUEST_BYTES];

/* All but `current_w` tell only whether the BMC is alive: the others cover the time since it last
 * reset its statistics, which may be weeks. */
struct dcmi_power {
    uint16_t current_w; /* never 0 */
    uint16_t minimum_w, maximum_w, average_w;
    uint32_t time_s;    /* of the BMC's clock; 0: it does not say */
    uint32_t period_ms; /* of the statistics; 0: it does not say */
    bool is_active;     /* OpenBMC never says so, and measures all the same */
};

/*
 * What follows the network function and the command in an answer, the completion code first. 0, or
 * with a text -EOPNOTSUPP: it will never tell; -ENODATA: it has no reading now; -EBUSY: it starts,
 * ask again in a minute; -ETIMEDOUT: it did not answer the driver; -EAGAIN: another failure of its
 * own; -EBADMSG: this is no such answer.
 */
int dcmi_parse_power(struct span answer, struct dcmi_power *ret_power, struct error *err);
