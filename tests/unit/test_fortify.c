/* _FORTIFY_SOURCE=3: the C library ends a process that writes beyond a block, also where the size
 * of the block is known only at run time. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char *volatile block;

static int fill(size_t size, size_t len)
{
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0) {
        char *bytes = malloc(size);

        close(STDERR_FILENO); /* the library's message */
        if (!bytes)
            _exit(99);
        memset(bytes, 1, len);
        block = bytes;
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void a_write_beyond_a_block_of_any_size_ends_the_process(void **state)
{
    volatile size_t size = 64; /* the compiler cannot know it */

    (void)state;
    assert_int_equal(fill(size, size), 0);
    assert_int_not_equal(fill(size, size + 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_beyond_a_block_of_any_size_ends_the_process),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
