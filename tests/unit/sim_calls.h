/* The parts of a simulated machine that are no files: perf's events, and a BMC behind the kernel's
 * driver. */
#pragma once

#include "sim_meter.h"

#include <linux/ipmi.h>

#include "core/clock.h"
#include "sources/bmc/ipmi.h"
#include "sources/rapl/rapl.h"

enum { SIM_BMC_FD = 12345, SIM_EVENTS_MAX = 1024 };

/* perf's system calls have no context of their own. */
static struct {
    struct sim_meter *meters;
    size_t count;
    struct {
        int fd;
        struct sim_meter *meter;
    } events[SIM_EVENTS_MAX];
    size_t event_count;
} sim_perf;

/* As written to the PMU's events; CPU n is the first of socket n. */
static enum meter_kind sim_event_kind(uint64_t config)
{
    return config == 2 ? METER_PACKAGE : METER_DRAM;
}

static int sim_perf_event_open(struct perf_event_attr *attr, int cpu)
{
    const char id[] = {(char)('0' + cpu), '\0'};

    for (size_t i = 0; i < sim_perf.count; i++) {
        struct sim_meter *meter = &sim_perf.meters[i];
        int fd;

        if (meter->plan->form != SIM_EVENT || meter->plan->kind != sim_event_kind(attr->config) ||
            strcmp(meter->plan->id, id) != 0)
            continue;
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0 && sim_perf.event_count < SIM_EVENTS_MAX);
        meter->hidden_uj = meter->drawn_uj;
        sim_perf.events[sim_perf.event_count].fd = fd;
        sim_perf.events[sim_perf.event_count++].meter = meter;
        return fd;
    }
    return -ENOENT;
}

static ssize_t sim_perf_read(int fd, void *buffer, size_t size_bytes)
{
    for (size_t i = sim_perf.event_count; i-- > 0;) {
        uint64_t count;

        if (sim_perf.events[i].fd != fd)
            continue;
        count = sim_event_count(sim_perf.events[i].meter);
        assert_int_equal(size_bytes, sizeof(count));
        memcpy(buffer, &count, sizeof(count));
        return sim_perf.events[i].meter->is_garbage ? 3 : (ssize_t)sizeof(count);
    }
    fail_msg("descriptor %d is no event", fd);
    return -1;
}

static const struct rapl_calls sim_rapl_calls = {
    .perf_event_open = sim_perf_event_open, .read = sim_perf_read, .pread = pread};

struct sim_bmc {
    struct ipmi_calls calls; /* first: a pointer to this is a pointer to the whole */
    const struct clock *clock;
    struct sim_meter *meter; /* NULL: there is none */
    long msgid;
    bool is_pending;
};

static struct sim_bmc *sim_bmc_of(const struct ipmi_calls *calls)
{
    return (struct sim_bmc *)(uintptr_t)calls;
}

static int sim_bmc_open(const struct ipmi_calls *calls, int dir_fd, const char *path)
{
    (void)dir_fd;
    (void)path;
    return sim_bmc_of(calls)->meter ? SIM_BMC_FD : -ENOENT;
}

static void sim_bmc_close(const struct ipmi_calls *calls, int fd)
{
    assert_int_equal(fd, SIM_BMC_FD);
    sim_bmc_of(calls)->is_pending = false;
}

/* It reports whole watts; with garbage, that it has no reading. */
static int sim_bmc_answer(struct sim_bmc *bmc, struct ipmi_recv *recv)
{
    uint8_t data[19] = {[0] = bmc->meter->is_garbage ? 0xc9 : 0, [1] = 0xdc};
    uint16_t watts = (uint16_t)(bmc->meter->power_uw / 1000000);

    if (!bmc->is_pending)
        return -EAGAIN;
    bmc->is_pending = false;
    for (size_t at = 2; at < 10; at += 2)
        memcpy(data + at, &watts, sizeof(watts));
    recv->recv_type = IPMI_RESPONSE_RECV_TYPE;
    recv->msgid = bmc->msgid;
    recv->msg.netfn = DCMI_NETFN | 1;
    recv->msg.cmd = DCMI_GET_POWER_READING;
    recv->msg.data_len = sizeof(data);
    memcpy(recv->msg.data, data, sizeof(data));
    bmc->meter->power_uw = watts * (uint64_t)1000000;
    sim_meter_note_read(bmc->meter, bmc->clock->monotonic_us(bmc->clock));
    return 0;
}

static int sim_bmc_control(const struct ipmi_calls *calls, int fd, unsigned long request,
                           void *argument)
{
    struct sim_bmc *bmc = sim_bmc_of(calls);

    assert_int_equal(fd, SIM_BMC_FD);
    if (request != IPMICTL_SEND_COMMAND)
        return sim_bmc_answer(bmc, argument);
    bmc->msgid = ((const struct ipmi_req *)argument)->msgid;
    bmc->is_pending = true;
    return 0;
}

static int sim_bmc_wait(const struct ipmi_calls *calls, int fd, uint64_t timeout_us)
{
    (void)fd;
    (void)timeout_us;
    return sim_bmc_of(calls)->is_pending;
}

static void sim_bmc_init(struct sim_bmc *bmc, const struct clock *clock, struct sim_meter *meter)
{
    *bmc = (struct sim_bmc){
        .calls = {sim_bmc_open, sim_bmc_control, sim_bmc_wait, sim_bmc_close},
        .clock = clock,
        .meter = meter,
    };
}
