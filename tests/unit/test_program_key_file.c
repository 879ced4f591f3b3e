/* config/program_key_file: the secret of program keys, in a file of its owner alone. */
#include "file_fixture.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "config/program_key_file.h"

#define GOOD "000102030405060708090a0b0c0d0e0f\n"

static int load(const char *text, mode_t mode, struct program_secret *ret_secret, struct error *err)
{
    char path[FILE_PATH_BYTES];
    int r;

    file_make(path, text, mode);
    r = program_key_file_load(path, ret_secret, err);
    unlink(path);
    return r;
}

static void the_secret_is_32_hexadecimal_digits(void **state)
{
    static const mode_t modes[] = {0600, 0400};
    struct error err = {""};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
        struct program_secret secret = {0};

        assert_int_equal(load(GOOD, modes[i], &secret, &err), 0);
        assert_true(secret.words[0] == 0x0706050403020100); /* as SipHash reads its key */
        assert_true(secret.words[1] == 0x0f0e0d0c0b0a0908);
    }
}

static void a_missing_file_is_made_for_its_owner_alone_and_read_again(void **state)
{
    char directory[] = "/tmp/wattribute-test-XXXXXX", path[64];
    struct program_secret made = {0}, again = {0}, other = {0};
    struct error err = {""};
    mode_t mask = umask(0);
    struct stat st;

    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/key", directory);
    assert_int_equal(program_key_file_load(path, &made, &err), 0);
    assert_int_equal(lstat(path, &st), 0);
    assert_int_equal(st.st_mode, S_IFREG | 0600);
    assert_int_equal(st.st_size, 33);
    assert_true(made.words[0] != 0 && made.words[1] != 0);
    assert_int_equal(program_key_file_load(path, &again, &err), 0);
    assert_memory_equal(&made, &again, sizeof(made));
    unlink(path);
    assert_int_equal(program_key_file_load(path, &other, &err), 0);
    assert_memory_not_equal(&made, &other, sizeof(made));
    unlink(path);
    rmdir(directory);
    umask(mask);
}

static void a_file_that_others_can_read_or_write_is_refused(void **state)
{
    static const mode_t modes[] = {0640, 0604, 0620, 0602, 0610, 0601, 0666};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
        struct program_secret secret = {{7, 7}};
        struct error err = {""};
        char mode[16];

        assert_int_equal(load(GOOD, modes[i], &secret, &err), -EACCES);
        snprintf(mode, sizeof(mode), "mode %04o ", modes[i]);
        assert_non_null(strstr(err.text, "--program-key-file '/tmp/wattribute-test-"));
        assert_non_null(strstr(err.text, mode));
        assert_non_null(strstr(err.text, "chmod 600 it"));
        assert_int_equal(secret.words[0], 7);
    }
}

static void a_file_of_another_user_is_refused(void **state)
{
    struct program_secret secret = {0};
    char path[FILE_PATH_BYTES];
    struct error err = {""};

    (void)state;
    if (geteuid() != 0)
        skip(); /* nobody else can give a file away */
    file_make(path, GOOD, 0600);
    assert_int_equal(chown(path, 12345, 0), 0);
    assert_int_equal(program_key_file_load(path, &secret, &err), -EPERM);
    assert_non_null(strstr(err.text, "belongs to user 12345; chown it"));
    unlink(path);
}

static void anything_else_is_refused_and_not_quoted(void **state)
{
    static const char *const texts[] = {
        "",
        "\n",
        "000102030405060708090a0b0c0d0e0f",     /* no newline */
        "000102030405060708090a0b0c0d0e0f\n\n", /* two */
        "000102030405060708090a0b0c0d0e0f\r\n",
        "000102030405060708090a0b0c0d0e0\n", /* 31 digits */
        "000102030405060708090a0b0c0d0e0f0\n",
        "000102030405060708090A0B0C0D0E0F\n",
        "000102030405060708090a0b0c0d0e0g\n",
        "0x0102030405060708090a0b0c0d0e0f\n",
        "00000000000000000000000000000000\n", /* means: no keys */
        GOOD GOOD,
        "hunter2 hunter2 hunter2 hunter2 \n",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct program_secret secret = {{7, 7}};
        struct error err = {""};

        if (load(texts[i], 0600, &secret, &err) != -EINVAL)
            fail_msg("accepted: %s", texts[i]);
        assert_non_null(strstr(err.text, "is not 32 digits of 0-9 and a-f"));
        assert_non_null(strstr(err.text, "remove it to get a new one"));
        assert_null(strstr(err.text, "hunter2"));
        assert_null(strstr(err.text, "0001020304"));
        assert_int_equal(secret.words[0], 7);
    }
}

static void only_a_regular_file_is_read_and_no_link_is_followed(void **state)
{
    char directory[] = "/tmp/wattribute-test-XXXXXX", path[64], link[64];
    struct program_secret secret = {0};
    struct error err = {""};

    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/key", directory);
    snprintf(link, sizeof(link), "%s/link", directory);
    assert_int_equal(symlink(path, link), 0); /* to nothing: it would be made there */
    assert_int_equal(program_key_file_load(link, &secret, &err), -ELOOP);
    assert_non_null(strstr(err.text, "it is a symbolic link; specify the file itself"));
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(program_key_file_load(path, &secret, &err), -ENXIO);
    assert_int_equal(program_key_file_load(directory, &secret, &err), -ENXIO);
    assert_non_null(strstr(err.text, "is not a regular file"));
    assert_int_equal(program_key_file_load("/dev/null", &secret, &err), -ENXIO);
    snprintf(link, sizeof(link), "%s/none/key", directory);
    assert_int_equal(program_key_file_load(link, &secret, &err), -ENOENT);
    assert_non_null(strstr(err.text, "cannot be created: No such file or directory"));
    unlink(path);
    snprintf(link, sizeof(link), "%s/link", directory);
    unlink(link);
    rmdir(directory);
}

static void a_file_that_cannot_be_written_in_full_is_not_left_behind(void **state)
{
    char directory[] = "/tmp/wattribute-test-XXXXXX", path[64];
    struct program_secret secret = {{7, 7}};
    struct error err = {""};
    struct rlimit before, small;

    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/key", directory);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){.rlim_cur = 10, .rlim_max = before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_int_equal(program_key_file_load(path, &secret, &err), -EFBIG);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_non_null(strstr(err.text, "cannot be written: File too large"));
    assert_int_equal(secret.words[0], 7);
    assert_int_equal(rmdir(directory), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_secret_is_32_hexadecimal_digits),
        cmocka_unit_test(a_missing_file_is_made_for_its_owner_alone_and_read_again),
        cmocka_unit_test(a_file_that_others_can_read_or_write_is_refused),
        cmocka_unit_test(a_file_of_another_user_is_refused),
        cmocka_unit_test(anything_else_is_refused_and_not_quoted),
        cmocka_unit_test(only_a_regular_file_is_read_and_no_link_is_followed),
        cmocka_unit_test(a_file_that_cannot_be_written_in_full_is_not_left_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
