/* config/emission_keys: where keys come from. */
#include "file_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/emission_keys.h"
#include "core/macros.h"

static int read_keys(const char *text, mode_t mode, struct emission_keys *keys, struct error *err)
{
    char path[FILE_PATH_BYTES];
    int r;

    file_make(path, text, mode);
    r = emission_keys_read(path, keys, err);
    unlink(path);
    return r;
}

static void assert_has(const struct emission_keys *keys, const char *provider, const char *user,
                       const char *key)
{
    const char *got_user = "", *got_key = "";
    struct error err = {""};

    if (emission_keys_find(keys, provider, &got_user, &got_key, &err) < 0)
        fail_msg("%s", err.text);
    if (user)
        assert_string_equal(got_user, user);
    else
        assert_null(got_user);
    if (key)
        assert_string_equal(got_key, key);
    else
        assert_null(got_key);
}

static void assert_lacks_key(const struct emission_keys *keys, const char *provider,
                             const char *says)
{
    const char *user, *key;
    struct error err = {""};

    assert_int_equal(emission_keys_find(keys, provider, &user, &key, &err), -ENOKEY);
    if (!strstr(err.text, says))
        fail_msg("no \"%s\" in: %s", says, err.text);
}

static void every_provider_finds_its_own_keys(void **state)
{
    struct emission_keys keys;
    struct error err;

    (void)state;
    assert_int_equal(read_keys("electricity_maps: em\nentsoe: 'e e'\nwatttime_username: me\n"
                               "watttime_password: \"it's\"\n",
                               0600, &keys, &err),
                     0);
    assert_has(&keys, "electricity_maps", NULL, "em");
    assert_has(&keys, "entsoe", NULL, "e e");
    assert_has(&keys, "watttime", "me", "it's");
    assert_has(&keys, "rte", NULL, NULL);
    assert_has(&keys, "uk_carbon_intensity", NULL, NULL);
}

static void a_missing_key_is_named_with_where_to_set_it(void **state)
{
    struct emission_keys keys;
    struct error err;

    (void)state;
    assert_int_equal(emission_keys_read("", &keys, &err), 0);
    assert_lacks_key(&keys, "electricity_maps",
                     "set ELECTRICITY_MAPS_TOKEN in the environment, or electricity_maps in a file "
                     "for --emissions.keys-file");
    assert_lacks_key(&keys, "entsoe", "set ENTSOE_TOKEN in the environment, or entsoe in");
    assert_lacks_key(&keys, "watttime", "set WATTTIME_USERNAME");
    assert_int_equal(read_keys("watttime_username: me\n", 0400, &keys, &err), 0);
    assert_lacks_key(&keys, "watttime",
                     "set WATTTIME_PASSWORD in the environment, or "
                     "watttime_password in");
}

static void the_file_wins_over_the_environment(void **state)
{
    struct emission_keys keys;
    struct emission_key table[EMISSION_KEYS_MAX];
    char long_key[EMISSION_KEY_BYTES + 1];
    size_t count;
    struct error err;

    (void)state;
    memset(long_key, 'k', sizeof(long_key) - 1);
    long_key[sizeof(long_key) - 1] = '\0';
    setenv("ELECTRICITY_MAPS_TOKEN", "of the environment", 1);
    setenv("ENTSOE_TOKEN", "secret", 1);
    setenv("WATTTIME_USERNAME", "", 1);
    setenv("WATTTIME_PASSWORD", long_key, 1);
    assert_int_equal(read_keys("electricity_maps: of the file\n", 0600, &keys, &err), 0);
    assert_has(&keys, "electricity_maps", NULL, "of the file");
    assert_has(&keys, "entsoe", NULL, "secret");
    assert_lacks_key(&keys, "watttime", "WATTTIME_USERNAME");
    count = emission_keys_list(table);
    assert_in_range(count, 4, EMISSION_KEYS_MAX);
    for (size_t i = 0; i < count; i++)
        if (strcmp(table[i].name, "watttime_username") == 0)
            strcpy(keys.values[i], "me");
    assert_lacks_key(&keys, "watttime",
                     "watttime_password in a file for --emissions.keys-file "
                     "(1 to 511 bytes)");
    for (size_t i = 0; i < count; i++)
        unsetenv(table[i].variable);
}

static void an_unusable_file_sets_no_key_and_shows_none(void **state)
{
    static const struct {
        const char *text;
        mode_t mode;
        const char *says;
    } cases[] = {
        {"entsoe: secret\n", 0640, "chmod 600"},
        {"entsoe: secret\n", 0604, "contains keys"},
        {"entsoe: secret\nsecret: x\n", 0600, "with the keys electricity_maps, "},
        {"entsoe: secret\nentsoe: secret\n", 0600, ":2:1: is not YAML with the keys"},
        {"entsoe: secret\nwatttime_password: [secret]\n", 0600, "each once"},
        {"entsoe: secret\nwatttime_password: *secret\n", 0600, "as entsoe: '...'"},
        {"secret\n", 0600, "write a line for each key, as entsoe: '...'"},
        {"", 0600, "write a line for each key"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        static const struct emission_keys none;
        struct error err = {""};
        struct emission_keys keys;

        if (read_keys(cases[i].text, cases[i].mode, &keys, &err) >= 0 ||
            !strstr(err.text, cases[i].says))
            fail_msg("case %zu: '%s'", i, err.text);
        assert_null(strstr(err.text, "secret"));
        assert_memory_equal(&keys, &none, sizeof(keys));
    }
}

static void a_missing_file_is_an_error_that_names_its_flag(void **state)
{
    struct emission_keys keys;
    struct error err;

    (void)state;
    assert_int_equal(emission_keys_read("/nonexistent/keys.yaml", &keys, &err), -ENOENT);
    assert_string_equal(err.text, "--emissions.keys-file /nonexistent/keys.yaml: cannot be opened: "
                                  "No such file or directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_provider_finds_its_own_keys),
        cmocka_unit_test(a_missing_key_is_named_with_where_to_set_it),
        cmocka_unit_test(the_file_wins_over_the_environment),
        cmocka_unit_test(an_unusable_file_sets_no_key_and_shows_none),
        cmocka_unit_test(a_missing_file_is_an_error_that_names_its_flag),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
