/* config/tariff_config: local time is that of the named zone, or an error. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "config/tariff_config.h"
#include "core/fs.h"
#include "core/macros.h"

static const time_t WINTER = 1768478400, SUMMER = 1784116800; /* 12:00 UTC, 15 January and July */

/* "HH:MM" */
static const char *local(time_t seconds)
{
    static char text[8];
    struct tm tm;

    assert_non_null(localtime_r(&seconds, &tm));
    strftime(text, sizeof(text), "%H:%M", &tm);
    return text;
}

static void use(const char *name)
{
    struct error err = {""};

    if (tariff_config_use_zone(name, &err) < 0)
        fail_msg("%s: %s", name, err.text);
}

static int reset(void **state)
{
    (void)state;
    unsetenv("TZ");
    unsetenv("TZDIR");
    return 0;
}

static void a_named_zone_has_its_summer_time(void **state)
{
    (void)state;
    use("Europe/Paris");
    assert_string_equal(local(WINTER), "13:00");
    assert_string_equal(local(SUMMER), "14:00");
    use("America/New_York");
    assert_string_equal(local(WINTER), "07:00");
    assert_string_equal(local(SUMMER), "08:00");
}

static void an_offset_and_utc_need_no_file(void **state)
{
    (void)state;
    setenv("TZDIR", "/nonexistent", 1);
    use("+01:00");
    assert_string_equal(local(WINTER), "13:00");
    assert_string_equal(local(SUMMER), "13:00");
    use("-03:30");
    assert_string_equal(local(WINTER), "08:30");
    use("+14:00");
    assert_string_equal(local(WINTER), "02:00");
    use("UTC");
    assert_string_equal(local(SUMMER), "12:00");
}

static void a_zone_that_is_not_here_is_refused_and_not_taken_for_utc(void **state)
{
    struct error err = {""};

    (void)state;
    assert_int_equal(tariff_config_use_zone("Europe/Pariss", &err), -ENOENT);
    assert_non_null(strstr(err.text, "no time zone 'Europe/Pariss' in /usr/share/zoneinfo"));
    setenv("TZDIR", "/nonexistent", 1);
    assert_int_equal(tariff_config_use_zone("Europe/Paris", &err), -ENOENT);
    assert_non_null(strstr(err.text, "/nonexistent"));
    assert_non_null(strstr(err.text, "install tzdata"));
    assert_non_null(strstr(err.text, "\"+01:00\""));
    assert_null(getenv("TZ"));
}

static void what_is_not_the_file_of_a_zone_is_none(void **state)
{
    char directory[] = "/tmp/wattribute-zone-XXXXXX", path[64];
    struct error err = {""};
    _cleanup_close_ int fd = -1;

    (void)state;
    assert_non_null(mkdtemp(directory));
    setenv("TZDIR", directory, 1);
    snprintf(path, sizeof(path), "%s/Text", directory);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(fs_write_all(fd, "TZi", 3), 0);
    assert_int_equal(tariff_config_use_zone("Text", &err), -ENOENT);
    assert_int_equal(fs_write_all(fd, "pper", 4), 0);
    assert_int_equal(tariff_config_use_zone("Text", &err), -ENOENT);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(tariff_config_use_zone("Text", &err), -ENOENT);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(directory), 0);
    assert_int_equal(tariff_config_use_zone("../etc/localtime", &err), -ENOENT);
    assert_int_equal(tariff_config_use_zone("/etc/localtime", &err), -ENOENT);
}

static void without_a_name_the_zone_is_that_of_the_machine(void **state)
{
    (void)state;
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    use("");
    assert_string_equal(local(WINTER), "13:00");
    assert_string_equal(local(SUMMER), "14:00");
    setenv("TZ", ":Asia/Kolkata", 1);
    use("");
    assert_string_equal(local(WINTER), "17:30");
    setenv("TZ", ":/usr/share/zoneinfo/Asia/Tokyo", 1);
    use("");
    assert_string_equal(local(WINTER), "21:00");
}

static void an_unknown_zone_in_the_environment_is_an_error(void **state)
{
    static const char *const names[] = {"Europe/Paris", ":Europe/Paris", "CET", ":Japan"};
    struct error err = {""};

    (void)state;
    setenv("TZDIR", "/nonexistent", 1);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        setenv("TZ", names[i], 1);
        assert_int_equal(tariff_config_use_zone("", &err), -ENOENT);
        assert_non_null(strstr(err.text, "environment variable TZ: there is no time zone '"));
    }
    setenv("TZ", "UTC", 1);
    use("");
    use("+01:00"); /* what is named wins */
    assert_string_equal(local(WINTER), "13:00");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_named_zone_has_its_summer_time, reset),
        cmocka_unit_test_setup(an_offset_and_utc_need_no_file, reset),
        cmocka_unit_test_setup(a_zone_that_is_not_here_is_refused_and_not_taken_for_utc, reset),
        cmocka_unit_test_setup(what_is_not_the_file_of_a_zone_is_none, reset),
        cmocka_unit_test_setup(without_a_name_the_zone_is_that_of_the_machine, reset),
        cmocka_unit_test_setup(an_unknown_zone_in_the_environment_is_an_error, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
