/* fetcher/silence: after which results another process should look up a host. */
#include "unit.h"

#include <errno.h>

#include "core/macros.h"
#include "fetcher/silence.h"

static void a_minute_without_an_answer_is_long(void **state)
{
    uint64_t since_us = 0, now_us = USEC_PER_SEC;

    (void)state;
    assert_false(silence_is_long(&since_us, -ETIMEDOUT, now_us));
    assert_false(silence_is_long(&since_us, -ECONNREFUSED, now_us + 60 * USEC_PER_SEC - 1));
    assert_true(silence_is_long(&since_us, -ENOENT, now_us + 60 * USEC_PER_SEC));
}

/* A refused login above all: another process would log in again. */
static void any_answer_ends_it(void **state)
{
    static const int answers[] = {0, -EACCES, -EPERM, -EBUSY, -ENODATA, -EBADMSG, -EREMOTEIO};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
        uint64_t since_us = 0;

        assert_false(silence_is_long(&since_us, -EPROTO, USEC_PER_SEC));
        assert_false(silence_is_long(&since_us, answers[i], 100 * USEC_PER_SEC));
        assert_false(silence_is_long(&since_us, answers[i], 200 * USEC_PER_SEC));
        assert_false(silence_is_long(&since_us, -EKEYREJECTED, 300 * USEC_PER_SEC));
        assert_true(silence_is_long(&since_us, -EKEYREJECTED, 400 * USEC_PER_SEC));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_minute_without_an_answer_is_long),
        cmocka_unit_test(any_answer_ends_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
