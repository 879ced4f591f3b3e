/* The state file: replaced as a whole, checked when it is read, locked while it is used. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/state_file.h"
#include "core/clock.h"
#include "core/fs.h"
#include "core/macros.h"
#include "file_fixture.h"

struct fixture {
    char dir[64], path[128];
    struct state_file *file;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    assert_non_null(fixture);
    snprintf(fixture->dir, sizeof(fixture->dir), "/tmp/state-file-XXXXXX");
    assert_non_null(mkdtemp(fixture->dir));
    snprintf(fixture->path, sizeof(fixture->path), "%s/state", fixture->dir);
    assert_int_equal(state_file_open(fixture->path, &fixture->file, NULL), 0);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    static const char *const names[] = {"state", "state.new", "state.bad", "state.lock"};
    struct fixture *fixture = *state;

    assert_true(state_file_close(fixture->file, 10 * USEC_PER_SEC));
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        char path[160];

        snprintf(path, sizeof(path), "%s/%s", fixture->dir, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(fixture->dir);
    free(fixture);
    return 0;
}

static int write_text(struct fixture *fixture, const char *text, bool is_durable)
{
    struct buffer contents;
    uint64_t number;
    int result = -1;

    buffer_init(&contents, 1 << 20);
    buffer_str(&contents, text);
    number = state_file_write(fixture->file, &contents, is_durable);
    assert_true(state_file_wait(fixture->file, number,
                                clock_system.monotonic_us(&clock_system) + 10 * USEC_PER_SEC,
                                &result));
    return result;
}

static void assert_reads(struct fixture *fixture, const char *text)
{
    struct error err = {""};
    char *data;
    size_t len;

    assert_int_equal(state_file_read(fixture->file, &data, &len, &err), 0);
    assert_int_equal(len, strlen(text));
    assert_memory_equal(data, text, len);
    free(data);
}

static void assert_rejects(struct fixture *fixture, const char *why)
{
    struct error err = {""};
    char *data;
    size_t len;

    assert_int_equal(state_file_read(fixture->file, &data, &len, &err), -EBADMSG);
    assert_non_null(strstr(err.text, why));
}

static void the_last_write_is_read_and_only_the_owner_may(void **state)
{
    struct fixture *fixture = *state;
    struct stat status;
    char *data;
    size_t len;

    assert_int_equal(state_file_read(fixture->file, &data, &len, NULL), -ENOENT);
    assert_int_equal(write_text(fixture, "first", false), 0);
    assert_reads(fixture, "first");
    assert_int_equal(write_text(fixture, "second, and longer", true), 0);
    assert_reads(fixture, "second, and longer");
    assert_int_equal(write_text(fixture, "", false), 0);
    assert_reads(fixture, "");
    assert_int_equal(stat(fixture->path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
}

static void a_second_process_cannot_use_it(void **state)
{
    struct fixture *fixture = *state;
    struct state_file *second;
    struct error err;

    assert_int_equal(state_file_open(fixture->path, &second, &err), -EBUSY);
    assert_non_null(strstr(err.text, fixture->path));
}

static void every_changed_or_missing_byte_is_noticed(void **state)
{
    struct fixture *fixture = *state;
    char *data;
    size_t len;

    assert_int_equal(write_text(fixture, "contents", false), 0);
    assert_int_equal(fs_read_all_at(AT_FDCWD, fixture->path, 1 << 20, &data, &len), 0);
    for (size_t i = 0; i < len; i++) {
        data[i] ^= 1;
        file_write_at(AT_FDCWD, fixture->path, data, len);
        assert_rejects(fixture, "it is ");
        data[i] ^= 1;
        file_write_at(AT_FDCWD, fixture->path, data, i);
        assert_rejects(fixture, "it is ");
    }
    file_write_at(AT_FDCWD, fixture->path, data, len);
    assert_reads(fixture, "contents");
    data[sizeof("wattribute state\n") - 1] = 2;
    file_write_at(AT_FDCWD, fixture->path, data, len);
    assert_rejects(fixture, "a newer version");
    data[sizeof("wattribute state\n") - 1] = 0;
    file_write_at(AT_FDCWD, fixture->path, data, len);
    assert_rejects(fixture, "an older version");
    free(data);
}

static void what_others_could_have_written_is_not_believed(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(write_text(fixture, "contents", false), 0);
    assert_int_equal(chmod(fixture->path, 0660), 0);
    assert_rejects(fixture, "other users may write to it");
    assert_int_equal(chmod(fixture->path, 0644), 0);
    assert_reads(fixture, "contents");
    assert_int_equal(unlink(fixture->path), 0);
    assert_int_equal(symlink("/etc/passwd", fixture->path), 0);
    assert_rejects(fixture, "");
    assert_int_equal(unlink(fixture->path), 0);
    assert_int_equal(mkfifo(fixture->path, 0600), 0);
    assert_rejects(fixture, "not a regular file");
}

static void what_is_set_aside_is_kept_and_makes_room(void **state)
{
    struct fixture *fixture = *state;
    char bad[160], *data;
    size_t len;

    file_write_at(AT_FDCWD, fixture->path, "nonsense", 8);
    assert_rejects(fixture, "not a state file");
    assert_int_equal(state_file_set_aside(fixture->file), 0);
    assert_int_equal(state_file_read(fixture->file, &data, &len, NULL), -ENOENT);
    snprintf(bad, sizeof(bad), "%s.bad", fixture->path);
    assert_int_equal(fs_read_all_at(AT_FDCWD, bad, 100, &data, &len), 0);
    assert_memory_equal(data, "nonsense", 8);
    free(data);
    assert_int_equal(write_text(fixture, "contents", false), 0);
    assert_reads(fixture, "contents");
}

static void a_write_that_fails_is_told_and_the_next_may_succeed(void **state)
{
    struct fixture *fixture = *state;
    char new_path[160];

    snprintf(new_path, sizeof(new_path), "%s.new", fixture->path);
    assert_int_equal(mkdir(new_path, 0700), 0);
    assert_int_equal(write_text(fixture, "contents", false), -EISDIR);
    assert_int_equal(rmdir(new_path), 0);
    assert_int_equal(write_text(fixture, "contents", false), 0);
    assert_reads(fixture, "contents");
}

static void a_pipe_in_the_place_of_the_new_file_is_replaced(void **state)
{
    struct fixture *fixture = *state;
    char new_path[160];

    snprintf(new_path, sizeof(new_path), "%s.new", fixture->path);
    assert_int_equal(mkfifo(new_path, 0600), 0);
    assert_int_equal(write_text(fixture, "contents", false), 0);
    assert_reads(fixture, "contents");
}

static void a_directory_that_was_made_again_is_used(void **state)
{
    struct fixture *fixture = *state;
    struct state_file *second;

    assert_int_equal(write_text(fixture, "first", false), 0);
    for (const char *const *name = (const char *const[]){"state", "state.lock", NULL}; *name;
         name++) {
        char path[160];

        snprintf(path, sizeof(path), "%s/%s", fixture->dir, *name);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(rmdir(fixture->dir), 0);
    assert_int_equal(write_text(fixture, "lost", false), -ENOENT);
    assert_int_equal(mkdir(fixture->dir, 0700), 0);
    assert_int_equal(write_text(fixture, "second", false), 0);
    assert_reads(fixture, "second");
    assert_int_equal(state_file_open(fixture->path, &second, NULL), -EBUSY);
}

static void a_directory_that_is_missing_is_an_error_that_names_the_file(void **state)
{
    struct state_file *file;
    struct error err;

    (void)state;
    assert_int_equal(state_file_open("/nonexistent/state", &file, &err), -ENOENT);
    assert_non_null(strstr(err.text, "/nonexistent/state"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_last_write_is_read_and_only_the_owner_may, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_second_process_cannot_use_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_changed_or_missing_byte_is_noticed, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_others_could_have_written_is_not_believed, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_is_set_aside_is_kept_and_makes_room, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_write_that_fails_is_told_and_the_next_may_succeed, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_pipe_in_the_place_of_the_new_file_is_replaced, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_directory_that_was_made_again_is_used, set_up, tear_down),
        cmocka_unit_test(a_directory_that_is_missing_is_an_error_that_names_the_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
