/* attribution/gpu/intensity/mps_clients: MPS clients, separated by which were present. */
#include "unit.h"

#include <math.h>

#include "attribution/gpu/intensity/mps_clients.h"
#include "core/macros.h"

#define T0     ((uint64_t)1794725358000000)
#define IDLE_W 100.0

enum { A = 1, B = 2, C = 4 };

/* `count` slots in which these clients drew so many watts together, above idle. */
static void learn(struct mps_clients *clients, uint32_t present, double watts, size_t count)
{
    const double slot_us = 200000;
    struct slot slot = {
        .start_us = T0,
        .end_us = T0 + (uint64_t)slot_us,
        .energy_uj = (uint64_t)((IDLE_W + watts) * slot_us),
        .listed = present,
        .clients = present,
        .gpm = {.known_us = slot_us, .busy_us = slot_us},
    };

    for (size_t i = 0; i < count; i++)
        mps_clients_learn(clients, &slot, IDLE_W);
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
    struct mps_clients clients = {0};
    struct intensity_shares shares;

    (void)state;
    learn(&clients, A, 100, 50);
    learn(&clients, B, 30, 50);
    learn(&clients, A | B, 130, 50);
    assert_true(mps_clients_divide(&clients, A | B, &shares));
    assert_shares(&shares, A | B);
    assert_true(fabs(shares.of[0] - 10.0 / 13) < 0.03);
    assert_true(shares.error[0] < 0.1);
    assert_true(shares.error[1] < 0.3);
}

static void times_without_a_client_show_as_much(void **state)
{
    struct mps_clients clients = {0};
    struct intensity_shares shares;

    (void)state;
    learn(&clients, A | B | C, 300, 50); /* 150, 100, 50 */
    learn(&clients, A | B, 250, 50);
    learn(&clients, B | C, 150, 50);
    learn(&clients, A | C, 200, 50);
    assert_true(mps_clients_divide(&clients, A | B | C, &shares));
    assert_shares(&shares, A | B | C);
    assert_true(fabs(shares.of[0] - 1.0 / 2) < 0.04);
    assert_true(fabs(shares.of[1] - 1.0 / 3) < 0.04);
    assert_true(fabs(shares.of[2] - 1.0 / 6) < 0.04);
}

static void clients_that_were_always_together_are_charged_equally_with_a_large_error(void **state)
{
    struct mps_clients clients = {0};
    struct intensity_shares shares;

    (void)state;
    learn(&clients, A | B, 130, 500);
    assert_true(mps_clients_divide(&clients, A | B, &shares));
    assert_shares(&shares, A | B);
    assert_true(fabs(shares.of[0] - 0.5) < 1e-9);
    assert_true(shares.error[0] > 0.25); /* of a share: hardly any confidence is left */
}

static void a_client_alone_is_charged_all_without_error(void **state)
{
    struct mps_clients clients = {0};
    struct intensity_shares shares;

    (void)state;
    learn(&clients, A | B, 130, 50);
    assert_true(mps_clients_divide(&clients, A, &shares));
    assert_shares(&shares, A);
    assert_true(shares.of[0] == 1 && shares.error[0] == 0);
}

static void an_unknown_client_is_charged_as_the_average(void **state)
{
    struct mps_clients clients = {0};
    struct intensity_shares shares;

    (void)state;
    learn(&clients, A, 100, 50);
    learn(&clients, B, 100, 50);
    assert_true(mps_clients_divide(&clients, A | C, &shares));
    assert_shares(&shares, A | C);
    assert_true(fabs(shares.of[2] - 0.5) < 0.01);
    assert_true(shares.error[2] > 0.25);
}

static void without_any_slot_nothing_is_known(void **state)
{
    struct mps_clients clients = {0};
    struct intensity_shares shares;

    (void)state;
    assert_false(mps_clients_divide(&clients, A | B, &shares));
    learn(&clients, A, 0, 50); /* and nothing was used */
    assert_false(mps_clients_divide(&clients, A | B, &shares));
}

static void a_slot_that_was_not_busy_teaches_nothing(void **state)
{
    struct slot slot = {.start_us = T0,
                        .end_us = T0 + 200000,
                        .energy_uj = 100000000,
                        .clients = A,
                        .gpm = {.known_us = 200000, .busy_us = 20000}};
    struct mps_clients clients = {0};

    (void)state;
    mps_clients_learn(&clients, &slot, IDLE_W);
    slot.gpm.busy_us = 0;
    mps_clients_learn(&clients, &slot, IDLE_W);
    assert_int_equal(clients.count, 0);
}

static void a_client_that_changes_is_learned_anew(void **state)
{
    struct mps_clients clients = {0};
    struct intensity_shares shares;

    (void)state;
    learn(&clients, A, 400, 5000);
    learn(&clients, B, 100, 100);
    learn(&clients, A, 100, 300); /* a minute */
    assert_true(mps_clients_divide(&clients, A | B, &shares));
    assert_true(fabs(shares.of[0] - 0.5) < 0.03);
}

static void groups_are_bounded_and_the_rarest_makes_room(void **state)
{
    struct mps_clients clients = {0};
    struct intensity_shares shares;

    (void)state;
    learn(&clients, A, 100, 50);
    for (uint32_t present = 1; present < 5000; present++) {
        learn(&clients, present << 4, 50, 1);
        assert_true(clients.count <= MPS_GROUPS_MAX);
    }
    assert_true(mps_clients_divide(&clients, A | 1 << 4, &shares));
    assert_shares(&shares, A | 1 << 4);
    assert_true(shares.of[0] > 0.5); /* what was seen most is still known */
}

static void what_is_forgotten_leaves_its_groups(void **state)
{
    struct mps_clients clients = {0};

    (void)state;
    learn(&clients, A, 100, 5);
    learn(&clients, A | B, 130, 5);
    learn(&clients, B, 30, 5);
    mps_clients_forget(&clients, 0);
    assert_int_equal(clients.count, 1);
    assert_int_equal(clients.groups[0].clients, B);
}

static void absurd_watts_give_finite_shares(void **state)
{
    const double watts[] = {0, 1e-6, 1e9};

    (void)state;
    for (size_t i = 0; i < 27; i++) {
        struct mps_clients clients = {0};
        struct intensity_shares shares;

        learn(&clients, A, watts[i % 3], 50);
        learn(&clients, B, watts[i / 3 % 3], 50);
        learn(&clients, UINT32_MAX, watts[i / 9], 50);
        if (mps_clients_divide(&clients, UINT32_MAX, &shares))
            assert_shares(&shares, UINT32_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_alone_show_what_each_client_draws),
        cmocka_unit_test(times_without_a_client_show_as_much),
        cmocka_unit_test(clients_that_were_always_together_are_charged_equally_with_a_large_error),
        cmocka_unit_test(a_client_alone_is_charged_all_without_error),
        cmocka_unit_test(an_unknown_client_is_charged_as_the_average),
        cmocka_unit_test(without_any_slot_nothing_is_known),
        cmocka_unit_test(a_slot_that_was_not_busy_teaches_nothing),
        cmocka_unit_test(a_client_that_changes_is_learned_anew),
        cmocka_unit_test(groups_are_bounded_and_the_rarest_makes_room),
        cmocka_unit_test(what_is_forgotten_leaves_its_groups),
        cmocka_unit_test(absurd_watts_give_finite_shares),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
