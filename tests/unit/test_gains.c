/* attribution/gpu/intensity/gains: how much the programs of a board's parts draw for what their
 * units do. */
#include "unit.h"

#include <math.h>

#include "attribution/gpu/intensity/gains.h"
#include "core/macros.h"

enum { A = 1, B = 2 }; /* tenants */

/* Of two parts that would draw so many watts, and the watts of the board, for so many slots. */
static void learn(struct gains *gains, double first_w, double second_w, double watts, size_t slots)
{
    const double expected_w[GAINS_MAX] = {first_w, second_w};

    for (size_t i = 0; i < slots; i++) {
        gains_follow(gains, 0, first_w > 0 ? A : 0);
        gains_follow(gains, 1, second_w > 0 ? B : 0);
        gains_learn(gains, expected_w, watts);
    }
}

/* That of the first of two parts that share the board equally. */
static double error_of_half(const struct gains *gains)
{
    return gains_error(gains, (const double[GAINS_MAX]){200, 200}, 0, 0.5);
}

static void a_mixture_that_does_not_vary_leaves_all_open(void **state)
{
    struct gains gains = {0};

    (void)state;
    learn(&gains, 200, 200, 300, 1000); /* 200 and 100, or 150 each */
    assert_true(error_of_half(&gains) > 0.26);
    assert_true(fabs(gains.gain[0] - gains.gain[1]) < 0.01);
}

static void a_mixture_that_varies_shows_who_draws_what(void **state)
{
    struct gains gains = {0};

    (void)state;
    for (int i = 0; i < 50; i++) {
        learn(&gains, 200, 200, 300, 2);
        learn(&gains, 200, 20, 210, 2);
        learn(&gains, 20, 200, 120, 2);
    }
    assert_true(fabs(gains.gain[0] - 1) < 0.05);
    assert_true(fabs(gains.gain[1] - 0.5) < 0.05);
    assert_true(gains_error(&gains, (const double[GAINS_MAX]){200, 200}, 0, 2.0 / 3) < 0.1);
}

static void a_share_that_the_board_contradicts_is_as_uncertain_as_it_is_off(void **state)
{
    struct gains gains = {0};

    (void)state;
    learn(&gains, 200, 0, 200, 200);
    learn(&gains, 200, 200, 300, 200); /* the first one is known */
    assert_true(fabs(gains.gain[1] - 0.5) < 0.1);
    assert_true(error_of_half(&gains) > 0.25);
    assert_true(gains_error(&gains, (const double[GAINS_MAX]){200, 200}, 0, 0.66) <
                error_of_half(&gains) / 2);
}

static void what_is_known_of_those_who_left_stays_until_another_comes(void **state)
{
    struct gains gains = {0};

    (void)state;
    learn(&gains, 200, 0, 100, 300);
    learn(&gains, 0, 0, 0, 10);
    assert_true(fabs(gains.gain[0] - 0.5) < 0.05);
    gains_follow(&gains, 0, A); /* it has the place of the one that left */
    assert_true(gains.gain[0] == 1);
    learn(&gains, 200, 0, 100, 300);
    gains_follow(&gains, 0, A | B);
    assert_true(gains.gain[0] == 1);
}

static void what_a_program_drew_long_ago_is_open_again(void **state)
{
    struct gains gains = {0};

    (void)state;
    for (int i = 0; i < 50; i++) {
        learn(&gains, 200, 20, 220, 2);
        learn(&gains, 20, 200, 220, 2);
    }
    assert_true(error_of_half(&gains) < 0.12);
    learn(&gains, 200, 200, 400, 3000);
    assert_true(error_of_half(&gains) > 0.26);
}

static void who_has_all_is_certain(void **state)
{
    struct gains gains = {0};

    (void)state;
    assert_true(gains_error(&gains, (const double[GAINS_MAX]){200}, 0, 1) < 1e-9);
    assert_true(gains_error(&gains, (const double[GAINS_MAX]){0}, 0, 0) == 0);
}

static void absurd_watts_give_finite_errors(void **state)
{
    static const double watts[] = {0, 1e-9, 100, 1e12};

    (void)state;
    for (size_t i = 0; i < 64; i++) {
        const double expected_w[GAINS_MAX] = {watts[i % 4], watts[i / 4 % 4]};
        struct gains gains = {0};
        double error;

        learn(&gains, expected_w[0], expected_w[1], watts[i / 16], 50);
        error = gains_error(&gains, expected_w, 0, 0.5);
        assert_true(isfinite(error) && error >= 0 && error <= 1);
        gains_follow(&gains, GAINS_MAX, A); /* no such part */
        assert_true(gains_error(&gains, expected_w, GAINS_MAX, 0.5) == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mixture_that_does_not_vary_leaves_all_open),
        cmocka_unit_test(a_mixture_that_varies_shows_who_draws_what),
        cmocka_unit_test(a_share_that_the_board_contradicts_is_as_uncertain_as_it_is_off),
        cmocka_unit_test(what_is_known_of_those_who_left_stays_until_another_comes),
        cmocka_unit_test(what_a_program_drew_long_ago_is_open_again),
        cmocka_unit_test(who_has_all_is_certain),
        cmocka_unit_test(absurd_watts_give_finite_errors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
