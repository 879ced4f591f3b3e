/* emissions/backoff: when to ask again, to the microsecond. */
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

static void the_first_time_is_within_a_minute_or_the_interval(void **state)
{
    struct backoff pace;

    (void)state;
    backoff_init(&pace, 15 * MINUTE, draw_least, NULL, false, NOW);
    assert_int_equal(pace.due_us, NOW);
    backoff_init(&pace, 15 * MINUTE, draw_most, NULL, false, NOW);
    assert_int_equal(pace.due_us, NOW + MINUTE - 1);
    backoff_init(&pace, 10 * SECOND, draw_most, NULL, false, NOW);
    assert_int_equal(pace.due_us, NOW + 10 * SECOND - 1);
    backoff_init(&pace, 1, draw_most, NULL, false, NOW);
    assert_int_equal(pace.due_us, NOW);
}

static void who_died_is_in_no_hurry_to_ask_again(void **state)
{
    struct backoff pace;

    (void)state;
    backoff_init(&pace, 10 * MINUTE, draw_least, NULL, true, NOW);
    assert_int_equal(pace.due_us, NOW + 5 * MINUTE);
    backoff_init(&pace, 10 * MINUTE, draw_most, NULL, true, NOW);
    assert_int_equal(pace.due_us, NOW + 15 * MINUTE - 1);
}

static void after_an_answer_it_is_the_interval_by_a_tenth_more_or_less(void **state)
{
    struct backoff pace;

    (void)state;
    backoff_init(&pace, 15 * MINUTE, draw_least, NULL, false, NOW);
    backoff_succeed(&pace, NOW);
    assert_int_equal(pace.due_us, NOW + 810 * SECOND);
    pace.draw = draw_most;
    backoff_succeed(&pace, NOW + HOUR);
    assert_int_equal(pace.due_us, NOW + HOUR + 990 * SECOND);
}

static void after_failures_the_step_doubles_from_a_minute_to_an_hour(void **state)
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

static void a_short_interval_is_the_first_step_and_an_hour_still_the_last(void **state)
{
    struct backoff pace;

    (void)state;
    backoff_init(&pace, 10 * SECOND, draw_most, NULL, false, NOW);
    backoff_fail(&pace, NOW, false, 0);
    assert_int_equal(pace.due_us, NOW + 10 * SECOND);
    backoff_fail(&pace, NOW, false, 0);
    assert_int_equal(pace.due_us, NOW + 20 * SECOND);
    backoff_init(&pace, 1, draw_most, NULL, false, NOW);
    for (int i = 0; i < 1000; i++)
        backoff_fail(&pace, NOW, false, 0);
    assert_int_equal(pace.due_us, NOW + HOUR);
}

static void a_failure_that_lasts_has_the_longest_step_at_once(void **state)
{
    struct backoff pace;

    (void)state;
    backoff_init(&pace, 15 * MINUTE, draw_least, NULL, false, NOW);
    backoff_fail(&pace, NOW, true, 0);
    assert_int_equal(pace.due_us, NOW + HOUR / 2);
    pace.draw = draw_most;
    backoff_fail(&pace, NOW, true, 0);
    assert_int_equal(pace.due_us, NOW + HOUR);
    backoff_fail(&pace, NOW, false, 0); /* the third in a row */
    assert_int_equal(pace.due_us, NOW + 4 * MINUTE);
}

static void who_wants_to_be_left_alone_is_and_not_by_all_until_the_same_moment(void **state)
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
        struct backoff pace;

        backoff_init(&pace, 15 * MINUTE, draw_least, NULL, false, NOW);
        backoff_fail(&pace, NOW, false, cases[i].wait_us);
        assert_int_equal(pace.due_us, NOW + cases[i].least_us);
        backoff_init(&pace, 15 * MINUTE, draw_most, NULL, false, NOW);
        backoff_fail(&pace, NOW, false, cases[i].wait_us);
        assert_int_equal(pace.due_us, NOW + cases[i].most_us);
    }
}

static void a_wait_does_not_shorten_the_step(void **state)
{
    struct backoff pace;

    (void)state;
    backoff_init(&pace, 15 * MINUTE, draw_least, NULL, false, NOW);
    backoff_fail(&pace, NOW, true, 10 * MINUTE);
    assert_int_equal(pace.due_us, NOW + HOUR / 2);
}

static void an_interval_without_end_does_not_overflow(void **state)
{
    struct backoff pace;

    (void)state;
    backoff_init(&pace, UINT64_MAX, draw_most, NULL, false, NOW);
    assert_int_equal(pace.due_us, NOW + MINUTE - 1);
    backoff_succeed(&pace, NOW);
    assert_true(pace.due_us > UINT64_MAX / 4);
    backoff_fail(&pace, NOW, false, UINT64_MAX);
    assert_int_equal(pace.due_us, NOW + 6 * HOUR);
}

/* All of the range comes up, and nothing beyond it. */
static void draws_are_spread_over_the_whole_range(void **state)
{
    struct random_source source = {1};
    uint64_t least_us = UINT64_MAX, most_us = 0;
    struct backoff pace;

    (void)state;
    backoff_init(&pace, 300 * SECOND, draw_any, &source, false, NOW);
    for (int i = 0; i < 10000; i++) {
        backoff_succeed(&pace, NOW);
        least_us = MIN(least_us, pace.due_us - NOW);
        most_us = MAX(most_us, pace.due_us - NOW);
        backoff_fail(&pace, NOW, false, 0);
        assert_true(pace.due_us >= NOW + 30 * SECOND && pace.due_us <= NOW + MINUTE);
        backoff_fail(&pace, NOW, false, 5 * MINUTE);
        assert_true(pace.due_us >= NOW + 5 * MINUTE && pace.due_us <= NOW + 6 * MINUTE);
    }
    assert_true(least_us >= 270 * SECOND && least_us < 271 * SECOND);
    assert_true(most_us <= 330 * SECOND && most_us > 329 * SECOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_time_is_within_a_minute_or_the_interval),
        cmocka_unit_test(who_died_is_in_no_hurry_to_ask_again),
        cmocka_unit_test(after_an_answer_it_is_the_interval_by_a_tenth_more_or_less),
        cmocka_unit_test(after_failures_the_step_doubles_from_a_minute_to_an_hour),
        cmocka_unit_test(a_short_interval_is_the_first_step_and_an_hour_still_the_last),
        cmocka_unit_test(a_failure_that_lasts_has_the_longest_step_at_once),
        cmocka_unit_test(who_wants_to_be_left_alone_is_and_not_by_all_until_the_same_moment),
        cmocka_unit_test(a_wait_does_not_shorten_the_step),
        cmocka_unit_test(an_interval_without_end_does_not_overflow),
        cmocka_unit_test(draws_are_spread_over_the_whole_range),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
