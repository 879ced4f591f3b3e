/* client/stoppable: a client's thread that another one stops. */
#include "http_client_fixture.h"

#include <errno.h>

#include "client/stoppable.h"

static struct bench *open_stoppable(struct stoppable *stoppable)
{
    struct bench *bench = open_bench(well_behaved);

    assert_int_equal(stoppable_init(stoppable), 0);
    http_client_free(bench->client);
    bench->client = stoppable->client;
    return bench;
}

static void close_stoppable(struct bench *bench, struct stoppable *stoppable)
{
    bench->client = NULL;
    stoppable_done(stoppable);
    close_bench(bench);
}

static void a_stop_ends_requests_and_pauses(void **state)
{
    struct stoppable stoppable;
    struct bench *bench = open_stoppable(&stoppable);

    (void)state;
    assert_int_equal(ask(bench), 0);
    assert_false(stoppable_is_stopped(&stoppable));
    stoppable_stop(&stoppable);
    assert_true(stoppable_is_stopped(&stoppable));
    assert_int_equal(ask(bench), -ECANCELED);
    stoppable_pause(&stoppable, UINT64_MAX / 2); /* returns */
    close_stoppable(bench, &stoppable);
}

static void a_second_stop_does_not_cut_the_leave_short(void **state)
{
    struct stoppable stoppable;
    struct bench *bench = open_stoppable(&stoppable);

    (void)state;
    stoppable_stop(&stoppable);
    http_client_resume(stoppable.client);
    stoppable_stop(&stoppable);
    assert_int_equal(ask(bench), 0);
    close_stoppable(bench, &stoppable);
}

static void a_stop_after_the_close_is_none(void **state)
{
    struct stoppable stoppable;

    (void)state;
    assert_int_equal(stoppable_init(&stoppable), 0);
    stoppable_close(&stoppable);
    stoppable_stop(&stoppable);
    assert_true(stoppable_is_stopped(&stoppable));
    stoppable_done(&stoppable);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stop_ends_requests_and_pauses),
        cmocka_unit_test(a_second_stop_does_not_cut_the_leave_short),
        cmocka_unit_test(a_stop_after_the_close_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
