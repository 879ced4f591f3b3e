/* core/macros: the smaller and the larger of two. */
#include "unit.h"

#include "core/macros.h"

static uint64_t count_up(uint64_t *count)
{
    return ++*count;
}

static void each_argument_is_evaluated_once(void **state)
{
    uint64_t a = 0, b = 10;

    (void)state;
    assert_int_equal(MIN(count_up(&a), count_up(&b)), 1);
    assert_int_equal(MAX(count_up(&a), count_up(&b)), 12);
    assert_int_equal(MAX(MIN(count_up(&a), count_up(&b)), MIN(count_up(&b), count_up(&a))), 4);
    assert_int_equal(a, 4);
    assert_int_equal(b, 14);
}

static void the_result_has_the_type_of_both(void **state)
{
    (void)state;
    assert_true(MIN(UINT64_MAX, (uint64_t)1 << 40) == (uint64_t)1 << 40);
    assert_true(MIN(-1, 1) == -1);
    assert_true(MAX(-2.5, -3) == -2.5);
    assert_int_equal(sizeof(MAX((uint32_t)1, (uint64_t)2)), sizeof(uint64_t));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_argument_is_evaluated_once),
        cmocka_unit_test(the_result_has_the_type_of_both),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
