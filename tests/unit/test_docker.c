/* identity/runtimes/docker: names from Docker's list. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "fake_client.h"
#include "identity/runtime_table.h"
#include "identity/runtimes/request.h"
#include "identity_checks.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct container_list list;

static int parse(struct span body)
{
    int r;

    container_list_init(&list);
    r = runtime_http_parse(&runtime_docker, body, &list);
    assert_true(are_valid_containers(&list));
    return r;
}

/* As dockerd 20.10 answers, shortened. */
static const char a_list[] =
    "[{\"Id\":\"" ID "\",\"Names\":[\"/brave_euler\"],\"Image\":\"bb:1\","
    "\"ImageID\":\"sha256:77\",\"Command\":\"/bin/sleep 600\",\"Created\":1754300000,\"Ports\":[],"
    "\"Labels\":{\"com.docker.compose.service\":\"web\"},\"State\":\"running\","
    "\"Status\":\"Up 2 seconds\",\"HostConfig\":{\"NetworkMode\":\"none\"},"
    "\"NetworkSettings\":{\"Networks\":{\"none\":{\"IPAMConfig\":null,\"Links\":null}}},"
    "\"Mounts\":[]}]\n";

static void a_container_has_its_name_without_the_slash(void **state)
{
    (void)state;
    assert_int_equal(parse(span_of(a_list)), 0);
    assert_int_equal(list.count, 1);
    assert_string_equal(list.items[0].id, ID);
    assert_string_equal(list.items[0].name, "brave_euler");
    assert_string_equal(list.items[0].image, "bb:1");
    assert_string_equal(list.items[0].pod, "");
    assert_string_equal(list.items[0].namespace, "");
    assert_string_equal(list.items[0].pod_uid, "");
    container_list_done(&list);
}

static void a_container_of_the_kubelet_has_the_names_in_its_labels(void **state)
{
    (void)state;
    assert_int_equal(
        parse(span_of("[{\"Id\":\"" ID "\",\"Names\":[\"/k8s_worker_train-0_ml_uid_0\"],"
                      "\"Image\":\"sha256:1\",\"Labels\":{"
                      "\"io.kubernetes.container.name\":\"worker\","
                      "\"io.kubernetes.docker.type\":\"container\","
                      "\"io.kubernetes.pod.name\":\"train-0\","
                      "\"io.kubernetes.pod.namespace\":\"ml\","
                      "\"io.kubernetes.pod.uid\":\"uid-7\"}}]")),
        0);
    assert_int_equal(list.count, 1);
    assert_string_equal(list.items[0].name, "worker");
    assert_string_equal(list.items[0].namespace, "ml");
    assert_string_equal(list.items[0].pod, "train-0");
    assert_string_equal(list.items[0].pod_uid, "uid-7");
    container_list_done(&list);
}

static void the_name_is_the_first_that_is_no_alias(void **state)
{
    static const struct {
        const char *names, *name;
    } cases[] = {
        {"[\"/web\"]", "web"},
        {"[\"/other/db\",\"/web\"]", "web"},
        {"[\"/web\",\"/second\"]", "web"},
        {"[\"bare\"]", "bare"},
        {"[\"/other/db\"]", ""},
        {"[\"//web\"]", ""},
        {"[\"/\"]", ""},
        {"[]", ""},
        {"null", ""},
        {"\"/web\"", ""},
        {"{\"0\":\"/web\"}", ""},
        {"[null,7,[\"/x\"],{},true,\"/web\"]", "web"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char body[512];

        snprintf(body, sizeof(body), "[{\"Id\":\"" ID "\",\"Names\":%s}]", cases[i].names);
        assert_int_equal(parse(span_of(body)), 0);
        assert_int_equal(list.count, 1);
        if (strcmp(list.items[0].name, cases[i].name) != 0)
            fail_msg("%s: '%s'", cases[i].names, list.items[0].name);
        container_list_done(&list);
    }
}

static void fields_of_another_type_are_not_there(void **state)
{
    static const char *const values[] = {"null", "true", "7", "-1.5", "[]", "{}", "[\"x\"]"};
    static const char *const fields[] = {"Names", "Image", "Labels", "State", "HostConfig"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(values) * ARRAY_SIZE(fields); i++) {
        char body[512];

        snprintf(body, sizeof(body), "[{\"Id\":\"" ID "\",\"%s\":%s}]",
                 fields[i % ARRAY_SIZE(fields)], values[i / ARRAY_SIZE(fields)]);
        assert_int_equal(parse(span_of(body)), 0);
        assert_int_equal(list.count, 1);
        assert_string_equal(list.items[0].image, "");
        assert_string_equal(list.items[0].pod, "");
        container_list_done(&list);
    }
    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        char body[512];

        snprintf(body, sizeof(body), "[{\"Id\":%s},%s,{\"Id\":\"" ID "\"}]", values[i], values[i]);
        assert_int_equal(parse(span_of(body)), 0);
        assert_int_equal(list.count, 1);
        container_list_done(&list);
    }
}

static void labels_of_another_type_are_not_there(void **state)
{
    (void)state;
    assert_int_equal(parse(span_of("[{\"Id\":\"" ID "\",\"Names\":[\"/web\"],\"Labels\":{"
                                   "\"io.kubernetes.container.name\":7,"
                                   "\"io.kubernetes.pod.name\":[\"x\"],"
                                   "\"io.kubernetes.pod.namespace\":null,"
                                   "\"io.kubernetes.pod.uid\":{}}}]")),
                     0);
    assert_string_equal(list.items[0].name, "web");
    assert_string_equal(list.items[0].pod, "");
    container_list_done(&list);
    assert_int_equal(parse(span_of("[{\"Id\":\"" ID "\",\"Names\":[\"/web\"],\"Labels\":{"
                                   "\"io.kubernetes.container.name\":\"\"}}]")),
                     0);
    assert_string_equal(list.items[0].name, "web");
    container_list_done(&list);
}

static void json_that_is_no_list_has_no_containers(void **state)
{
    static const char *const bodies[] = {"[]", "null", "{}", "7", "\"x\"", "{\"message\":\"no\"}"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
        assert_int_equal(parse(span_of(bodies[i])), 0);
        assert_int_equal(list.count, 0);
        container_list_done(&list);
    }
}

static void what_is_no_json_is_an_error(void **state)
{
    static const struct span bodies[] = {
        {NULL, 0}, {"<html>", 6}, {"[{\"Id\":", 7}, {"\0\0", 2}, {"[\"\xff\"]", 5},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
        assert_int_equal(parse(bodies[i]), -EBADMSG);
        assert_int_equal(list.count, 0);
        container_list_done(&list);
    }
}

static void a_list_that_breaks_off_has_no_entries(void **state)
{
    (void)state;
    for (size_t len = 0; len < strlen(a_list) - 1; len++) {
        _cleanup_free_ char *cut = malloc(len + 1);

        assert_non_null(cut);
        memcpy(cut + 1, a_list, len);
        assert_int_equal(parse((struct span){cut + 1, len}), -EBADMSG);
        assert_int_equal(list.count, 0);
        container_list_done(&list);
    }
}

static void names_of_a_megabyte_are_cut(void **state)
{
    size_t len = 1 << 20;
    _cleanup_free_ char *name = malloc(len + 1), *body = malloc(4 * len);

    (void)state;
    assert_true(name && body);
    memset(name, 'x', len);
    name[len] = '\0';
    snprintf(body, 4 * len,
             "[{\"Id\":\"" ID "\",\"Names\":[\"/%s\"],\"Image\":\"%s\",\"Labels\":{\"%s\":1}}]",
             name, name, name);
    assert_int_equal(parse(span_of(body)), 0);
    assert_int_equal(strlen(list.items[0].name), RUNTIME_TEXT_MAX);
    assert_int_equal(strlen(list.items[0].image), RUNTIME_TEXT_MAX);
    container_list_done(&list);
}

static void of_100000_containers_65536_are_kept(void **state)
{
    static const char entry[] = "{\"Id\":\"" ID "\",\"Names\":[\"/x\"]},";
    size_t len = sizeof(entry) - 1;
    _cleanup_free_ char *body = malloc(100000 * len + 2);

    (void)state;
    assert_non_null(body);
    body[0] = '[';
    for (size_t i = 0; i < 100000; i++)
        memcpy(body + 1 + i * len, entry, len);
    body[100000 * len] = ']';
    assert_int_equal(parse((struct span){body, 100000 * len + 1}), 0);
    assert_int_equal(list.count, RUNTIME_CONTAINERS_MAX);
    container_list_done(&list);
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
    return runtime_docker.list(
        &(struct runtime_call){&runtime_docker, NULL, "/run/test.sock", 3000000}, scope, &list,
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
    assert_int_equal(list.count, 1);
    assert_string_equal(fake_client.paths[0], "http://localhost/v1.40/containers/json?all=true");
    container_list_done(&list);
}

static void a_label_does_not_rename_a_container_that_the_kubelet_did_not_make(void **state)
{
    (void)state;
    fake_client.answers[0] =
        (struct fake_answer){.status = 200,
                             .body = span_of("[{\"Id\":\"" ID "\",\"Names\":[\"/web\"],\"Labels\":{"
                                             "\"io.kubernetes.container.name\":\"c\"}}]")};
    assert_int_equal(list_containers(NULL), 0);
    assert_string_equal(list.items[0].name, "web");
    container_list_done(&list);
}

static void running_containers_are_asked_for(void **state)
{
    struct error err = {""};

    (void)state;
    fake_client.answers[0] = (struct fake_answer){.status = 200, .body = span_of(a_list)};
    assert_int_equal(list_containers(&err), 0);
    assert_string_equal(err.text, "");
    assert_int_equal(list.count, 1);
    assert_int_equal(fake_client.asked, 1);
    assert_int_equal(fake_client.replies, 0);
    assert_string_equal(fake_client.paths[0],
                        "http://localhost/v1.40/containers/json?filters="
                        "%7B%22status%22%3A%5B%22running%22%2C%22paused%22%5D%7D");
    container_list_done(&list);
}

static void a_daemon_that_refuses_says_why(void **state)
{
    static const struct {
        int status, expected;
        const char *text;
    } cases[] = {
        {400, -EREMOTEIO, "400"}, {401, -EACCES, "401"},    {403, -EACCES, "403"},
        {404, -EREMOTEIO, "404"}, {500, -EREMOTEIO, "500"}, {204, -EREMOTEIO, "204"},
        {301, -EREMOTEIO, "301"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct error err = {""};

        fake_reset(NULL);
        fake_client.answers[0] =
            (struct fake_answer){.status = cases[i].status, .body = span_of(a_list)};
        assert_int_equal(list_containers(&err), cases[i].expected);
        assert_non_null(strstr(err.text, cases[i].text));
        assert_non_null(strstr(err.text, "/run/test.sock"));
        assert_int_equal(list.count, 0);
        assert_int_equal(fake_client.replies, 0);
        container_list_done(&list);
    }
}

static void what_the_client_says_is_passed_on(void **state)
{
    struct error err = {""};

    (void)state;
    fake_client.answers[0].r = -ETIMEDOUT;
    assert_int_equal(list_containers(&err), -ETIMEDOUT);
    assert_string_equal(err.text, "the client's text");
    assert_int_equal(fake_client.replies, 0);
    container_list_done(&list);
}

static void an_answer_that_is_no_json_has_a_text(void **state)
{
    struct error err = {""};

    (void)state;
    fake_client.answers[0] = (struct fake_answer){.status = 200, .body = span_of("<html>")};
    assert_int_equal(list_containers(&err), -EBADMSG);
    assert_non_null(strstr(err.text, "docker at '/run/test.sock'"));
    container_list_done(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_container_has_its_name_without_the_slash),
        cmocka_unit_test(a_container_of_the_kubelet_has_the_names_in_its_labels),
        cmocka_unit_test(the_name_is_the_first_that_is_no_alias),
        cmocka_unit_test(fields_of_another_type_are_not_there),
        cmocka_unit_test(labels_of_another_type_are_not_there),
        cmocka_unit_test(json_that_is_no_list_has_no_containers),
        cmocka_unit_test(what_is_no_json_is_an_error),
        cmocka_unit_test(a_list_that_breaks_off_has_no_entries),
        cmocka_unit_test(names_of_a_megabyte_are_cut),
        cmocka_unit_test(of_100000_containers_65536_are_kept),
        cmocka_unit_test_setup(running_containers_are_asked_for, fake_reset),
        cmocka_unit_test_setup(those_that_have_ended_are_asked_for_where_wanted, fake_reset),
        cmocka_unit_test(what_does_not_run_has_ended),
        cmocka_unit_test_setup(a_label_does_not_rename_a_container_that_the_kubelet_did_not_make,
                               fake_reset),
        cmocka_unit_test_setup(a_daemon_that_refuses_says_why, fake_reset),
        cmocka_unit_test_setup(what_the_client_says_is_passed_on, fake_reset),
        cmocka_unit_test_setup(an_answer_that_is_no_json_has_a_text, fake_reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
