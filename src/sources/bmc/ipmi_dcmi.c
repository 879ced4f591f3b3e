#include "sources/bmc/ipmi_dcmi.h"

#include <errno.h>
#include <stddef.h>

#include "core/macros.h"

enum {
    GROUP_ID = 0xdc,
    STATE_ACTIVE = 0x40,
    /* Where the fields lie, and how long an answer has to be to hold them. */
    CURRENT_AT = 2,
    MINIMUM_AT = 4,
    MAXIMUM_AT = 6,
    AVERAGE_AT = 8,
    TIME_AT = 10,
    PERIOD_AT = 14,
    STATE_AT = 18,
    POWER_BYTES = TIME_AT,
    TIMES_BYTES = STATE_AT,
    STATE_BYTES = STATE_AT + 1,
    /* A node that draws this much has a register of all ones, not a meter. */
    IMPLAUSIBLE_W = 50000,
    SATURATED_W = INT16_MAX,
};

/* System power statistics, without attributes. */
const uint8_t dcmi_power_request[DCMI_POWER_REQUEST_BYTES] = {GROUP_ID, 0x01, 0x00, 0x00};

/* IPMI 2.0, table 5-2. */
static const struct {
    uint8_t code;
    int error;
    const char *text;
} completions[] = {
    {0xc0, -EAGAIN, "it is busy"},
    {0xc1, -EOPNOTSUPP, "it does not know the command"},
    {0xc3, -ETIMEDOUT, "timeout"},
    {0xc7, -EOPNOTSUPP, "it expects a request of another length"},
    {0xc9, -EOPNOTSUPP, "parameter out of range"},
    {0xcb, -ENODATA, "it has no such sensor"},
    {0xcc, -EOPNOTSUPP, "invalid field in the request"},
    {0xce, -ENODATA, "it cannot provide the answer"},
    {0xd1, -EBUSY, "its firmware is being updated"},
    {0xd2, -EBUSY, "it is starting"},
    {0xd4, -EOPNOTSUPP, "insufficient privilege"},
    {0xd5, -ENODATA, "not possible in its present state"},
    {0xd6, -ENODATA, "the function is disabled"},
    {0xff, -EAGAIN, "unspecified error"},
};

static int refuse(uint8_t code, struct error *err)
{
    for (size_t i = 0; i < ARRAY_SIZE(completions); i++)
        if (completions[i].code == code)
            return error_set(err, completions[i].error,
                             "the BMC does not tell its power by DCMI: %s (completion code 0x%02x)",
                             completions[i].text, code);
    return error_set(err, -EAGAIN,
                     "the BMC does not tell its power by DCMI: completion code 0x%02x", code);
}

static uint8_t u8_at(struct span bytes, size_t at)
{
    return (uint8_t)bytes.data[at];
}

static uint16_t u16_at(struct span bytes, size_t at)
{
    return (uint16_t)(u8_at(bytes, at) | u8_at(bytes, at + 1) << 8);
}

static uint32_t u32_at(struct span bytes, size_t at)
{
    return u16_at(bytes, at) | (uint32_t)u16_at(bytes, at + 2) << 16;
}

int dcmi_parse_power(struct span answer, struct dcmi_power *ret_power, struct error *err)
{
    struct dcmi_power power = {0};

    if (answer.len < 1)
        return error_set(err, -EBADMSG, "the BMC's answer is empty");
    if (u8_at(answer, 0) != 0)
        return refuse(u8_at(answer, 0), err);
    if (answer.len < POWER_BYTES)
        return error_set(err, -EBADMSG, "the BMC's answer has %zu bytes of at least %d", answer.len,
                         POWER_BYTES);
    if (u8_at(answer, 1) != GROUP_ID)
        return error_set(err, -EBADMSG, "the BMC's answer is of group 0x%02x, not of DCMI",
                         u8_at(answer, 1));
    power.current_w = u16_at(answer, CURRENT_AT);
    power.minimum_w = u16_at(answer, MINIMUM_AT);
    power.maximum_w = u16_at(answer, MAXIMUM_AT);
    power.average_w = u16_at(answer, AVERAGE_AT);
    if (answer.len >= TIMES_BYTES) {
        power.time_s = u32_at(answer, TIME_AT);
        power.period_ms = u32_at(answer, PERIOD_AT);
    }
    power.is_active = answer.len >= STATE_BYTES && u8_at(answer, STATE_AT) & STATE_ACTIVE;
    if (power.current_w == 0)
        return error_set(err, -ENODATA, "the BMC has no power reading: it says 0 W, measuring %s",
                         power.is_active ? "active" : "inactive");
    if (power.current_w >= IMPLAUSIBLE_W || power.current_w == SATURATED_W)
        return error_set(err, -ENODATA, "the BMC has no power reading: it says %u W",
                         (unsigned)power.current_w);
    *ret_power = power;
    return 0;
}
