/* attribution/gpu/intensity/programs: what is remembered, for how long, and what it is worth. */
#include "unit.h"

#include "attribution/gpu/intensity/programs.h"
#include "core/macros.h"

#define DAY ((uint64_t)86400 * USEC_PER_SEC)
#define NOW (10000 * DAY)

static struct state slot_of(double watts)
{
    return (struct state){.has_gpm = true, .weight = 1, .mean = {.power_w = watts}};
}

static void learn(struct programs *programs, uint64_t key, size_t slots, uint64_t now_us)
{
    const struct state slot = slot_of((double)key);

    for (size_t i = 0; i < slots; i++)
        programs_measure(programs, key, &slot, now_us);
}

/* What is known of a program without using it; 0: nothing. */
static double slots_of(const struct programs *programs, uint64_t key)
{
    for (size_t i = 0; i < PROGRAMS_MAX; i++)
        if (programs->all[i].key == key)
            return programs->all[i].slots;
    return 0;
}

static double recall_after(uint64_t age_us)
{
    struct programs programs = {0};
    const struct program *program;

    learn(&programs, 1, 100, NOW);
    program = programs_recall(&programs, 1, NOW + age_us);
    if (!program)
        assert_int_equal(programs_count(&programs), 0);
    return program ? program->slots : 0;
}

static void the_means_are_of_at_most_150_slots(void **state)
{
    struct programs programs = {0};
    const struct state first = slot_of(100), then = slot_of(400);
    const struct program *program;

    (void)state;
    for (size_t i = 0; i < 149; i++)
        programs_measure(&programs, 1, &first, NOW);
    programs_measure(&programs, 1, &then, NOW);
    program = programs_recall(&programs, 1, NOW);
    assert_true(program->slots == 150);
    assert_float_equal(program->mean.power_w, 100 + 300.0 / 150, 1e-9);
    programs_measure(&programs, 1, &then, NOW);
    assert_true(program->slots == 150);
    assert_float_equal(program->mean.power_w, 102 + 298.0 / 150, 1e-9);
}

static void what_was_not_used_for_30_days_is_worth_5_slots_and_for_180_nothing(void **state)
{
    (void)state;
    assert_true(recall_after(0) == 100);
    assert_true(recall_after(30 * DAY) == 100);
    assert_true(recall_after(30 * DAY + 1) == 5);
    assert_true(recall_after(180 * DAY) == 5);
    assert_true(recall_after(180 * DAY + 1) == 0);
}

static void a_use_renews_it(void **state)
{
    struct programs programs = {0};

    (void)state;
    learn(&programs, 1, 100, NOW);
    assert_non_null(programs_recall(&programs, 1, NOW + 29 * DAY));
    assert_true(programs_recall(&programs, 1, NOW + 58 * DAY)->slots == 100);
}

static void a_clock_that_goes_back_ages_nothing(void **state)
{
    struct programs programs = {0};

    (void)state;
    learn(&programs, 1, 100, NOW);
    assert_true(programs_recall(&programs, 1, NOW - 5000 * DAY)->slots == 100);
    assert_true(programs_recall(&programs, 1, 0)->slots == 100);
    assert_true(programs_recall(&programs, 1, NOW + 30 * DAY)->slots == 100);
}

static void the_least_recently_used_makes_room_whatever_the_clock_says(void **state)
{
    struct programs programs = {0};

    (void)state;
    for (uint64_t key = 1; key <= PROGRAMS_MAX; key++)
        learn(&programs, key, 1, NOW + key);
    assert_int_equal(programs_count(&programs), 128);
    assert_non_null(programs_recall(&programs, 1, NOW));
    /* Before all of that: as in a second trace that was recorded earlier. */
    learn(&programs, 1001, 1, NOW - 100 * DAY);
    learn(&programs, 1002, 1, NOW - 99 * DAY);
    assert_int_equal(programs_count(&programs), 128);
    assert_true(slots_of(&programs, 1) == 1 && slots_of(&programs, 4) == 1);
    assert_true(slots_of(&programs, 2) == 0 && slots_of(&programs, 3) == 0);
    assert_true(slots_of(&programs, 1001) == 1 && slots_of(&programs, 1002) == 1);
}

static void what_is_adopted_is_worth_at_most_the_limit(void **state)
{
    struct programs from = {0}, to = {0};

    (void)state;
    learn(&from, 1, 100, NOW);
    learn(&from, 2, 1, NOW);
    programs_adopt(&to, &from, 0);
    assert_int_equal(programs_count(&to), 0);
    programs_adopt(&to, &from, 3);
    assert_true(slots_of(&to, 1) == 3);
    assert_true(slots_of(&to, 2) == 1);
    assert_true(slots_of(&from, 1) == 100);
    assert_true(programs_recall(&to, 1, NOW)->mean.power_w == 1);
    assert_true(programs_recall(&to, 1, NOW)->has_gpm);
    assert_true(programs_recall(&to, 1, NOW + 30 * DAY + 1)->slots == 3);
    assert_null(programs_recall(&to, 2, NOW + 180 * DAY + 1));
}

static void of_two_memories_the_one_that_is_worth_more_stays(void **state)
{
    struct programs from = {0}, to = {0};
    const struct state own = slot_of(500);

    (void)state;
    for (size_t i = 0; i < 3; i++)
        programs_measure(&to, 1, &own, NOW);
    programs_measure(&to, 2, &own, NOW);
    learn(&from, 1, 100, NOW);
    learn(&from, 2, 100, NOW);
    programs_adopt(&to, &from, 3);
    assert_int_equal(programs_count(&to), 2);
    assert_true(programs_recall(&to, 1, NOW)->mean.power_w == 500);
    assert_true(programs_recall(&to, 2, NOW)->mean.power_w == 2);
}

static void what_was_measured_stays_before_what_was_learned_in_company(void **state)
{
    const struct program learned = {.used_us = NOW, .slots = 5, .mean = {.power_w = 500}};
    struct programs from = {0}, to = {0};

    (void)state;
    programs_learn(&from, 1, &learned);
    programs_learn(&from, 2, &learned);
    assert_true(programs_recall(&from, 1, NOW)->mean.power_w == 500);
    assert_false(programs_recall(&from, 1, NOW)->is_measured);
    learn(&to, 1, 1, NOW);
    programs_learn(&to, 1, &learned);
    assert_true(programs_recall(&to, 1, NOW)->mean.power_w == 1);
    programs_adopt(&to, &from, 3);
    assert_true(programs_recall(&to, 1, NOW)->mean.power_w == 1);
    assert_true(programs_recall(&to, 2, NOW)->mean.power_w == 500);
    learn(&to, 2, 1, NOW); /* measuring replaces it */
    assert_true(programs_recall(&to, 2, NOW)->mean.power_w == 2);
    assert_true(programs_recall(&to, 2, NOW)->slots == 1);
}

static void in_a_full_memory_what_was_used_last_is_adopted(void **state)
{
    struct programs from = {0}, to = {0};

    (void)state;
    for (uint64_t key = 1; key <= PROGRAMS_MAX; key++)
        learn(&from, key, 1, NOW - key); /* the last key last, though the clock went back */
    learn(&to, 1001, 1, NOW);
    programs_adopt(&to, &from, 3);
    assert_int_equal(programs_count(&to), 128);
    assert_true(slots_of(&to, 1001) == 0 && slots_of(&to, 1) == 1);
    learn(&to, 1002, 1, NOW);
    assert_true(slots_of(&to, 1) == 0 && slots_of(&to, 2) == 1);
}

static void a_cap_is_for_all_and_learning_goes_on(void **state)
{
    struct programs programs = {0};

    (void)state;
    learn(&programs, 1, 100, NOW);
    learn(&programs, 2, 1, NOW);
    programs_cap(&programs, PROGRAMS_CHANGED_SLOTS);
    assert_true(slots_of(&programs, 1) == 2 && slots_of(&programs, 2) == 1);
    learn(&programs, 1, 10, NOW);
    assert_true(slots_of(&programs, 1) == 12);
}

static void a_moment_without_gpm_does_not_replace_what_was_measured_with_it(void **state)
{
    struct state without = slot_of(200);
    struct programs programs = {0};
    const struct program *program;

    (void)state;
    without.has_gpm = false;
    learn(&programs, 1, 10, NOW);
    for (size_t i = 0; i < 9; i++)
        programs_measure(&programs, 1, &without, NOW);
    program = programs_recall(&programs, 1, NOW);
    assert_true(program->has_gpm && program->mean.power_w == 1 && program->slots == 1);
    programs_measure(&programs, 1, &without, NOW);
    program = programs_recall(&programs, 1, NOW);
    assert_true(!program->has_gpm && program->mean.power_w == 200 && program->slots == 1);
    learn(&programs, 1, 1, NOW); /* with it again: at once */
    program = programs_recall(&programs, 1, NOW);
    assert_true(program->has_gpm && program->mean.power_w == 1 && program->slots == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_means_are_of_at_most_150_slots),
        cmocka_unit_test(what_was_not_used_for_30_days_is_worth_5_slots_and_for_180_nothing),
        cmocka_unit_test(a_use_renews_it),
        cmocka_unit_test(a_clock_that_goes_back_ages_nothing),
        cmocka_unit_test(the_least_recently_used_makes_room_whatever_the_clock_says),
        cmocka_unit_test(what_is_adopted_is_worth_at_most_the_limit),
        cmocka_unit_test(of_two_memories_the_one_that_is_worth_more_stays),
        cmocka_unit_test(what_was_measured_stays_before_what_was_learned_in_company),
        cmocka_unit_test(in_a_full_memory_what_was_used_last_is_adopted),
        cmocka_unit_test(a_cap_is_for_all_and_learning_goes_on),
        cmocka_unit_test(a_moment_without_gpm_does_not_replace_what_was_measured_with_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
