#include "unit.h"

#include "attribution/gpu/idle.h"
#include "core/macros.h"

#define SECOND USEC_PER_SEC

static uint64_t joules(uint64_t j)
{
    return j * 1000000;
}

static void before_anything_was_seen_all_energy_is_active(void **state)
{
    struct idle_levels levels = {0};
    struct idle_part part = idle_split(&levels, true, joules(70), SECOND);

    (void)state;
    assert_int_equal(part.floor_uj + part.step_uj, 0);
}

static void the_step_is_what_a_context_costs_above_the_floor(void **state)
{
    struct idle_levels levels = {0};
    struct idle_part part;

    (void)state;
    idle_learn(&levels, false, joules(77), SECOND);
    idle_learn(&levels, true, joules(122), SECOND);
    part = idle_split(&levels, true, joules(1400), 2 * SECOND);
    assert_int_equal(part.floor_uj, joules(154));
    assert_int_equal(part.step_uj, joules(90));
    part = idle_split(&levels, false, joules(1400), 2 * SECOND);
    assert_int_equal(part.floor_uj, joules(154));
    assert_int_equal(part.step_uj, 0);
}

static void without_a_floor_the_level_with_context_is_the_floor(void **state)
{
    struct idle_levels levels = {0};
    struct idle_part part;

    (void)state;
    idle_learn(&levels, true, joules(122), SECOND);
    part = idle_split(&levels, true, joules(300), SECOND);
    assert_int_equal(part.floor_uj, joules(122));
    assert_int_equal(part.step_uj, 0);
}

static void the_idle_part_is_never_more_than_the_window(void **state)
{
    struct idle_levels levels = {0};
    struct idle_part part;

    (void)state;
    idle_learn(&levels, false, joules(77), SECOND);
    idle_learn(&levels, true, joules(122), SECOND);
    part = idle_split(&levels, true, joules(100), SECOND);
    assert_int_equal(part.floor_uj, joules(77));
    assert_int_equal(part.step_uj, joules(23));
    part = idle_split(&levels, true, joules(60), SECOND);
    assert_int_equal(part.floor_uj, joules(60));
    assert_int_equal(part.step_uj, 0);
}

static void windows_with_unseen_activity_do_not_raise_the_level(void **state)
{
    struct idle_levels levels = {0};

    (void)state;
    for (int i = 0; i < 40; i++)
        idle_learn(&levels, false, joules(i % 4 == 0 ? 77 : 300), SECOND);
    assert_int_equal(levels.without_context.level_mw, 77000);
}

static void one_low_reading_among_many_does_not_lower_the_level(void **state)
{
    struct idle_levels levels = {0};

    (void)state;
    for (int i = 0; i < 40; i++)
        idle_learn(&levels, false, joules(i == 7 ? 10 : 77), SECOND);
    assert_int_equal(levels.without_context.level_mw, 77000);
}

static void old_levels_are_forgotten(void **state)
{
    struct idle_levels levels = {0};

    (void)state;
    for (int i = 0; i < IDLE_MEMORY; i++)
        idle_learn(&levels, false, joules(77), SECOND);
    for (int i = 0; i < IDLE_MEMORY; i++)
        idle_learn(&levels, false, joules(90), SECOND);
    assert_int_equal(levels.without_context.level_mw, 90000);
}

static void a_window_without_length_teaches_nothing(void **state)
{
    struct idle_levels levels = {0};

    (void)state;
    idle_learn(&levels, false, joules(77), 0);
    assert_int_equal(levels.without_context.count, 0);
}

static void a_fixed_level_is_both_and_nothing_is_learned(void **state)
{
    struct idle_levels levels = {.is_fixed = true, .fixed_mw = 75500};
    struct idle_part part;

    (void)state;
    idle_learn(&levels, false, joules(77), SECOND);
    idle_learn(&levels, true, joules(122), SECOND);
    assert_int_equal(levels.without_context.count + levels.with_context.count, 0);
    for (int context = 0; context < 2; context++) {
        part = idle_split(&levels, context, joules(300), 2 * SECOND);
        assert_int_equal(part.floor_uj, joules(151));
        assert_int_equal(part.step_uj, 0);
    }
    part = idle_split(&levels, true, joules(30), SECOND);
    assert_int_equal(part.floor_uj, joules(30));
    levels.fixed_mw = 0;
    part = idle_split(&levels, true, joules(30), SECOND);
    assert_int_equal(part.floor_uj + part.step_uj, 0);
    /* What was learned before is used again without it. */
    levels = (struct idle_levels){0};
    idle_learn(&levels, false, joules(77), SECOND);
    levels.is_fixed = true;
    assert_int_equal(idle_level_mw(&levels, true), 0);
    levels.is_fixed = false;
    assert_int_equal(idle_level_mw(&levels, true), 77000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_anything_was_seen_all_energy_is_active),
        cmocka_unit_test(the_step_is_what_a_context_costs_above_the_floor),
        cmocka_unit_test(without_a_floor_the_level_with_context_is_the_floor),
        cmocka_unit_test(the_idle_part_is_never_more_than_the_window),
        cmocka_unit_test(windows_with_unseen_activity_do_not_raise_the_level),
        cmocka_unit_test(one_low_reading_among_many_does_not_lower_the_level),
        cmocka_unit_test(old_levels_are_forgotten),
        cmocka_unit_test(a_window_without_length_teaches_nothing),
        cmocka_unit_test(a_fixed_level_is_both_and_nothing_is_learned),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
