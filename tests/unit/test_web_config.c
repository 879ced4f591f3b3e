/* config/web_config: what the file may hold, how the rest is rejected, and its way to the server.
 */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/web_config.h"
#include "config/web_watch.h"
#include "core/fs.h"
#include "core/macros.h"

#define HASH   "$2y$10$mDwo.lAisC94iLAyP81MCesa29IzH37oigHC/42V2pdJlUprsJPze"
#define PAIR   "cert_file: a.crt, key_file: a.key"
#define LONG   "0123456789012345678901234567890123456789012345678901234567890123"
#define LONGER LONG LONG LONG LONG

static const char whole[] = "tls_server_config:\n"
                            "  cert_file: server.crt\n"
                            "  key_file: /etc/keys/server.key\n"
                            "  client_ca: |\n"
                            "    -----BEGIN CERTIFICATE-----\n"
                            "    -----END CERTIFICATE-----\n"
                            "  client_auth_type: RequireAndVerifyClientCert\n"
                            "  client_allowed_sans: [prometheus.example, 10.0.0.1]\n"
                            "  min_version: TLS13\n"
                            "  curve_preferences: [CurveP384, X25519]\n"
                            "  prefer_server_cipher_suites: false\n"
                            "http_server_config:\n"
                            "  http2: true\n"
                            "  headers:\n"
                            "    X-Frame-Options: deny\n"
                            "    X-XSS-Protection: ''\n"
                            "    Strict-Transport-Security: max-age=1\n"
                            "basic_auth_users:\n"
                            "  alice: " HASH "\n"
                            "  'bob smith': " HASH "\n";

static void assert_whole(const struct web_config *config)
{
    assert_true(config->has_tls);
    assert_int_equal(config->tls.client_auth, TLS_REQUIRE_AND_VERIFY_CLIENT_CERT);
    assert_int_equal(config->tls.client_san_count, 2);
    assert_string_equal(config->tls.client_sans[1], "10.0.0.1");
    assert_int_equal(config->tls.min_version, TLS_1_3);
    assert_int_equal(config->tls.max_version, TLS_1_3);
    assert_int_equal(config->tls.curve_count, 2);
    assert_int_equal(config->tls.curves[0], TLS_P384);
    assert_int_equal(config->tls.curves[1], TLS_X25519);
    assert_false(config->tls.prefer_server_ciphers);
    assert_true(strncmp(config->tls.client_ca.text.data, "-----BEGIN", 10) == 0);
    assert_int_equal(config->header_count, 2);
    assert_string_equal(config->headers[0].name, "X-Frame-Options");
    assert_string_equal(config->headers[1].value, "max-age=1");
    assert_int_equal(config->user_count, 2);
    assert_string_equal(config->users[1].name, "bob smith");
    assert_string_equal(config->users[1].hash, HASH);
}

static void every_key_reaches_its_place_and_paths_are_relative_to_the_file(void **state)
{
    struct web_config config;
    struct error err = {{0}};

    (void)state;
    if (web_config_parse(span_of(whole), "/etc/wattribute/web.yml", &config, &err) < 0)
        fail_msg("%s", err.text);
    assert_whole(&config);
    assert_string_equal(config.cert_path, "/etc/wattribute/server.crt");
    assert_string_equal(config.key_path, "/etc/keys/server.key");
    assert_null(config.client_ca_path);
    web_config_done(&config);
}

static void a_file_without_settings_changes_nothing(void **state)
{
    static const char *const texts[] = {
        "{}",
        "tls_server_config:\n",
        "tls_server_config: {}",
        "tls_server_config: ~\nhttp_server_config: null\nbasic_auth_users:\n",
        "http_server_config: {headers: }",
        "http_server_config: {headers: {X-XSS-Protection: ''}}",
        "basic_auth_users: {}",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct web_config config;
        struct error err = {{0}};

        if (web_config_parse(span_of(texts[i]), "w", &config, &err) < 0)
            fail_msg("'%s': %s", texts[i], err.text);
        assert_false(config.has_tls);
        assert_int_equal(config.user_count + config.header_count, 0);
        web_config_done(&config);
    }
}

static void errors_name_their_line_and_column(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"tls_server_conf: {}", "w:1:1: unknown key 'tls_server_conf' (did you mean 'tls_server_c"},
        {"TLS_SERVER_CONFIG: {}", "w:1:1: unknown key"},
        {"tls_server_config: {crt_file: a}", "w:1:21: unknown key 'crt_file' (did you mean 'cert_"},
        {"tls_server_config: {" PAIR ", key_file: b}", "w:1:56: key_file is given twice"},
        {"tls_server_config: a", "w:1:20: tls_server_config is not a mapping"},
        {"tls_server_config: [a]", "w:1:20: tls_server_config is not a mapping"},
        {"tls_server_config: {cert_file: [a]}", "w:1:32: cert_file is a list"},
        {"tls_server_config: {cert_file: {a: b}}", "w:1:32: cert_file is a mapping"},
        {"tls_server_config: {cert_file: a}", "w:1:20: tls_server_config has no key_file"},
        {"tls_server_config: {key_file: a}", "w:1:20: tls_server_config has no cert_file"},
        {"tls_server_config: {min_version: TLS12}", "tls_server_config has no cert_file"},
        {"tls_server_config: {" PAIR ", cert: x}", "both cert and cert_file are given"},
        {"tls_server_config: {" PAIR ", key: x}", "both key and key_file are given"},
        {"tls_server_config: {" PAIR ", client_ca_file: a}", "without client_auth_type"},
        {"tls_server_config: {" PAIR ", client_auth_type: RequireAndVerifyClientCert}",
         "add client_ca_file"},
        {"tls_server_config: {" PAIR ", client_auth_type: VerifyClientCertIfGiven}",
         "add client_ca_file"},
        {"tls_server_config: {" PAIR ", client_auth_type: requireAnyClientCert}",
         "is not known; use RequireAnyClientCert"},
        {"tls_server_config: {" PAIR ", client_allowed_sans: [a]}", "client_allowed_sans needs"},
        {"tls_server_config: {" PAIR ", client_allowed_sans: a}", "is not a list"},
        {"tls_server_config: {" PAIR ", client_allowed_sans: [[a]]}", "is a list"},
        {"tls_server_config: {" PAIR ", min_version: TLS11}",
         "TLS11' is insecure (RFC 8996); use TLS12 or TLS13"},
        {"tls_server_config: {" PAIR ", min_version: '1.2'}", "'1.2' is not known"},
        {"tls_server_config: {" PAIR ", min_version: TLS13, max_version: TLS12}",
         "min_version is above max_version"},
        {"tls_server_config: {" PAIR ", curve_preferences: [X25519, X25519]}", "given twice"},
        {"tls_server_config: {" PAIR ", curve_preferences: [X448]}", "'X448' is not known"},
        {"tls_server_config: {" PAIR ", prefer_server_cipher_suites: 1}", "neither true nor false"},
        {"tls_server_config: {" PAIR ", cipher_suites: [a]}", "cipher_suites is not supported"},
        {"http_server_config: {http2: maybe}", "w:1:29: http2: 'maybe' is neither true nor false"},
        {"http_server_config: {headers: {Server: me}}", "unknown key 'Server'"},
        {"http_server_config: {headers: {x-frame-options: deny}}", "unknown key 'x-frame-options'"},
        {"http_server_config: {headers: {X-Frame-Options: allow}}", "use deny or sameorigin"},
        {"http_server_config: {headers: {X-Content-Type-Options: sniff}}", "use nosniff"},
        {"http_server_config: {headers: {X-XSS-Protection: \"a\\r\\nb: c\"}}", "control character"},
        {"rate_limit: {burst: 1}", "w:1:13: rate_limit is not supported"},
        {"basic_auth_users: [a]", "basic_auth_users is not a mapping"},
        {"basic_auth_users: {a: b}", "user 'a': not a bcrypt hash; make one with: htpasswd"},
        {"basic_auth_users: {a: [b]}", "a is a list"},
        {"basic_auth_users: {a: }", "user 'a': not a bcrypt hash"},
        {"basic_auth_users: {a: " HASH "0}", "not a bcrypt hash"},
        {"basic_auth_users: {'a:b': " HASH "}", "a name cannot contain ':'"},
        {"basic_auth_users: {a: " HASH ", a: " HASH "}", "user 'a' is given twice"},
        {"basic_auth_users: {" LONGER ": " HASH "}", "a name of over 255 bytes"},
        {"basic_auth_users: {a: $2y$17$mDwo.lAisC94iLAyP81MCesa29IzH37oigHC/42V2pdJlUprsJPze}",
         "cost 17 of the hash is out of range; use 4 to 16"},
        {"basic_auth_users: {a: $2y$03$mDwo.lAisC94iLAyP81MCesa29IzH37oigHC/42V2pdJlUprsJPze}",
         "cost 3 of the hash is out of range"},
        {"basic_auth_users: {\"a\\0b\": " HASH "}", "the key holds a NUL character"},
        {"basic_auth_users: &a {}", "anchors (&a) are not supported"},
        {"basic_auth_users: *a", "aliases (*a) are not supported"},
        {"basic_auth_users: !x {}", "tags (!x) are not supported"},
        {"- a", "the file is empty or not a mapping"},
        {"text", "the file is empty or not a mapping"},
        {"{}\n---\n{}", "a second document begins here"},
        {"basic_auth_users: [", "is not a mapping"},
        {"basic_auth_users: {", "not YAML"},
        {"basic_auth_users: \xff", "not UTF-8 text"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct web_config config;
        struct error err = {{0}};
        int r = web_config_parse(span_of(cases[i].text), "w", &config, &err);

        if (r >= 0 || !strstr(err.text, cases[i].says))
            fail_msg("'%s' gave %d, '%s'", cases[i].text, r, err.text);
        web_config_done(&config);
    }
}

static void more_users_than_the_limit_are_rejected(void **state)
{
    struct web_config config;
    struct error err;
    char text[(WEB_CONFIG_USERS_MAX + 1) * 80] = "basic_auth_users:\n";
    size_t len = strlen(text);

    (void)state;
    for (int i = 0; i <= WEB_CONFIG_USERS_MAX; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "  u%d: " HASH "\n", i);
    assert_int_equal(web_config_parse(span_of(text), "w", &config, &err), -EINVAL);
    assert_non_null(strstr(err.text, "more than 256 users"));
    web_config_done(&config);
}

static void a_config_reaches_the_server_unchanged(void **state)
{
    struct web_config config, copy;
    char key[] = "key", *bytes;
    struct error err;
    size_t len;

    (void)state;
    assert_int_equal(web_config_parse(span_of(whole), "w", &config, &err), 0);
    config.tls.cert.text = span_of("certificate");
    config.tls.key.text = span_of(key);
    assert_int_equal(web_config_pack(&config, &bytes, &len), 0);
    web_config_done(&config);
    assert_string_equal(key, ""); /* wiped */
    assert_int_equal(web_config_unpack((struct span){bytes, len}, &copy), 0);
    assert_whole(&copy);
    assert_true(span_equals(copy.tls.cert.text, "certificate"));
    assert_true(span_equals(copy.tls.key.text, "key"));
    web_config_done(&copy);
    /* Cut anywhere, or with one byte more, it is refused. */
    for (size_t cut = 0; cut < len; cut++) {
        assert_int_equal(web_config_unpack((struct span){bytes, cut}, &copy), -EPROTO);
        web_config_done(&copy);
    }
    bytes = realloc(bytes, len + 1);
    assert_non_null(bytes);
    bytes[len] = 0;
    assert_int_equal(web_config_unpack((struct span){bytes, len + 1}, &copy), -EPROTO);
    web_config_done(&copy);
    free(bytes);
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void a_change_is_found_by_the_next_poll_and_a_bad_one_is_reported_once(void **state)
{
    char directory[] = "/tmp/wattribute-test-XXXXXX", path[64];
    struct web_watch watch;
    struct error err = {{0}};
    const char *first;

    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/web.yml", directory);
    write_text(path, "basic_auth_users: {a: " HASH "}\n");
    assert_int_equal(web_watch_open(&watch, path, &err), 0);
    first = watch.packed;
    assert_int_equal(web_watch_poll(&watch, &err), 0);
    write_text(path, "nonsense\n");
    assert_int_equal(web_watch_poll(&watch, &err), -EINVAL);
    assert_non_null(strstr(err.text, "not a mapping"));
    assert_ptr_equal(watch.packed, first);
    assert_int_equal(web_watch_poll(&watch, &err), 0);
    /* A missing file that it names is reported once, too. */
    write_text(path, "tls_server_config: {" PAIR "}\n");
    assert_int_equal(web_watch_poll(&watch, &err), -ENOENT);
    assert_non_null(strstr(err.text, "a.crt: cannot be read"));
    assert_int_equal(web_watch_poll(&watch, &err), 0);
    write_text(path, "basic_auth_users: {b: " HASH "}\n");
    assert_int_equal(web_watch_poll(&watch, &err), 1);
    unlink(path);
    assert_int_equal(web_watch_poll(&watch, &err), -ENOENT);
    assert_int_equal(web_watch_poll(&watch, &err), 0);
    web_watch_close(&watch);
    rmdir(directory);
}

static void a_file_that_lost_its_users_lets_nobody_in(void **state)
{
    static const char *const lost[] = {
        "",
        "\n",
        "#",
        "# basic_auth_users: {a: " HASH "}\n",
        "{}",
        "basic_auth_users:\n",
        "basic_auth_users: ~\n",
        "basic_auth_use",
        "basic_auth_users: {",
        "basic_auth_users:\n  a: $2y$10$4HIBfLpu",
        "http_server_config: {headers: {X-Frame-Options: deny}}\n",
    };
    char directory[] = "/tmp/wattribute-test-XXXXXX", path[64];
    struct web_watch watch;
    struct error err = {{0}};
    const char *first;

    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/web.yml", directory);
    write_text(path, "basic_auth_users: {a: " HASH "}\n");
    assert_int_equal(web_watch_open(&watch, path, &err), 0);
    first = watch.packed;
    for (size_t i = 0; i < ARRAY_SIZE(lost); i++) {
        write_text(path, lost[i]);
        if (web_watch_poll(&watch, &err) >= 0)
            fail_msg("'%s' switches passwords off", lost[i]);
        assert_ptr_equal(watch.packed, first);
    }
    assert_non_null(strstr(err.text, "write 'basic_auth_users: {}'"));
    /* Said, and from then on there is nothing to lose. */
    write_text(path, "http_server_config: {http2: true}\nbasic_auth_users: {}\n");
    assert_int_equal(web_watch_poll(&watch, &err), 1);
    write_text(path, "{}");
    assert_int_equal(web_watch_poll(&watch, &err), 1);
    web_watch_close(&watch);
    unlink(path);
    rmdir(directory);
}

static void an_empty_file_is_no_config(void **state)
{
    static const char *const texts[] = {"", "\n", "# nothing\n", "---\n"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct web_config config;
        struct error err = {{0}};

        assert_int_equal(web_config_parse(span_of(texts[i]), "w", &config, &err), -EINVAL);
        assert_non_null(strstr(err.text, "leave out --web.config.file"));
        web_config_done(&config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_reaches_its_place_and_paths_are_relative_to_the_file),
        cmocka_unit_test(a_file_that_lost_its_users_lets_nobody_in),
        cmocka_unit_test(a_file_without_settings_changes_nothing),
        cmocka_unit_test(an_empty_file_is_no_config),
        cmocka_unit_test(errors_name_their_line_and_column),
        cmocka_unit_test(more_users_than_the_limit_are_rejected),
        cmocka_unit_test(a_config_reaches_the_server_unchanged),
        cmocka_unit_test(a_change_is_found_by_the_next_poll_and_a_bad_one_is_reported_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
