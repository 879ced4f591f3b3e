/* attribution/gpu/intensity/states: few states stand for many slots. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "attribution/gpu/intensity/states.h"
#include "shared_gpu.h"

#define T0     ((uint64_t)1794725358000000)
#define SECOND USEC_PER_SEC

static const struct load MATRICES = {500, {0.9, 0.3, 0.1, 0.8, 0.4, 0, 0.05, 0.3}};
static const struct load STREAMS = {200, {0.6, 0.9, 0.3, 0, 0.9, 0, 0.4, 0}};

static struct states *new_states(void)
{
    struct states *states = calloc(1, sizeof(*states));

    assert_non_null(states);
    states->idle_watts = 100;
    return states;
}

/* A slot in which tenant 0 was alone with this load. */
static struct slot slot_of(struct load load, double busy, uint64_t start_us)
{
    struct shared_gpu gpu = {
        .idle_watts = 100, .count = 1, .loads = {load}, .clock_mhz = 1900, .random = {1}};
    struct shared_slot ran = shared_gpu_run(&gpu, (const double[]){busy});

    return shared_slot_read(&gpu, &ran, start_us, 1);
}

static void learn(struct states *states, struct load load)
{
    struct slot slot = slot_of(load, 1, T0);

    states_learn(states, &slot);
}

static void assert_finite(const struct states *states)
{
    assert_true(states->count <= STATES_MAX);
    for (size_t s = 0; s < states->count; s++) {
        const struct state *state = &states->all[s];

        assert_true(isfinite(state->weight) && state->weight > 0);
        assert_true(isfinite(state->mean.log_clock) && isfinite(state->mean.log_clock_squared));
        assert_true(isfinite(states_watts(states, &state->mean)) &&
                    states_watts(states, &state->mean) >= 0);
        for (size_t f = 0; f < FEATURE_COUNT; f++) {
            assert_true(isfinite(states_feature(states, &state->mean, f)));
            assert_true(states_feature(states, &state->mean, f) >= 0);
            assert_true(states_variance(states, state, f) > 0);
        }
    }
}

static void slots_in_which_the_same_goes_on_are_one_state(void **state)
{
    struct states *states = new_states();

    (void)state;
    for (int i = 0; i < 100; i++)
        learn(states, MATRICES);
    assert_int_equal(states->count, 1);
    assert_true(fabs(states->all[0].weight - 100) < 1e-6);
    assert_true(fabs(states->all[0].won[0] - 100) < 1e-6);
    assert_true(fabs(states->all[0].mean.units[UNIT_TENSOR] - 0.8) < 1e-6);
    free(states);
}

static void slots_in_which_something_else_goes_on_are_another_state(void **state)
{
    struct states *states = new_states();

    (void)state;
    for (int i = 0; i < 100; i++)
        learn(states, i % 2 ? MATRICES : STREAMS);
    assert_int_equal(states->count, 2);
    assert_true(fabs(states->all[0].weight - 50) < 1e-6);
    free(states);
}

static void other_processes_make_another_state(void **state)
{
    struct states *states = new_states();
    struct slot slot = slot_of(MATRICES, 1, T0);

    (void)state;
    states_learn(states, &slot);
    slot.listed |= 2;
    states_learn(states, &slot);
    states_learn(states, &slot);
    assert_int_equal(states->count, 2);
    assert_int_equal(states->all[0].listed, 1);
    assert_int_equal(states->all[1].listed, 3);
    free(states);
}

static void a_state_is_the_same_however_much_of_a_slot_it_fills(void **state)
{
    struct states *states = new_states();

    (void)state;
    for (int i = 1; i <= 10; i++) {
        struct slot slot = slot_of(MATRICES, i / 10.0, T0);

        states_learn(states, &slot);
    }
    assert_int_equal(states->count, 1);
    assert_true(fabs(states->all[0].weight - 5.5) < 1e-6);
    free(states);
}

static void a_slot_with_hardly_any_activity_is_ignored(void **state)
{
    struct states *states = new_states();
    struct slot slot = slot_of(MATRICES, 0.01, T0);

    (void)state;
    states_learn(states, &slot);
    slot = slot_of(MATRICES, 0, T0);
    states_learn(states, &slot);
    slot = slot_of(MATRICES, 1, T0);
    slot.listed = slot.won[0] = 0; /* of no known tenant */
    states_learn(states, &slot);
    assert_int_equal(states->count, 0);
    free(states);
}

static void there_are_never_more_states_than_there_is_room_for(void **state)
{
    struct random_source random = {1};
    struct states *states = new_states();
    double weight = 0;

    (void)state;
    for (int i = 0; i < 2000; i++) {
        struct load load = {600 * random_part(&random), {0}};

        for (size_t u = 0; u < UNIT_COUNT; u++)
            load.units[u] = random_part(&random);
        learn(states, load);
        assert_finite(states);
    }
    assert_int_equal(states->count, STATES_MAX);
    for (size_t s = 0; s < states->count; s++)
        weight += states->all[s].weight;
    assert_true(fabs(weight - 2000) < 1e-6); /* merged, not lost */
    free(states);
}

static void the_watts_are_those_above_idle_at_one_clock(void **state)
{
    struct states *states = new_states();
    struct slot slot = slot_of(MATRICES, 1, T0);

    (void)state;
    slot.clock_sum_mhz = 2000;
    states_learn(states, &slot);
    assert_true(fabs(states_watts(states, &states->all[0].mean) - 500) < 1);
    states->idle_watts = 1000; /* more than was ever used: then it is 0, not less */
    assert_true(states_watts(states, &states->all[0].mean) == 0);
    free(states);
}

static void a_lower_clock_does_not_hide_what_a_process_draws(void **state)
{
    struct states *states = new_states();
    struct slot slot;

    (void)state;
    for (uint32_t mhz = 1500; mhz <= 2000; mhz += 100) {
        struct shared_gpu gpu = {.count = 1,
                                 .loads = {MATRICES},
                                 .clock_mhz = mhz,
                                 .clock_exponent = 1.4,
                                 .random = {1}};
        struct shared_slot ran = shared_gpu_run(&gpu, (const double[]){1});

        slot = shared_slot_read(&gpu, &ran, T0, 1);
        states_learn(states, &slot);
    }
    assert_int_equal(states->count, 1);
    free(states);
}

static void what_fades_goes_at_last(void **state)
{
    struct states *states = new_states();
    int rounds = 0;

    (void)state;
    for (int i = 0; i < 10; i++)
        learn(states, MATRICES);
    states_fade(states, 0.5);
    assert_true(fabs(states->all[0].weight - 5) < 1e-6);
    assert_true(fabs(states->all[0].won[0] - 5) < 1e-6);
    for (; states->count > 0 && rounds < 100; rounds++)
        states_fade(states, 0.5);
    assert_true(rounds > 2 && rounds < 100);
    free(states);
}

static void forgetting_a_tenant_keeps_the_states_that_it_had_no_part_in(void **state)
{
    struct states *states = new_states();
    struct slot slot = slot_of(MATRICES, 1, T0);

    (void)state;
    states_learn(states, &slot); /* tenant 0, alone */
    slot.listed = 7;
    states_learn(states, &slot); /* tenant 2 was there and did nothing */
    slot.won[1] = 1;
    slot.listed = 3;
    states_learn(states, &slot); /* tenants 0 and 1 at work */
    assert_int_equal(states->count, 3);
    states_forget(states, 2);
    assert_int_equal(states->count, 3);
    states_forget(states, 1);
    assert_int_equal(states->count, 2);
    for (size_t s = 0; s < states->count; s++)
        assert_int_equal(states->all[s].listed, 1);
    states_forget(states, 0);
    assert_int_equal(states->count, 0);
    free(states);
}

/* Without GPM: only how busy device and memory were. */
static struct slot sampled_slot(uint64_t start_us)
{
    struct slot slot = slot_of(MATRICES, 1, start_us);

    slot.sampled = slot.gpm;
    slot.gpm = (struct slot_activity){0};
    return slot;
}

static void a_moment_without_gpm_changes_nothing_and_a_minute_begins_anew(void **state)
{
    struct states *states = new_states();
    struct slot slot = slot_of(MATRICES, 1, T0);

    (void)state;
    states_learn(states, &slot);
    slot = sampled_slot(T0 + SECOND);
    states_learn(states, &slot);
    assert_true(states->has_gpm);
    assert_true(fabs(states->all[0].weight - 1) < 1e-6);
    slot = sampled_slot(T0 + 300 * SECOND);
    states_learn(states, &slot);
    assert_false(states->has_gpm);
    assert_int_equal(states->count, 1);
    slot = slot_of(MATRICES, 1, T0 + 301 * SECOND); /* it is back: at once */
    states_learn(states, &slot);
    assert_true(states->has_gpm);
    assert_int_equal(states->count, 1);
    assert_finite(states);
    free(states);
}

static void the_nearest_state_has_the_same_processes_if_there_is_one(void **state)
{
    struct states *states = new_states();
    struct slot slot = slot_of(MATRICES, 1, T0);
    struct state like;

    (void)state;
    assert_true(states_describe(&slot, &like));
    assert_true(like.has_gpm);
    assert_true(states_nearest(states, &like, UINT32_MAX) == SIZE_MAX);
    states_learn(states, &slot);
    slot = slot_of(STREAMS, 1, T0);
    slot.listed = 3;
    states_learn(states, &slot);
    assert_int_equal(states_nearest(states, &like, UINT32_MAX), 0);
    like.listed = 3;
    assert_int_equal(states_nearest(states, &like, UINT32_MAX), 1);
    assert_int_equal(states_nearest(states, &like, 1), 0); /* whatever others are there */
    free(states);
}

static void absurd_slots_give_finite_numbers(void **state)
{
    const uint64_t energies_uj[] = {0, 1, 1ULL << 62};
    const uint64_t clocks_mhz[] = {0, 1, UINT32_MAX};
    const double activities[] = {0, 1e-9, 1, 1e6};
    struct states *states = new_states();

    (void)state;
    for (uint64_t i = 0; i < 2 * 3 * 3 * 4 * 4; i++) {
        struct slot slot = slot_of(MATRICES, 1, T0);
        double known = activities[i / 18 % 4], busy = activities[i / 72 % 4];

        slot.end_us = i % 2 ? slot.end_us : slot.start_us;
        slot.energy_uj = energies_uj[i / 2 % 3];
        slot.clock_sum_mhz = clocks_mhz[i / 6 % 3];
        slot.clock_readings = slot.clock_sum_mhz > 0;
        slot.gpm.known_us = known * (double)SHARED_SLOT_US;
        slot.gpm.busy_us = busy * (double)SHARED_SLOT_US;
        memset(slot.won, 0xff, sizeof(slot.won));
        for (size_t u = 0; u < UNIT_COUNT; u++)
            slot.gpm.units_us[u] = activities[(i + u) % 4] * (double)SHARED_SLOT_US;
        states_learn(states, &slot);
        assert_finite(states);
    }
    assert_true(states->count > 1);
    free(states);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_in_which_the_same_goes_on_are_one_state),
        cmocka_unit_test(slots_in_which_something_else_goes_on_are_another_state),
        cmocka_unit_test(other_processes_make_another_state),
        cmocka_unit_test(a_state_is_the_same_however_much_of_a_slot_it_fills),
        cmocka_unit_test(a_slot_with_hardly_any_activity_is_ignored),
        cmocka_unit_test(there_are_never_more_states_than_there_is_room_for),
        cmocka_unit_test(the_watts_are_those_above_idle_at_one_clock),
        cmocka_unit_test(a_lower_clock_does_not_hide_what_a_process_draws),
        cmocka_unit_test(what_fades_goes_at_last),
        cmocka_unit_test(forgetting_a_tenant_keeps_the_states_that_it_had_no_part_in),
        cmocka_unit_test(a_moment_without_gpm_changes_nothing_and_a_minute_begins_anew),
        cmocka_unit_test(the_nearest_state_has_the_same_processes_if_there_is_one),
        cmocka_unit_test(absurd_slots_give_finite_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
