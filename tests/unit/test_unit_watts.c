/* attribution/gpu/intensity/unit_watts: what units draw, from what is known of other boards to what
 * this one shows. */
#include "unit.h"

#include <math.h>

#include "attribution/gpu/intensity/unit_watts.h"
#include "core/macros.h"
#include "random.h"

enum { LIMIT_W = 700 };

static const double TRUE_WATTS[UNIT_COUNT] = {
    [UNIT_SM] = 80, [UNIT_TENSOR] = 500, [UNIT_DRAM] = 300, [UNIT_FP32] = 900};

/* One part of a mixture, and all of it. */
static const double tensor[UNIT_COUNT] = {[UNIT_TENSOR] = 0.5};
static const double both[UNIT_COUNT] = {[UNIT_TENSOR] = 0.5, [UNIT_DRAM] = 0.5};

static double watts_of(const double units[UNIT_COUNT])
{
    double sum = 0;

    for (size_t u = 0; u < UNIT_COUNT; u++)
        sum += TRUE_WATTS[u] * units[u];
    return sum;
}

static void random_units(struct random_source *random, double units[UNIT_COUNT])
{
    for (size_t u = 0; u < UNIT_COUNT; u++)
        units[u] = TRUE_WATTS[u] > 0 ? random_part(random) : 0;
}

static void at_first_a_board_is_like_those_that_were_measured(void **state)
{
    static const struct unit_watts none;
    const double halves[UNIT_COUNT] = {[UNIT_TENSOR] = 1};

    (void)state;
    assert_true(fabs(unit_watts_of(&none, tensor, LIMIT_W) - 440) < 1);
    assert_true(fabs(unit_watts_of(&none, tensor, 2 * LIMIT_W) - 880) < 1);
    assert_true(fabs(unit_watts_of(&none, tensor, 0) - 440) < 1);         /* an unknown limit */
    assert_true(unit_watts_error(&none, tensor, halves, LIMIT_W) > 0.12); /* of half: 25 % */
}

static void what_a_board_shows_replaces_that(void **state)
{
    struct unit_watts unit_watts = {.weight = 0};
    struct random_source random = {5};
    double units[UNIT_COUNT];

    (void)state;
    for (int i = 0; i < 1000; i++) {
        random_units(&random, units);
        unit_watts_learn(&unit_watts, units, watts_of(units), LIMIT_W);
    }
    for (int i = 0; i < 50; i++) {
        random_units(&random, units);
        assert_true(fabs(unit_watts_of(&unit_watts, units, LIMIT_W) / watts_of(units) - 1) < 0.1);
    }
    assert_true(unit_watts_error(&unit_watts, tensor, both, LIMIT_W) < 0.15);
}

static void a_steady_activity_moves_the_sum_and_keeps_the_proportions(void **state)
{
    const double memory[UNIT_COUNT] = {[UNIT_DRAM] = 0.5};
    struct unit_watts unit_watts = {.weight = 0};
    double ratio;

    (void)state;
    for (int i = 0; i < 300; i++)
        unit_watts_learn(&unit_watts, both, 500, LIMIT_W);
    assert_true(fabs(unit_watts_of(&unit_watts, both, LIMIT_W) - 500) < 10);
    ratio =
        unit_watts_of(&unit_watts, tensor, LIMIT_W) / unit_watts_of(&unit_watts, memory, LIMIT_W);
    assert_true(ratio > 1 && ratio < 2);
}

/* The sum is known exactly; who draws how much of it is as open as at the start. */
static void a_steady_mixture_does_not_show_who_draws_what(void **state)
{
    struct unit_watts unit_watts = {.weight = 0};

    (void)state;
    for (int i = 0; i < 3000; i++)
        unit_watts_learn(&unit_watts, both, 500, LIMIT_W);
    assert_true(unit_watts_error(&unit_watts, tensor, both, LIMIT_W) > 0.2);
}

static void a_mixture_that_varied_does(void **state)
{
    struct unit_watts unit_watts = {.weight = 0};

    (void)state;
    for (int i = 0; i < 1000; i++)
        unit_watts_learn(&unit_watts, i % 2 ? both : tensor, i % 2 ? 400 : 250, LIMIT_W);
    assert_true(unit_watts_error(&unit_watts, tensor, both, LIMIT_W) < 0.1);
}

/* Tensor pipes that multiply zeros, alone, and then random numbers beside another. */
static void units_that_suddenly_draw_more_are_learned_anew_and_doubted_at_once(void **state)
{
    struct unit_watts unit_watts = {.weight = 0};

    (void)state;
    for (int i = 0; i < 300; i++)
        unit_watts_learn(&unit_watts, tensor, 200, LIMIT_W);
    for (int i = 0; i < 2; i++)
        unit_watts_learn(&unit_watts, both, 700, LIMIT_W);
    assert_true(unit_watts_error(&unit_watts, tensor, both, LIMIT_W) > 0.2);
    assert_true(unit_watts_of(&unit_watts, tensor, LIMIT_W) > 300); /* of 400 */
}

static void a_single_slot_far_off_is_not_learned_from(void **state)
{
    struct unit_watts unit_watts = {.weight = 0};
    double before;

    (void)state;
    for (int i = 0; i < 300; i++)
        unit_watts_learn(&unit_watts, tensor, 200, LIMIT_W);
    before = unit_watts_of(&unit_watts, tensor, LIMIT_W);
    for (int i = 0; i < 300; i++)
        unit_watts_learn(&unit_watts, tensor, i % 3 == 0 ? 400 : 200, LIMIT_W);
    assert_true(fabs(unit_watts_of(&unit_watts, tensor, LIMIT_W) / before - 1) < 0.01);
}

static void units_that_do_not_explain_the_board_make_it_doubtful(void **state)
{
    struct unit_watts unit_watts = {.weight = 0};
    struct random_source random = {6};
    double units[UNIT_COUNT], share;

    (void)state;
    for (int i = 0; i < 300; i++) {
        random_units(&random, units);
        unit_watts_learn(&unit_watts, units, 50 + 600 * random_part(&random), LIMIT_W);
    }
    share = unit_watts_of(&unit_watts, tensor, LIMIT_W) / unit_watts_of(&unit_watts, both, LIMIT_W);
    assert_true(unit_watts_error(&unit_watts, tensor, both, LIMIT_W) > 0.3 * (1 - share));
}

static void nonsense_is_not_learned_and_nothing_is_negative(void **state)
{
    const double none[UNIT_COUNT] = {0}, all[UNIT_COUNT] = {1, 1, 1, 1, 1, 1, 1, 1};
    const double odd[] = {-1, 0, 1e-9, 1e12};
    struct unit_watts unit_watts = {.weight = 0};

    (void)state;
    for (int i = 0; i < 1000; i++)
        unit_watts_learn(&unit_watts, i % 3 == 0 ? none : all, odd[i % 4], LIMIT_W);
    for (size_t u = 0; u < UNIT_COUNT; u++)
        assert_true(isfinite(unit_watts.watts[u]) && unit_watts.watts[u] >= 0);
    assert_true(isfinite(unit_watts_error(&unit_watts, all, all, LIMIT_W)));
    assert_true(isfinite(unit_watts_error(&unit_watts, tensor, all, LIMIT_W)));
    assert_true(isfinite(unit_watts_error(&unit_watts, none, all, LIMIT_W)));
    assert_true(isfinite(unit_watts_error(&unit_watts, none, none, LIMIT_W)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_first_a_board_is_like_those_that_were_measured),
        cmocka_unit_test(what_a_board_shows_replaces_that),
        cmocka_unit_test(a_steady_activity_moves_the_sum_and_keeps_the_proportions),
        cmocka_unit_test(a_steady_mixture_does_not_show_who_draws_what),
        cmocka_unit_test(a_mixture_that_varied_does),
        cmocka_unit_test(units_that_suddenly_draw_more_are_learned_anew_and_doubted_at_once),
        cmocka_unit_test(a_single_slot_far_off_is_not_learned_from),
        cmocka_unit_test(units_that_do_not_explain_the_board_make_it_doubtful),
        cmocka_unit_test(nonsense_is_not_learned_and_nothing_is_negative),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
