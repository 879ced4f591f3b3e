/* top/terminal: what is said where there is no ncurses, or no terminal. */
#include "top_fixture.h"

#include <errno.h>

#include "top/terminal.h"

static void without_ncurses_the_package_is_named(void **state)
{
    struct terminal *terminal = NULL;
    struct error err = {""};

    (void)state;
    assert_int_equal(terminal_open("libnone.so.6", true, &terminal, &err), -ELIBACC);
    assert_null(terminal);
    assert_shows(err.text, "install libncursesw6");
    assert_shows(err.text, "--once");
    assert_shows(err.text, "libnone.so.6");
    assert_int_equal(terminal_open("libm.so.6", true, &terminal, &err), -ELIBACC);
    assert_shows(err.text, "has no newterm");
    terminal_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_ncurses_the_package_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
