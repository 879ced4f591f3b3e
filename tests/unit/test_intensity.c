/* attribution/gpu/intensity: the division of slots of a simulated GPU with known truth. */
#include "unit.h"

#include <stdlib.h>

#include "attribution/gpu/intensity/intensity.h"
#include "shared_gpu.h"

#define T0 ((uint64_t)1794725358000000)
#define W  100.0 /* idle */

enum { SLOTS = 1500, ROUNDS = 12 }; /* five minutes */

static const struct load MATRICES = {500, {0.9, 0.3, 0.1, 0.8, 0.4, 0, 0.05, 0.3}};
static const struct load STREAMS = {200, {0.6, 0.9, 0.3, 0, 0.9, 0, 0.4, 0}};
static const struct load FLOATS = {320, {0.95, 0.6, 0.2, 0, 0.1, 0, 0.85, 0}};

/* Whose time a slot is, and in `*mhz` at which clock. */
typedef void take_turns(size_t slot, double *parts, uint32_t *mhz);

struct outcome {
    struct intensity intensity;
    double used[TENANTS_MAX], paid[TENANTS_MAX]; /* in slots that were divided; joules */
    double won[TENANTS_MAX];                     /* samples */
    double error[TENANTS_MAX]; /* expected, relative to the share; by energy charged */
    size_t divided;
};

static double sum_of(const double *values)
{
    double sum = 0;

    for (size_t t = 0; t < TENANTS_MAX; t++)
        sum += values[t];
    return sum;
}

static double part_of(const double *values, size_t tenant)
{
    return values[tenant] / sum_of(values);
}

/* Half of the energy charged to the wrong process, relative to all. */
static double distance(const struct outcome *outcome)
{
    double sum = 0;

    for (size_t t = 0; t < TENANTS_MAX; t++)
        sum += fabs(part_of(outcome->used, t) - part_of(outcome->paid, t)) / 2;
    return sum;
}

static void divide_slot(struct outcome *outcome, const struct slot *slot,
                        const struct shared_slot *truth)
{
    double joules = (double)slot->energy_uj / 1e6 - W * (double)SHARED_SLOT_US / 1e6, sum = 0;
    struct intensity_shares shares;

    if (!intensity_divide(&outcome->intensity, slot, &shares))
        return;
    outcome->divided++;
    for (size_t t = 0; t < TENANTS_MAX; t++) {
        assert_true(isfinite(shares.of[t]) && shares.of[t] >= 0);
        assert_true(isfinite(shares.error[t]) && shares.error[t] >= 0);
        sum += shares.of[t];
        outcome->used[t] += truth->used[t];
        outcome->paid[t] += shares.of[t] * joules;
        outcome->error[t] += shares.of[t] * joules * shares.error[t];
    }
    assert_true(fabs(sum - 1) < 1e-9);
}

/* Five minutes of it, learned and then divided. Everybody is listed all the time. */
static struct outcome *play(struct shared_gpu gpu, take_turns *take_turns_in)
{
    struct outcome *outcome = calloc(1, sizeof(*outcome));
    struct shared_slot *truth = calloc(SLOTS, sizeof(*truth));
    struct slot *slots = calloc(SLOTS, sizeof(*slots));

    assert_non_null(outcome);
    assert_non_null(truth);
    assert_non_null(slots);
    gpu.idle_watts = outcome->intensity.states.idle_watts = W;
    gpu.random.state = 1;
    gpu.clock_exponent = 1.4;
    for (size_t i = 0; i < SLOTS; i++) {
        double parts[LOADS_MAX] = {0};

        gpu.clock_mhz = 1980;
        take_turns_in(i, parts, &gpu.clock_mhz);
        truth[i] = shared_gpu_run(&gpu, parts);
        slots[i] = shared_slot_read(&gpu, &truth[i], T0 + i * SHARED_SLOT_US,
                                    (uint32_t)((1ULL << gpu.count) - 1));
        intensity_learn(&outcome->intensity, &slots[i]);
        if (truth[i].winner < TENANTS_MAX)
            outcome->won[truth[i].winner]++;
    }
    intensity_fit(&outcome->intensity, ROUNDS);
    for (size_t i = 0; i < SLOTS; i++)
        divide_slot(outcome, &slots[i], &truth[i]);
    for (size_t t = 0; t < TENANTS_MAX; t++)
        outcome->error[t] /= MAX(outcome->paid[t], 1e-9);
    free(truth);
    free(slots);
    return outcome;
}

/* Twenty seconds of each: the one, the other, both, none. */
static void in_turns_and_together(size_t slot, double *parts, uint32_t *mhz)
{
    size_t phase = slot / 100 % 4;

    (void)mhz;
    if (phase == 2)
        parts[0] = parts[1] = 0.5;
    else if (phase < 2)
        parts[phase] = 1;
}

/* Ten seconds of each alone, then all together. */
static void one_by_one_then_all(size_t slot, double *parts, size_t count)
{
    size_t phase = slot / 50 % (2 * count);

    if (phase < count)
        parts[phase] = 1;
    for (size_t i = 0; i < count && phase >= count; i++)
        parts[i] = 1.0 / (double)count;
}

static void three_in_turns_and_together(size_t slot, double *parts, uint32_t *mhz)
{
    (void)mhz;
    one_by_one_then_all(slot, parts, 3);
}

static void many_in_turns_and_together(size_t slot, double *parts, uint32_t *mhz)
{
    (void)mhz;
    one_by_one_then_all(slot * 5, parts, TENANTS_MAX);
}

static void always_two_thirds_to_one_third(size_t slot, double *parts, uint32_t *mhz)
{
    (void)slot;
    (void)mhz;
    parts[0] = 2.0 / 3;
    parts[1] = 1.0 / 3;
}

/* Both work all the time, but how much of it varies. */
static void in_changing_parts(size_t slot, double *parts, uint32_t *mhz)
{
    (void)mhz;
    parts[0] = 0.1 + 0.2 * (double)(slot / 50 % 5);
    parts[1] = 1 - parts[0];
}

/* As in turns; the clock falls by a fifth while the first is alone. */
static void in_turns_under_a_power_cap(size_t slot, double *parts, uint32_t *mhz)
{
    in_turns_and_together(slot, parts, mhz);
    if (parts[0] == 1)
        *mhz = 1600;
}

static void processes_that_were_alone_are_charged_what_they_draw_together(void **state)
{
    struct outcome *outcome =
        play((struct shared_gpu){.count = 2, .loads = {MATRICES, STREAMS}}, in_turns_and_together);

    (void)state;
    assert_true(distance(outcome) < 0.02);
    assert_true(outcome->error[0] < 0.1);
    free(outcome);
}

static void noise_of_a_hundredth_changes_little(void **state)
{
    struct outcome *outcome =
        play((struct shared_gpu){.count = 2, .loads = {MATRICES, STREAMS}, .noise = 0.01},
             in_turns_and_together);

    (void)state;
    assert_true(distance(outcome) < 0.02);
    free(outcome);
}

static void three_processes_are_separated_too(void **state)
{
    struct outcome *outcome =
        play((struct shared_gpu){.count = 3, .loads = {MATRICES, STREAMS, FLOATS}, .noise = 0.01},
             three_in_turns_and_together);

    (void)state;
    assert_true(distance(outcome) < 0.02);
    free(outcome);
}

static void processes_that_were_never_alone_are_separated_by_changing_shares(void **state)
{
    struct outcome *outcome =
        play((struct shared_gpu){.count = 2, .loads = {MATRICES, STREAMS}}, in_changing_parts);
    double by_samples = fabs(part_of(outcome->won, 0) - part_of(outcome->used, 0));

    (void)state;
    assert_true(by_samples > 0.15); /* what the time share would be off */
    assert_true(distance(outcome) < by_samples / 2);
    free(outcome);
}

static void parts_that_never_change_are_the_time_share_and_in_doubt(void **state)
{
    struct outcome *outcome = play((struct shared_gpu){.count = 2, .loads = {MATRICES, STREAMS}},
                                   always_two_thirds_to_one_third);

    (void)state;
    assert_true(fabs(part_of(outcome->paid, 0) - part_of(outcome->won, 0)) < 0.03);
    assert_true(outcome->error[0] > 0.16); /* a confidence below 0.2 */
    free(outcome);
}

static void an_inactive_process_is_charged_nothing(void **state)
{
    struct outcome *outcome =
        play((struct shared_gpu){.count = 3, .loads = {MATRICES, STREAMS}, .noise = 0.01},
             in_turns_and_together);

    (void)state;
    assert_true(outcome->divided > 0);
    assert_true(outcome->won[2] == 0);
    assert_true(outcome->paid[2] == 0);
    free(outcome);
}

static void processes_that_run_the_same_have_the_same_watts(void **state)
{
    struct outcome *outcome =
        play((struct shared_gpu){.count = 2, .loads = {MATRICES, MATRICES}, .noise = 0.01},
             in_turns_and_together);
    const double *watts = outcome->intensity.watts;

    (void)state;
    assert_true(fabs(watts[0] - watts[1]) < 0.05 * watts[0]);
    assert_true(distance(outcome) < 0.02);
    free(outcome);
}

static void a_clock_that_falls_while_one_is_alone_does_not_make_it_cheap(void **state)
{
    struct outcome *outcome =
        play((struct shared_gpu){.count = 2, .loads = {MATRICES, STREAMS}, .noise = 0.01},
             in_turns_under_a_power_cap);

    (void)state;
    assert_true(distance(outcome) < 0.03);
    free(outcome);
}

static void thirty_two_processes_are_finite_and_sum_to_all(void **state)
{
    struct shared_gpu gpu = {.count = TENANTS_MAX, .noise = 0.01};
    struct random_source random = {7};
    struct outcome *outcome;

    (void)state;
    for (size_t i = 0; i < TENANTS_MAX; i++) {
        gpu.loads[i].watts = 600 * random_part(&random);
        for (size_t u = 0; u < UNIT_COUNT; u++)
            gpu.loads[i].units[u] = random_part(&random);
    }
    outcome = play(gpu, many_in_turns_and_together);
    assert_true(outcome->divided > SLOTS / 2);
    free(outcome);
}

static void nothing_is_divided_before_something_is_known(void **state)
{
    struct shared_gpu gpu = {.idle_watts = W, .count = 1, .loads = {MATRICES}, .random = {1}};
    struct shared_slot ran = shared_gpu_run(&gpu, (const double[]){1});
    struct slot slot = shared_slot_read(&gpu, &ran, T0, 1);
    struct intensity *intensity = calloc(1, sizeof(*intensity));
    struct intensity_shares shares;

    (void)state;
    assert_non_null(intensity);
    intensity_fit(intensity, ROUNDS);
    assert_false(intensity_divide(intensity, &slot, &shares));
    intensity_learn(intensity, &slot);
    intensity_fit(intensity, ROUNDS);
    assert_true(intensity_divide(intensity, &slot, &shares));
    assert_true(fabs(shares.of[0] - 1) < 1e-9);
    intensity_forget(intensity, 0);
    assert_false(intensity_divide(intensity, &slot, &shares));
    free(intensity);
}

static void an_active_tenant_without_a_signature_is_unknown(void **state)
{
    struct outcome *outcome =
        play((struct shared_gpu){.count = 2, .loads = {MATRICES, STREAMS}}, in_turns_and_together);
    struct shared_gpu gpu = {.idle_watts = W, .count = 1, .loads = {MATRICES}, .random = {1}};
    struct shared_slot ran = shared_gpu_run(&gpu, (const double[]){1});
    struct slot slot = shared_slot_read(&gpu, &ran, T0 + 300 * USEC_PER_SEC, 7);

    (void)state;
    assert_false(intensity_has_unknown(&outcome->intensity, &slot)); /* it only is there */
    slot.won[2] = 1;
    assert_true(intensity_has_unknown(&outcome->intensity, &slot));
    slot.gpm.busy_us = 0; /* nothing to learn from */
    assert_false(intensity_has_unknown(&outcome->intensity, &slot));
    free(outcome);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_that_were_alone_are_charged_what_they_draw_together),
        cmocka_unit_test(noise_of_a_hundredth_changes_little),
        cmocka_unit_test(three_processes_are_separated_too),
        cmocka_unit_test(processes_that_were_never_alone_are_separated_by_changing_shares),
        cmocka_unit_test(parts_that_never_change_are_the_time_share_and_in_doubt),
        cmocka_unit_test(an_inactive_process_is_charged_nothing),
        cmocka_unit_test(processes_that_run_the_same_have_the_same_watts),
        cmocka_unit_test(a_clock_that_falls_while_one_is_alone_does_not_make_it_cheap),
        cmocka_unit_test(thirty_two_processes_are_finite_and_sum_to_all),
        cmocka_unit_test(nothing_is_divided_before_something_is_known),
        cmocka_unit_test(an_active_tenant_without_a_signature_is_unknown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
