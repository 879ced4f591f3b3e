/* report/server: what a status means, and what is refused before anybody is asked. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "core/macros.h"
#include "report/server.h"

static void a_status_says_whether_less_or_later_helps(void **state)
{
    static const struct {
        int status, result;
    } cases[] = {{200, 0},       {413, -E2BIG},  {422, -E2BIG},  {503, -E2BIG},  {504, -E2BIG},
                 {429, -EAGAIN}, {500, -EAGAIN}, {502, -EAGAIN}, {401, -EACCES}, {403, -EACCES},
                 {404, -EPROTO}, {302, -EPROTO}, {400, -EPROTO}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(server_status_result(cases[i].status), cases[i].result);
}

static void an_address_is_checked_and_no_secret_leaves_without_tls(void **state)
{
    static const struct {
        const char *url;
        bool has_password;
        int result;
        const char *base;
    } cases[] = {
        {"http://localhost:9090", false, 0, "http://localhost:9090"},
        {"http://localhost:9090/", true, 0, "http://localhost:9090"},
        {"http://127.1.2.3", true, 0, "http://127.1.2.3"},
        {"http://[::1]:9090", true, 0, "http://[::1]:9090"},
        {"https://mimir.example/prometheus/", true, 0, "https://mimir.example/prometheus"},
        {"http://prometheus.example", false, 0, "http://prometheus.example"},
        {"http://prometheus.example", true, -EINVAL, ""},
        {"http://127.0.0.1.example", true, -EINVAL, ""},
        {"http://localhost.example", true, -EINVAL, ""},
        {"http://user:secret@localhost", false, -EINVAL, ""},
        {"https://x/?a=b", false, -EINVAL, ""},
        {"https://", false, -EINVAL, ""},
        {"localhost:9090", false, -EINVAL, ""},
        {"file:///etc/passwd", false, -EINVAL, ""},
        {"https://x\r\nHost: y", false, -EINVAL, ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct server_options options = {
            .url = cases[i].url, .user = cases[i].has_password ? "u" : NULL, .password = "p"};
        struct server *server = NULL;
        struct error err = {""};

        if (server_open(&options, &server, &err) != cases[i].result)
            fail_msg("%s: %s", cases[i].url, err.text);
        if (server)
            assert_string_equal(server_address(server), cases[i].base);
        server_close(server);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_status_says_whether_less_or_later_helps),
        cmocka_unit_test(an_address_is_checked_and_no_secret_leaves_without_tls),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
