/* identity/runtimes/podman: names from Podman's own list. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "fake_client.h"
#include "identity/runtime_table.h"
#include "identity/runtimes/request.h"
#include "identity_checks.h"

#define ID    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define INFRA "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

/* As podman 4.3 answers, shortened. */
static const char a_list[] =
    "[{\"AutoRemove\":false,\"Command\":[\"/bin/sleep\",\"600\"],\"CreatedAt\":\"\",\"Exited\":false,"
    "\"ExitedAt\":-62135596800,\"ExitCode\":0,\"Id\":\"" ID "\",\"Image\":\"localhost/bb:1\","
    "\"ImageID\":\"77\",\"IsInfra\":false,\"Labels\":null,\"Mounts\":[],\"Names\":[\"sleepy\"],"
    "\"Namespaces\":{},\"Networks\":[],\"Pid\":4242,\"Pod\":\"55aa\",\"PodName\":\"train\","
    "\"Ports\":null,\"Size\":null,\"StartedAt\":1754300000,\"State\":\"running\",\"Status\":\"\"},"
    "{\"Id\":\"" INFRA "\",\"Image\":\"localhost/podman-pause:4.3.1-0\",\"IsInfra\":true,"
    "\"Names\":[\"55aa-infra\"],\"Pod\":\"55aa\",\"PodName\":\"train\"}]";

static struct container_list list;

static int parse(struct span body)
{
    int r;

    container_list_init(&list);
    r = runtime_http_parse(&runtime_podman, body, &list);
    assert_true(are_valid_containers(&list));
    return r;
}

static void a_container_has_its_name_and_its_pods(void **state)
{
    (void)state;
    assert_int_equal(parse(span_of(a_list)), 0);
    assert_int_equal(list.count, 2);
    assert_string_equal(list.items[0].id, ID);
    assert_string_equal(list.items[0].name, "sleepy");
    assert_string_equal(list.items[0].pod, "train");
    assert_string_equal(list.items[0].image, "localhost/bb:1");
    assert_string_equal(list.items[0].namespace, "");
    assert_string_equal(list.items[0].pod_uid, "");
    container_list_done(&list);
}

static void the_infra_container_is_the_pods_own(void **state)
{
    (void)state;
    assert_int_equal(parse(span_of(a_list)), 0);
    assert_string_equal(list.items[1].id, INFRA);
    assert_string_equal(list.items[1].name, "POD");
    assert_string_equal(list.items[1].pod, "train");
    container_list_done(&list);
}

static void fields_of_another_type_are_not_there(void **state)
{
    static const char *const values[] = {"null", "true", "7", "[]", "{}", "[7,\"x\"]"};
    static const char *const fields[] = {"Names", "Image", "PodName", "Pod"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(values) * ARRAY_SIZE(fields); i++) {
        char body[512];

        snprintf(body, sizeof(body), "[{\"Id\":\"" ID "\",\"IsInfra\":\"true\",\"%s\":%s}]",
                 fields[i % ARRAY_SIZE(fields)], values[i / ARRAY_SIZE(fields)]);
        assert_int_equal(parse(span_of(body)), 0);
        assert_int_equal(list.count, 1);
        assert_string_equal(list.items[0].name, "");
        assert_string_equal(list.items[0].image, "");
        assert_string_equal(list.items[0].pod, "");
        container_list_done(&list);
    }
}

/* "null" is what older ones answer where nothing runs. */
static void json_that_is_no_list_has_no_containers(void **state)
{
    static const char *const bodies[] = {"[]", "null", "{}", "[null,7,\"x\",[],{}]"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
        assert_int_equal(parse(span_of(bodies[i])), 0);
        assert_int_equal(list.count, 0);
        container_list_done(&list);
    }
}

static void a_list_that_breaks_off_has_no_entries(void **state)
{
    (void)state;
    for (size_t len = 0; len < strlen(a_list); len++) {
        _cleanup_free_ char *cut = malloc(len + 1);

        assert_non_null(cut);
        memcpy(cut + 1, a_list, len);
        assert_int_equal(parse((struct span){cut + 1, len}), -EBADMSG);
        assert_int_equal(list.count, 0);
        container_list_done(&list);
    }
}

static void what_does_not_run_has_ended(void **state)
{
    static const struct {
        const char *state;
        bool ended;
    } cases[] = {
        {"\"running\"", false}, {"\"paused\"", false}, {"\"stopping\"", false},
        {"null", false},        {"\"created\"", true}, {"\"restarting\"", true},
        {"\"exited\"", true},   {"\"\"", true},        {"\"newer\"", true},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char body[256];

        snprintf(body, sizeof(body), "[{\"Id\":\"" ID "\",\"State\":%s}]", cases[i].state);
        assert_int_equal(parse(span_of(body)), 0);
        assert_int_equal(list.count, 1);
        if (list.items[0].ended != cases[i].ended)
            fail_msg("%s: %d", cases[i].state, list.items[0].ended);
        container_list_done(&list);
    }
}

static int list_in_scope(enum runtime_scope scope, struct error *err)
{
    container_list_init(&list);
    return runtime_podman.list(
        &(struct runtime_call){&runtime_podman, NULL, "/run/test.sock", 3000000}, scope, &list,
        err);
}

static int list_containers(struct error *err)
{
    return list_in_scope(RUNTIME_RUNNING, err);
}

static void those_that_have_ended_are_asked_for_where_wanted(void **state)
{
    (void)state;
    fake_client.answers[0] = (struct fake_answer){.status = 200, .body = span_of(a_list)};
    assert_int_equal(list_in_scope(RUNTIME_ALL, NULL), 0);
    assert_int_equal(list.count, 2);
    assert_string_equal(fake_client.paths[0],
                        "http://localhost/v4.0.0/libpod/containers/json?all=true");
    container_list_done(&list);
}

static void its_own_list_is_asked_for(void **state)
{
    (void)state;
    fake_client.answers[0] = (struct fake_answer){.status = 200, .body = span_of(a_list)};
    assert_int_equal(list_containers(NULL), 0);
    assert_int_equal(list.count, 2);
    assert_string_equal(fake_client.paths[0],
                        "http://localhost/v4.0.0/libpod/containers/json?filters="
                        "%7B%22status%22%3A%5B%22running%22%2C%22paused%22%5D%7D");
    assert_int_equal(fake_client.replies, 0);
    container_list_done(&list);
}

static void a_service_that_refuses_says_why(void **state)
{
    struct error err = {""};

    (void)state;
    fake_client.answers[0].status = 500;
    assert_int_equal(list_containers(&err), -EREMOTEIO);
    assert_non_null(strstr(err.text, "podman at '/run/test.sock'"));
    assert_non_null(strstr(err.text, "500"));
    container_list_done(&list);
    fake_client.answers[1].status = 403;
    assert_int_equal(list_containers(&err), -EACCES);
    container_list_done(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_container_has_its_name_and_its_pods),
        cmocka_unit_test(the_infra_container_is_the_pods_own),
        cmocka_unit_test(fields_of_another_type_are_not_there),
        cmocka_unit_test(json_that_is_no_list_has_no_containers),
        cmocka_unit_test(a_list_that_breaks_off_has_no_entries),
        cmocka_unit_test_setup(its_own_list_is_asked_for, fake_reset),
        cmocka_unit_test_setup(those_that_have_ended_are_asked_for_where_wanted, fake_reset),
        cmocka_unit_test(what_does_not_run_has_ended),
        cmocka_unit_test_setup(a_service_that_refuses_says_why, fake_reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
