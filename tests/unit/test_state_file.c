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
    int synced; /* as known after the last write */
};

/* In the place of the library's: the disk may fail. */
static int fsync_error;
static bool fsync_of_directories_only;

int fsync(int fd)
{
    struct stat status;

    if (fstat(fd, &status) < 0)
        return -1;
    errno = fsync_of_directories_only && !S_ISDIR(status.st_mode) ? 0 : fsync_error;
    return errno ? -1 : 0;
}

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
    struct state_file_result result = {-1, -1};
    uint64_t number;

    buffer_init(&contents, 1 << 20);
    buffer_str(&contents, text);
    number = state_file_write(fixture->file, &contents, is_durable);
    assert_true(state_file_wait(fixture->file, number,
                                clock_system.monotonic_us(&clock_system) + 10 * USEC_PER_SEC,
                                &result));
    fixture->synced = result.sync;
    return result.write;
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

static void assert_read_fails(struct fixture *fixture, int error, const char *why)
{
    struct error err = {""};
    char *data;
    size_t len;

    assert_int_equal(state_file_read(fixture->file, &data, &len, &err), error);
    assert_non_null(strstr(err.text, why));
}

static void assert_rejects(struct fixture *fixture, const char *why)
{
    assert_read_fails(fixture, -EBADMSG, why);
}

static void assert_holds(const char *path, const char *text)
{
    char *data;
    size_t len;

    assert_int_equal(fs_read_all_at(AT_FDCWD, path, 1 << 20, &data, &len), 0);
    assert_string_equal(data, text);
    free(data);
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
        if (i < strlen("wattribute state\n"))
            assert_read_fails(fixture, -EEXIST, "another took its place");
        else
            assert_rejects(fixture, "it is ");
        data[i] ^= 1;
        file_write_at(AT_FDCWD, fixture->path, data, i);
        assert_rejects(fixture, "it is ");
    }
    file_write_at(AT_FDCWD, fixture->path, data, len);
    assert_reads(fixture, "contents");
    data[sizeof("wattribute state\n") - 1] += 1;
    file_write_at(AT_FDCWD, fixture->path, data, len);
    assert_rejects(fixture, "a newer version");
    data[sizeof("wattribute state\n") - 1] -= 2;
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
}

static int make_file(const char *path)
{
    file_write_at(AT_FDCWD, path, "key: 1\n", 7);
    return 0;
}

static int make_directory(const char *path)
{
    return mkdir(path, 0700);
}

static int make_link(const char *path)
{
    return symlink("/etc/passwd", path);
}

static int make_pipe(const char *path)
{
    return mkfifo(path, 0600);
}

static int make_socket(const char *path)
{
    return mknod(path, S_IFSOCK | 0600, 0);
}

/* Each of them in the place of `path`. */
static const struct {
    int (*make)(const char *path);
    const char *what;
} others[] = {
    {make_file, "a file that wattribute did not write"},
    {make_directory, "a directory"},
    {make_link, "a symbolic link"},
    {make_pipe, "a pipe"},
    {make_socket, "a socket"},
};

static void assert_unchanged(const char *path, const struct stat *before)
{
    struct stat now;

    assert_int_equal(lstat(path, &now), 0);
    assert_int_equal(now.st_ino, before->st_ino);
    assert_int_equal(now.st_mode, before->st_mode);
    assert_int_equal(now.st_size, before->st_size);
    assert_int_equal(remove(path), 0);
}

static void what_is_not_ours_is_an_error_at_the_start_and_stays(void **state)
{
    struct fixture *fixture = *state;
    char path[80], new_path[90], lock_path[90];

    snprintf(path, sizeof(path), "%s/other", fixture->dir);
    snprintf(new_path, sizeof(new_path), "%s.new", path);
    snprintf(lock_path, sizeof(lock_path), "%s.lock", path);
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        for (const char *const *place = (const char *const[]){path, new_path, NULL}; *place;
             place++) {
            struct state_file *file;
            struct stat before;
            struct error err = {""};

            assert_int_equal(others[i].make(*place), 0);
            assert_int_equal(lstat(*place, &before), 0);
            assert_int_equal(state_file_open(path, &file, &err), -EEXIST);
            assert_non_null(strstr(err.text, path));
            assert_non_null(strstr(err.text, others[i].what));
            assert_non_null(strstr(err.text, "--state-file"));
            assert_int_equal(access(lock_path, F_OK), -1);
            assert_unchanged(*place, &before);
        }
}

static void a_name_of_a_directory_or_device_is_an_error_at_the_start(void **state)
{
    struct fixture *fixture = *state;
    struct state_file *file;
    struct error err = {""};
    char dir[80];

    snprintf(dir, sizeof(dir), "%s/", fixture->dir);
    assert_int_equal(state_file_open(dir, &file, &err), -EEXIST);
    assert_non_null(strstr(err.text, "add the name of a file"));
    snprintf(dir, sizeof(dir), "%s/new/", fixture->dir);
    assert_int_equal(state_file_open(dir, &file, NULL), -EEXIST);
    assert_int_equal(state_file_open("/", &file, NULL), -EEXIST);
    assert_int_equal(state_file_open("..", &file, NULL), -EEXIST);
    assert_int_equal(state_file_open("/dev/zero", &file, &err), -EEXIST);
    assert_non_null(strstr(err.text, "a device"));
}

static void what_takes_its_place_later_stays_and_the_write_fails(void **state)
{
    struct fixture *fixture = *state;
    char new_path[160];

    snprintf(new_path, sizeof(new_path), "%s.new", fixture->path);
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        for (const char *const *path = (const char *const[]){fixture->path, new_path, NULL}; *path;
             path++) {
            struct stat before;

            assert_int_equal(write_text(fixture, "contents", true), 0);
            if (*path == fixture->path)
                assert_int_equal(unlink(*path), 0);
            assert_int_equal(others[i].make(*path), 0);
            assert_int_equal(lstat(*path, &before), 0);
            assert_int_equal(write_text(fixture, "more", true), -EEXIST);
            if (*path == fixture->path)
                assert_int_equal(state_file_set_aside(fixture->file), -EEXIST);
            assert_unchanged(*path, &before);
        }
    assert_int_equal(write_text(fixture, "contents", false), 0);
    assert_reads(fixture, "contents");
    assert_non_null(strstr(state_file_strerror(-EEXIST), "is in its place"));
}

/* Of a file that was new, one may find its length without its bytes, or nothing. */
static void what_a_power_failure_leaves_is_ours(void **state)
{
    static const char nothing[4096];
    struct fixture *fixture = *state;
    char new_path[160];

    snprintf(new_path, sizeof(new_path), "%s.new", fixture->path);
    for (size_t len = 0; len <= sizeof(nothing); len += sizeof(nothing) / 2) {
        file_write_at(AT_FDCWD, fixture->path, nothing, len);
        file_write_at(AT_FDCWD, new_path, nothing, len);
        assert_rejects(fixture, "empty or truncated");
        assert_int_equal(state_file_set_aside(fixture->file), 0);
        assert_int_equal(write_text(fixture, "contents", false), 0);
        assert_reads(fixture, "contents");
    }
}

static void what_is_set_aside_is_kept_and_makes_room(void **state)
{
    static const char damaged[] = "wattribute state\nnonsense";
    struct fixture *fixture = *state;
    char bad[160], *data;
    size_t len;

    file_write_at(AT_FDCWD, fixture->path, damaged, strlen(damaged));
    assert_rejects(fixture, "it is ");
    assert_int_equal(state_file_set_aside(fixture->file), 0);
    assert_int_equal(state_file_read(fixture->file, &data, &len, NULL), -ENOENT);
    snprintf(bad, sizeof(bad), "%s.bad", fixture->path);
    assert_holds(bad, damaged);
    assert_int_equal(write_text(fixture, "contents", false), 0);
    assert_reads(fixture, "contents");
    file_write_at(AT_FDCWD, bad, "a bad poem", 10);
    assert_int_equal(state_file_set_aside(fixture->file), -EEXIST);
    assert_holds(bad, "a bad poem");
    assert_reads(fixture, "contents");
}

static void an_error_of_fsync_stays_until_one_succeeds(void **state)
{
    struct fixture *fixture = *state;

    fsync_error = EIO;
    assert_int_equal(write_text(fixture, "not synced", true), 0);
    assert_int_equal(fixture->synced, -EIO);
    assert_reads(fixture, "not synced");
    fsync_error = 0;
    assert_int_equal(write_text(fixture, "a page", false), 0);
    assert_int_equal(fixture->synced, -EIO);
    assert_int_equal(write_text(fixture, "synced", true), 0);
    assert_int_equal(fixture->synced, 0);
    assert_reads(fixture, "synced");
    fsync_error = ENOSPC;
    fsync_of_directories_only = true;
    assert_int_equal(write_text(fixture, "half", true), 0);
    assert_int_equal(fixture->synced, -ENOSPC);
    fsync_error = EINVAL;
    assert_int_equal(write_text(fixture, "as far as it goes", true), 0);
    assert_int_equal(fixture->synced, 0);
    fsync_error = 0;
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
        cmocka_unit_test_setup_teardown(what_is_not_ours_is_an_error_at_the_start_and_stays, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_name_of_a_directory_or_device_is_an_error_at_the_start,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_takes_its_place_later_stays_and_the_write_fails,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_a_power_failure_leaves_is_ours, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_error_of_fsync_stays_until_one_succeeds, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_directory_that_was_made_again_is_used, set_up, tear_down),
        cmocka_unit_test(a_directory_that_is_missing_is_an_error_that_names_the_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
