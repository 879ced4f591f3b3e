/* config/redfish_config: the flags --redfish.* and the files that they name. */
#include "file_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/redfish_config.h"
#include "core/macros.h"

static const char credentials[] = "username: me\npassword: secret\n";

/* Loads the config of a BMC with credentials of this text. */
static int load(struct options options, const char *text, mode_t mode,
                struct redfish_config *ret_config, struct error *err)
{
    char path[FILE_PATH_BYTES];
    int r;

    *ret_config = (struct redfish_config){0};
    *err = (struct error){""};
    file_make(path, text, mode);
    options.redfish_credentials_path = path;
    r = redfish_config_load(&options, ret_config, err);
    unlink(path);
    return r;
}

static void a_url_is_a_host_and_perhaps_a_port(void **state)
{
    static const struct {
        const char *text, *url; /* NULL: refused */
        bool insecure;
    } cases[] = {
        {"https://bmc/", "https://bmc:443", false},
        {"https://bmc", "https://bmc:443", false},
        {"bmc.example", "https://bmc.example:443", false},
        {"bmc:8443", "https://bmc:8443", false},
        {"https://10.0.0.7/redfish/v1/", "https://10.0.0.7:443", false},
        {"https://10.0.0.7/redfish/v1", "https://10.0.0.7:443", false},
        {"https://[fd00::7]", "https://[fd00::7]:443", false},
        {"[fd00::7]:8443", "https://[fd00::7]:8443", false},
        {"http://bmc/", "http://bmc:80", true},
        {"http://bmc/", NULL, false},
        {"", NULL, false},
        {"https://", NULL, false},
        {"https:///", NULL, false},
        {"ftp://bmc/", NULL, false},
        {"https://me:word@bmc/", NULL, false},
        {"https://bmc/other", NULL, false},
        {"https://bmc/?x", NULL, false},
        {"https://bmc:0/", NULL, false},
        {"https://bmc:65536/", NULL, false},
        {"https://bmc:x/", NULL, false},
        {"https://[fd00::7", "https://[fd00::7]:443", false},
        {"https://[fd00::7]8443", NULL, false},
        {"https://fd00::7", NULL, false},
        {"https://a b/", NULL, false},
        {"https://bmc\r\n/", NULL, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct redfish_config config;
        struct error err;
        int r = load(
            (struct options){.redfish_url = cases[i].text, .redfish_insecure = cases[i].insecure},
            credentials, 0600, &config, &err);

        if (r != (cases[i].url ? 0 : -EINVAL) || (r == 0 && strcmp(config.url, cases[i].url) != 0))
            fail_msg("'%s' gave %d, '%s'", cases[i].text, r, config.url);
        if (r < 0)
            assert_memory_equal(err.text, "--redfish.url: ", 15);
        redfish_config_done(&config);
    }
}

static void a_host_of_any_length_is_survived(void **state)
{
    struct redfish_config config;
    struct error err;
    char text[512];

    (void)state;
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    assert_int_equal(load((struct options){.redfish_url = text}, credentials, 0600, &config, &err),
                     -EINVAL);
}

static void credentials_are_two_lines_and_nothing_of_them_is_in_an_error(void **state)
{
    static const struct {
        const char *text;
        const char *says; /* NULL: it is good */
    } cases[] = {
        {"username: me\npassword: secret\n", NULL},
        {"password: 'secret'\nusername: \"me\"\n", NULL},
        {"# why\nusername: me\npassword: secret", NULL},
        {"", "write two lines"},
        {"secret", "write two lines"},
        {"- secret\n", "write two lines"},
        {"username: me\n", "both username and password"},
        {"password: secret\n", "both username and password"},
        {"username: me\npassword: secret\npassword: secret\n", "each once"},
        {"username: me\nsecret: secret\n", "with the keys username and password"},
        {"username: me\npassword:\n", "1 to 511 bytes"},
        {"username: me\npassword: [secret]\n", "each once"},
        {"username: me\npassword: \"secret\\n\"\n", "control characters"},
        {"username: me\npassword: secret\n--- \nx: y\n", "is not YAML"},
        {"username: me\npassword: \"secret\n", "is not YAML"},
        {"username: me\npassword: *secret\n", "quote"},
        {"username: me\npassword: &secret x\n", "quote"},
        {"username: me\npassword: !secret x\n", "quote"},
        {"&secret username: me\n", "quote"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct redfish_config config;
        struct error err;
        int r = load((struct options){.redfish_url = "bmc"}, cases[i].text, 0600, &config, &err);

        if ((r == 0) != !cases[i].says || (cases[i].says && !strstr(err.text, cases[i].says)))
            fail_msg("case %zu gave %d, '%s'", i, r, err.text);
        assert_null(strstr(err.text, "secret"));
        if (r == 0) {
            assert_string_equal(config.user, "me");
            assert_string_equal(config.password, "secret");
        }
        redfish_config_done(&config);
    }
}

static void a_password_longer_than_its_place_is_refused(void **state)
{
    struct redfish_config config;
    struct error err;
    char text[1024];

    (void)state;
    snprintf(text, sizeof(text), "username: me\npassword: %0600d\n", 1);
    assert_true(load((struct options){.redfish_url = "bmc"}, text, 0600, &config, &err) < 0);
}

static void credentials_that_others_may_use_are_refused(void **state)
{
    static const mode_t modes[] = {0600, 0400, 0640, 0604, 0620, 0601, 0660, 0666};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
        struct redfish_config config;
        struct error err;
        int r = load((struct options){.redfish_url = "bmc", .redfish_insecure = true}, credentials,
                     modes[i], &config, &err);

        if (r != (modes[i] & 077 ? -EACCES : 0))
            fail_msg("mode %o gave %d, %s", (unsigned)modes[i], r, err.text);
        if (r == 0)
            redfish_config_done(&config);
        else
            assert_non_null(strstr(err.text, "chmod 600"));
    }
}

static void a_fingerprint_has_64_digits_with_or_without_colons(void **state)
{
#define HEX8 "00:11:22:33:44:55:AA:ff"
    static const struct {
        const char *text;
        bool is_good;
    } cases[] = {
        {HEX8 ":" HEX8 ":" HEX8 ":" HEX8, true},
        {"001122334455aaff001122334455AAFF001122334455aaff001122334455aaff", true},
        {HEX8 ":" HEX8 ":" HEX8, false},
        {HEX8 ":" HEX8 ":" HEX8 ":" HEX8 ":00", false},
        {"0:01122334455aaff001122334455AAFF001122334455aaff001122334455aaff", false},
        {"x01122334455aaff001122334455AAFF001122334455aaff001122334455aaff", false},
        {"::", false},
    };
#undef HEX8

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct redfish_config config;
        struct error err;
        int r = load(
            (struct options){.redfish_url = "bmc", .redfish_certificate_sha256 = cases[i].text},
            credentials, 0600, &config, &err);

        if ((r == 0) != cases[i].is_good)
            fail_msg("'%s' gave %d, %s", cases[i].text, r, err.text);
        if (r < 0)
            continue;
        assert_true(config.is_pinned);
        assert_int_equal(config.certificate_sha256[0], 0x00);
        assert_int_equal(config.certificate_sha256[1], 0x11);
        assert_int_equal(config.certificate_sha256[30], 0xaa);
        assert_int_equal(config.certificate_sha256[31], 0xff);
        redfish_config_done(&config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_url_is_a_host_and_perhaps_a_port),
        cmocka_unit_test(a_host_of_any_length_is_survived),
        cmocka_unit_test(credentials_are_two_lines_and_nothing_of_them_is_in_an_error),
        cmocka_unit_test(a_password_longer_than_its_place_is_refused),
        cmocka_unit_test(credentials_that_others_may_use_are_refused),
        cmocka_unit_test(a_fingerprint_has_64_digits_with_or_without_colons),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
