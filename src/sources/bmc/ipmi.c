#include "sources/bmc/ipmi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "core/map.h"
#include "model/report.h"
#include "sources/bmc/bmc_meter.h"

/* The kernel polls KCS without an interrupt while a request is open: send few. */
enum { PERIOD_S = 10 };
static const uint64_t PERIOD_US = PERIOD_S * USEC_PER_SEC;
static const uint64_t PERIOD_MAX_US = 60 * USEC_PER_SEC;
/* A read that comes a little early is on time. */
static const uint64_t SLACK_US = USEC_PER_SEC;
/* A healthy BMC answers within 2 s. */
static const uint64_t RESPONSE_US = 5 * USEC_PER_SEC;
/* A time stamp that used to move always does. */
static const uint64_t FROZEN_CLOCK_US = 60 * USEC_PER_SEC;

enum {
    TIMEOUTS_MAX = 3, /* in a row, then the device is opened anew */
    /* A node that draws this much has a register of all ones, not a meter. */
    IMPLAUSIBLE_W = 50000,
    SATURATED_W = INT16_MAX,
};

struct ipmi {
    const struct source_context *context;
    struct ipmi_device device;
    uint64_t due_us;             /* no request before, by the monotonic clock */
    unsigned failures, timeouts; /* in a row */
    int result;                  /* of the last request */
    struct error why;

    struct dcmi_power last;
    bool has_time_stamps; /* that move */
    struct bmc_meter meter;
};

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
            return error_set(
                err, completions[i].error,
                "the BMC does not report its power by DCMI: %s (completion code 0x%02x)",
                completions[i].text, code);
    return error_set(err, -EAGAIN,
                     "the BMC does not report its power by DCMI: completion code 0x%02x", code);
}

/* A number of so many bytes, the lowest first; 0 where the data end before. */
static uint32_t number_at(struct span data, size_t at, size_t bytes)
{
    uint32_t value = 0;

    for (size_t i = 0; i < bytes && at + bytes <= data.len; i++)
        value |= (uint32_t)(uint8_t)data.data[at + i] << (8 * i);
    return value;
}

int dcmi_parse_power(struct span data, struct dcmi_power *ret_power, struct error *err)
{
    enum { POWER_BYTES = 10, TIMES_BYTES = 18, STATE_ACTIVE = 0x40 };
    struct dcmi_power power = {
        .current_w = (uint16_t)number_at(data, 2, 2),
        .time_s = data.len >= TIMES_BYTES ? number_at(data, 10, 4) : 0,
        .hash = map_hash_bytes((struct span){data.data, MIN(data.len, (size_t)TIMES_BYTES)}),
    };
    bool is_active = number_at(data, TIMES_BYTES, 1) & STATE_ACTIVE;

    if (data.len < 1)
        return error_set(err, -EBADMSG, "the BMC's response is empty");
    if (data.data[0] != 0)
        return refuse((uint8_t)data.data[0], err);
    if (data.len < POWER_BYTES)
        return error_set(err, -EBADMSG, "the BMC's response has %zu bytes of at least %d", data.len,
                         POWER_BYTES);
    if (number_at(data, 1, 1) != DCMI_GROUP_ID)
        return error_set(err, -EBADMSG, "the BMC's response is of group 0x%02x, not of DCMI",
                         number_at(data, 1, 1));
    if (power.current_w == 0)
        return error_set(err, -ENODATA,
                         "the BMC has no power reading: it reports 0 W, measuring %s",
                         is_active ? "active" : "inactive");
    if (power.current_w >= IMPLAUSIBLE_W || power.current_w == SATURATED_W)
        return error_set(err, -ENODATA, "the BMC has no power reading: it reports %u W",
                         (unsigned)power.current_w);
    *ret_power = power;
    return 0;
}

static int query_power(struct ipmi_device *device, struct dcmi_power *ret_power, struct error *err)
{
    struct ipmi_response response;
    int r = ipmi_device_query(device, RESPONSE_US, &response, err);

    if (r < 0)
        return r;
    return dcmi_parse_power((struct span){(const char *)response.data, response.len}, ret_power,
                            err);
}

int ipmi_open_with(const struct source_context *context, const struct ipmi_calls *calls,
                   void **ret_state, struct error *err)
{
    _cleanup_free_ struct ipmi *ipmi = NULL;
    int r;

    if (context->replay_path)
        return -ENODEV;
    ipmi = calloc(1, sizeof(*ipmi));
    if (!ipmi)
        return error_set(err, -ENOMEM, "out of memory");
    ipmi->meter.source = "ipmi";
    ipmi->context = context;
    ipmi->device = (struct ipmi_device){.calls = calls, .clock = context->clock, .fd = -1};
    r = ipmi_device_open(&ipmi->device, context->host, err);
    if (r < 0)
        return r == -EACCES ? -ENOTSUP : r; /* a warning; the collector starts without it */
    *ret_state = TAKE_PTR(ipmi);
    return 0;
}

static int ipmi_open(const struct source_context *context, void **ret_state, struct error *err)
{
    return ipmi_open_with(context, &ipmi_calls_system, ret_state, err);
}

static int poll_power(struct ipmi *ipmi, struct batch *batch, struct error *err)
{
    const struct clock *clock = ipmi->context->clock;
    struct dcmi_power power = {0};
    struct bmc_reading reading;
    int r = ipmi->device.fd < 0 ? ipmi_device_open(&ipmi->device, ipmi->context->host, err) : 0;

    if (r == 0)
        r = query_power(&ipmi->device, &power, err);
    if (r < 0)
        return r;
    ipmi->has_time_stamps |= ipmi->meter.has_reading && power.time_s != ipmi->last.time_s;
    reading = (struct bmc_reading){
        .power_mw = (uint64_t)power.current_w * 1000,
        .mono_us = clock->monotonic_us(clock),
        .t_us = clock->realtime_us(clock),
        .is_repeated = power.hash == ipmi->last.hash,
        .frozen_us = ipmi->has_time_stamps ? FROZEN_CLOCK_US : BMC_FROZEN_US,
    };
    ipmi->last = power;
    return bmc_meter_add(&ipmi->meter, &reading, batch, err);
}

/* A BMC that is reset loses its interface or leaves requests unanswered. */
static void close_if_lost(struct ipmi *ipmi, int result)
{
    ipmi->timeouts = result == -ETIMEDOUT ? ipmi->timeouts + 1 : 0;
    if (result != -ENODEV && ipmi->timeouts < TIMEOUTS_MAX)
        return;
    ipmi_device_close(&ipmi->device);
    ipmi->timeouts = 0;
}

static int ipmi_read(void *state, struct batch *batch, struct error *err)
{
    struct ipmi *ipmi = state;
    const struct clock *clock = ipmi->context->clock;
    uint64_t now_us = clock->monotonic_us(clock), pause_us = PERIOD_US;
    int r;

    if (now_us < ipmi->due_us) /* as it was */
        return ipmi->result < 0 ? error_set(err, ipmi->result, "%s", ipmi->why.text) : 0;
    ipmi->why.text[0] = '\0';
    r = poll_power(ipmi, batch, &ipmi->why);
    close_if_lost(ipmi, r);
    /* A BMC that never reported its power is no meter; one that did is down. */
    if (!ipmi->meter.has_reading && (r == -EOPNOTSUPP || r == -ENODEV))
        return error_set(err, -ENODEV, "%s", ipmi->why.text);
    if (r == -ENODEV)
        r = -EIO;
    if (r == -EBUSY)
        pause_us = PERIOD_MAX_US;
    else if (r < 0)
        pause_us = MIN(PERIOD_US << MIN(ipmi->failures, 3U), PERIOD_MAX_US);
    ipmi->due_us = now_us + pause_us - SLACK_US;
    ipmi->failures = r < 0 ? ipmi->failures + 1 : 0;
    ipmi->result = r;
    return r < 0 ? error_set(err, r, "%s", ipmi->why.text) : 0;
}

static void ipmi_close(void *state)
{
    struct ipmi *ipmi = state;

    if (!ipmi)
        return;
    ipmi_device_close(&ipmi->device);
    free(ipmi);
}

static const struct {
    int error;
    const char *remedy;
} remedies[] = {
    {-ENODEV,
     "not needed without a BMC; otherwise load its driver: modprobe ipmi_si (or ipmi_ssif) "
     "and modprobe ipmi_devintf; give a container the device (--device=/dev/ipmi0)"},
    {-EACCES, "run as root, or let this user read it: a udev rule "
              "KERNEL==\"ipmi[0-9]*\", GROUP=\"...\", MODE=\"0640\""},
    {-EOPNOTSUPP, "none: this BMC does not offer it; its power may be known by Redfish, hwmon or "
                  "RAPL"},
    {-ENODATA, "enable power measurement in the BMC's settings"},
    {-ETIMEDOUT, "try again; if it stays silent, reset the BMC (ipmitool mc reset cold)"},
};

static void ipmi_check(const struct source_context *context, struct report *report)
{
    struct ipmi_device device = {.calls = &ipmi_calls_system, .clock = context->clock, .fd = -1};
    const char *remedy = "try again";
    struct dcmi_power power;
    struct error err = {""};
    int r = ipmi_device_open(&device, context->host, &err);

    if (r == 0)
        r = query_power(&device, &power, &err);
    ipmi_device_close(&device);
    for (size_t i = 0; i < ARRAY_SIZE(remedies); i++)
        if (remedies[i].error == r)
            remedy = remedies[i].remedy;
    report->meters += r == 0;
    if (r == 0)
        report_add(report, "ipmi", VERDICT_OK, NULL,
                   "the BMC reports the node's power by DCMI: %u W", (unsigned)power.current_w);
    else
        report_add(report, "ipmi",
                   r == -ENODEV || r == -EOPNOTSUPP ? VERDICT_MISSING : VERDICT_FAILED, remedy,
                   "%s", err.text);
}

const struct source_ops ipmi_source = {
    .name = "ipmi",
    .flag = "collector.ipmi",
    .help = "read the node's power from its BMC over IPMI",
    .interval_us = PERIOD_S * USEC_PER_SEC,
    .open = ipmi_open,
    .read = ipmi_read,
    .close = ipmi_close,
    .check = ipmi_check,
};
