/* sources/bmc/redfish: readings that come from a fetcher. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/macros.h"
#include "sources/redfish_reading.h"
#include "sources/source.h"

#define SECOND USEC_PER_SEC

struct fixture {
    struct clock_manual clock;
    int fds[2]; /* where readings come from, and where they are sent */
    struct source_context context;
    void *source;
    struct batch batch;
    struct error err;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    clock_manual_init(&f->clock, 1000 * SECOND);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, f->fds),
                     0);
    f->context = (struct source_context){.clock = &f->clock.clock, .redfish_fd = &f->fds[0]};
    batch_init(&f->batch);
    assert_int_equal(redfish_source.open(&f->context, &f->source, &f->err), 0);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    redfish_source.close(f->source);
    batch_done(&f->batch);
    close(f->fds[0]);
    close(f->fds[1]);
    free(f);
    return 0;
}

static int read_source(struct fixture *f)
{
    batch_reset(&f->batch);
    f->err.text[0] = '\0';
    return redfish_source.read(f->source, &f->batch, &f->err);
}

static void post_at(struct fixture *f, uint64_t power_mw, uint64_t taken_us)
{
    const struct redfish_reading reading = {.power_mw = power_mw, .taken_us = taken_us};

    (void)redfish_reading_send(f->fds[1], &reading);
}

static void post_failure(struct fixture *f, int result, const char *why)
{
    struct redfish_reading reading = {.result = result, .taken_us = f->clock.now_us};

    snprintf(reading.why, sizeof(reading.why), "%s", why);
    assert_int_equal(redfish_reading_send(f->fds[1], &reading), 0);
}

/* A reading that is made and taken now. */
static int receive(struct fixture *f, uint64_t power_mw)
{
    post_at(f, power_mw, f->clock.now_us);
    return read_source(f);
}

static const struct sample_meter *meter(const struct fixture *f)
{
    const struct sample *last = &f->batch.samples[f->batch.count - 1];

    assert_true(f->batch.count >= 2);
    assert_int_equal(last->kind, SAMPLE_METER);
    return &last->meter;
}

static void a_reading_is_the_nodes_power_and_a_step_of_its_meter(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(receive(f, 600000), 0);
    f->clock.now_us += 10 * SECOND;
    post_at(f, 700000, f->clock.now_us);
    f->clock.now_us += SECOND / 2; /* it is taken a little later than it was read */
    assert_int_equal(read_source(f), 0);
    assert_int_equal(f->batch.count, 2);
    assert_int_equal(f->batch.samples[0].kind, SAMPLE_NODE_POWER);
    assert_int_equal(f->batch.samples[0].t_us, f->clock.now_us - SECOND / 2);
    assert_string_equal(f->batch.samples[0].node_power.source, "redfish");
    assert_int_equal(f->batch.samples[0].node_power.power_mw, 700000);
    assert_string_equal(meter(f)->source, "redfish");
    assert_string_equal(meter(f)->id, "redfish");
    assert_int_equal(meter(f)->kind, METER_NODE);
    assert_true(meter(f)->integrated);
    assert_int_equal(meter(f)->counter_uj, 6500 * (uint64_t)1000000);
    assert_int_equal(meter(f)->breaks, 0);
}

static void between_readings_there_is_no_sample_and_no_error(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(read_source(f), 0);
    assert_int_equal(f->batch.count, 0);
    assert_int_equal(receive(f, 600000), 0);
    f->clock.now_us += 20 * SECOND;
    assert_int_equal(read_source(f), 0);
    assert_int_equal(f->batch.count, 0);
}

static void silence_for_half_a_minute_is_a_failure_and_a_break(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(receive(f, 600000), 0);
    f->clock.now_us += 31 * SECOND;
    assert_int_equal(read_source(f), -ETIMEDOUT);
    assert_non_null(strstr(f->err.text, "no reading of the BMC for 30 s"));
    assert_int_equal(receive(f, 700000), 0);
    assert_int_equal(meter(f)->counter_uj, 0);
    assert_int_equal(meter(f)->breaks, 1);
}

static void a_bmc_that_was_never_read_is_down_after_ten_seconds(void **state)
{
    struct fixture *f = *state;

    f->clock.now_us += 10 * SECOND;
    assert_int_equal(read_source(f), 0);
    f->clock.now_us += 1;
    assert_int_equal(read_source(f), -ETIMEDOUT);
    assert_string_equal(f->err.text, "no reading of the BMC for 10 s");
    assert_int_equal(receive(f, 600000), 0);
}

static void a_failure_lasts_until_the_next_reading(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(receive(f, 600000), 0);
    post_failure(f, -EACCES, "the BMC refuses us");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(read_source(f), -EACCES);
        assert_string_equal(f->err.text, "the BMC refuses us");
        assert_int_equal(f->batch.count, 0);
        f->clock.now_us += 100 * SECOND;
    }
    assert_int_equal(receive(f, 600000), 0);
}

/* -ENODEV would close the source for good. */
static void no_failure_is_the_end_of_the_source(void **state)
{
    struct fixture *f = *state;

    post_failure(f, -ENODEV, "gone");
    assert_int_equal(read_source(f), -EIO);
    assert_string_equal(f->err.text, "gone");
}

static void implausible_power_and_times_are_not_believed(void **state)
{
    struct fixture *f = *state;
    const struct {
        uint64_t power_mw, taken_us;
    } cases[] = {
        {0, f->clock.now_us},
        {50000000, f->clock.now_us},
        {UINT64_MAX, f->clock.now_us},
        {600000, f->clock.now_us + 1},
        {600000, UINT64_MAX},
        {600000, f->clock.now_us - 31 * SECOND},
        {600000, 0},
        {600000, f->clock.now_us - SECOND}, /* the one before */
    };

    post_at(f, 600000, f->clock.now_us - SECOND);
    assert_int_equal(read_source(f), 0);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        post_at(f, cases[i].power_mw, cases[i].taken_us);
        if (read_source(f) != -EBADMSG || f->batch.count != 0)
            fail_msg("case %zu is believed", i);
    }
    assert_int_equal(receive(f, 49999999), 0);
}

static void power_that_does_not_move_for_ten_minutes_is_not_believed(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 60; i++) {
        assert_int_equal(receive(f, 600500), 0);
        f->clock.now_us += 10 * SECOND;
    }
    assert_int_equal(receive(f, 600500), -ESTALE);
    assert_non_null(strstr(f->err.text, "600.5 W for 600 s"));
    f->clock.now_us += 100 * SECOND;
    assert_int_equal(receive(f, 600500), -ESTALE);
    f->clock.now_us += 10 * SECOND;
    assert_int_equal(receive(f, 600501), 0);
    assert_int_equal(meter(f)->breaks, 1);
    assert_int_equal(meter(f)->counter_uj, (uint64_t)6005 * 59 * 1000000);
}

static void readings_that_have_queued_up_are_all_taken(void **state)
{
    struct fixture *f = *state;

    f->clock.now_us += 20 * SECOND;
    for (uint64_t i = 0; i < 5; i++)
        post_at(f, 600000 + i, f->clock.now_us - 20 * SECOND + i + 1);
    assert_int_equal(read_source(f), 0);
    assert_int_equal(f->batch.count, 2 * 5);
    assert_int_equal(f->batch.samples[0].node_power.power_mw, 600000);
}

static void what_is_no_reading_is_an_error_and_the_next_one_counts(void **state)
{
    const struct redfish_reading no_errno = {.result = INT32_MIN, .why = "x"};
    struct redfish_reading endless = {.result = -EIO};
    struct fixture *f = *state;

    memset(endless.why, 'a', sizeof(endless.why));
    assert_int_equal(send(f->fds[1], "x", 1, 0), 1);
    assert_int_equal(read_source(f), -EPROTO);
    assert_int_equal(redfish_reading_send(f->fds[1], &endless), 0);
    assert_int_equal(read_source(f), -EPROTO);
    assert_int_equal(redfish_reading_send(f->fds[1], &no_errno), 0);
    assert_int_equal(read_source(f), -EPROTO);
    f->clock.now_us += SECOND;
    assert_int_equal(receive(f, 600000), 0);
}

static void without_a_socket_there_is_no_source(void **state)
{
    struct source_context none = {.clock = &clock_system};
    struct source_context replay = ((struct fixture *)*state)->context;
    void *source;

    assert_int_equal(redfish_source.open(&none, &source, NULL), -ENODEV);
    replay.replay_path = "a.trace";
    assert_int_equal(redfish_source.open(&replay, &source, NULL), -ENODEV);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_reading_is_the_nodes_power_and_a_step_of_its_meter),
        TEST(between_readings_there_is_no_sample_and_no_error),
        TEST(silence_for_half_a_minute_is_a_failure_and_a_break),
        TEST(a_bmc_that_was_never_read_is_down_after_ten_seconds),
        TEST(a_failure_lasts_until_the_next_reading),
        TEST(no_failure_is_the_end_of_the_source),
        TEST(implausible_power_and_times_are_not_believed),
        TEST(power_that_does_not_move_for_ten_minutes_is_not_believed),
        TEST(readings_that_have_queued_up_are_all_taken),
        TEST(what_is_no_reading_is_an_error_and_the_next_one_counts),
        TEST(without_a_socket_there_is_no_source),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
