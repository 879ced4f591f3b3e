/* sources/runner: batches in order, faults and hangs reported, and an end that never waits long. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/macros.h"
#include "sources/runner.h"

enum { INTERVAL_US = 1, DEADLINE_US = 3000000, UNLIMITED = INT32_MAX, ATTEND_CPU_US = 10000 };

/* The runner does not wait longer than this for a thread that ends at once. */
static const uint64_t STOP_US = 60 * USEC_PER_SEC;
static const uint64_t HOUR_US = 3600 * USEC_PER_SEC;

/* A manual clock that threads may share. */
struct shared_clock {
    struct clock clock;
    pthread_mutex_t lock;
    uint64_t now_us;
};

static uint64_t read_shared(const struct clock *clock)
{
    struct shared_clock *shared = (struct shared_clock *)(uintptr_t)clock;
    uint64_t now_us;

    pthread_mutex_lock(&shared->lock);
    now_us = shared->now_us;
    pthread_mutex_unlock(&shared->lock);
    return now_us;
}

static void advance(struct shared_clock *shared, uint64_t us)
{
    pthread_mutex_lock(&shared->lock);
    shared->now_us += us;
    pthread_mutex_unlock(&shared->lock);
}

/* A source whose reads wait until the test lets them go; each adds its number as a sample. */
struct fake {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned allowed, begun, finished, closed;
    int event_fd;
    unsigned attends_begun, attends;
    bool attending_hangs;
    bool is_noisy; /* its event is never over, and takes CPU_US to attend to */
    unsigned asks; /* how often it requests another call */
    bool began_with_samples;
    int result;
    const char *text;
};

static int fake_read(void *state, struct batch *batch, struct error *err)
{
    struct fake *fake = state;
    struct sample sample = {.kind = SAMPLE_POWER};
    int r;

    pthread_mutex_lock(&fake->lock);
    fake->begun++;
    fake->began_with_samples |= batch->count > 0;
    pthread_cond_broadcast(&fake->changed);
    while (fake->finished >= fake->allowed)
        pthread_cond_wait(&fake->changed, &fake->lock);
    sample.t_us = fake->finished++;
    r = fake->result < 0 ? error_set(err, fake->result, "%s", fake->text) : fake->result;
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->lock);
    return batch_add(batch, &sample) < 0 ? -ENOMEM : r;
}

static void fake_close(void *state)
{
    struct fake *fake = state;

    pthread_mutex_lock(&fake->lock);
    fake->closed++;
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->lock);
}

static int fake_event_fd(void *state)
{
    const struct fake *fake = state;

    return fake->event_fd;
}

static void spin(uint64_t cpu_us)
{
    struct timespec now, began;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &began);
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((uint64_t)(now.tv_sec - began.tv_sec) * 1000000000 + (uint64_t)now.tv_nsec <
           (uint64_t)began.tv_nsec + cpu_us * 1000);
}

static uint64_t fake_attend(void *state)
{
    struct fake *fake = state;
    uint64_t count;
    bool asks;

    pthread_mutex_lock(&fake->lock);
    fake->attends_begun++;
    pthread_cond_broadcast(&fake->changed);
    while (fake->attending_hangs)
        pthread_cond_wait(&fake->changed, &fake->lock);
    if (fake->is_noisy)
        spin(ATTEND_CPU_US);
    else
        (void)!read(fake->event_fd, &count, sizeof(count));
    asks = fake->attends++ < fake->asks;
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->lock);
    return asks ? 1 : SOURCE_NEVER;
}

static const struct source_ops fake_ops = {.name = "fake", .read = fake_read, .close = fake_close};
static const struct source_ops watchful_ops = {.name = "fake",
                                               .read = fake_read,
                                               .event_fd = fake_event_fd,
                                               .attend = fake_attend,
                                               .close = fake_close};

static void allow(struct fake *fake, unsigned reads, int result, const char *text)
{
    pthread_mutex_lock(&fake->lock);
    fake->result = result;
    fake->text = text;
    fake->allowed = reads == UNLIMITED ? UNLIMITED : fake->allowed + reads;
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->lock);
}

/* Returns when this many reads were begun. */
static void wait_begun(struct fake *fake, unsigned reads)
{
    pthread_mutex_lock(&fake->lock);
    while (fake->begun < reads)
        pthread_cond_wait(&fake->changed, &fake->lock);
    pthread_mutex_unlock(&fake->lock);
}

static void wait_finished(struct fake *fake, unsigned reads)
{
    pthread_mutex_lock(&fake->lock);
    while (fake->finished < reads)
        pthread_cond_wait(&fake->changed, &fake->lock);
    pthread_mutex_unlock(&fake->lock);
}

static void wait_attends_begun(struct fake *fake, unsigned attends)
{
    pthread_mutex_lock(&fake->lock);
    while (fake->attends_begun < attends)
        pthread_cond_wait(&fake->changed, &fake->lock);
    pthread_mutex_unlock(&fake->lock);
}

static void wait_attends(struct fake *fake, unsigned attends)
{
    pthread_mutex_lock(&fake->lock);
    while (fake->attends < attends)
        pthread_cond_wait(&fake->changed, &fake->lock);
    pthread_mutex_unlock(&fake->lock);
}

static unsigned count_finished(struct fake *fake)
{
    unsigned finished;

    pthread_mutex_lock(&fake->lock);
    finished = fake->finished;
    pthread_mutex_unlock(&fake->lock);
    return finished;
}

struct rig {
    struct shared_clock clock;
    struct fake fake;
    int wake_fd;
    struct runner *runner;
};

static void start_with(struct rig *rig, uint64_t interval_us, const struct source_ops *ops)
{
    *rig = (struct rig){
        .clock = {{read_shared, read_shared}, PTHREAD_MUTEX_INITIALIZER, 1000000},
        .fake = {.lock = PTHREAD_MUTEX_INITIALIZER,
                 .changed = PTHREAD_COND_INITIALIZER,
                 .event_fd = ops->attend ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1},
        .wake_fd = eventfd(0, EFD_CLOEXEC), /* blocks: the test waits by reading it */
    };
    assert_true(rig->wake_fd >= 0);
    assert_int_equal(runner_start(&(struct source_unit){.ops = ops,
                                                        .state = &rig->fake,
                                                        .name = "fake",
                                                        .interval_us = interval_us},
                                  &rig->clock.clock, DEADLINE_US, rig->wake_fd, &rig->runner),
                     0);
}

static void start(struct rig *rig, uint64_t interval_us)
{
    start_with(rig, interval_us, &fake_ops);
}

static void stop(struct rig *rig)
{
    allow(&rig->fake, UNLIMITED, 0, NULL);
    assert_true(runner_stop(rig->runner, STOP_US));
    assert_int_equal(rig->fake.closed, 1);
    close(rig->wake_fd);
    if (rig->fake.event_fd >= 0)
        close(rig->fake.event_fd);
}

/* Waits for the next batch and takes it. */
static struct batch *take_next(struct rig *rig)
{
    struct batch *batch = runner_next_batch(rig->runner);
    uint64_t wakes;

    while (!batch) {
        assert_int_equal(read(rig->wake_fd, &wakes, sizeof(wakes)), sizeof(wakes));
        batch = runner_next_batch(rig->runner);
    }
    return batch;
}

static void use_up(struct rig *rig, uint64_t number)
{
    struct batch *batch = take_next(rig);

    assert_int_equal(batch->count, 1);
    assert_int_equal(batch->samples[0].t_us, number);
    runner_recycle(rig->runner, batch);
}

static void batches_arrive_in_order_and_each_wakes_the_owner(void **state)
{
    struct rig rig;
    uint64_t wakes = 0;

    (void)state;
    start(&rig, INTERVAL_US);
    assert_string_equal(runner_unit(rig.runner)->name, "fake");
    assert_null(runner_next_batch(rig.runner));
    allow(&rig.fake, 5, 0, NULL);
    while (wakes < 5) {
        uint64_t more;

        assert_int_equal(read(rig.wake_fd, &more, sizeof(more)), sizeof(more));
        wakes += more;
    }
    assert_int_equal(wakes, 5);
    for (uint64_t i = 0; i < 5; i++)
        use_up(&rig, i);
    assert_null(runner_next_batch(rig.runner));
    stop(&rig);
}

/* One is with the source and one with the owner: there are never more. */
static void a_requested_read_is_out_of_turn_and_begins_after_the_request(void **state)
{
    struct runner_status status;
    struct batch *batch;
    struct rig rig;
    uint64_t awaited;

    (void)state;
    start(&rig, HOUR_US);
    wait_begun(&rig.fake, 1);
    awaited = runner_request_read(rig.runner); /* the first is in progress and does not count */
    assert_int_equal(awaited, 2);
    allow(&rig.fake, 2, 0, NULL);
    batch = take_next(&rig);
    assert_false(batch->is_requested);
    runner_recycle(rig.runner, batch);
    use_up(&rig, 1);
    runner_get_status(rig.runner, &status);
    assert_int_equal(status.reads, awaited);

    allow(&rig.fake, 1, 0, NULL);
    assert_int_equal(runner_request_read(rig.runner), 3);
    batch = take_next(&rig);
    assert_true(batch->is_requested); /* so that it leaves out nothing */
    runner_recycle(rig.runner, batch);
    stop(&rig);
}

static void returned_batches_are_used_again_and_empty(void **state)
{
    const struct batch *seen[2] = {NULL, NULL};
    struct rig rig;

    (void)state;
    start(&rig, INTERVAL_US);
    for (uint64_t i = 0; i < 100; i++) {
        struct batch *batch;

        allow(&rig.fake, 1, 0, NULL);
        batch = take_next(&rig);
        assert_int_equal(batch->count, 1);
        assert_int_equal(batch->samples[0].t_us, i);
        if (!seen[0])
            seen[0] = batch;
        else if (batch != seen[0] && !seen[1])
            seen[1] = batch;
        assert_true(batch == seen[0] || batch == seen[1]);
        runner_recycle(rig.runner, batch);
    }
    stop(&rig);
    assert_false(rig.fake.began_with_samples);
}

static void a_failed_read_counts_and_keeps_its_text_until_one_succeeds(void **state)
{
    struct runner_status status;
    struct rig rig;

    (void)state;
    start(&rig, INTERVAL_US);
    runner_get_status(rig.runner, &status);
    assert_true(status.up);
    assert_int_equal(status.errors, 0);
    assert_string_equal(status.error, "");
    for (uint64_t i = 0; i < 3; i++) {
        allow(&rig.fake, 1, -EIO, i == 2 ? "third" : "the driver is gone");
        use_up(&rig, i); /* what was added before the error counts */
        runner_get_status(rig.runner, &status);
        assert_false(status.up);
        assert_int_equal(status.errors, i + 1);
        assert_string_equal(status.error, i == 2 ? "third" : "the driver is gone");
    }
    allow(&rig.fake, 1, 0, NULL);
    use_up(&rig, 3);
    runner_get_status(rig.runner, &status);
    assert_true(status.up);
    assert_int_equal(status.errors, 3);
    assert_string_equal(status.error, "");
    stop(&rig);
}

static void a_long_error_is_cut_to_what_the_status_holds(void **state)
{
    struct runner_status status;
    char text[1000];
    struct rig rig;

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    start(&rig, INTERVAL_US);
    allow(&rig.fake, 1, -EIO, text);
    use_up(&rig, 0);
    runner_get_status(rig.runner, &status);
    assert_int_equal(strlen(status.error), sizeof(status.error) - 1);
    assert_memory_equal(status.error, text, sizeof(status.error) - 1);
    stop(&rig);
}

static void age_runs_from_the_last_success_and_duration_is_that_of_the_last_read(void **state)
{
    struct runner_status status;
    struct rig rig;

    (void)state;
    start(&rig, INTERVAL_US);
    runner_get_status(rig.runner, &status);
    assert_int_equal(status.age_us, 0); /* at first since the start */
    wait_begun(&rig.fake, 1);
    advance(&rig.clock, 30000);
    allow(&rig.fake, 1, 0, NULL);
    use_up(&rig, 0);
    runner_get_status(rig.runner, &status);
    assert_int_equal(status.age_us, 0);
    assert_int_equal(status.duration_us, 30000);
    wait_begun(&rig.fake, 2);
    advance(&rig.clock, 70000);
    allow(&rig.fake, 1, -EIO, "no");
    use_up(&rig, 1);
    runner_get_status(rig.runner, &status);
    assert_int_equal(status.age_us, 70000);
    assert_int_equal(status.duration_us, 70000);
    stop(&rig);
}

static void a_read_that_hangs_is_down_after_its_deadline_and_back_when_it_returns(void **state)
{
    struct runner_status status;
    struct rig rig;

    (void)state;
    start(&rig, INTERVAL_US);
    wait_begun(&rig.fake, 1);
    advance(&rig.clock, DEADLINE_US);
    runner_get_status(rig.runner, &status);
    assert_true(status.up);
    assert_string_equal(status.error, "");
    advance(&rig.clock, 1);
    runner_get_status(rig.runner, &status);
    assert_false(status.up);
    assert_string_equal(status.error, "does not answer within its deadline");
    assert_int_equal(status.duration_us, DEADLINE_US + 1);
    assert_int_equal(status.age_us, DEADLINE_US + 1);
    assert_int_equal(status.errors, 0);
    assert_null(runner_next_batch(rig.runner)); /* the owner never waits for it */
    allow(&rig.fake, 1, 0, NULL);
    use_up(&rig, 0);
    runner_get_status(rig.runner, &status);
    assert_true(status.up);
    assert_string_equal(status.error, "");
    assert_int_equal(status.age_us, 0);
    stop(&rig);
}

static void a_source_that_hangs_does_not_disturb_another(void **state)
{
    struct runner_status status;
    struct rig hung, well;

    (void)state;
    start(&hung, INTERVAL_US);
    start(&well, INTERVAL_US);
    wait_begun(&hung.fake, 1);
    for (uint64_t i = 0; i < 50; i++) {
        wait_begun(&well.fake, (unsigned)i + 1);
        advance(&hung.clock, DEADLINE_US);
        advance(&well.clock, DEADLINE_US);
        allow(&well.fake, 1, 0, NULL);
        use_up(&well, i);
        runner_get_status(well.runner, &status);
        assert_true(status.up);
        assert_int_equal(status.age_us, 0);
        runner_get_status(hung.runner, &status);
        assert_int_equal(status.up, i == 0);
    }
    stop(&well);
    stop(&hung);
}

static void a_queue_that_is_never_emptied_is_bounded(void **state)
{
    enum { QUEUE_MAX = 64, ROUNDS = 1000 };
    struct runner_status status;
    struct rig full, other;

    (void)state;
    start(&full, INTERVAL_US);
    allow(&full.fake, UNLIMITED, 0, NULL);
    wait_finished(&full.fake, QUEUE_MAX);
    /* Time enough for a reader that does not stop: another makes a thousand rounds. */
    start(&other, INTERVAL_US);
    allow(&other.fake, UNLIMITED, 0, NULL);
    for (uint64_t i = 0; i < ROUNDS; i++)
        use_up(&other, i);
    stop(&other);
    assert_int_equal(count_finished(&full.fake), QUEUE_MAX);
    /* The owner is late: no read hangs. */
    advance(&full.clock, 10 * DEADLINE_US);
    runner_get_status(full.runner, &status);
    assert_true(status.up);
    assert_int_equal(status.age_us, 10 * DEADLINE_US);
    /* Once there is room it goes on, and nothing was lost. */
    for (uint64_t i = 0; i < 2 * QUEUE_MAX; i++)
        use_up(&full, i);
    stop(&full);
}

static void stopping_wakes_a_runner_that_waits_for_its_next_round(void **state)
{
    struct rig rig;

    (void)state;
    start(&rig, HOUR_US);
    allow(&rig.fake, UNLIMITED, 0, NULL);
    use_up(&rig, 0);
    stop(&rig); /* closes the source: so it did not give up waiting */
    assert_int_equal(rig.fake.finished, 1);
}

static void stopping_frees_what_is_queued_and_what_is_spare(void **state)
{
    struct rig rig;

    (void)state;
    start(&rig, INTERVAL_US);
    allow(&rig.fake, 10, 0, NULL);
    wait_finished(&rig.fake, 10);
    use_up(&rig, 0);
    use_up(&rig, 1);
    stop(&rig); /* the leak checker sees the rest */
    assert_true(rig.fake.finished >= 10);
}

static uint64_t real_us(void)
{
    return clock_system.monotonic_us(&clock_system);
}

static void wait_closed(struct fake *fake)
{
    pthread_mutex_lock(&fake->lock);
    while (fake->closed == 0)
        pthread_cond_wait(&fake->changed, &fake->lock);
    pthread_mutex_unlock(&fake->lock);
}

static void stopping_leaves_a_source_that_hangs_to_its_thread(void **state)
{
    uint64_t began_us, wakes;
    struct rig rig;

    (void)state;
    start(&rig, INTERVAL_US);
    allow(&rig.fake, 3, 0, NULL);
    for (uint64_t i = 0; i < 2; i++)
        use_up(&rig, i);
    wait_begun(&rig.fake, 4); /* one batch is queued, and one is spare */
    assert_int_equal(fcntl(rig.wake_fd, F_SETFL, O_NONBLOCK), 0);
    (void)!read(rig.wake_fd, &wakes, sizeof(wakes));
    began_us = real_us();
    assert_false(runner_stop(rig.runner, 1000));
    assert_true(real_us() - began_us < 10 * USEC_PER_SEC);
    assert_int_equal(rig.fake.closed, 0);
    /* If it answers after all, the thread closes the source and frees all (which the leak checker
     * sees), and writes to no descriptor that its owner may have closed. */
    allow(&rig.fake, UNLIMITED, 0, NULL);
    wait_closed(&rig.fake);
    assert_int_equal(rig.fake.closed, 1);
    assert_true(read(rig.wake_fd, &wakes, sizeof(wakes)) < 0);
    assert_int_equal(errno, EAGAIN);
    close(rig.wake_fd);
}

static void a_read_that_restarts_its_interval_counts_as_a_success(void **state)
{
    struct runner_status status;
    struct rig rig;

    (void)state;
    start(&rig, INTERVAL_US);
    allow(&rig.fake, 3, 1, ""); /* each read starts the interval anew */
    wait_finished(&rig.fake, 3);
    runner_get_status(rig.runner, &status);
    assert_true(status.up);
    assert_int_equal(status.errors, 0);
    stop(&rig);
}

static void a_source_that_is_gone_ends_its_thread_and_reports_it(void **state)
{
    struct runner_status status;
    struct rig rig;

    (void)state;
    start(&rig, INTERVAL_US);
    allow(&rig.fake, 1, -ENODEV, "lost");
    do
        runner_get_status(rig.runner, &status);
    while (!status.gone);
    assert_false(status.up);
    assert_string_equal(status.error, "lost");
    allow(&rig.fake, UNLIMITED, 0, NULL);
    assert_true(runner_stop(rig.runner, STOP_US));
    assert_int_equal(rig.fake.begun, 1);
    close(rig.wake_fd);
}

static void stopping_nothing_does_nothing(void **state)
{
    (void)state;
    assert_true(runner_stop(NULL, HOUR_US));
}

static void a_source_is_known_once_it_did_more_than_to_be_gone(void **state)
{
    static const struct {
        int result;
        bool hangs, is_known;
    } cases[] = {{0, false, true}, {-EIO, false, true}, {-ENODEV, false, false}, {0, true, true}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct runner_status status;
        struct rig rig;

        start(&rig, HOUR_US);
        wait_begun(&rig.fake, 1);
        runner_get_status(rig.runner, &status);
        assert_false(status.known);
        if (cases[i].hangs) {
            advance(&rig.clock, DEADLINE_US + 1);
        } else {
            allow(&rig.fake, 1, cases[i].result, "why");
            use_up(&rig, 0);
        }
        runner_get_status(rig.runner, &status);
        assert_int_equal(status.known, cases[i].is_known);
        stop(&rig);
    }
}

/* Makes the source's descriptor readable. */
static void raise_event(struct rig *rig)
{
    static const uint64_t one = 1;

    assert_int_equal(write(rig->fake.event_fd, &one, sizeof(one)), sizeof(one));
}

/* Its one read is done, and it has been attended to after that. */
static void start_watchful(struct rig *rig)
{
    start_with(rig, HOUR_US, &watchful_ops);
    allow(&rig->fake, 1, 0, NULL);
    use_up(rig, 0);
    wait_attends(&rig->fake, 1);
}

static void an_event_is_attended_to_between_two_reads(void **state)
{
    struct rig rig;

    (void)state;
    start_watchful(&rig);
    for (unsigned i = 2; i < 20; i++) {
        raise_event(&rig);
        wait_attends(&rig.fake, i);
    }
    assert_null(runner_next_batch(rig.runner));
    stop(&rig);
    assert_int_equal(rig.fake.finished, 1);
    assert_int_equal(rig.fake.attends, 19);
}

static void a_source_is_attended_to_again_when_it_requested_it(void **state)
{
    struct rig rig;

    (void)state;
    start_with(&rig, HOUR_US, &watchful_ops);
    rig.fake.asks = 5; /* before the first read is allowed */
    allow(&rig.fake, 1, 0, NULL);
    wait_attends(&rig.fake, 6);
    raise_event(&rig); /* and then it sleeps */
    wait_attends(&rig.fake, 7);
    stop(&rig);
    assert_int_equal(rig.fake.attends, 7);
}

/* 2 % of the time, and before that once 100 ms. */
static void attending_takes_no_more_than_a_small_share_of_a_cpu(void **state)
{
    uint64_t began_us;
    struct rig rig;

    (void)state;
    start_with(&rig, HOUR_US, &watchful_ops);
    rig.fake.is_noisy = true;
    raise_event(&rig);
    allow(&rig.fake, 1, 0, NULL);
    wait_attends(&rig.fake, 12);
    began_us = real_us();
    wait_attends(&rig.fake, 14);
    assert_true(real_us() - began_us >= 45 * ATTEND_CPU_US);
    stop(&rig); /* also while it has to wait */
}

static void a_read_is_due_however_much_there_is_to_attend_to(void **state)
{
    struct rig rig;

    (void)state;
    start_with(&rig, INTERVAL_US, &watchful_ops);
    rig.fake.is_noisy = true;
    raise_event(&rig);
    allow(&rig.fake, UNLIMITED, 0, NULL);
    for (uint64_t i = 0; i < 100; i++)
        use_up(&rig, i);
    stop(&rig);
}

static void attending_that_hangs_is_down_after_the_deadline_and_back_when_it_returns(void **state)
{
    struct runner_status status;
    struct rig rig;

    (void)state;
    start_watchful(&rig);
    pthread_mutex_lock(&rig.fake.lock);
    rig.fake.attending_hangs = true;
    pthread_mutex_unlock(&rig.fake.lock);
    raise_event(&rig);
    wait_attends_begun(&rig.fake, 2);
    advance(&rig.clock, DEADLINE_US + 1);
    runner_get_status(rig.runner, &status);
    assert_false(status.up);
    assert_string_equal(status.error, "does not answer within its deadline");
    pthread_mutex_lock(&rig.fake.lock);
    rig.fake.attending_hangs = false;
    pthread_cond_broadcast(&rig.fake.changed);
    pthread_mutex_unlock(&rig.fake.lock);
    do
        runner_get_status(rig.runner, &status);
    while (!status.up);
    stop(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_arrive_in_order_and_each_wakes_the_owner),
        cmocka_unit_test(a_requested_read_is_out_of_turn_and_begins_after_the_request),
        cmocka_unit_test(returned_batches_are_used_again_and_empty),
        cmocka_unit_test(a_failed_read_counts_and_keeps_its_text_until_one_succeeds),
        cmocka_unit_test(a_long_error_is_cut_to_what_the_status_holds),
        cmocka_unit_test(age_runs_from_the_last_success_and_duration_is_that_of_the_last_read),
        cmocka_unit_test(a_read_that_hangs_is_down_after_its_deadline_and_back_when_it_returns),
        cmocka_unit_test(a_source_that_hangs_does_not_disturb_another),
        cmocka_unit_test(a_queue_that_is_never_emptied_is_bounded),
        cmocka_unit_test(stopping_wakes_a_runner_that_waits_for_its_next_round),
        cmocka_unit_test(stopping_frees_what_is_queued_and_what_is_spare),
        cmocka_unit_test(stopping_leaves_a_source_that_hangs_to_its_thread),
        cmocka_unit_test(a_read_that_restarts_its_interval_counts_as_a_success),
        cmocka_unit_test(a_source_that_is_gone_ends_its_thread_and_reports_it),
        cmocka_unit_test(a_source_is_known_once_it_did_more_than_to_be_gone),
        cmocka_unit_test(stopping_nothing_does_nothing),
        cmocka_unit_test(an_event_is_attended_to_between_two_reads),
        cmocka_unit_test(a_source_is_attended_to_again_when_it_requested_it),
        cmocka_unit_test(attending_takes_no_more_than_a_small_share_of_a_cpu),
        cmocka_unit_test(a_read_is_due_however_much_there_is_to_attend_to),
        cmocka_unit_test(attending_that_hangs_is_down_after_the_deadline_and_back_when_it_returns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
