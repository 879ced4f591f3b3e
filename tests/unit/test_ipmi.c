/*
 * sources/bmc/ipmi: against a driver and a BMC that follow a script. Its system calls are the
 * driver's, and waiting moves the clock.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ipmi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "core/macros.h"
#include "sources/bmc/ipmi.h"

enum { FD = 77, TURNS_MAX = 128, QUEUE_MAX = 80, ROOTFS_FD = 55 };

/* What becomes of one request. */
struct turn {
    int send_error;
    bool is_silent; /* no answer, ever */
    uint64_t delay_us;
    uint16_t current_w;
    uint32_t time_s;
    uint8_t completion;
    uint8_t group;     /* 0: DCMI */
    uint8_t netfn;     /* 0: the right one */
    size_t len;        /* 0: a whole answer; beyond it, zeros */
    int receive_error; /* with the message */
    int others;        /* messages that are not for us, before */
    int others_type;   /* what those are */
};

struct message {
    uint64_t at_us;
    int recv_type, error;
    long msgid;
    uint8_t netfn, data[512];
    size_t len;
};

struct fixture {
    struct ipmi_calls calls; /* first: a pointer to this is a pointer to the whole */
    struct clock_manual clock;
    struct source_context context;
    struct host host;
    void *source;
    struct batch batch;
    struct error err;

    const char *node; /* the one that there is */
    bool is_in_container;
    int open_error;
    int wait_error; /* once */
    unsigned opens, closes, sends;
    bool is_open;
    struct turn turns[TURNS_MAX];
    size_t turn_count;
    bool is_pending; /* and has not answered */
    long last_msgid;
    struct message queue[QUEUE_MAX];
    size_t queued;
};

static struct fixture *fixture_of(const struct ipmi_calls *calls)
{
    return (struct fixture *)(uintptr_t)calls;
}

static int fake_open(const struct ipmi_calls *calls, int dir_fd, const char *path)
{
    struct fixture *f = fixture_of(calls);
    bool is_ours = dir_fd == AT_FDCWD;

    assert_true(is_ours || dir_fd == ROOTFS_FD);
    assert_int_equal(path[0] == '/', is_ours);
    if (!f->node || is_ours != f->is_in_container || strcmp(path + is_ours, f->node) != 0)
        return -ENOENT;
    if (f->open_error < 0)
        return f->open_error;
    assert_false(f->is_open);
    f->is_open = true;
    f->is_pending = false; /* what the driver had for the last descriptor went with it */
    f->queued = 0;
    f->opens++;
    return FD;
}

static void fake_close(const struct ipmi_calls *calls, int fd)
{
    struct fixture *f = fixture_of(calls);

    assert_int_equal(fd, FD);
    assert_true(f->is_open);
    f->is_open = false;
    f->closes++;
}

static struct message *enqueue(struct fixture *f, uint64_t at_us, int recv_type, long msgid)
{
    struct message *message = &f->queue[f->queued++];

    assert_true(f->queued <= QUEUE_MAX);
    *message = (struct message){.at_us = at_us, .recv_type = recv_type, .msgid = msgid};
    message->netfn = 0x2d;
    return message;
}

static void give_answer(struct fixture *f, const struct turn *turn, long msgid)
{
    uint64_t at_us = f->clock.now_us + turn->delay_us;
    struct message *message;

    for (int i = 0; i < turn->others; i++)
        enqueue(f, at_us, turn->others_type, msgid - (i % 2))->len = 1;
    message = enqueue(f, at_us, IPMI_RESPONSE_RECV_TYPE, msgid);
    message->error = turn->receive_error;
    if (turn->netfn)
        message->netfn = turn->netfn;
    message->len = turn->len ? turn->len : turn->completion ? 1 : 19;
    message->data[0] = turn->completion;
    message->data[1] = turn->group ? turn->group : 0xdc;
    for (size_t at = 2; at < 10; at += 2)
        memcpy(message->data + at, &turn->current_w, sizeof(turn->current_w));
    memcpy(message->data + 10, &turn->time_s, sizeof(turn->time_s));
}

static int take_request(struct fixture *f, const struct ipmi_req *request)
{
    static const uint8_t wanted[] = {0xdc, 0x01, 0x00, 0x00};
    struct ipmi_system_interface_addr address;
    const struct turn *turn = &f->turns[f->sends++];

    assert_true(f->sends <= f->turn_count);
    assert_false(f->is_pending); /* never two at a time */
    assert_int_equal(request->addr_len, sizeof(address));
    memcpy(&address, request->addr, sizeof(address));
    assert_int_equal(address.addr_type, IPMI_SYSTEM_INTERFACE_ADDR_TYPE);
    assert_int_equal(address.channel, IPMI_BMC_CHANNEL);
    assert_int_equal(address.lun, 0);
    assert_int_equal(request->msg.netfn, 0x2c);
    assert_int_equal(request->msg.cmd, 0x02);
    assert_int_equal(request->msg.data_len, sizeof(wanted));
    assert_memory_equal(request->msg.data, wanted, sizeof(wanted));
    assert_true(request->msgid > f->last_msgid);
    if (turn->send_error)
        return turn->send_error;
    f->last_msgid = request->msgid;
    f->is_pending = true;
    if (!turn->is_silent)
        give_answer(f, turn, request->msgid);
    return 0;
}

static int take_message(struct fixture *f, struct ipmi_recv *recv)
{
    struct message message = f->queue[0];

    if (f->queued == 0 || message.at_us > f->clock.now_us)
        return -EAGAIN;
    memmove(f->queue, f->queue + 1, --f->queued * sizeof(f->queue[0]));
    if (message.recv_type == IPMI_RESPONSE_RECV_TYPE && message.msgid == f->last_msgid)
        f->is_pending = false;
    assert_true(recv->addr_len >= sizeof(struct ipmi_addr));
    recv->recv_type = message.recv_type;
    recv->msgid = message.msgid;
    recv->msg.netfn = message.netfn;
    recv->msg.cmd = 0x02;
    if (message.len > recv->msg.data_len)
        message.error = -EMSGSIZE;
    recv->msg.data_len = (unsigned short)MIN(message.len, (size_t)recv->msg.data_len);
    memcpy(recv->msg.data, message.data, recv->msg.data_len);
    return message.error;
}

static int fake_control(const struct ipmi_calls *calls, int fd, unsigned long request,
                        void *argument)
{
    struct fixture *f = fixture_of(calls);

    assert_int_equal(fd, FD);
    assert_true(f->is_open);
    if (request == IPMICTL_SEND_COMMAND)
        return take_request(f, argument);
    assert_int_equal(request, IPMICTL_RECEIVE_MSG_TRUNC);
    return take_message(f, argument);
}

static int fake_wait(const struct ipmi_calls *calls, int fd, uint64_t timeout_us)
{
    struct fixture *f = fixture_of(calls);
    uint64_t until_us = f->clock.now_us + timeout_us;

    assert_int_equal(fd, FD);
    assert_true(timeout_us <= 5 * USEC_PER_SEC);
    if (f->wait_error) {
        int error = f->wait_error;

        f->wait_error = 0;
        return error;
    }
    if (f->queued > 0 && f->queue[0].at_us <= until_us) {
        f->clock.now_us = MAX(f->clock.now_us, f->queue[0].at_us);
        return 1;
    }
    f->clock.now_us = until_us;
    return 0;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    f->calls = (struct ipmi_calls){fake_open, fake_control, fake_wait, fake_close};
    clock_manual_init(&f->clock, 1000 * USEC_PER_SEC);
    f->host = (struct host){.procfs_fd = -1, .sysfs_fd = -1, .rootfs_fd = ROOTFS_FD};
    f->context = (struct source_context){.host = &f->host, .clock = &f->clock.clock};
    f->node = "dev/ipmi0";
    batch_init(&f->batch);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    ipmi_source.close(f->source);
    assert_int_equal(f->opens, f->closes);
    batch_done(&f->batch);
    free(f);
    return 0;
}

static int open_source(struct fixture *f)
{
    f->err.text[0] = '\0';
    return ipmi_open_with(&f->context, &f->calls, &f->source, &f->err);
}

/* The next one begins to count anew. */
static void close_source(struct fixture *f)
{
    ipmi_source.close(f->source);
    f->source = NULL;
    f->last_msgid = 0;
}

static void script(struct fixture *f, struct turn turn)
{
    assert_true(f->turn_count < TURNS_MAX);
    f->turns[f->turn_count++] = turn;
}

static int read_source(struct fixture *f)
{
    uint64_t began_us = f->clock.now_us;
    int r;

    batch_reset(&f->batch);
    f->err.text[0] = '\0';
    r = ipmi_source.read(f->source, &f->batch, &f->err);
    assert_true(f->clock.now_us - began_us <= 5 * USEC_PER_SEC);
    assert_int_equal(r < 0, f->err.text[0] != '\0');
    if (r < 0)
        assert_int_equal(f->batch.count, 0);
    return r;
}

static int read_later(struct fixture *f, unsigned seconds)
{
    f->clock.now_us += seconds * USEC_PER_SEC;
    return read_source(f);
}

static void assert_error(const struct fixture *f, const char *text)
{
    if (!strstr(f->err.text, text))
        fail_msg("'%s' does not say '%s'", f->err.text, text);
}

/* The batch holds one reading, taken now. */
static void assert_read(const struct fixture *f, uint64_t power_mw, uint64_t counter_uj,
                        uint32_t breaks)
{
    const struct sample *power = f->batch.samples, *meter = power + 1;

    assert_int_equal(f->batch.count, 2);
    assert_int_equal(power->kind, SAMPLE_NODE_POWER);
    assert_int_equal(power->t_us, f->clock.now_us);
    assert_string_equal(power->node_power.source, "ipmi");
    assert_int_equal(power->node_power.power_mw, power_mw);
    assert_int_equal(meter->kind, SAMPLE_METER);
    assert_int_equal(meter->t_us, f->clock.now_us);
    assert_int_equal(meter->meter.kind, METER_NODE);
    assert_string_equal(meter->meter.id, "ipmi");
    assert_true(meter->meter.integrated);
    assert_int_equal(meter->meter.counter_uj, counter_uj);
    assert_int_equal(meter->meter.breaks, breaks);
}

static void power_is_read_and_integrated(void **state)
{
    struct fixture *f = *state;

    script(f, (struct turn){.current_w = 300, .delay_us = 20000});
    script(f, (struct turn){.current_w = 501, .delay_us = 20000});
    assert_int_equal(open_source(f), 0);
    assert_int_equal(read_source(f), 0);
    assert_read(f, 300000, 0, 0);
    assert_int_equal(read_later(f, 10), 0);
    /* 10.02 s at 400.5 W */
    assert_read(f, 501000, 4013010000, 0);
}

static void reads_in_between_return_at_once_and_add_nothing(void **state)
{
    struct fixture *f = *state;

    script(f, (struct turn){.current_w = 300});
    script(f, (struct turn){.current_w = 301});
    assert_int_equal(open_source(f), 0);
    assert_int_equal(read_source(f), 0);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(read_later(f, 1), 0);
        assert_int_equal(f->batch.count, 0);
    }
    assert_int_equal(f->sends, 1);
    assert_int_equal(read_later(f, 2), 0);
    assert_int_equal(f->batch.count, 2);
}

static void any_of_the_three_nodes_is_used(void **state)
{
    static const char *const nodes[] = {"dev/ipmi0", "dev/ipmi/0", "dev/ipmidev/0"};
    struct fixture *f = *state;

    for (size_t i = 0; i < 2 * ARRAY_SIZE(nodes); i++) {
        f->node = nodes[i / 2];
        f->is_in_container = i % 2;
        assert_int_equal(open_source(f), 0);
        close_source(f);
    }
    assert_int_equal(f->opens, 2 * ARRAY_SIZE(nodes));
}

static void a_machine_without_a_bmc_has_no_such_source(void **state)
{
    struct fixture *f = *state;

    f->node = NULL;
    assert_int_equal(open_source(f), -ENODEV);
    f->node = "dev/ipmi0";
    f->open_error = -ENODEV; /* the driver's, where no interface is registered */
    assert_int_equal(open_source(f), -ENODEV);
    f->open_error = 0;
    f->context.replay_path = "trace";
    assert_int_equal(open_source(f), -ENODEV);
}

static void a_device_that_must_not_be_opened_is_a_warning(void **state)
{
    static const int errors[] = {-EACCES, -EPERM};
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
        struct ipmi_device device = {.calls = &f->calls, .clock = &f->clock.clock, .fd = -1};

        f->open_error = errors[i];
        assert_int_equal(open_source(f), -ENOTSUP);
        assert_error(f, "/dev/ipmi0: not permitted; run as root");
        assert_int_equal(ipmi_device_open(&device, &f->host, NULL), -EACCES);
    }
}

static void a_bmc_without_dcmi_is_no_source(void **state)
{
    static const uint8_t codes[] = {0xc1, 0xc7, 0xc9, 0xcc, 0xd4};
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
        script(f, (struct turn){.completion = codes[i]});
        assert_int_equal(open_source(f), 0);
        assert_int_equal(read_source(f), -ENODEV);
        assert_error(f, "does not report its power by DCMI");
        close_source(f);
    }
}

static void one_that_has_reported_power_is_down_instead(void **state)
{
    struct fixture *f = *state;

    script(f, (struct turn){.current_w = 300});
    script(f, (struct turn){.completion = 0xc1});
    script(f, (struct turn){.current_w = 310});
    assert_int_equal(open_source(f), 0);
    assert_int_equal(read_source(f), 0);
    assert_int_equal(read_later(f, 10), -EOPNOTSUPP);
    assert_int_equal(read_later(f, 10), 0);
    assert_read(f, 310000, 6100000000, 0); /* 20 s at 305 W: within the hold */
}

static void a_slow_bmc_is_waited_for(void **state)
{
    struct fixture *f = *state;

    script(f, (struct turn){.current_w = 300, .delay_us = 4900000});
    assert_int_equal(open_source(f), 0);
    assert_int_equal(read_source(f), 0);
    assert_read(f, 300000, 0, 0);
}

static void a_late_response_is_dropped_before_the_next_request(void **state)
{
    struct fixture *f = *state;

    script(f, (struct turn){.current_w = 300, .delay_us = 7 * USEC_PER_SEC});
    script(f, (struct turn){.current_w = 400});
    assert_int_equal(open_source(f), 0);
    assert_int_equal(read_source(f), -ETIMEDOUT);
    assert_error(f, "does not answer");
    assert_int_equal(read_later(f, 5), 0);
    assert_read(f, 400000, 0, 0);
}

static void one_that_is_still_late_is_waited_for_first(void **state)
{
    struct fixture *f = *state;

    script(f, (struct turn){.current_w = 300, .delay_us = 12 * USEC_PER_SEC});
    script(f, (struct turn){.current_w = 400, .delay_us = USEC_PER_SEC});
    assert_int_equal(open_source(f), 0);
    assert_int_equal(read_source(f), -ETIMEDOUT);
    assert_int_equal(read_later(f, 5), 0);
    assert_read(f, 400000, 0, 0);
    assert_int_equal(f->clock.now_us, 1013 * USEC_PER_SEC);
}

static void no_answer_is_an_error_that_stays_and_opens_the_device_again(void **state)
{
    struct fixture *f = *state;

    script(f, (struct turn){.is_silent = true});
    script(f, (struct turn){.current_w = 300});
    assert_int_equal(open_source(f), 0);
    assert_int_equal(read_source(f), -ETIMEDOUT);
    assert_int_equal(read_later(f, 1), -ETIMEDOUT); /* kept */
    assert_error(f, "does not answer");
    assert_int_equal(read_later(f, 10), -ETIMEDOUT);
    assert_int_equal(read_later(f, 20), -ETIMEDOUT);
    assert_int_equal(f->sends, 1); /* the driver still has the first */
    assert_int_equal(f->closes, 1);
    assert_int_equal(read_later(f, 40), 0);
    assert_read(f, 300000, 0, 0);
    assert_int_equal(f->opens, 2);
}

static void timeouts_of_the_driver_open_the_device_again_too(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 3; i++)
        script(f, (struct turn){.completion = 0xc3});
    script(f, (struct turn){.current_w = 300});
    assert_int_equal(open_source(f), 0);
    for (unsigned wait_s = 10; wait_s <= 40; wait_s *= 2) {
        assert_int_equal(read_source(f), -ETIMEDOUT);
        f->clock.now_us += wait_s * USEC_PER_SEC;
    }
    assert_int_equal(f->closes, 1);
    assert_int_equal(read_source(f), 0);
}

static void answers_to_others_and_events_are_passed_over(void **state)
{
    static const int types[] = {IPMI_ASYNC_EVENT_RECV_TYPE, IPMI_CMD_RECV_TYPE,
                                IPMI_RESPONSE_RESPONSE_TYPE, IPMI_OEM_RECV_TYPE, 99};
    struct fixture *f = *state;

    assert_int_equal(open_source(f), 0);
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        script(f, (struct turn){
                      .current_w = (uint16_t)(300 + i), .others = 10, .others_type = types[i]});
        assert_int_equal(read_later(f, 10), 0);
        assert_int_equal(f->batch.samples[0].node_power.power_mw, 300000 + 1000 * i);
    }
}

static void an_answer_with_another_msgid_is_not_ours(void **state)
{
    struct fixture *f = *state;

    script(f, (struct turn){.is_silent = true});
    script(f, (struct turn){.current_w = 300});
    assert_int_equal(open_source(f), 0);
    enqueue(f, f->clock.now_us, IPMI_RESPONSE_RECV_TYPE, 4711)->len = 19;
    enqueue(f, f->clock.now_us + 1, IPMI_RESPONSE_RECV_TYPE, -1)->len = 19;
    assert_int_equal(read_source(f), -ETIMEDOUT);
    /* The last one again, after its response. */
    enqueue(f, f->clock.now_us, IPMI_RESPONSE_RECV_TYPE, f->last_msgid)->len = 19;
    assert_int_equal(read_later(f, 10), 0);
    assert_read(f, 300000, 0, 0);
}

static void a_flood_of_strange_messages_ends(void **state)
{
    struct fixture *f = *state;

    script(f, (struct turn){.current_w = 300,
                            .others = QUEUE_MAX - 1,
                            .others_type = IPMI_ASYNC_EVENT_RECV_TYPE});
    script(f, (struct turn){.current_w = 301});
    assert_int_equal(open_source(f), 0);
    assert_int_equal(read_source(f), -EIO);
    assert_error(f, "not asked for");
    assert_int_equal(read_later(f, 10), 0);
    assert_read(f, 301000, 0, 0);
}

static void a_bmc_that_is_reset_comes_back(void **state)
{
    struct fixture *f = *state;

    script(f, (struct turn){.current_w = 300});
    script(f, (struct turn){.send_error = -ENODEV});
    script(f, (struct turn){.current_w = 400});
    assert_int_equal(open_source(f), 0);
    assert_int_equal(read_source(f), 0);
    assert_int_equal(read_later(f, 10), -EIO); /* not -ENODEV: its count would be lost */
    assert_error(f, "gone");
    assert_int_equal(f->closes, 1);
    f->node = NULL;
    assert_int_equal(read_later(f, 10), -EIO);
    assert_error(f, "no /dev/ipmi0");
    f->node = "dev/ipmi0";
    assert_int_equal(read_later(f, 20), 0);
    assert_read(f, 400000, 0, 1); /* 40 s are not filled in */
    assert_int_equal(f->opens, 2);
}

static void an_interface_that_is_gone_before_it_answered_was_none(void **state)
{
    struct fixture *f = *state;

    script(f, (struct turn){.send_error = -ENODEV});
    assert_int_equal(open_source(f), 0);
    assert_int_equal(read_source(f), -ENODEV);
}

static void a_busy_driver_is_tried_again_later(void **state)
{
    static const int errors[] = {-EBUSY, -EAGAIN};
    struct fixture *f = *state;

    assert_int_equal(open_source(f), 0);
    for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
        script(f, (struct turn){.send_error = errors[i]});
        script(f, (struct turn){.current_w = (uint16_t)(300 + i)});
        assert_int_equal(read_later(f, 10), -EAGAIN);
        assert_error(f, "busy");
        assert_int_equal(read_later(f, 10), 0);
    }
    assert_int_equal(f->opens, 1);
}

static void an_interrupted_wait_goes_on(void **state)
{
    struct fixture *f = *state;

    script(f, (struct turn){.current_w = 300, .delay_us = 1000});
    f->wait_error = -EINTR;
    assert_int_equal(open_source(f), 0);
    assert_int_equal(read_source(f), 0);
}

static void garbage_is_an_error_and_never_a_reading(void **state)
{
    static const struct {
        struct turn turn;
        int r;
    } cases[] = {
        {{.current_w = 300, .len = 1}, -EBADMSG},
        {{.current_w = 300, .len = 9}, -EBADMSG},
        {{.current_w = 300, .group = 0xaa}, -EBADMSG},
        {{.current_w = 300, .netfn = 0x2c}, -EBADMSG},
        {{.current_w = 300, .netfn = 0x07}, -EBADMSG},
        {{.current_w = 300, .receive_error = -EFAULT}, -EFAULT},
        {{.current_w = 0}, -ENODATA},
        {{.current_w = 65535}, -ENODATA},
        {{.completion = 0xd5}, -ENODATA},
        {{.completion = 0xff}, -EAGAIN},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        script(f, cases[i].turn);
        assert_int_equal(open_source(f), 0);
        assert_int_equal(read_source(f), cases[i].r);
        close_source(f);
    }
}

static void an_answer_longer_than_the_buffer_is_read_cut(void **state)
{
    struct fixture *f = *state;

    script(f, (struct turn){.current_w = 300, .len = 512});
    assert_int_equal(open_source(f), 0);
    assert_int_equal(read_source(f), 0);
    assert_read(f, 300000, 0, 0);
}

static void a_bmc_that_starts_is_left_alone_for_a_minute(void **state)
{
    struct fixture *f = *state;

    script(f, (struct turn){.completion = 0xd2});
    script(f, (struct turn){.current_w = 300});
    assert_int_equal(open_source(f), 0);
    assert_int_equal(read_source(f), -EBUSY);
    for (int i = 0; i < 5; i++)
        assert_int_equal(read_later(f, 10), -EBUSY);
    assert_int_equal(f->sends, 1);
    assert_int_equal(read_later(f, 10), 0);
}

static void failures_are_tried_again_ever_more_seldom(void **state)
{
    static const unsigned waits_s[] = {10, 20, 40, 60, 60};
    struct fixture *f = *state;

    assert_int_equal(open_source(f), 0);
    for (size_t i = 0; i < ARRAY_SIZE(waits_s); i++) {
        script(f, (struct turn){.completion = 0xff});
        assert_int_equal(read_source(f), -EAGAIN);
        assert_int_equal(f->sends, i + 1);
        assert_int_equal(read_later(f, waits_s[i] - 2), -EAGAIN);
        assert_int_equal(f->sends, i + 1);
        f->clock.now_us += 2 * USEC_PER_SEC;
    }
}

static void a_reading_that_stands_still_for_ten_minutes_is_stale(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(open_source(f), 0);
    for (int i = 0; i <= 59; i++) {
        script(f, (struct turn){.current_w = 300});
        assert_int_equal(read_later(f, 10), 0);
    }
    script(f, (struct turn){.current_w = 300});
    assert_int_equal(read_later(f, 10), -ESTALE);
    assert_error(f, "300 W for 600 s without any change");
    script(f, (struct turn){.current_w = 300});
    assert_int_equal(read_later(f, 10), -ESTALE);
    script(f, (struct turn){.current_w = 301});
    assert_int_equal(read_later(f, 20), 0);
    assert_read(f, 301000, UINT64_C(590) * 300 * 1000000, 1);
}

static void a_clock_that_moves_shows_that_the_reading_is_new(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(open_source(f), 0);
    for (uint32_t i = 0; i < 70; i++) {
        script(f, (struct turn){.current_w = 300, .time_s = 1000 + 10 * i});
        assert_int_equal(read_later(f, 10), 0);
    }
}

static void a_clock_that_stops_shows_within_a_minute_that_it_is_old(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(open_source(f), 0);
    for (uint32_t i = 0; i < 8; i++) {
        script(f, (struct turn){.current_w = 300, .time_s = MIN(i, 2U)});
        assert_int_equal(read_later(f, 10), 0);
    }
    script(f, (struct turn){.current_w = 300, .time_s = 2});
    assert_int_equal(read_later(f, 10), -ESTALE);
}

/* Responses, byte by byte. */

#define VALUES "00 dc 2c 01 44 00 f8 01 5c 01"
#define TIMES  VALUES " 10 20 30 65 e8 03 00 00"
#define ZEROS  " 00 00 00 00 00 00"

static unsigned digit(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* Pairs of hexadecimal digits with one blank in between. */
static struct span bytes_of(const char *hex, char buffer[static 32])
{
    size_t len = 0;

    for (; *hex; hex += hex[2] ? 3 : 2)
        buffer[len++] = (char)(digit(hex[0]) << 4 | digit(hex[1]));
    assert_true(len <= 32);
    return (struct span){buffer, len};
}

static void power_and_time_are_parsed_as_the_bmc_sends_them(void **state)
{
    static const struct {
        const char *what, *hex;
        uint16_t current_w;
        uint32_t time_s;
    } cases[] = {
        {"whole", TIMES " 40", 300, 0x65302010},
        {"reserved bits set", TIMES " ff", 300, 0x65302010},
        {"inactive", TIMES " bf", 300, 0x65302010}, /* OpenBMC is always, and measures */
        {"OpenBMC", "00 dc 3f 01 3f 01 3f 01 3f 01" ZEROS " 00 00 00", 319, 0},
        {"no state", TIMES, 300, 0x65302010},
        {"times cut", VALUES " 10 20 30 65 e8", 300, 0},
        {"four values", VALUES, 300, 0},
        {"longer", TIMES " 40 01 02", 300, 0x65302010},
        {"no statistics", "00 dc 01 00" ZEROS ZEROS " 00 00 40", 1, 0},
        {"high bytes", "00 dc 4f c3 ff ff ff ff ff ff ff ff ff ff ff ff ff ff 40", 49999,
         UINT32_MAX},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct error err = {""};
        struct dcmi_power power;
        char buffer[32];

        if (dcmi_parse_power(bytes_of(cases[i].hex, buffer), &power, &err) < 0)
            fail_msg("%s: %s", cases[i].what, err.text);
        assert_int_equal(power.current_w, cases[i].current_w);
        assert_int_equal(power.time_s, cases[i].time_s);
    }
}

static uint64_t hash_of(const char *hex)
{
    struct dcmi_power power;
    char buffer[32];

    assert_int_equal(dcmi_parse_power(bytes_of(hex, buffer), &power, NULL), 0);
    return power.hash;
}

static void readings_differ_by_any_statistic_but_not_by_their_state(void **state)
{
    static const char *const others[] = {
        "00 dc 2d 01 44 00 f8 01 5c 01 10 20 30 65 e8 03 00 00 40",
        "00 dc 2c 01 45 00 f8 01 5c 01 10 20 30 65 e8 03 00 00 40",
        "00 dc 2c 01 44 00 f9 01 5c 01 10 20 30 65 e8 03 00 00 40",
        "00 dc 2c 01 44 00 f8 01 5d 01 10 20 30 65 e8 03 00 00 40",
        "00 dc 2c 01 44 00 f8 01 5c 01 11 20 30 65 e8 03 00 00 40",
        "00 dc 2c 01 44 00 f8 01 5c 01 10 20 30 65 e9 03 00 00 40",
    };

    (void)state;
    assert_true(hash_of(TIMES " 40") == hash_of(TIMES " 00"));
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        assert_true(hash_of(TIMES " 40") != hash_of(others[i]));
}

static void what_is_no_reading_is_refused_with_its_reason(void **state)
{
    static const struct {
        const char *hex;
        int r;
        const char *text;
    } cases[] = {
        {"c0", -EAGAIN, "busy"},
        {"c1", -EOPNOTSUPP, "does not know the command (completion code 0xc1)"},
        {"c1 dc", -EOPNOTSUPP, "0xc1"},
        {"c3", -ETIMEDOUT, "timeout"},
        {"c7", -EOPNOTSUPP, "length"},
        {"c9", -EOPNOTSUPP, "range"},
        {"cb", -ENODATA, "sensor"},
        {"cc", -EOPNOTSUPP, "invalid field"},
        {"ce", -ENODATA, "cannot provide"},
        {"d1", -EBUSY, "updated"},
        {"d2", -EBUSY, "starting"},
        {"d4", -EOPNOTSUPP, "privilege"},
        {"d5", -ENODATA, "present state"},
        {"d6", -ENODATA, "disabled"},
        {"ff", -EAGAIN, "unspecified"},
        {"80", -EAGAIN, "completion code 0x80"},
        {"00 dc" ZEROS ZEROS " 00 00 00 00 00", -ENODATA, "0 W, measuring inactive"},
        {"00 dc" ZEROS ZEROS " 00 00 00 00 40", -ENODATA, "0 W, measuring active"},
        {"00 dc 00 00 44 00 f8 01 5c 01", -ENODATA, "0 W"},
        {"00 dc ff ff" ZEROS, -ENODATA, "65535 W"},
        {"00 dc 50 c3" ZEROS, -ENODATA, "50000 W"},
        {"00 dc ff 7f" ZEROS, -ENODATA, "32767 W"},
        {"00 aa 2c 01 44 00 f8 01 5c 01 10 20 30 65 e8 03 00 00 40", -EBADMSG, "group 0xaa"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct dcmi_power power = {.current_w = 77};
        struct error err = {""};
        char buffer[32];

        assert_int_equal(dcmi_parse_power(bytes_of(cases[i].hex, buffer), &power, &err),
                         cases[i].r);
        if (!strstr(err.text, cases[i].text))
            fail_msg("'%s' does not say '%s'", err.text, cases[i].text);
        assert_int_equal(power.current_w, 77);
    }
}

static void an_answer_without_its_four_values_is_refused(void **state)
{
    char buffer[32];
    struct span whole = bytes_of(VALUES, buffer);

    (void)state;
    for (size_t len = 0; len < whole.len; len++) {
        struct dcmi_power power;

        assert_int_equal(dcmi_parse_power((struct span){whole.data, len}, &power, NULL), -EBADMSG);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(power_is_read_and_integrated),
        TEST(reads_in_between_return_at_once_and_add_nothing),
        TEST(any_of_the_three_nodes_is_used),
        TEST(a_machine_without_a_bmc_has_no_such_source),
        TEST(a_device_that_must_not_be_opened_is_a_warning),
        TEST(a_bmc_without_dcmi_is_no_source),
        TEST(one_that_has_reported_power_is_down_instead),
        TEST(a_slow_bmc_is_waited_for),
        TEST(a_late_response_is_dropped_before_the_next_request),
        TEST(one_that_is_still_late_is_waited_for_first),
        TEST(no_answer_is_an_error_that_stays_and_opens_the_device_again),
        TEST(timeouts_of_the_driver_open_the_device_again_too),
        TEST(answers_to_others_and_events_are_passed_over),
        TEST(an_answer_with_another_msgid_is_not_ours),
        TEST(a_flood_of_strange_messages_ends),
        TEST(a_bmc_that_is_reset_comes_back),
        TEST(an_interface_that_is_gone_before_it_answered_was_none),
        TEST(a_busy_driver_is_tried_again_later),
        TEST(an_interrupted_wait_goes_on),
        TEST(garbage_is_an_error_and_never_a_reading),
        TEST(an_answer_longer_than_the_buffer_is_read_cut),
        TEST(a_bmc_that_starts_is_left_alone_for_a_minute),
        TEST(failures_are_tried_again_ever_more_seldom),
        TEST(a_reading_that_stands_still_for_ten_minutes_is_stale),
        TEST(a_clock_that_moves_shows_that_the_reading_is_new),
        TEST(a_clock_that_stops_shows_within_a_minute_that_it_is_old),
        cmocka_unit_test(power_and_time_are_parsed_as_the_bmc_sends_them),
        cmocka_unit_test(readings_differ_by_any_statistic_but_not_by_their_state),
        cmocka_unit_test(what_is_no_reading_is_refused_with_its_reason),
        cmocka_unit_test(an_answer_without_its_four_values_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
