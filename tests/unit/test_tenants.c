/* attribution/gpu/intensity/tenants: the places of processes, and their reuse. */
#include "unit.h"

#include "attribution/gpu/intensity/tenants.h"

enum { PLACES = TENANT_OTHERS };

static uint32_t enter(struct tenants *tenants, uint32_t process, uint64_t kind, uint64_t now_us)
{
    bool is_new;

    return tenants_enter(tenants, process, kind, now_us, &is_new);
}

/* Processes 100, 101, ... of kinds 1, 2, ..., entered at the times 100, 101, ... */
static struct tenants full_house(void)
{
    struct tenants tenants = {0};

    for (uint32_t i = 0; i < PLACES; i++)
        assert_int_equal(enter(&tenants, 100 + i, 1 + i, 100 + i), i);
    return tenants;
}

static void each_process_has_a_place_of_its_own(void **state)
{
    struct tenants tenants = full_house();

    (void)state;
    for (uint32_t i = 0; i < PLACES; i++) {
        assert_true(tenants.all[i].used && !tenants.all[i].ended);
        assert_int_equal(tenants.all[i].process, 100 + i);
        assert_int_equal(tenants.all[i].since_us, 100 + i);
    }
    assert_false(tenants.all[TENANT_OTHERS].used);
}

static void when_all_places_are_taken_the_rest_share_the_last_one(void **state)
{
    struct tenants tenants = full_house();

    (void)state;
    assert_int_equal(enter(&tenants, 500, 99, 1000), TENANT_OTHERS);
    assert_int_equal(enter(&tenants, 501, 1, 1001), TENANT_OTHERS); /* its kind is at work */
    assert_false(tenants.all[TENANT_OTHERS].used);
}

static void the_next_of_a_kind_takes_over_what_was_learned(void **state)
{
    struct tenants tenants = full_house();
    bool is_new = true;

    (void)state;
    tenants_leave(&tenants, 3, 1000);
    tenants_leave(&tenants, 7, 900);
    assert_int_equal(tenants_find_ended(&tenants, 4), 3);
    assert_int_equal(tenants_enter(&tenants, 500, 4, 2000, &is_new), 3);
    assert_false(is_new);
    assert_int_equal(tenants.all[3].process, 500);
    assert_int_equal(tenants.all[3].since_us, 103); /* when the first of its kind came */
    assert_false(tenants.all[3].ended);
}

static void two_of_a_kind_at_once_have_two_places(void **state)
{
    struct tenants tenants = {0};

    (void)state;
    assert_int_equal(enter(&tenants, 1, 7, 1), 0);
    assert_int_equal(enter(&tenants, 2, 7, 2), 1);
    assert_int_equal(tenants_find_ended(&tenants, 7), TENANT_NONE);
}

static void a_free_place_is_taken_before_that_of_an_ended_tenant(void **state)
{
    struct tenants tenants = {0};
    bool is_new;

    (void)state;
    enter(&tenants, 1, 1, 1);
    tenants_leave(&tenants, 0, 2);
    assert_int_equal(tenants_enter(&tenants, 2, 2, 3, &is_new), 1);
    assert_true(is_new);
    assert_int_equal(tenants_find_ended(&tenants, 1), 0); /* still remembered */
}

static void the_tenant_that_ended_first_makes_room(void **state)
{
    struct tenants tenants = full_house();
    bool is_new;

    (void)state;
    tenants_leave(&tenants, 9, 3000);
    tenants_leave(&tenants, 20, 1000);
    tenants_leave(&tenants, 4, 2000);
    assert_int_equal(tenants_enter(&tenants, 500, 99, 4000, &is_new), 20);
    assert_true(is_new);
    assert_int_equal(tenants.all[20].since_us, 4000);
    assert_int_equal(enter(&tenants, 501, 98, 4000), 4);
    assert_int_equal(enter(&tenants, 502, 97, 4000), 9);
    assert_int_equal(enter(&tenants, 503, 96, 4000), TENANT_OTHERS);
}

static void what_is_not_known_is_of_no_kind(void **state)
{
    struct tenants tenants = {0};
    bool is_new;

    (void)state;
    enter(&tenants, 1, 0, 1);
    tenants_leave(&tenants, 0, 2);
    assert_int_equal(tenants_find_ended(&tenants, 0), TENANT_NONE);
    assert_int_equal(tenants_enter(&tenants, 2, 0, 3, &is_new), 1);
    assert_true(is_new);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_process_has_a_place_of_its_own),
        cmocka_unit_test(when_all_places_are_taken_the_rest_share_the_last_one),
        cmocka_unit_test(the_next_of_a_kind_takes_over_what_was_learned),
        cmocka_unit_test(two_of_a_kind_at_once_have_two_places),
        cmocka_unit_test(a_free_place_is_taken_before_that_of_an_ended_tenant),
        cmocka_unit_test(the_tenant_that_ended_first_makes_room),
        cmocka_unit_test(what_is_not_known_is_of_no_kind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
