/* attribution/gpu/intensity/clients: MPS clients, unmixed by what their programs showed alone,
 * or separated by which were present. */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "attribution/gpu/intensity/clients.h"
#include "core/macros.h"

#define T0     ((uint64_t)1794725358000000)
#define IDLE_W 100.0

enum { A = 1, B = 2, C = 4 };

/* A slot in which these clients drew so many watts together, above idle. */
static struct slot slot_with(uint32_t present, double watts)
{
    const double slot_us = 200000;

    return (struct slot){
        .start_us = T0,
        .end_us = T0 + (uint64_t)slot_us,
        .energy_uj = (uint64_t)((IDLE_W + watts) * slot_us),
        .listed = present,
        .clients = present,
        .gpm = {.known_us = slot_us, .busy_us = slot_us},
    };
}

/* Nothing is known of any program. */
static const struct intensity strangers = {.states = {.idle_watts = IDLE_W}};

static void learn(struct clients *clients, uint32_t present, double watts, size_t count)
{
    struct slot slot = slot_with(present, watts);

    for (size_t i = 0; i < count; i++)
        clients_learn(clients, &strangers, &slot);
}

static bool divide(const struct clients *clients, uint32_t present, double watts,
                   struct intensity_shares *ret_shares)
{
    struct slot slot = slot_with(present, watts);

    return clients_divide(clients, &strangers, &slot, ret_shares);
}

static void assert_shares(const struct intensity_shares *shares, uint32_t present)
{
    double sum = 0;

    for (uint32_t t = 0; t < TENANTS_MAX; t++) {
        assert_true(isfinite(shares->of[t]) && shares->of[t] >= 0);
        assert_true(isfinite(shares->error[t]) && shares->error[t] >= 0);
        assert_true(shares->of[t] == 0 || present & (1U << t));
        sum += shares->of[t];
    }
    assert_true(fabs(sum - 1) < 1e-9);
}

static void times_alone_show_what_each_client_draws(void **state)
{
    struct clients clients = {0};
    struct intensity_shares shares;

    (void)state;
    learn(&clients, A, 100, 50);
    learn(&clients, B, 30, 50);
    learn(&clients, A | B, 130, 50);
    assert_true(divide(&clients, A | B, 130, &shares));
    assert_shares(&shares, A | B);
    assert_true(fabs(shares.of[0] - 10.0 / 13) < 0.03);
    assert_true(shares.error[0] < 0.1);
    assert_true(shares.error[1] < 0.3);
}

static void times_without_a_client_show_as_much(void **state)
{
    struct clients clients = {0};
    struct intensity_shares shares;

    (void)state;
    learn(&clients, A | B | C, 300, 50); /* 150, 100, 50 */
    learn(&clients, A | B, 250, 50);
    learn(&clients, B | C, 150, 50);
    learn(&clients, A | C, 200, 50);
    assert_true(divide(&clients, A | B | C, 300, &shares));
    assert_shares(&shares, A | B | C);
    assert_true(fabs(shares.of[0] - 1.0 / 2) < 0.04);
    assert_true(fabs(shares.of[1] - 1.0 / 3) < 0.04);
    assert_true(fabs(shares.of[2] - 1.0 / 6) < 0.04);
}

static void clients_that_were_always_together_are_charged_equally_with_a_large_error(void **state)
{
    struct clients clients = {0};
    struct intensity_shares shares;

    (void)state;
    learn(&clients, A | B, 130, 500);
    assert_true(divide(&clients, A | B, 130, &shares));
    assert_shares(&shares, A | B);
    assert_true(fabs(shares.of[0] - 0.5) < 1e-9);
    assert_true(shares.error[0] > 0.25); /* of a share: hardly any confidence is left */
}

/* What one draws more, the others draw less: that their sum is known well tells nothing of it. */
static void that_the_sum_is_known_makes_nobody_surer(void **state)
{
    struct clients clients = {0};
    struct intensity_shares shares;

    (void)state;
    learn(&clients, A | B, 200, 500);
    assert_true(divide(&clients, A | B, 200, &shares));
    assert_true(shares.error[0] > 0.69); /* the root of 1/2, of a share that may be 0 or twice it */
    clients = (struct clients){0};
    learn(&clients, A | B | C, 300, 500);
    assert_true(divide(&clients, A | B | C, 300, &shares));
    assert_true(shares.error[0] > 0.79);
}

static void clients_of_which_nothing_is_known_are_charged_by_their_sizes(void **state)
{
    struct clients clients = {.sizes = {1, 3}};
    struct intensity_shares shares;

    (void)state;
    learn(&clients, A | B, 200, 50);
    assert_true(divide(&clients, A | B, 200, &shares));
    assert_shares(&shares, A | B);
    assert_true(fabs(shares.of[1] - 0.75) < 1e-9);
    learn(&clients, A, 150, 50); /* but what is seen counts */
    assert_true(divide(&clients, A | B, 200, &shares));
    assert_true(fabs(shares.of[0] - 0.75) < 0.05);
    clients_forget(&clients, 1);
    assert_true(clients.sizes[1] == 0);
}

/* Two of three are replaced: for one slot all five are listed, but they never ran together. */
static void a_slot_in_which_clients_came_or_went_does_not_show_what_they_draw_together(void **state)
{
    enum { D = 8, E = 16 };
    struct clients clients = {0};
    struct slot slot = slot_with(A | B | C | D | E, 300);
    struct intensity_shares shares;

    (void)state;
    learn(&clients, A | B | C, 300, 50);
    slot.has_changed = true;
    clients_learn(&clients, &strangers, &slot);
    learn(&clients, C | D | E, 300, 50);
    assert_true(divide(&clients, C | D | E, 300, &shares));
    assert_true(fabs(shares.of[2] - 1.0 / 3) < 0.05);
    assert_true(shares.error[2] > 0.25);
}

static void a_client_alone_is_charged_all_without_error(void **state)
{
    struct clients clients = {0};
    struct intensity_shares shares;

    (void)state;
    learn(&clients, A | B, 130, 50);
    assert_true(divide(&clients, A, 130, &shares));
    assert_shares(&shares, A);
    assert_true(shares.of[0] == 1 && shares.error[0] == 0);
}

/* Windows are divided up to a minute late, when what was learned last is of a quiet time. */
static void a_burst_is_not_divided_by_the_watts_of_the_quiet_time_after_it(void **state)
{
    struct clients clients = {0};
    struct intensity_shares shares;

    (void)state;
    learn(&clients, B, 60, 50);
    learn(&clients, A | B, 460, 125);
    learn(&clients, A | B, 60, 300);
    assert_true(divide(&clients, A | B, 460, &shares));
    assert_shares(&shares, A | B);
    assert_true(shares.of[1] < 0.6);
    assert_true(shares.error[0] > 0.5 && shares.error[1] > 0.5);
    assert_true(divide(&clients, A | B, 60, &shares)); /* they are of that time */
    assert_true(shares.of[1] > 0.9);
}

static void clients_that_draw_more_together_than_alone_make_nobody_sure(void **state)
{
    struct clients clients = {0};
    struct intensity_shares shares;

    (void)state;
    learn(&clients, A, 15, 90);
    learn(&clients, B, 150, 100);
    learn(&clients, A | B, 550, 600); /* 400 of them by A */
    assert_true(divide(&clients, A | B, 550, &shares));
    assert_shares(&shares, A | B);
    assert_true(shares.of[1] < 0.7);
    assert_true(1.4 * shares.error[1] > 1 - 150.0 / 550 / shares.of[1]);
}

static void clients_that_draw_less_together_than_alone_make_nobody_sure(void **state)
{
    struct clients clients = {0};
    struct intensity_shares shares;

    (void)state;
    learn(&clients, A, 400, 65);
    learn(&clients, B, 150, 60);
    learn(&clients, A | B, 165, 450); /* 15 of them by A */
    assert_true(divide(&clients, A | B, 165, &shares));
    assert_shares(&shares, A | B);
    assert_true(1.4 * shares.error[0] > 1 - 15.0 / 165 / shares.of[0]);
    assert_true(shares.error[1] > 0.25);
}

static void clients_whose_watts_vary_make_nobody_sure_while_they_draw_their_mean(void **state)
{
    struct clients clients = {0};
    struct intensity_shares shares;

    (void)state;
    learn(&clients, B, 50, 50);
    for (int i = 0; i < 100; i++)
        learn(&clients, A | B, i % 2 == 0 ? 100 : 200, 1);
    assert_true(divide(&clients, A | B, 150, &shares));
    assert_true(shares.error[0] > 0.25 && shares.error[1] > 0.25);
}

static void a_steady_client_beside_a_known_one_is_what_that_leaves_but_nobody_is_sure(void **state)
{
    struct clients clients = {0};
    struct intensity_shares shares;

    (void)state;
    learn(&clients, B, 150, 50);
    learn(&clients, A | B, 250, 50);
    assert_true(divide(&clients, A | B, 250, &shares));
    assert_true(fabs(shares.of[1] - 0.6) < 0.02);
    assert_true(shares.error[0] >= 0.08 && shares.error[1] >= 0.08);
    learn(&clients, A, 100, 50); /* as it was all the time: B has not changed as A came */
    assert_true(divide(&clients, A | B, 250, &shares));
    assert_true(fabs(shares.of[1] - 0.6) < 0.02);
    assert_true(shares.error[0] < 0.08 && shares.error[1] < 0.08);
}

/* A loads, and B too; then they draw 300 and 150 W. */
static void a_client_that_begins_to_work_as_another_comes_makes_nobody_sure(void **state)
{
    struct clients clients = {0};
    struct intensity_shares shares;

    (void)state;
    learn(&clients, A, 6, 500);
    learn(&clients, A | B, 450, 1000);
    assert_true(divide(&clients, A | B, 450, &shares));
    assert_shares(&shares, A | B);
    assert_true(shares.error[0] >= 0.08);
    assert_true(1.3 * shares.error[1] > 1 - 150.0 / 450 / shares.of[1]);
}

static void what_a_client_draws_in_its_first_seconds_is_not_what_it_draws_later(void **state)
{
    struct clients clients = {0};
    struct intensity_shares shares;

    (void)state;
    learn(&clients, A, 6, 15);
    learn(&clients, A | B, 450, 1000);
    assert_true(divide(&clients, A | B, 450, &shares));
    assert_true(fabs(shares.of[0] - 0.5) < 0.05);
    assert_true(shares.error[0] > 0.25 && shares.error[1] > 0.25);
}

/* C comes before B and leaves after it came: its watts agree, whoever of A and B draws the rest. */
static void what_agrees_does_not_tell_clients_apart_that_were_together_meanwhile(void **state)
{
    struct clients clients = {0};
    struct intensity_shares shares;

    (void)state;
    learn(&clients, A, 10, 100);
    learn(&clients, A | C, 30, 100);
    learn(&clients, A | B | C, 470, 100);
    learn(&clients, A | B, 450, 100);
    assert_true(divide(&clients, A | B, 450, &shares));
    assert_true(shares.error[1] > 0.25);
    assert_true(divide(&clients, A | B | C, 470, &shares));
    assert_true(shares.error[1] > 0.25);
}

static void a_client_that_was_alone_only_after_the_others_makes_nobody_sure(void **state)
{
    struct clients clients = {0};
    struct intensity_shares shares;

    (void)state;
    learn(&clients, A | B, 250, 100);
    learn(&clients, B, 150, 100);
    assert_true(divide(&clients, A | B, 250, &shares));
    assert_true(fabs(shares.of[1] - 0.6) < 0.02);
    assert_true(shares.error[0] >= 0.08 && shares.error[1] >= 0.08);
}

static void watts_that_nobody_is_known_to_draw_are_charged_by_the_sizes(void **state)
{
    struct clients clients = {.sizes = {1, 3}};
    struct intensity_shares shares;

    (void)state;
    learn(&clients, A, 10, 50);
    learn(&clients, B, 10, 50);
    learn(&clients, A | B, 20, 50);
    assert_true(divide(&clients, A | B, 2000, &shares));
    assert_shares(&shares, A | B);
    assert_true(fabs(shares.of[1] - 0.75) < 0.01);
    assert_true(shares.error[0] > 0.5 && shares.error[1] > 0.5);
}

static void an_unknown_client_is_charged_as_the_average(void **state)
{
    struct clients clients = {0};
    struct intensity_shares shares;

    (void)state;
    learn(&clients, A, 100, 50);
    learn(&clients, B, 100, 50);
    assert_true(divide(&clients, A | C, 200, &shares));
    assert_shares(&shares, A | C);
    assert_true(fabs(shares.of[2] - 0.5) < 0.01);
    assert_true(shares.error[2] > 0.25);
}

static void without_any_slot_nothing_is_known(void **state)
{
    struct clients clients = {0};
    struct intensity_shares shares;

    (void)state;
    assert_false(divide(&clients, A | B, 130, &shares));
    learn(&clients, A, 0, 50); /* and nothing was used */
    assert_false(divide(&clients, A | B, 130, &shares));
}

static void a_slot_that_was_not_busy_teaches_nothing(void **state)
{
    struct slot slot = {.start_us = T0,
                        .end_us = T0 + 200000,
                        .energy_uj = 100000000,
                        .clients = A,
                        .gpm = {.known_us = 200000, .busy_us = 20000}};
    struct clients clients = {0};

    (void)state;
    clients_learn(&clients, &strangers, &slot);
    slot.gpm.busy_us = 0;
    clients_learn(&clients, &strangers, &slot);
    assert_int_equal(clients.count, 0);
}

static void a_client_that_changes_is_learned_anew(void **state)
{
    struct clients clients = {0};
    struct intensity_shares shares;

    (void)state;
    learn(&clients, A, 400, 5000);
    learn(&clients, B, 100, 100);
    learn(&clients, A, 100, 300); /* a minute */
    assert_true(divide(&clients, A | B, 200, &shares));
    assert_true(fabs(shares.of[0] - 0.5) < 0.03);
}

static void groups_are_bounded_and_the_rarest_makes_room(void **state)
{
    struct clients clients = {0};
    struct intensity_shares shares;

    (void)state;
    learn(&clients, A, 100, 50);
    for (uint32_t present = 1; present < 5000; present++) {
        learn(&clients, present << 4, 50, 1);
        assert_true(clients.count <= CLIENT_GROUPS_MAX);
    }
    assert_true(divide(&clients, A | 1 << 4, 150, &shares));
    assert_shares(&shares, A | 1 << 4);
    assert_true(shares.of[0] > 0.5); /* what was seen most is still known */
}

static void what_is_forgotten_leaves_its_groups(void **state)
{
    struct clients clients = {0};

    (void)state;
    learn(&clients, A, 100, 5);
    learn(&clients, A | B, 130, 5);
    learn(&clients, B, 30, 5);
    clients_forget(&clients, 0);
    assert_int_equal(clients.count, 1);
    assert_int_equal(clients.groups[0].present, B);
}

static void absurd_watts_give_finite_shares(void **state)
{
    const double watts[] = {0, 1e-6, 1e9};

    (void)state;
    for (size_t i = 0; i < 27; i++) {
        struct clients clients = {0};
        struct intensity_shares shares;

        learn(&clients, A, watts[i % 3], 50);
        learn(&clients, B, watts[i / 3 % 3], 50);
        learn(&clients, UINT32_MAX, watts[i / 9], 50);
        if (divide(&clients, UINT32_MAX, watts[i / 9], &shares))
            assert_shares(&shares, UINT32_MAX);
    }
}

static void those_without_a_place_count_by_their_number_and_none_of_them_is_certain(void **state)
{
    const uint32_t all = A | B | 1U << TENANT_OTHERS;
    struct clients clients = {.sizes = {2, 2, [TENANT_OTHERS] = 2}};
    struct slot slot = slot_with(all, 300);
    struct intensity_shares shares;

    (void)state;
    slot.others = 4;
    for (int i = 0; i < 50; i++)
        clients_learn(&clients, &strangers, &slot);
    assert_true(clients_divide(&clients, &strangers, &slot, &shares));
    assert_shares(&shares, all);
    assert_true(fabs(shares.of[0] - 1.0 / 6) < 1e-9);
    assert_true(fabs(shares.of[TENANT_OTHERS] - 4.0 / 6) < 1e-9);
    assert_true(shares.error[TENANT_OTHERS] >= 1 && shares.error[0] > 0.25);
}

/* From here on: programs that are known. */

static const double TENSOR[] = {[UNIT_SM] = 0.9, [UNIT_TENSOR] = 0.8, [UNIT_DRAM] = 0.1};
static const double MEMORY[] = {[UNIT_SM] = 0.6, [UNIT_INTEGER] = 0.3, [UNIT_DRAM] = 0.9};
static const double DOUBLES[] = {[UNIT_SM] = 0.7, [UNIT_FP64] = 0.9, [UNIT_DRAM] = 0.2};

enum { UNITS = UNIT_DRAM + 1 };

/* Tenants 0 and 1 with programs that drew 500 and 200 W alone. */
static struct intensity known_programs(void)
{
    struct intensity intensity = {.states = {.idle_watts = IDLE_W, .has_gpm = true}};

    for (size_t t = 0; t < 2; t++) {
        struct anchor *anchor = &intensity.anchors[t];

        *anchor = (struct anchor){.weight = 10, .is_measured = true, .has_gpm = true};
        memcpy(anchor->activity.units, t == 0 ? TENSOR : MEMORY, UNITS * sizeof(double));
        anchor->activity.power_w = t == 0 ? 500 : 200;
    }
    return intensity;
}

/* Runs so much of each, beside so much of a program that nobody knows. */
static struct slot mixed_slot(uint32_t present, double a, double b, double stranger)
{
    struct slot slot = slot_with(present, a * 500 + b * 200 + stranger * 300);

    for (size_t u = 0; u < UNITS; u++)
        slot.gpm.units_us[u] = slot.gpm.known_us * (a * TENSOR[u] + b * MEMORY[u]);
    slot.gpm.units_us[UNIT_FP64] = slot.gpm.known_us * stranger * DOUBLES[UNIT_FP64];
    slot.clock_sum_mhz = 2000; /* at which watts are compared */
    slot.clock_readings = 1;
    return slot;
}

static void programs_that_ran_alone_are_unmixed_in_every_slot(void **state)
{
    static const double amounts[][2] = {{1, 0},     {0, 1},     {0.5, 0.5},
                                        {0.2, 0.8}, {0.7, 0.1}, {0.6, 0.6}};
    struct intensity intensity = known_programs();
    struct clients clients = {0};

    (void)state;
    for (int round = 0; round < 4; round++)
        for (size_t i = 0; i < ARRAY_SIZE(amounts); i++) {
            struct slot slot = mixed_slot(A | B, amounts[i][0], amounts[i][1], 0);

            clients_learn(&clients, &intensity, &slot);
        }
    for (size_t i = 0; i < ARRAY_SIZE(amounts); i++) {
        double a = amounts[i][0] * 500, b = amounts[i][1] * 200;
        struct slot slot = mixed_slot(A | B, amounts[i][0], amounts[i][1], 0);
        struct intensity_shares shares;

        assert_true(clients_divide(&clients, &intensity, &slot, &shares));
        assert_shares(&shares, A | B);
        assert_true(fabs(shares.of[0] - a / (a + b)) < 0.02);
        assert_true(shares.of[0] < 0.5 || shares.error[0] < 0.08);
    }
    assert_true(clients_are_unmixed(&clients.groups[0]));
}

static void a_steady_mixture_of_known_programs_is_unmixed_but_nobody_is_sure(void **state)
{
    struct intensity intensity = known_programs();
    struct slot slot = mixed_slot(A | B, 0.5, 0.5, 0);
    struct clients clients = {0};
    struct intensity_shares shares;

    (void)state;
    for (int i = 0; i < 100; i++)
        clients_learn(&clients, &intensity, &slot);
    assert_true(clients_divide(&clients, &intensity, &slot, &shares));
    assert_true(fabs(shares.of[0] - 5.0 / 7) < 0.02);
    assert_true(shares.error[0] >= 0.08); /* a confidence below one half */
    intensity.alone[0].weight = intensity.alone[1].weight = INTENSITY_ALONE_MIN;
    assert_true(clients_divide(&clients, &intensity, &slot, &shares));
    assert_true(shares.error[0] >= 0.08); /* what they did then need not be what they do */
}

static void programs_that_do_not_explain_the_board_are_charged_by_presence(void **state)
{
    struct intensity intensity = known_programs();
    struct slot slot = mixed_slot(A | B, 0.2, 0.1, 0.7);
    struct clients clients = {0};
    struct intensity_shares shares;

    (void)state;
    slot.gpm.units_us[UNIT_SM] = slot.gpm.known_us; /* nobody but the stranger uses so many */
    slot.gpm.units_us[UNIT_INTEGER] = slot.gpm.known_us * 0.8;
    for (int i = 0; i < 100; i++)
        clients_learn(&clients, &intensity, &slot);
    assert_true(clients.groups[0].unmixed_joules > 0);
    assert_false(clients_are_unmixed(&clients.groups[0]));
    assert_true(clients_divide(&clients, &intensity, &slot, &shares));
    assert_true(fabs(shares.of[0] - 0.5) < 1e-9);
    assert_true(shares.error[0] > 0.25);
}

static void beside_an_unknown_client_a_known_one_is_charged_by_presence(void **state)
{
    struct intensity intensity = known_programs();
    struct slot slot = mixed_slot(A | C, 0.5, 0, 0.5);
    struct clients clients = {0};
    struct intensity_shares shares;

    (void)state;
    for (int i = 0; i < 100; i++)
        clients_learn(&clients, &intensity, &slot);
    assert_true(clients_divide(&clients, &intensity, &slot, &shares));
    assert_true(fabs(shares.of[0] - 0.5) < 1e-9);
}

static void a_process_beside_mps_is_unmixed_if_known_else_left_to_the_samples(void **state)
{
    struct intensity intensity = known_programs();
    struct slot slot = mixed_slot(A | B, 0.4, 0.6, 0);
    struct clients clients = {0};
    struct intensity_shares shares;

    (void)state;
    slot.clients = A;
    clients_learn(&clients, &intensity, &slot);
    assert_true(clients_divide(&clients, &intensity, &slot, &shares));
    assert_shares(&shares, A | B);
    assert_true(fabs(shares.of[1] - 120.0 / 320) < 0.02);
    assert_false(clients_divide(&clients, &strangers, &slot, &shares));
}

/* Tenants 0 and 1 are clients of tenant 3; tenant 2, whose program nobody knows, takes turns with
 * them and has so many of 4 samples. */
static struct slot slot_beside(double a, double b, double stranger, uint8_t won)
{
    struct slot slot = mixed_slot(A | B | C | 8, a, b, stranger);

    slot.gpm.units_us[UNIT_SM] += slot.gpm.known_us * stranger * DOUBLES[UNIT_SM];
    slot.gpm.units_us[UNIT_DRAM] += slot.gpm.known_us * stranger * DOUBLES[UNIT_DRAM];
    slot.clients = A | B;
    slot.servers = 8;
    slot.won[2] = won;
    slot.won[3] = 4 - won;
    return slot;
}

static void beside_an_unknown_process_known_clients_divide_what_samples_leave_them(void **state)
{
    static const double amounts[][2] = {{0.5, 0.1}, {0.1, 0.5}, {0.3, 0.3}};
    struct intensity intensity = known_programs();

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(amounts); i++) {
        double a = amounts[i][0] * 500, b = amounts[i][1] * 200;
        struct slot slot = slot_beside(amounts[i][0], amounts[i][1], 0.4, 2);
        struct clients clients = {0};
        struct intensity_shares shares;

        for (int k = 0; k < 50; k++)
            clients_learn(&clients, &intensity, &slot);
        assert_true(clients_divide(&clients, &intensity, &slot, &shares));
        assert_shares(&shares, A | B | C);
        assert_true(fabs(shares.of[2] - 0.5) < 1e-9);
        assert_true(fabs(shares.of[0] / (shares.of[0] + shares.of[1]) - a / (a + b)) < 0.15);
        for (uint32_t t = 0; t < 3; t++) /* nobody knows what the stranger draws in its turn */
            assert_true(shares.error[t] > 0.69);
    }
}

static void the_error_of_turns_is_that_of_the_usual_ones(void **state)
{
    struct intensity intensity = known_programs();
    struct clients clients = {0};
    struct intensity_shares shares;
    struct slot slot;

    (void)state;
    for (uint8_t i = 0; i < 100; i++) {
        slot = slot_beside(0.5, 0.1, 0.4, i % 5);
        clients_learn(&clients, &intensity, &slot);
    }
    slot = slot_beside(0.5, 0.1, 0.4, 4);
    assert_true(clients_divide(&clients, &intensity, &slot, &shares));
    assert_true(shares.of[2] == 1 && shares.error[2] > 0.6);
    slot = slot_beside(0.5, 0.1, 0.4, 0);
    assert_true(clients_divide(&clients, &intensity, &slot, &shares));
    assert_true(shares.of[2] == 0 && shares.error[0] > 0.6);
}

static void beside_an_unknown_process_unknown_clients_are_charged_by_presence(void **state)
{
    struct slot slot = slot_beside(0.5, 0.1, 0.4, 2);
    struct clients clients = {0};
    struct intensity_shares shares;

    (void)state;
    assert_false(clients_divide(&clients, &strangers, &slot, &shares));
    learn(&clients, A, 150, 50);
    learn(&clients, B, 50, 50);
    learn(&clients, A | B, 200, 50);
    assert_true(clients_divide(&clients, &strangers, &slot, &shares));
    assert_shares(&shares, A | B | C);
    assert_true(fabs(shares.of[0] / (shares.of[0] + shares.of[1]) - 0.75) < 0.05);
    slot.clients = A;
    slot.listed &= ~(uint32_t)B;
    assert_true(clients_divide(&clients, &strangers, &slot, &shares));
    assert_shares(&shares, A | C);
    assert_true(fabs(shares.of[0] - 0.5) < 1e-9 && shares.error[0] > 0.69);
    slot.won[2] = slot.won[3] = 0; /* then nothing tells them apart */
    assert_false(clients_divide(&clients, &strangers, &slot, &shares));
}

static void the_server_of_the_clients_is_charged_nothing(void **state)
{
    struct intensity intensity = known_programs();
    struct slot slot = mixed_slot(A | B | C, 0.4, 0.6, 0);
    struct clients clients = {0};
    struct intensity_shares shares;

    (void)state;
    slot.clients = A | B;
    slot.servers = C;
    clients_learn(&clients, &intensity, &slot);
    assert_true(clients_divide(&clients, &intensity, &slot, &shares));
    assert_shares(&shares, A | B);
}

/* Known as light alone, it now does as its neighbour does, under the same command line. */
static void a_program_that_became_its_neighbour_makes_nobody_sure(void **state)
{
    struct intensity intensity = known_programs();
    struct clients clients = {0};
    struct intensity_shares shares;
    struct slot slot;

    (void)state;
    for (int i = 0; i < 100; i++) {
        slot = mixed_slot(A | B, i % 2 == 0 ? 0.9 : 0.4, 0, 0);
        clients_learn(&clients, &intensity, &slot);
    }
    assert_true(clients_divide(&clients, &intensity, &slot, &shares));
    assert_true(shares.of[0] > 0.9);
    assert_true(shares.error[0] >= 0.08);
}

/* A did all of its program alone, and does half of it now. */
static void amounts_of_the_time_alone_are_no_variation(void **state)
{
    struct intensity intensity = known_programs();
    struct clients clients = {0};
    struct intensity_shares shares;
    struct slot slot = mixed_slot(A, 1, 0, 0);

    (void)state;
    for (int i = 0; i < 100; i++)
        clients_learn(&clients, &intensity, &slot);
    assert_true(clients_divide(&clients, &intensity, &slot, &shares));
    assert_true(shares.error[0] < 0.08); /* nobody else can have done it */
    for (int i = 0; i < 100; i++) {
        slot = mixed_slot(A | B, 0.5, i % 2 == 0 ? 0.9 : 0.2, 0);
        clients_learn(&clients, &intensity, &slot);
    }
    assert_true(clients_divide(&clients, &intensity, &slot, &shares));
    assert_true(shares.error[0] >= 0.08);
}

static void amounts_that_only_vary_together_make_nobody_sure(void **state)
{
    struct intensity intensity = known_programs();
    struct clients clients = {0};
    struct intensity_shares shares;
    struct slot slot;

    (void)state;
    for (int i = 0; i < 100; i++) {
        slot = mixed_slot(A | B, i % 2 == 0 ? 0.1 : 0.6, i % 2 == 0 ? 0.1 : 0.6, 0);
        clients_learn(&clients, &intensity, &slot);
    }
    assert_true(clients_divide(&clients, &intensity, &slot, &shares));
    assert_true(shares.error[0] >= 0.08 && shares.error[1] >= 0.08);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_alone_show_what_each_client_draws),
        cmocka_unit_test(times_without_a_client_show_as_much),
        cmocka_unit_test(clients_that_were_always_together_are_charged_equally_with_a_large_error),
        cmocka_unit_test(that_the_sum_is_known_makes_nobody_surer),
        cmocka_unit_test(clients_of_which_nothing_is_known_are_charged_by_their_sizes),
        cmocka_unit_test(
            a_slot_in_which_clients_came_or_went_does_not_show_what_they_draw_together),
        cmocka_unit_test(a_client_alone_is_charged_all_without_error),
        cmocka_unit_test(a_burst_is_not_divided_by_the_watts_of_the_quiet_time_after_it),
        cmocka_unit_test(clients_that_draw_more_together_than_alone_make_nobody_sure),
        cmocka_unit_test(clients_that_draw_less_together_than_alone_make_nobody_sure),
        cmocka_unit_test(clients_whose_watts_vary_make_nobody_sure_while_they_draw_their_mean),
        cmocka_unit_test(a_steady_client_beside_a_known_one_is_what_that_leaves_but_nobody_is_sure),
        cmocka_unit_test(a_client_that_begins_to_work_as_another_comes_makes_nobody_sure),
        cmocka_unit_test(what_a_client_draws_in_its_first_seconds_is_not_what_it_draws_later),
        cmocka_unit_test(what_agrees_does_not_tell_clients_apart_that_were_together_meanwhile),
        cmocka_unit_test(a_client_that_was_alone_only_after_the_others_makes_nobody_sure),
        cmocka_unit_test(watts_that_nobody_is_known_to_draw_are_charged_by_the_sizes),
        cmocka_unit_test(an_unknown_client_is_charged_as_the_average),
        cmocka_unit_test(those_without_a_place_count_by_their_number_and_none_of_them_is_certain),
        cmocka_unit_test(without_any_slot_nothing_is_known),
        cmocka_unit_test(a_slot_that_was_not_busy_teaches_nothing),
        cmocka_unit_test(a_client_that_changes_is_learned_anew),
        cmocka_unit_test(groups_are_bounded_and_the_rarest_makes_room),
        cmocka_unit_test(what_is_forgotten_leaves_its_groups),
        cmocka_unit_test(absurd_watts_give_finite_shares),
        cmocka_unit_test(programs_that_ran_alone_are_unmixed_in_every_slot),
        cmocka_unit_test(a_steady_mixture_of_known_programs_is_unmixed_but_nobody_is_sure),
        cmocka_unit_test(programs_that_do_not_explain_the_board_are_charged_by_presence),
        cmocka_unit_test(beside_an_unknown_client_a_known_one_is_charged_by_presence),
        cmocka_unit_test(a_process_beside_mps_is_unmixed_if_known_else_left_to_the_samples),
        cmocka_unit_test(beside_an_unknown_process_known_clients_divide_what_samples_leave_them),
        cmocka_unit_test(the_error_of_turns_is_that_of_the_usual_ones),
        cmocka_unit_test(beside_an_unknown_process_unknown_clients_are_charged_by_presence),
        cmocka_unit_test(the_server_of_the_clients_is_charged_nothing),
        cmocka_unit_test(a_program_that_became_its_neighbour_makes_nobody_sure),
        cmocka_unit_test(amounts_of_the_time_alone_are_no_variation),
        cmocka_unit_test(amounts_that_only_vary_together_make_nobody_sure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
