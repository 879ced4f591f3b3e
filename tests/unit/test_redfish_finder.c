/* fetcher/redfish/redfish_finder and redfish_session: which request follows which reply, of a
 * BMC whose resources are prepared. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "fetcher/redfish.h"

#define URL       "https://bmc:443"
#define R         "/redfish/v1/"
#define LINK(to)  "{\"@odata.id\":\"" R to "\"}"
#define SYSTEMS   "\"Links\":{\"ComputerSystems\":[" LINK("Systems/1") "]}"
#define ROOT      "{\"Chassis\":" LINK("Chassis") ",\"Links\":{\"Sessions\":" LINK("Sessions") "}}"
#define NODE(...) "{\"ChassisType\":\"RackMount\"," __VA_ARGS__ "," SYSTEMS "}"
#define WATTS(n)  "{\"PowerWatts\":{\"Reading\":" #n "}}"
#define INPUT(n)  "{\"InputPowerWatts\":{\"Reading\":" #n "}}"

/* A reply to the first `times` requests for it, or to each if 0. */
struct reply {
    const char *request; /* "GET /redfish/v1/" */
    const char *body;
    int status; /* 0: 200 */
    int r;
    const char *token, *location;
    unsigned times;
};

static struct {
    struct reply replies[24];
    size_t count;
    struct redfish_session session;
    struct error err;
    char requests[4096];     /* requests, each with a newline */
    char authorization[256]; /* of the last */
    char body[256];
} test;

static const char *find_header(const struct http_request *request, const char *name)
{
    for (const char *const *header = request->headers; *header; header++)
        if (strncmp(*header, name, strlen(name)) == 0)
            return *header + strlen(name);
    return NULL;
}

static void keep_request(const struct http_request *request, const char *line)
{
    const char *token = find_header(request, "X-Auth-Token: ");
    const char *basic = find_header(request, "Authorization: ");
    size_t len = strlen(test.requests);

    assert_non_null(find_header(request, "OData-Version: 4.0"));
    snprintf(test.requests + len, sizeof(test.requests) - len, "%s\n", line);
    snprintf(test.authorization, sizeof(test.authorization), "%s",
             token   ? token
             : basic ? basic
                     : "");
    if (request->body.data)
        snprintf(test.body, sizeof(test.body), "%.*s", (int)request->body.len, request->body.data);
}

/* In place of the client. */
int http_client_do(struct http_client *client, const struct http_request *request,
                   struct http_reply *ret_reply, struct error *err)
{
    const char *method = request->method ? request->method : request->body.data ? "POST" : "GET";
    char line[512];

    assert_ptr_equal(client, &test);
    assert_memory_equal(request->url, URL, strlen(URL));
    snprintf(line, sizeof(line), "%s %s", method, request->url + strlen(URL));
    keep_request(request, line);
    ret_reply->body.len = 0;
    ret_reply->body.cap_bytes = request->max_bytes;
    for (size_t i = 0; i < test.count; i++) {
        struct reply *reply = &test.replies[i];

        if (strcmp(reply->request, line) != 0 || reply->times == UINT32_MAX)
            continue;
        if (reply->times > 0 && --reply->times == 0)
            reply->times = UINT32_MAX;
        if (reply->r < 0)
            return error_set(err, reply->r, "%s", strerror(-reply->r));
        ret_reply->status = reply->status ? reply->status : 200;
        if (reply->body)
            buffer_str(&ret_reply->body, reply->body);
        if (reply->token)
            request->on_header(request->context, "x-auth-token", reply->token);
        if (reply->location)
            request->on_header(request->context, "Location", reply->location);
        return 0;
    }
    ret_reply->status = 404;
    return 0;
}

static void add(struct reply reply)
{
    assert_true(test.count < ARRAY_SIZE(test.replies));
    test.replies[test.count++] = reply;
}

static void add_resource(const char *request, const char *body)
{
    add((struct reply){.request = request, .body = body});
}

static int set_up(void **state)
{
    (void)state;
    memset(&test, 0, sizeof(test));
    redfish_session_init(&test.session, &(struct redfish_session_options){
                                            .url = URL,
                                            .user = "me",
                                            .password = "a\"b",
                                            .client = (struct http_client *)&test,
                                        });
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    redfish_session_done(&test.session);
    return 0;
}

static void add_bmc(const char *members)
{
    add_resource("GET " R, ROOT);
    add((struct reply){.request = "POST " R "Sessions",
                       .status = 201,
                       .token = "secret",
                       .location = R "Sessions/7"});
    add_resource("GET " R "Chassis", members);
}

static struct redfish_place find(uint64_t power_w)
{
    struct redfish_place place = {0};
    uint64_t power_mw = 0;
    int r = redfish_find(&test.session, &place, &power_mw, &test.err);

    if (r < 0)
        fail_msg("%d: %s\n%s", r, test.err.text, test.requests);
    assert_int_equal(power_mw, power_w * 1000);
    return place;
}

static void assert_not_found(int code, const char *says)
{
    struct redfish_place place;
    uint64_t power_mw = 77;
    int r = redfish_find(&test.session, &place, &power_mw, &test.err);

    if (r != code || !strstr(test.err.text, says))
        fail_msg("%d: %s\n%s", r, test.err.text, test.requests);
}

static void the_node_is_found_and_then_read_with_one_request(void **state)
{
    struct redfish_place place;
    uint64_t power_mw;

    (void)state;
    add_bmc("{\"Members\":[" LINK("Chassis/GPU") "," LINK("Chassis/1") "," LINK("Chassis/2") "]}");
    add_resource("GET " R "Chassis/GPU", "{\"EnvironmentMetrics\":" LINK("E/GPU") "}");
    add_resource("GET " R "Chassis/1", NODE("\"EnvironmentMetrics\":" LINK("E/1")));
    add_resource("GET " R "E/1", WATTS(612));
    place = find(612);
    assert_int_equal(place.kind, REDFISH_ENVIRONMENT);
    assert_string_equal(place.paths[0].text, R "E/1");
    assert_string_equal(test.body, "{\"UserName\":\"me\",\"Password\":\"a\\\"b\"}");
    assert_string_equal(test.authorization, "secret");
    assert_string_equal(test.requests, "GET " R "\nPOST " R "Sessions\nGET " R "Chassis\nGET " R
                                       "Chassis/GPU\nGET " R "Chassis/1\nGET " R "E/1\n");
    test.requests[0] = '\0';
    assert_int_equal(redfish_read(&test.session, &place, &power_mw, &test.err), 0);
    assert_int_equal(power_mw, 612000);
    redfish_session_close(&test.session);
    assert_string_equal(test.requests, "GET " R "E/1\nDELETE " R "Sessions/7\n");
    test.requests[0] = '\0';
    redfish_session_close(&test.session);
    assert_string_equal(test.requests, "");
}

static void certain_nodes_come_before_unknown_chassis_and_parts(void **state)
{
    (void)state;
    add_bmc("{\"Members\":[" LINK("Chassis/HGX") "," LINK("Chassis/X") "," LINK("Chassis/1") "]}");
    add_resource("GET " R "Chassis/HGX", "{\"ChassisType\":\"Module\",\"EnvironmentMetrics\":" LINK(
                                             "E/HGX") "," SYSTEMS "}");
    add_resource("GET " R "E/HGX", WATTS(4000));
    add_resource("GET " R "Chassis/X", "{\"EnvironmentMetrics\":" LINK("E/X") "," SYSTEMS "}");
    add_resource("GET " R "E/X", WATTS(5000));
    add((struct reply){.request = "GET " R "Chassis/1",
                       .body = NODE("\"EnvironmentMetrics\":" LINK("E/1")),
                       .times = 1});
    add_resource("GET " R "E/1", WATTS(6000));
    find(6000);
    find(5000); /* the third has failed */
}

static void without_metrics_the_inputs_of_all_supplies_are_summed(void **state)
{
    struct redfish_place place;
    uint64_t power_mw;

    (void)state;
    add_bmc("{\"Members\":[" LINK("Chassis/1") "]}");
    add_resource("GET " R "Chassis/1",
                 NODE("\"EnvironmentMetrics\":" LINK("E/1") ",\"PowerSubsystem\":" LINK("S")));
    add_resource("GET " R "E/1", WATTS(0)); /* unknown */
    add_resource("GET " R "S", "{\"PowerSupplies\":" LINK("S/P") "}");
    add_resource("GET " R "S/P",
                 "{\"Members\":[" LINK("S/P/1") "," LINK("S/P/2") "," LINK("S/P/3") "]}");
    add_resource("GET " R "S/P/1", "{\"Metrics\":" LINK("M/1") "}");
    add_resource("GET " R "S/P/2",
                 "{\"Status\":{\"State\":\"Absent\"},\"Metrics\":" LINK("M/2") "}");
    add_resource("GET " R "S/P/3", "{\"Metrics\":" LINK("M/3") "}");
    add((struct reply){.request = "GET " R "M/1", .body = INPUT(311.5), .times = 1});
    add((struct reply){.request = "GET " R "M/1", .body = INPUT(null)});
    add_resource("GET " R "M/3", INPUT(300.5));
    place = find(612);
    assert_int_equal(place.kind, REDFISH_SUPPLIES);
    assert_int_equal(place.count, 2);
    /* A partial sum would pass for the whole. */
    assert_int_equal(redfish_read(&test.session, &place, &power_mw, &test.err), -ENODATA);
}

static void an_endless_search_is_given_up(void **state)
{
    static char members[16 << 10] = "{\"Members\":[";
    size_t len = strlen(members);

    (void)state;
    for (unsigned i = 0; i < 128; i++)
        len += (size_t)snprintf(members + len, sizeof(members) - len,
                                "%s{\"@odata.id\":\"" R "Chassis/1\"}", i ? "," : "");
    snprintf(members + len, sizeof(members) - len, "]}");
    add_bmc(members);
    add_resource("GET " R "Chassis/1", NODE("\"PowerSubsystem\":" LINK("S")));
    add_resource("GET " R "S", "{\"PowerSupplies\":" LINK("S/P") "}");
    add_resource("GET " R "S/P", "{\"Members\":[" LINK("A") "," LINK("A") "," LINK("A") "]}");
    add_resource("GET " R "A", "{\"Status\":{\"State\":\"Absent\"}}");
    assert_not_found(-E2BIG, "too many resources");
}

static void the_deprecated_power_is_the_last_resort(void **state)
{
    struct redfish_place place;

    (void)state;
    add_bmc("{\"Members\":[" LINK("Chassis/1") "]}");
    add_resource("GET " R "Chassis/1", NODE("\"Power\":" LINK("P") ",\"EnvironmentMetrics\":" LINK(
                                           "E/1") ",\"PowerSubsystem\":" LINK("S")));
    add((struct reply){.request = "GET " R "E/1", .status = 403});
    add((struct reply){.request = "GET " R "S", .r = -EFBIG});
    add_resource("GET " R "P",
                 "{\"PowerControl\":[{\"PowerConsumedWatts\":90},{"
                 "\"PowerConsumedWatts\":611,\"RelatedItem\":[" LINK("Systems/1") "]}]}");
    place = find(611);
    assert_int_equal(place.kind, REDFISH_POWER);
}

static void where_the_bmc_itself_fails_the_search_ends(void **state)
{
    (void)state;
    add_bmc("{\"Members\":[" LINK("Chassis/1") "," LINK("Chassis/2") "]}");
    add((struct reply){.request = "GET " R "Chassis/1", .r = -ETIMEDOUT});
    assert_not_found(-ETIMEDOUT, strerror(ETIMEDOUT));
    assert_null(strstr(test.requests, "Chassis/2"));
}

static void a_bmc_without_a_node_is_an_error(void **state)
{
    (void)state;
    add_bmc("{\"Members\":[" LINK("Chassis/1") "]}");
    add_resource("GET " R "Chassis/1", "{\"ChassisType\":\"RackMount\"}");
    assert_not_found(-ENODATA, "none of the BMC's 1 chassis");
}

static void an_expired_session_is_opened_once_more(void **state)
{
    const struct json *resource;

    (void)state;
    add_bmc("{}");
    add((struct reply){.request = "GET " R "x", .status = 401, .times = 1});
    add((struct reply){.request = "GET " R "x", .body = "{\"here\":true}", .times = 1});
    add((struct reply){.request = "GET " R "x", .status = 401});
    assert_int_equal(redfish_session_get(&test.session, R "x", &resource, &test.err), 0);
    assert_true(json_is_true(json_get(resource, "here")));
    assert_int_equal(test.session.logins, 2);
    /* A second 401 in a row is about the account, not the session. */
    assert_int_equal(redfish_session_get(&test.session, R "x", &resource, &test.err), -EACCES);
    assert_int_equal(test.session.logins, 3);
}

static void without_sessions_basic_authentication_is_used(void **state)
{
    static const struct {
        struct reply login;
        const char *root;
    } cases[] = {
        {{.status = 201, .location = R "Sessions/1"}, ROOT}, /* without a token */
        {{.status = 404}, ROOT},
        {{.status = 405}, ROOT},
        {{.status = 201, .token = "a b"}, ROOT}, /* no token that fits into a header */
        {{.status = 500}, "{\"Chassis\":" LINK("Chassis") "}"},
    };
    const struct json *resource;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct reply login = cases[i].login;

        set_up(state);
        login.request = "POST " R "Sessions";
        add_resource("GET " R, cases[i].root);
        add(login);
        add_resource("GET " R "x", "{\"here\":true}");
        if (redfish_session_get(&test.session, R "x", &resource, &test.err) != 0)
            fail_msg("case %zu: %s", i, test.err.text);
        assert_string_equal(test.authorization, "Basic bWU6YSJi"); /* me:a"b */
        redfish_session_close(&test.session);
        assert_null(strstr(test.requests, "DELETE"));
        tear_down(state);
    }
    set_up(state);
}

static void a_failed_login_has_a_text_without_the_password(void **state)
{
    static const struct {
        struct reply login;
        int r;
    } cases[] = {
        {{.status = 401, .body = "{\"error\":{\"message\":\"wrong\"}}"}, -EACCES},
        {{.status = 400}, -EACCES}, /* iLO */
        {{.status = 403}, -EACCES},
        {{.status = 503}, -EBUSY}, /* no session is left */
        {{.status = 500}, -EREMOTEIO},
        {{.r = -ETIMEDOUT}, -ETIMEDOUT},
    };
    const struct json *resource;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct reply login = cases[i].login;
        int r;

        set_up(state);
        login.request = "POST " R "Sessions";
        add_resource("GET " R, ROOT);
        add(login);
        r = redfish_session_get(&test.session, R "x", &resource, &test.err);
        if (r != cases[i].r || test.err.text[0] == '\0' || strstr(test.err.text, "a\"b"))
            fail_msg("case %zu: %d, %s", i, r, test.err.text);
        assert_null(strstr(test.requests, R "x"));
        tear_down(state);
    }
    set_up(state);
}

static void redirects_are_followed_on_the_same_server_only_and_a_few_times(void **state)
{
    static const struct {
        const char *location;
        int r;
    } cases[] = {
        {R "x/", 0},
        {URL R "x/", 0},
        {R "x", -EREMOTEIO}, /* round in circles */
        {"https://other" R "x/", -EREMOTEIO},
        {"https://bmc:443.other" R "x/", -EREMOTEIO},
        {"//other" R "x/", -EREMOTEIO},
        {"http://bmc:443" R "x/", -EREMOTEIO},
        {"/elsewhere", -EREMOTEIO},
        {NULL, -EREMOTEIO},
    };
    const struct json *resource;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int r;

        set_up(state);
        add_bmc("{}");
        add((struct reply){.request = "GET " R "x", .status = 308, .location = cases[i].location});
        add_resource("GET " R "x/", "{\"here\":true}");
        r = redfish_session_get(&test.session, R "x", &resource, &test.err);
        if (r != cases[i].r || (r == 0 && !json_is_true(json_get(resource, "here"))))
            fail_msg("case %zu: %d, %s", i, r, test.err.text);
        tear_down(state);
    }
    set_up(state);
}

static void a_session_is_deleted_at_the_id_of_its_reply(void **state)
{
    const struct json *resource;

    (void)state;
    add_resource("GET " R, ROOT);
    add((struct reply){.request = "POST " R "Sessions",
                       .status = 200,
                       .token = "secret",
                       .location = "https://other" R "Sessions/1",
                       .body = "{\"@odata.id\":\"" R "Sessions/2\"}"});
    add_resource("GET " R "x", "{\"here\":true}");
    assert_int_equal(redfish_session_get(&test.session, R "x", &resource, &test.err), 0);
    redfish_session_close(&test.session);
    assert_non_null(strstr(test.requests, "DELETE " R "Sessions/2\n"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_node_is_found_and_then_read_with_one_request),
        TEST(certain_nodes_come_before_unknown_chassis_and_parts),
        TEST(without_metrics_the_inputs_of_all_supplies_are_summed),
        TEST(an_endless_search_is_given_up),
        TEST(the_deprecated_power_is_the_last_resort),
        TEST(where_the_bmc_itself_fails_the_search_ends),
        TEST(a_bmc_without_a_node_is_an_error),
        TEST(an_expired_session_is_opened_once_more),
        TEST(without_sessions_basic_authentication_is_used),
        TEST(a_failed_login_has_a_text_without_the_password),
        TEST(redirects_are_followed_on_the_same_server_only_and_a_few_times),
        TEST(a_session_is_deleted_at_the_id_of_its_reply),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
