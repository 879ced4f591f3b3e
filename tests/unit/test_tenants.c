/* attribution/gpu/intensity/tenants: the places of processes, and their reuse. */
#include "unit.h"

#include "attribution/gpu/intensity/tenants.h"

enum { PLACES = TENANT_OTHERS };

/* Processes 100, 101, ..., entered at the times 100, 101, ... */
static struct tenants full_house(void)
{
    struct tenants tenants = {0};

    for (uint32_t i = 0; i < PLACES; i++)
        assert_int_equal(tenants_enter(&tenants, 100 + i, 100 + i), i);
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
    assert_int_equal(tenants_enter(&tenants, 500, 1000), TENANT_OTHERS);
    assert_int_equal(tenants_enter(&tenants, 501, 1001), TENANT_OTHERS);
    assert_false(tenants.all[TENANT_OTHERS].used);
}

static void a_free_place_is_taken_before_that_of_an_ended_tenant(void **state)
{
    struct tenants tenants = {0};

    (void)state;
    tenants_enter(&tenants, 1, 1);
    tenants_leave(&tenants, 0, 2);
    assert_int_equal(tenants_enter(&tenants, 2, 3), 1);
}

static void the_tenant_that_ended_first_makes_room(void **state)
{
    struct tenants tenants = full_house();

    (void)state;
    tenants_leave(&tenants, 9, 3000);
    tenants_leave(&tenants, 20, 1000);
    tenants_leave(&tenants, 4, 2000);
    assert_int_equal(tenants_enter(&tenants, 500, 4000), 20);
    assert_int_equal(tenants.all[20].since_us, 4000);
    assert_int_equal(tenants_enter(&tenants, 501, 4000), 4);
    assert_int_equal(tenants_enter(&tenants, 502, 4000), 9);
    assert_int_equal(tenants_enter(&tenants, 503, 4000), TENANT_OTHERS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_process_has_a_place_of_its_own),
        cmocka_unit_test(when_all_places_are_taken_the_rest_share_the_last_one),
        cmocka_unit_test(a_free_place_is_taken_before_that_of_an_ended_tenant),
        cmocka_unit_test(the_tenant_that_ended_first_makes_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
