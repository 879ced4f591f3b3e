/* emissions/backoff: when the next poll is due, to the microsecond. */
#include "unit.h"

#include <stdbool.h>

#include "core/macros.h"
#include "emissions/backoff.h"
#include "random.h"

#define SECOND USEC_PER_SEC
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define NOW    (1000 * SECOND)

static uint64_t draw_least(void *context, uint64_t below)
{
    (void)context;
    assert_true(below > 0);
    return 0;
}

static uint64_t draw_most(void *context, uint64_t below)
{
    (void)context;
    assert_true(below > 0);
    return below - 1;
}

static uint64_t draw_any(void *context, uint64_t below)
{
    return random_u64(context) % below;
}

static void the_first_poll_is_due_within_a_minute_or_the_interval(void **state)
{
    struct backoff backoff;

    (void)state;
    backoff_init(&backoff, 15 * MINUTE, draw_least, NULL, false, NOW);
    assert_int_equal(backoff.due_us, NOW);
    backoff_init(&backoff, 15 * MINUTE, draw_most, NULL, false, NOW);
    assert_int_equal(backoff.due_us, NOW + MINUTE - 1);
    backoff_init(&backoff, 10 * SECOND, draw_most, NULL, false, NOW);
    assert_int_equal(backoff.due_us, NOW + 10 * SECOND - 1);
    backoff_init(&backoff, 1, draw_most, NULL, false, NOW);
    assert_int_equal(backoff.due_us, NOW);
}

static void after_a_restart_the_first_poll_is_due_in_about_an_interval(void **state)
{
    struct backoff backoff;

    (void)state;
    backoff_init(&backoff, 10 * MINUTE, draw_least, NULL, true, NOW);
    assert_int_equal(backoff.due_us, NOW + 5 * MINUTE);
    backoff_init(&backoff, 10 * MINUTE, draw_most, NULL, true, NOW);
    assert_int_equal(backoff.due_us, NOW + 15 * MINUTE - 1);
}

static void after_a_success_the_next_is_due_at_the_interval_within_a_tenth(void **state)
{
    struct backoff backoff;

    (void)state;
    backoff_init(&backoff, 15 * MINUTE, draw_least, NULL, false, NOW);
    backoff_succeed(&backoff, NOW);
    assert_int_equal(backoff.due_us, NOW + 810 * SECOND);
    backoff.draw = draw_most;
    backoff_succeed(&backoff, NOW + HOUR);
    assert_int_equal(backoff.due_us, NOW + HOUR + 990 * SECOND);
}

static void failures_double_the_step_from_a_minute_to_an_hour(void **state)
{
    static const unsigned minutes[] = {1, 2, 4, 8, 16, 32, 60, 60, 60};
    struct backoff least, most;

    (void)state;
    backoff_init(&least, 15 * MINUTE, draw_least, NULL, false, NOW);
    backoff_init(&most, 15 * MINUTE, draw_most, NULL, false, NOW);
    for (size_t i = 0; i < ARRAY_SIZE(minutes); i++) {
        backoff_fail(&least, NOW, false, 0);
        backoff_fail(&most, NOW, false, 0);
        assert_int_equal(least.due_us, NOW + minutes[i] * MINUTE / 2);
        assert_int_equal(most.due_us, NOW + minutes[i] * MINUTE);
    }
    backoff_succeed(&most, NOW);
    backoff_fail(&most, NOW, false, 0);
    assert_int_equal(most.due_us, NOW + MINUTE);
}

static void a_short_interval_is_the_first_step_and_an_hour_the_last(void **state)
{
    struct backoff backoff;

    (void)state;
    backoff_init(&backoff, 10 * SECOND, draw_most, NULL, false, NOW);
    backoff_fail(&backoff, NOW, false, 0);
    assert_int_equal(backoff.due_us, NOW + 10 * SECOND);
    backoff_fail(&backoff, NOW, false, 0);
    assert_int_equal(backoff.due_us, NOW + 20 * SECOND);
    backoff_init(&backoff, 1, draw_most, NULL, false, NOW);
    for (int i = 0; i < 1000; i++)
        backoff_fail(&backoff, NOW, false, 0);
    assert_int_equal(backoff.due_us, NOW + HOUR);
}

static void a_permanent_failure_takes_the_longest_step_at_once(void **state)
{
    struct backoff backoff;

    (void)state;
    backoff_init(&backoff, 15 * MINUTE, draw_least, NULL, false, NOW);
    backoff_fail(&backoff, NOW, true, 0);
    assert_int_equal(backoff.due_us, NOW + HOUR / 2);
    backoff.draw = draw_most;
    backoff_fail(&backoff, NOW, true, 0);
    assert_int_equal(backoff.due_us, NOW + HOUR);
    backoff_fail(&backoff, NOW, false, 0); /* the third in a row */
    assert_int_equal(backoff.due_us, NOW + 4 * MINUTE);
}

static void a_demanded_wait_is_kept_with_jitter_up_to_six_hours(void **state)
{
    static const struct {
        uint64_t wait_us, least_us, most_us; /* of the first failure */
    } cases[] = {
        {0, 30 * SECOND, MINUTE},
        {1, 30 * SECOND, MINUTE + 1},
        {30 * SECOND, 30 * SECOND, 90 * SECOND},
        {10 * MINUTE, 10 * MINUTE, 11 * MINUTE},
        {6 * HOUR - MINUTE, 6 * HOUR - MINUTE, 6 * HOUR},
        {6 * HOUR, 6 * HOUR - MINUTE, 6 * HOUR},
        {UINT64_MAX, 6 * HOUR - MINUTE, 6 * HOUR},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct backoff backoff;

        backoff_init(&backoff, 15 * MINUTE, draw_least, NULL, false, NOW);
        backoff_fail(&backoff, NOW, false, cases[i].wait_us);
        assert_int_equal(backoff.due_us, NOW + cases[i].least_us);
        backoff_init(&backoff, 15 * MINUTE, draw_most, NULL, false, NOW);
        backoff_fail(&backoff, NOW, false, cases[i].wait_us);
        assert_int_equal(backoff.due_us, NOW + cases[i].most_us);
    }
}

static void a_wait_does_not_shorten_the_step(void **state)
{
    struct backoff backoff;

    (void)state;
    backoff_init(&backoff, 15 * MINUTE, draw_least, NULL, false, NOW);
    backoff_fail(&backoff, NOW, true, 10 * MINUTE);
    assert_int_equal(backoff.due_us, NOW + HOUR / 2);
}

static void the_longest_interval_does_not_overflow(void **state)
{
    struct backoff backoff;

    (void)state;
    backoff_init(&backoff, UINT64_MAX, draw_most, NULL, false, NOW);
    assert_int_equal(backoff.due_us, NOW + MINUTE - 1);
    backoff_succeed(&backoff, NOW);
    assert_true(backoff.due_us > UINT64_MAX / 4);
    backoff_fail(&backoff, NOW, false, UINT64_MAX);
    assert_int_equal(backoff.due_us, NOW + 6 * HOUR);
}

/* The whole range is drawn from, and nothing beyond it. */
static void draws_are_spread_over_the_whole_range(void **state)
{
    struct random_source source = {1};
    uint64_t least_us = UINT64_MAX, most_us = 0;
    struct backoff backoff;

    (void)state;
    backoff_init(&backoff, 300 * SECOND, draw_any, &source, false, NOW);
    for (int i = 0; i < 10000; i++) {
        backoff_succeed(&backoff, NOW);
        least_us = MIN(least_us, backoff.due_us - NOW);
        most_us = MAX(most_us, backoff.due_us - NOW);
        backoff_fail(&backoff, NOW, false, 0);
        assert_true(backoff.due_us >= NOW + 30 * SECOND && backoff.due_us <= NOW + MINUTE);
        backoff_fail(&backoff, NOW, false, 5 * MINUTE);
        assert_true(backoff.due_us >= NOW + 5 * MINUTE && backoff.due_us <= NOW + 6 * MINUTE);
    }
    assert_true(least_us >= 270 * SECOND && least_us < 271 * SECOND);
    assert_true(most_us <= 330 * SECOND && most_us > 329 * SECOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_poll_is_due_within_a_minute_or_the_interval),
        cmocka_unit_test(after_a_restart_the_first_poll_is_due_in_about_an_interval),
        cmocka_unit_test(after_a_success_the_next_is_due_at_the_interval_within_a_tenth),
        cmocka_unit_test(failures_double_the_step_from_a_minute_to_an_hour),
        cmocka_unit_test(a_short_interval_is_the_first_step_and_an_hour_the_last),
        cmocka_unit_test(a_permanent_failure_takes_the_longest_step_at_once),
        cmocka_unit_test(a_demanded_wait_is_kept_with_jitter_up_to_six_hours),
        cmocka_unit_test(a_wait_does_not_shorten_the_step),
        cmocka_unit_test(the_longest_interval_does_not_overflow),
        cmocka_unit_test(draws_are_spread_over_the_whole_range),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
