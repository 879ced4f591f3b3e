#include "sources/bmc/ipmi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "model/report.h"
#include "sources/counter.h"

/* KCS without an interrupt is polled by the kernel while a question is open: ask seldom. */
enum { PERIOD_S = 10 };
static const uint64_t PERIOD_US = PERIOD_S * USEC_PER_SEC;
/* A read that comes a little early is one of ours. */
static const uint64_t SLACK_US = USEC_PER_SEC;
static const uint64_t PERIOD_MAX_US = 60 * USEC_PER_SEC;
/* A healthy BMC answers within 2 s. */
static const uint64_t ANSWER_US = 5 * USEC_PER_SEC;
/* For how long the power between two readings is believed. */
static const uint64_t HOLD_US = 30 * USEC_PER_SEC;
/* A node's power moves by a watt within minutes; a time stamp that used to move always does. */
static const uint64_t FROZEN_US = 600 * USEC_PER_SEC;
static const uint64_t FROZEN_CLOCK_US = 60 * USEC_PER_SEC;

/* So many questions without an answer, and the device is opened anew. */
enum { TIMEOUTS_MAX = 3 };

struct ipmi {
    const struct source_context *context;
    struct ipmi_device device;
    uint64_t due_us; /* not asked before, by the monotonic clock */
    bool has_answered;
    unsigned failures, timeouts; /* in a row */
    int result;                  /* of the last question */
    struct error why;

    struct dcmi_power last;
    uint64_t moved_us;    /* when it was not as before */
    bool has_time_stamps; /* that move */
    struct integrator integrator;
};

int ipmi_ask_power(struct ipmi_device *device, struct dcmi_power *ret_power, struct error *err)
{
    static const struct ipmi_question question = {
        .netfn = DCMI_NETFN,
        .command = DCMI_GET_POWER_READING,
        .data = dcmi_power_request,
        .len = sizeof(dcmi_power_request),
    };
    struct ipmi_answer answer;
    int r = ipmi_device_ask(device, &question, ANSWER_US, &answer, err);

    if (r < 0)
        return r;
    return dcmi_parse_power((struct span){(const char *)answer.data, answer.len}, ret_power, err);
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
    ipmi->integrator.stale_us = HOLD_US;
    ipmi->context = context;
    ipmi_device_init(&ipmi->device, calls, context->clock);
    r = ipmi_device_open(&ipmi->device, context->host, err);
    /* No reason not to start. */
    if (r == -EACCES)
        return -ENOTSUP;
    if (r < 0)
        return r;
    *ret_state = TAKE_PTR(ipmi);
    return 0;
}

static int ipmi_open(const struct source_context *context, void **ret_state, struct error *err)
{
    return ipmi_open_with(context, &ipmi_calls_system, ret_state, err);
}

static bool is_same(const struct dcmi_power *a, const struct dcmi_power *b)
{
    return a->current_w == b->current_w && a->minimum_w == b->minimum_w &&
           a->maximum_w == b->maximum_w && a->average_w == b->average_w && a->time_s == b->time_s &&
           a->period_ms == b->period_ms;
}

/* A BMC that hangs may go on to tell the last that it measured. */
static int check_moves(struct ipmi *ipmi, const struct dcmi_power *power, uint64_t now_us,
                       struct error *err)
{
    uint64_t still_us;

    if (!ipmi->has_answered || !is_same(power, &ipmi->last)) {
        if (ipmi->has_answered && power->time_s != ipmi->last.time_s)
            ipmi->has_time_stamps = true;
        ipmi->last = *power;
        ipmi->moved_us = now_us;
        return 0;
    }
    still_us = now_us - ipmi->moved_us;
    if (still_us < (ipmi->has_time_stamps ? FROZEN_CLOCK_US : FROZEN_US))
        return 0;
    return error_set(err, -ESTALE,
                     "the BMC has said %u W for %llu s without any change: its reading is stale; "
                     "it may need a reset (ipmitool mc reset cold)",
                     (unsigned)power->current_w, (unsigned long long)(still_us / USEC_PER_SEC));
}

static int emit(struct ipmi *ipmi, uint64_t power_mw, uint64_t mono_us, struct batch *batch,
                struct error *err)
{
    const struct clock *clock = ipmi->context->clock;
    struct sample sample = {
        .kind = SAMPLE_NODE_POWER,
        .t_us = clock->realtime_us(clock),
        .node_power = {.source = "ipmi", .power_mw = power_mw},
    };
    int r = batch_add(batch, &sample);

    integrator_add(&ipmi->integrator, mono_us, power_mw * 1000);
    sample.kind = SAMPLE_METER;
    sample.meter = (struct sample_meter){
        .source = "ipmi",
        .kind = METER_NODE,
        .id = "ipmi",
        .counter_uj = ipmi->integrator.energy_uj,
        .breaks = ipmi->integrator.breaks,
        .integrated = true,
    };
    if (r == 0)
        r = batch_add(batch, &sample);
    return r < 0 ? error_set(err, r, "out of memory") : 0;
}

static int ask(struct ipmi *ipmi, struct batch *batch, struct error *err)
{
    const struct clock *clock = ipmi->context->clock;
    struct dcmi_power power = {0};
    uint64_t now_us;
    int r = ipmi->device.fd < 0 ? ipmi_device_open(&ipmi->device, ipmi->context->host, err) : 0;

    if (r == 0)
        r = ipmi_ask_power(&ipmi->device, &power, err);
    if (r < 0)
        return r;
    now_us = clock->monotonic_us(clock);
    r = check_moves(ipmi, &power, now_us, err);
    ipmi->has_answered = true;
    return r < 0 ? r : emit(ipmi, (uint64_t)power.current_w * 1000, now_us, batch, err);
}

/* A BMC that is reset loses its interface or leaves questions unanswered. */
static void close_if_lost(struct ipmi *ipmi, int result)
{
    ipmi->timeouts = result == -ETIMEDOUT ? ipmi->timeouts + 1 : 0;
    if (result != -ENODEV && ipmi->timeouts < TIMEOUTS_MAX)
        return;
    ipmi_device_close(&ipmi->device);
    ipmi->timeouts = 0;
}

static uint64_t pause_us(const struct ipmi *ipmi, int result)
{
    if (result == 0)
        return PERIOD_US;
    if (result == -EBUSY)
        return PERIOD_MAX_US;
    return MIN(PERIOD_US << MIN(ipmi->failures, 3U), PERIOD_MAX_US);
}

static int ipmi_read(void *state, struct batch *batch, struct error *err)
{
    struct ipmi *ipmi = state;
    const struct clock *clock = ipmi->context->clock;
    uint64_t now_us = clock->monotonic_us(clock);
    int r;

    if (now_us < ipmi->due_us) /* as it was: what failed has not come back by waiting */
        return ipmi->result < 0 ? error_set(err, ipmi->result, "%s", ipmi->why.text) : 0;
    ipmi->why.text[0] = '\0';
    r = ask(ipmi, batch, &ipmi->why);
    close_if_lost(ipmi, r);
    /* One that never told its power is none; one that did is down. */
    if (!ipmi->has_answered && (r == -EOPNOTSUPP || r == -ENODEV))
        return error_set(err, -ENODEV, "%s", ipmi->why.text);
    if (r == -ENODEV)
        r = -EIO;
    ipmi->due_us = now_us + pause_us(ipmi, r) - SLACK_US;
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

static const char *remedy_for(int error)
{
    switch (error) {
    case -ENODEV:
        return "not needed without a BMC; otherwise load its driver: modprobe ipmi_si (or "
               "ipmi_ssif) and modprobe ipmi_devintf; give a container the device "
               "(--device=/dev/ipmi0)";
    case -EACCES:
        return "run as root, or let this user read it: a udev rule "
               "KERNEL==\"ipmi[0-9]*\", GROUP=\"...\", MODE=\"0640\"";
    case -EOPNOTSUPP:
        return "none: this BMC does not offer it; its power may be known by Redfish, hwmon or RAPL";
    case -ENODATA:
        return "enable power measurement in the BMC's settings";
    case -ETIMEDOUT:
        return "try again; if it stays silent, reset the BMC (ipmitool mc reset cold)";
    default:
        return "try again";
    }
}

static void ipmi_check(const struct source_context *context, struct report *report)
{
    struct ipmi_device device;
    struct dcmi_power power;
    struct error err = {""};
    int r;

    ipmi_device_init(&device, &ipmi_calls_system, context->clock);
    r = ipmi_device_open(&device, context->host, &err);
    if (r == 0)
        r = ipmi_ask_power(&device, &power, &err);
    ipmi_device_close(&device);
    report->meters += r == 0;
    if (r == 0)
        report_add(report, "ipmi", VERDICT_OK, NULL, "the BMC tells the node's power by DCMI: %u W",
                   (unsigned)power.current_w);
    else
        report_add(report, "ipmi",
                   r == -ENODEV || r == -EOPNOTSUPP ? VERDICT_MISSING : VERDICT_LIMITED,
                   remedy_for(r), "%s", err.text);
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
