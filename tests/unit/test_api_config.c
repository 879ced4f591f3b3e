/* config/api_config: what --kubernetes.api needs in the environment. */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "certificate_fixture.h"
#include "config/api_config.h"
#include "core/macros.h"
#include "tree_fixture.h"

static void set_variable(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static void the_environment_is_checked_and_an_error_names_what_to_do(void **state)
{
    static const struct {
        const char *host, *port, *node;
        const char *says; /* NULL: it is good */
    } cases[] = {
        {"10.96.0.1", "443", "node-a", NULL},
        {"fd00:10:96::1", "443", "node-a.example", NULL},
        {"kubernetes.default.svc", "6443", "n", NULL},
        {NULL, "443", "n", "KUBERNETES_SERVICE_HOST is ''"},
        {"", "443", "n", "KUBERNETES_SERVICE_HOST is ''"},
        {"a b", "443", "n", "KUBERNETES_SERVICE_HOST is 'a b'"},
        {"a/b", "443", "n", "not a host"},
        {"user@host", "443", "n", "not a host"},
        {"[::1]", "443", "n", "not a host"},
        {"10.96.0.1", NULL, "n", "KUBERNETES_SERVICE_PORT is ''"},
        {"10.96.0.1", "tcp://10.96.0.1:443", "n", "not a port"},
        {"10.96.0.1", "0", "n", "not a port"},
        {"10.96.0.1", "65536", "n", "not a port"},
        {"10.96.0.1", "443", NULL, "downward API, from the field spec.nodeName"},
        {"10.96.0.1", "443", "", "NODE_NAME is ''"},
        {"10.96.0.1", "443", "a,metadata.name!=b", "not a node"},
        {"10.96.0.1", "443", "a\r\nb", "not a node"},
    };
    const struct options options = {.kubernetes_service_account_dir = "/sa"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct api_config config = {0};
        struct error err = {""};
        int r;

        set_variable("KUBERNETES_SERVICE_HOST", cases[i].host);
        set_variable("KUBERNETES_SERVICE_PORT", cases[i].port);
        set_variable("NODE_NAME", cases[i].node);
        r = api_config_read(&options, &config, &err);
        if (r != (cases[i].says ? -EINVAL : 0))
            fail_msg("case %zu gave %d", i, r);
        if (cases[i].says && !strstr(err.text, cases[i].says))
            fail_msg("case %zu says %s", i, err.text);
        if (cases[i].says)
            continue;
        assert_string_equal(config.host, cases[i].host);
        assert_string_equal(config.port, cases[i].port);
        assert_string_equal(config.node, cases[i].node);
        assert_string_equal(config.directory, "/sa");
    }
}

static void a_name_of_any_length_is_survived(void **state)
{
    const struct options options = {.kubernetes_service_account_dir = "/sa"};
    static char name[4096];
    struct api_config config;
    struct error err;

    (void)state;
    memset(name, 'a', sizeof(name) - 1);
    setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1", 1);
    setenv("KUBERNETES_SERVICE_PORT", "443", 1);
    setenv("NODE_NAME", name, 1);
    assert_int_equal(api_config_read(&options, &config, &err), -EINVAL);
    assert_non_null(strstr(err.text, "spec.nodeName"));
    name[253] = '\0';
    setenv("NODE_NAME", name, 1);
    assert_int_equal(api_config_read(&options, &config, &err), 0);
    setenv("KUBERNETES_SERVICE_HOST", name, 1);
    assert_int_equal(api_config_read(&options, &config, &err), 0);
}

static int read_secrets(const char *directory, struct api_secrets *secrets, struct error *err)
{
    return api_secrets_read(&(struct api_config){.directory = directory}, secrets, err);
}

static void the_service_account_has_a_token_and_an_authority(void **state)
{
    char directory[] = "/tmp/wattribute-account-XXXXXX";
    struct api_secrets secrets;
    struct error err = {""};

    (void)state;
    assert_non_null(mkdtemp(directory));
    assert_int_equal(read_secrets(directory, &secrets, &err), -ENOENT);
    assert_non_null(strstr(err.text, "cannot read the service account's token"));
    tree_write(directory, "token", "abc.def\n");
    assert_int_equal(read_secrets(directory, &secrets, &err), -ENOENT);
    assert_non_null(strstr(err.text, "ca.crt"));
    tree_write(directory, "ca.crt", certificate_pem);
    assert_int_equal(read_secrets(directory, &secrets, &err), 0);
    assert_string_equal(secrets.token, "abc.def");
    assert_int_equal(secrets.ca_len, strlen(certificate_pem));
    assert_memory_equal(secrets.ca, certificate_pem, secrets.ca_len);
    api_secrets_done(&secrets);
    tree_remove(directory, "");
}

/* Whoever writes the file could else add headers to each request. */
static void a_malformed_token_is_rejected(void **state)
{
    static const char *const texts[] = {"", "\n", "a\nX-Header: b\n", "a\r\n", "a b", "\xc3\xa9"};
    char directory[] = "/tmp/wattribute-account-XXXXXX";
    struct api_secrets secrets;

    (void)state;
    assert_non_null(mkdtemp(directory));
    tree_write(directory, "ca.crt", certificate_pem);
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct error err = {""};

        tree_write(directory, "token", texts[i]);
        if (read_secrets(directory, &secrets, &err) != -EBADMSG)
            fail_msg("case %zu was taken", i);
        assert_string_equal(err.text, "the service account's token is malformed");
    }
    tree_remove(directory, "");
}

static void an_authority_without_a_certificate_is_rejected(void **state)
{
    static const char *const texts[] = {
        "", "garbage", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"};
    char directory[] = "/tmp/wattribute-account-XXXXXX";
    struct api_secrets secrets;

    (void)state;
    assert_non_null(mkdtemp(directory));
    tree_write(directory, "token", "abc");
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct error err = {""};

        tree_write(directory, "ca.crt", texts[i]);
        if (read_secrets(directory, &secrets, &err) != -EINVAL)
            fail_msg("case %zu was taken", i);
        assert_non_null(strstr(err.text, "the service account's ca.crt"));
    }
    tree_remove(directory, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment_is_checked_and_an_error_names_what_to_do),
        cmocka_unit_test(the_service_account_has_a_token_and_an_authority),
        cmocka_unit_test(a_malformed_token_is_rejected),
        cmocka_unit_test(an_authority_without_a_certificate_is_rejected),
        cmocka_unit_test(a_name_of_any_length_is_survived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
