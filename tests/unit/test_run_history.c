/* run/run_history: what is kept is found again, and nothing of another user is touched. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/macros.h"
#include "run/run_history.h"

static char *const argv[] = {"a", "b c", NULL};
static char *const other_argv[] = {"a", "b", "c", NULL};

static void make_home(char home[static 64])
{
    snprintf(home, 64, "/tmp/wattribute-history-XXXXXX");
    assert_non_null(mkdtemp(home));
}

static void remove_home(const char *home)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf '%s'", home);
    assert_int_equal(system(command), 0);
}

static void a_report_is_found_by_its_words_alone(void **state)
{
    char home[64], path[128], *data;
    struct stat st;
    size_t len;
    int fd;

    (void)state;
    make_home(home);
    fd = run_history_open(NULL, home);
    assert_true(fd >= 0);
    assert_int_equal(run_history_read(fd, argv, &data, &len), -ENOENT);
    assert_int_equal(run_history_write(fd, argv, span_of("first")), 0);
    assert_int_equal(run_history_write(fd, argv, span_of("second")), 0);
    assert_int_equal(run_history_read(fd, argv, &data, &len), 0);
    assert_int_equal(len, 6);
    assert_memory_equal(data, "second", 6);
    free(data);
    assert_int_equal(run_history_read(fd, other_argv, &data, &len), -ENOENT);
    snprintf(path, sizeof(path), "%s/.local/state/wattribute/run", home);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    close(fd);
    remove_home(home);
}

static void a_relative_or_missing_home_keeps_nothing(void **state)
{
    (void)state;
    assert_int_equal(run_history_open(NULL, NULL), -ENOENT);
    assert_int_equal(run_history_open("relative", "relative"), -ENOENT);
    assert_int_equal(run_history_open("/nonexistent/state", NULL), -ENOENT);
}

static void what_others_may_write_is_not_used(void **state)
{
    char home[64];

    (void)state;
    make_home(home);
    assert_int_equal(chmod(home, 0777), 0);
    assert_int_equal(run_history_open(home, NULL), -EPERM);
    remove_home(home);
}

static void links_and_pipes_in_its_place_are_not_followed(void **state)
{
    char home[64], path[192], target[128], *data;
    size_t len;
    int fd;

    (void)state;
    make_home(home);
    snprintf(target, sizeof(target), "%s/target", home);
    assert_int_equal(mkdir(target, 0700), 0);
    snprintf(path, sizeof(path), "%s/wattribute", home);
    assert_int_equal(symlink(target, path), 0);
    assert_true(run_history_open(home, NULL) < 0);
    assert_int_equal(unlink(path), 0);

    fd = run_history_open(home, NULL);
    assert_true(fd >= 0);
    assert_int_equal(run_history_write(fd, argv, span_of("x")), 0);
    /* Somebody of this user puts other things in its place. */
    snprintf(path, sizeof(path), "cd '%s/wattribute/run' && f=$(ls) && rm $f && mkfifo $f", home);
    assert_int_equal(system(path), 0);
    assert_int_equal(run_history_read(fd, argv, &data, &len), -EPERM);
    snprintf(path, sizeof(path),
             "cd '%s/wattribute/run' && f=$(ls) && rm $f && ln -s /etc/passwd $f", home);
    assert_int_equal(system(path), 0);
    assert_int_equal(run_history_read(fd, argv, &data, &len), -ELOOP);
    assert_int_equal(run_history_write(fd, argv, span_of("new")), 0); /* replaces the link */
    assert_int_equal(run_history_read(fd, argv, &data, &len), 0);
    assert_memory_equal(data, "new", 3);
    free(data);
    close(fd);
    remove_home(home);
}

static void the_oldest_is_forgotten(void **state)
{
    char home[64], command[256], word[16], *data;
    char *words[] = {word, NULL};
    size_t len;
    int fd;

    (void)state;
    make_home(home);
    fd = run_history_open(home, NULL);
    assert_true(fd >= 0);
    assert_int_equal(run_history_write(fd, argv, span_of("old")), 0);
    snprintf(command, sizeof(command), "touch -d '2001-01-01' '%s'/wattribute/run/*", home);
    assert_int_equal(system(command), 0);
    for (int i = 0; i < RUN_HISTORY_MAX; i++) {
        snprintf(word, sizeof(word), "%d", i);
        assert_int_equal(run_history_write(fd, words, span_of("x")), 0);
    }
    assert_int_equal(run_history_read(fd, argv, &data, &len), -ENOENT);
    close(fd);
    remove_home(home);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_report_is_found_by_its_words_alone),
        cmocka_unit_test(a_relative_or_missing_home_keeps_nothing),
        cmocka_unit_test(what_others_may_write_is_not_used),
        cmocka_unit_test(links_and_pipes_in_its_place_are_not_followed),
        cmocka_unit_test(the_oldest_is_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
