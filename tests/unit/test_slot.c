/* attribution/gpu/intensity/slot: what a GPU did, cut at the ticks of its counter. */
#include "unit.h"

#include <math.h>
#include <stdlib.h>

#include "attribution/gpu/intensity/slot.h"
#include "core/macros.h"

#define T0     ((uint64_t)1794725358000000)
#define SECOND USEC_PER_SEC
#define TICK   ((uint64_t)100000)

/* The readings of an instant are at most so far apart. */
#define LAG ((double)TICK)

static struct slots *new_slots(void)
{
    struct slots *slots = calloc(1, sizeof(*slots));

    assert_non_null(slots);
    slots_restart(slots, T0);
    return slots;
}

static struct slot *slot_at(struct slots *slots, size_t index)
{
    assert_true(index < slots->count);
    return &slots->ring[(slots->first + index) % SLOTS_MAX];
}

/* `count` slots of a second each, the counter at 100 W. */
static void add_seconds(struct slots *slots, uint64_t from_us, size_t count)
{
    for (size_t i = 1; i <= count; i++)
        slots_take_energy(slots, from_us + i * SECOND, 100 * SECOND);
}

/* All units of the device at this part of their maximum, since the last such sample. */
static void gpm(struct slots *slots, uint64_t t_us, double part)
{
    struct sample_gpm sample = {.valid = (1 << SAMPLE_GPM_COUNT) - 1};

    for (size_t i = 0; i < SAMPLE_GPM_COUNT; i++)
        sample.millipercent[i] = (uint32_t)(part * 1e5);
    slots_take_gpm(slots, t_us, &sample);
}

static void sample(struct slots *slots, uint64_t at_us, uint16_t sm_percent)
{
    slots_take_sample(
        slots, &(struct sample_label){
                   .pid = 1, .at_us = at_us, .sm_percent = sm_percent, .memory_percent = 40});
}

static unsigned wins(struct slots *slots, uint32_t tenant)
{
    unsigned sum = 0;

    for (size_t i = 0; i < slots->count; i++)
        sum += slot_at(slots, i)->won[tenant];
    return sum;
}

static void ticks_are_joined_until_a_fifth_of_a_second_is_full(void **state)
{
    struct slots *slots = new_slots();

    (void)state;
    slots_take_energy(slots, T0 + TICK, 10);
    assert_int_equal(slots->count, 1);
    slots_take_energy(slots, T0 + 2 * TICK, 20);
    assert_int_equal(slots->count, 2);
    assert_int_equal(slot_at(slots, 0)->energy_uj, 30);
    assert_int_equal(slot_at(slots, 0)->end_us - slot_at(slots, 0)->start_us, 2 * TICK);
    assert_int_equal(slot_at(slots, 1)->start_us, slot_at(slots, 0)->end_us);
    free(slots);
}

static void ticks_that_are_far_apart_make_a_long_slot(void **state)
{
    struct slots *slots = new_slots();

    (void)state;
    slots_take_energy(slots, T0 + 3 * SECOND, 300);
    assert_int_equal(slots->count, 2);
    assert_int_equal(slot_at(slots, 0)->end_us - slot_at(slots, 0)->start_us, 3 * SECOND);
    free(slots);
}

static void energy_before_the_first_tick_is_of_no_slot(void **state)
{
    struct slots *slots = calloc(1, sizeof(*slots));

    (void)state;
    assert_non_null(slots);
    slots_take_energy(slots, T0, 100);
    slots_take_wins(slots, T0, 1, 1);
    slots_take_clock(slots, 1000);
    slots_take_listed(slots, 1, 0, 0);
    gpm(slots, T0, 0.5);
    assert_int_equal(slots->count, 0);
    assert_null(slots_next(slots, true));
    free(slots);
}

static void activity_goes_to_the_slots_that_it_overlaps(void **state)
{
    struct slots *slots = new_slots();
    double first, second;

    (void)state;
    add_seconds(slots, T0, 2);
    gpm(slots, T0 + SECOND / 2, 0.9); /* the first: since when is not known */
    gpm(slots, T0 + SECOND / 2 + SECOND, 0.5);
    first = slot_at(slots, 0)->gpm.known_us;
    second = slot_at(slots, 1)->gpm.known_us;
    assert_true(first + second == (double)SECOND);
    assert_true(fabs(first - second) <= 2 * LAG);
    assert_true(fabs(slot_at(slots, 0)->gpm.busy_us - 0.5 * first) < 1);
    assert_true(fabs(slot_at(slots, 1)->gpm.units_us[UNIT_DRAM] - 0.5 * second) < 1);
    assert_true(slot_at(slots, 2)->gpm.known_us == 0);
    free(slots);
}

static void the_open_slot_takes_what_comes_before_its_tick(void **state)
{
    struct slots *slots = new_slots();

    (void)state;
    gpm(slots, T0 + TICK, 1);
    gpm(slots, T0 + 3 * TICK, 1);
    assert_true(slot_at(slots, 0)->gpm.known_us == 2 * TICK);
    slots_take_energy(slots, T0 + 3 * TICK, 1);
    assert_true(slot_at(slots, 0)->gpm.known_us == 2 * TICK);
    free(slots);
}

static void what_gpm_did_not_read_is_as_it_was(void **state)
{
    struct sample_gpm without_dram = {.valid = 3, .millipercent = {50000, 20000}};
    struct slots *slots = new_slots();

    (void)state;
    gpm(slots, T0, 0.3);
    slots_take_gpm(slots, T0 + SECOND, &without_dram);
    assert_true(fabs(slot_at(slots, 0)->gpm.units_us[UNIT_SM] - 0.2 * SECOND) < LAG);
    assert_true(fabs(slot_at(slots, 0)->gpm.units_us[UNIT_DRAM] - 0.3 * SECOND) < LAG);
    without_dram.valid = 2; /* nor how busy it was: then nothing is known */
    slots_take_gpm(slots, T0 + 2 * SECOND, &without_dram);
    assert_true(slot_at(slots, 0)->gpm.known_us <= SECOND);
    free(slots);
}

static void gpm_that_goes_back_in_time_adds_nothing(void **state)
{
    struct slots *slots = new_slots();

    (void)state;
    gpm(slots, T0 + SECOND, 1);
    gpm(slots, T0 + SECOND / 2, 1);
    gpm(slots, T0 + SECOND / 2, 1);
    assert_true(slot_at(slots, 0)->gpm.known_us == 0);
    free(slots);
}

static void a_sample_covers_the_time_since_the_one_before(void **state)
{
    struct slots *slots = new_slots();
    struct slot_reading reading;

    (void)state;
    for (uint64_t t = 2 * TICK; t <= SECOND; t += 2 * TICK)
        sample(slots, T0 + t, 99);
    sample(slots, T0 + SECOND, 99); /* again: of another process, at the same instant */
    add_seconds(slots, T0, 1);
    assert_true(slot_at(slots, 0)->sampled.known_us >= SECOND - LAG);
    assert_true(slot_at(slots, 0)->sampled.known_us <= SECOND);
    assert_true(slot_read(slot_at(slots, 0), &reading));
    assert_false(reading.has_gpm);
    assert_true(fabs(reading.busy_s - 1) < 1e-9); /* they never show more than 99 */
    assert_true(fabs(reading.units[UNIT_MEMORY_BUSY] - 0.4) < 1e-9);
    free(slots);
}

static void a_win_counts_once_in_the_slot_of_its_time(void **state)
{
    struct slots *slots = new_slots();

    (void)state;
    add_seconds(slots, T0, 3);
    slots_take_wins(slots, T0 + SECOND + SECOND / 2, 7, 1);
    assert_int_equal(slot_at(slots, 1)->won[7], 1);
    assert_int_equal(wins(slots, 7), 1);
    slots_take_wins(slots, slot_at(slots, 0)->end_us, 3, 1); /* its last instant is its own */
    assert_int_equal(slot_at(slots, 0)->won[3], 1);
    slots_take_wins(slots, T0 - SECOND, 5, 1); /* before all that is known */
    assert_int_equal(wins(slots, 5), 0);
    free(slots);
}

static void a_win_while_the_counter_was_not_read_is_of_no_slot(void **state)
{
    struct slots *slots = new_slots();

    (void)state;
    add_seconds(slots, T0, 1);
    slots_restart(slots, T0 + 60 * SECOND);
    slots_take_wins(slots, T0 + 30 * SECOND, 7, 1);
    assert_int_equal(wins(slots, 7), 0);
    free(slots);
}

static void wins_are_counted_up_to_what_a_byte_holds(void **state)
{
    struct slots *slots = new_slots();

    (void)state;
    for (int i = 0; i < 1000; i++)
        slots_take_wins(slots, T0 + 1, 0, 1);
    assert_int_equal(slot_at(slots, 0)->won[0], UINT8_MAX);
    free(slots);
}

static void the_ring_keeps_the_latest_and_hands_each_out_once(void **state)
{
    struct slots *slots = new_slots();
    const struct slot *slot;
    uint64_t last_us = 0;
    size_t count = 0;

    (void)state;
    add_seconds(slots, T0, 3 * SLOTS_MAX);
    assert_int_equal(slots->count, SLOTS_MAX);
    while ((slot = slots_next(slots, true))) {
        assert_true(last_us == 0 || slot->start_us == last_us);
        last_us = slot->end_us;
        count++;
    }
    assert_int_equal(count, SLOTS_MAX - 1); /* all but the open one */
    assert_int_equal(last_us, slot_at(slots, SLOTS_MAX - 1)->start_us);
    free(slots);
}

static void a_slot_is_handed_out_when_its_samples_have_arrived(void **state)
{
    struct slots *slots = new_slots();

    (void)state;
    slots_take_energy(slots, T0 + 2 * TICK, 1);
    assert_null(slots_next(slots, false));
    gpm(slots, T0 + 12 * TICK, 0);
    assert_ptr_equal(slots_next(slots, false), slot_at(slots, 0));
    assert_null(slots_next(slots, false));
    slots_take_energy(slots, T0 + 13 * TICK, 1);
    assert_null(slots_next(slots, false));
    assert_ptr_equal(slots_next(slots, true), slot_at(slots, 1)); /* nothing more will come */
    free(slots);
}

static void a_restart_drops_the_open_slot_alone(void **state)
{
    struct slots *slots = new_slots();

    (void)state;
    slots_take_listed(slots, 6, 4, 0);
    add_seconds(slots, T0, 2);
    slots_take_energy(slots, T0 + 2 * SECOND + TICK, 7);
    slots_restart(slots, T0 + 60 * SECOND);
    assert_int_equal(slots->count, 3);
    assert_int_equal(slots->unread, 2);
    assert_int_equal(slot_at(slots, 2)->energy_uj, 0);
    assert_int_equal(slot_at(slots, 2)->listed, 6);
    assert_int_equal(slot_at(slots, 2)->clients, 4);
    slots_take_energy(slots, T0 + 61 * SECOND, 8);
    assert_int_equal(slot_at(slots, 2)->end_us - slot_at(slots, 2)->start_us, SECOND);
    free(slots);
}

static void the_slots_of_windows_are_all_slots_each_once(void **state)
{
    struct slots *slots = new_slots();
    uint64_t energy_uj = 0;
    size_t seen = 0;

    (void)state;
    for (uint64_t tick = 1; tick <= 100; tick++)
        slots_take_energy(slots, T0 + tick * TICK, tick);
    for (uint64_t window = 0; window < 10; window++) {
        uint64_t start_us = T0 + window * SECOND, window_uj = 0;
        const struct slot *slot;
        size_t cursor = 0;

        while ((slot = slots_of_window(slots, start_us, start_us + SECOND, &cursor))) {
            window_uj += slot->energy_uj;
            seen++;
        }
        /* What the counter said of exactly this window. */
        assert_int_equal(window_uj, 100 * window + 55);
        energy_uj += window_uj;
    }
    assert_int_equal(seen, slots->count - 1);
    assert_int_equal(energy_uj, 5050);
    free(slots);
}

static void settled_slots_go_but_none_that_was_not_learned(void **state)
{
    struct slots *slots = new_slots();

    (void)state;
    add_seconds(slots, T0, 10);
    slots_drop_until(slots, T0 + 5 * SECOND);
    assert_int_equal(slots->count, 11); /* none was handed out yet */
    while (slots_next(slots, true))
        ;
    slots_drop_until(slots, T0 + 5 * SECOND);
    assert_int_equal(slots->count, 6);
    slots_drop_until(slots, T0 + 100 * SECOND);
    assert_int_equal(slots->count, 1); /* the open one stays */
    assert_int_equal(slot_at(slots, 0)->end_us, slot_at(slots, 0)->start_us);
    free(slots);
}

static void a_slot_of_which_less_than_half_is_known_cannot_be_read(void **state)
{
    struct slots *slots = new_slots();
    struct slot_reading reading;

    (void)state;
    assert_false(slot_read(slot_at(slots, 0), &reading)); /* no time at all */
    add_seconds(slots, T0, 1);
    assert_false(slot_read(slot_at(slots, 0), &reading));
    gpm(slots, T0, 0);
    gpm(slots, T0 + 3 * TICK, 0.5);
    assert_false(slot_read(slot_at(slots, 0), &reading));
    gpm(slots, T0 + 8 * TICK, 0.5);
    assert_true(slot_read(slot_at(slots, 0), &reading));
    assert_true(reading.has_gpm);
    assert_true(fabs(reading.busy_s - 0.5) < 1e-6); /* the unknown part is as the known */
    assert_true(fabs(reading.units[UNIT_SM] - 1) < 1e-6);
    free(slots);
}

static void units_above_their_maximum_are_at_it(void **state)
{
    struct sample_gpm absurd = {.valid = (1 << SAMPLE_GPM_COUNT) - 1,
                                .millipercent = {1, UINT32_MAX, UINT32_MAX}};
    struct slots *slots = new_slots();
    struct slot_reading reading;

    (void)state;
    add_seconds(slots, T0, 1);
    gpm(slots, T0, 0);
    slots_take_gpm(slots, T0 + SECOND, &absurd);
    assert_true(slot_read(slot_at(slots, 0), &reading));
    assert_true(reading.units[UNIT_SM] == 1 && reading.units[UNIT_OCCUPANCY] == 1);
    free(slots);
}

static void the_clock_is_the_mean_of_its_readings_or_the_last_one(void **state)
{
    struct slots *slots = new_slots();
    struct slot_reading reading;

    (void)state;
    gpm(slots, T0, 1);
    slots_take_clock(slots, 1000);
    slots_take_clock(slots, 2000);
    slots_take_energy(slots, T0 + SECOND, 1);
    slots_take_energy(slots, T0 + 2 * SECOND, 1);
    gpm(slots, T0 + 2 * SECOND, 1);
    assert_true(slot_read(slot_at(slots, 0), &reading));
    assert_true(reading.clock_mhz == 1500);
    assert_true(slot_read(slot_at(slots, 1), &reading));
    assert_true(reading.clock_mhz == 2000);
    free(slots);
}

static void a_slot_is_quiet_if_gpm_saw_all_of_it_and_nothing_ran(void **state)
{
    struct slots *slots = new_slots();

    (void)state;
    gpm(slots, T0 - SECOND, 0);
    add_seconds(slots, T0, 4);
    assert_false(slot_is_quiet(slot_at(slots, 0)));
    gpm(slots, T0 + 2 * SECOND + SECOND / 2, 0);
    gpm(slots, T0 + 5 * SECOND, 0.5);
    assert_true(slot_is_quiet(slot_at(slots, 0)));
    assert_false(slot_is_quiet(slot_at(slots, 2)));
    assert_false(slot_is_quiet(slot_at(slots, 3)));
    assert_true(slot_is_quiet(slot_at(slots, 1)));
    slots_take_wins(slots, T0 + SECOND + SECOND / 2, 4, 1);
    assert_false(slot_is_quiet(slot_at(slots, 1)));
    free(slots);
}

static void a_list_holds_for_the_open_slot_and_those_to_come(void **state)
{
    struct slots *slots = new_slots();

    (void)state;
    slots_take_listed(slots, 3, 0, 0);
    slots_take_listed(slots, 12, 4, 8); /* two have left, in this very slot */
    add_seconds(slots, T0, 2);
    assert_int_equal(slot_at(slots, 0)->listed, 15);
    assert_int_equal(slot_at(slots, 1)->listed, 12);
    assert_int_equal(slot_at(slots, 2)->listed, 12);
    assert_int_equal(slot_at(slots, 2)->clients, 4);
    assert_int_equal(slot_workers(slot_at(slots, 2)), 4);
    free(slots);
}

static void who_works_rests_no_more(void **state)
{
    enum { RESTER = 1 << 2, WORKER = 1 << 7 };
    struct slots *slots = new_slots();

    (void)state;
    add_seconds(slots, T0, 1);
    slots_take_resting(slots, RESTER | WORKER); /* from the next slot on */
    add_seconds(slots, T0 + SECOND, 2);
    slots_take_wins(slots, T0 + SECOND + SECOND / 2, 7, 1);
    assert_int_equal(slot_at(slots, 1)->resting & WORKER, 0);
    add_seconds(slots, T0 + 3 * SECOND, 2);
    assert_int_equal(slot_at(slots, 2)->resting, RESTER | WORKER);
    assert_int_equal(slot_at(slots, 4)->resting, RESTER); /* and those to come */
    slots_take_resting(slots, 0); /* in the middle of the open one: it has worked there */
    assert_int_equal(slot_at(slots, 5)->resting, 0);
    free(slots);
}

static void what_is_moved_is_at_its_new_place_and_nowhere_else(void **state)
{
    struct slots *slots = new_slots();

    (void)state;
    slots_take_listed(slots, 1U << 5, 1U << 5, 1U << 5);
    slots_take_wins(slots, T0 + 1, 5, 1);
    add_seconds(slots, T0, 1);
    slots_move(slots, 5, 9);
    for (size_t i = 0; i < slots->count; i++) {
        assert_int_equal(slot_at(slots, i)->listed, 1U << 9);
        assert_int_equal(slot_at(slots, i)->clients, 1U << 9);
        assert_int_equal(slot_at(slots, i)->servers, 1U << 9);
    }
    assert_int_equal(wins(slots, 9), 1);
    assert_int_equal(wins(slots, 5), 0);
    assert_int_equal(slots->listed, 1U << 9);
    slots_move(slots, 9, TENANT_NONE);
    assert_int_equal(slot_at(slots, 0)->listed | slots->listed | slots->clients, 0);
    assert_int_equal(slot_at(slots, 0)->servers | slots->servers, 0);
    assert_int_equal(wins(slots, 9), 0);
    free(slots);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticks_are_joined_until_a_fifth_of_a_second_is_full),
        cmocka_unit_test(ticks_that_are_far_apart_make_a_long_slot),
        cmocka_unit_test(energy_before_the_first_tick_is_of_no_slot),
        cmocka_unit_test(activity_goes_to_the_slots_that_it_overlaps),
        cmocka_unit_test(the_open_slot_takes_what_comes_before_its_tick),
        cmocka_unit_test(what_gpm_did_not_read_is_as_it_was),
        cmocka_unit_test(gpm_that_goes_back_in_time_adds_nothing),
        cmocka_unit_test(a_sample_covers_the_time_since_the_one_before),
        cmocka_unit_test(a_win_counts_once_in_the_slot_of_its_time),
        cmocka_unit_test(a_win_while_the_counter_was_not_read_is_of_no_slot),
        cmocka_unit_test(wins_are_counted_up_to_what_a_byte_holds),
        cmocka_unit_test(the_ring_keeps_the_latest_and_hands_each_out_once),
        cmocka_unit_test(a_slot_is_handed_out_when_its_samples_have_arrived),
        cmocka_unit_test(a_restart_drops_the_open_slot_alone),
        cmocka_unit_test(the_slots_of_windows_are_all_slots_each_once),
        cmocka_unit_test(settled_slots_go_but_none_that_was_not_learned),
        cmocka_unit_test(a_slot_of_which_less_than_half_is_known_cannot_be_read),
        cmocka_unit_test(units_above_their_maximum_are_at_it),
        cmocka_unit_test(the_clock_is_the_mean_of_its_readings_or_the_last_one),
        cmocka_unit_test(a_slot_is_quiet_if_gpm_saw_all_of_it_and_nothing_ran),
        cmocka_unit_test(a_list_holds_for_the_open_slot_and_those_to_come),
        cmocka_unit_test(who_works_rests_no_more),
        cmocka_unit_test(what_is_moved_is_at_its_new_place_and_nowhere_else),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
