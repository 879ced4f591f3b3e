/* identity/runtimes: Docker and Podman over HTTP, and how containers are inspected for their GPUs.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "fake_client.h"
#include "identity/gpu_access.h"
#include "identity/runtime_table.h"
#include "identity/runtimes/request.h"
#include "identity_checks.h"
#include "wire.h"

#define ID    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define INFRA "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

/* As dockerd 20.10 answers, shortened. */
static const char docker_list[] =
    "[{\"Id\":\"" ID "\",\"Names\":[\"/brave_euler\"],\"Image\":\"bb:1\","
    "\"ImageID\":\"sha256:77\",\"Command\":\"/bin/sleep 600\",\"Created\":1754300000,\"Ports\":[],"
    "\"Labels\":{\"com.docker.compose.service\":\"web\"},\"State\":\"running\","
    "\"Status\":\"Up 2 seconds\",\"HostConfig\":{\"NetworkMode\":\"none\"},"
    "\"NetworkSettings\":{\"Networks\":{\"none\":{\"IPAMConfig\":null,\"Links\":null}}},"
    "\"Mounts\":[]}]\n";

/* As podman 4.3 answers, shortened. */
static const char podman_list[] =
    "[{\"AutoRemove\":false,\"Command\":[\"/bin/sleep\",\"600\"],\"CreatedAt\":\"\",\"Exited\":false,"
    "\"ExitedAt\":-62135596800,\"ExitCode\":0,\"Id\":\"" ID "\",\"Image\":\"localhost/bb:1\","
    "\"ImageID\":\"77\",\"IsInfra\":false,\"Labels\":null,\"Mounts\":[],\"Names\":[\"sleepy\"],"
    "\"Namespaces\":{},\"Networks\":[],\"Pid\":4242,\"Pod\":\"55aa\",\"PodName\":\"train\","
    "\"Ports\":null,\"Size\":null,\"StartedAt\":1754300000,\"State\":\"running\",\"Status\":\"\"},"
    "{\"Id\":\"" INFRA "\",\"Image\":\"localhost/podman-pause:4.3.1-0\",\"IsInfra\":true,"
    "\"Names\":[\"55aa-infra\"],\"Pod\":\"55aa\",\"PodName\":\"train\"}]";

static const struct {
    const struct runtime_ops *runtime;
    const char *list; /* a body */
    size_t count;     /* of its containers */
    const char *url;
} runtimes[] = {
    {&runtime_docker, docker_list, 1, "http://localhost/v1.40/containers"},
    {&runtime_podman, podman_list, 2, "http://localhost/v4.0.0/libpod/containers"},
};

static struct container_list list;

static int parse(const struct runtime_ops *runtime, struct span body)
{
    int r;

    container_list_init(&list);
    r = runtime_http_parse(runtime, body, &list);
    assert_true(are_valid_containers(&list));
    return r;
}

static int parse_docker(const char *body)
{
    return parse(&runtime_docker, span_of(body));
}

static void docker_names_begin_with_a_slash(void **state)
{
    (void)state;
    assert_int_equal(parse_docker(docker_list), 0);
    assert_int_equal(list.count, 1);
    assert_string_equal(list.items[0].id, ID);
    assert_string_equal(list.items[0].name, "brave_euler");
    assert_string_equal(list.items[0].image, "bb:1");
    assert_string_equal(list.items[0].pod, "");
    assert_string_equal(list.items[0].namespace, "");
    assert_string_equal(list.items[0].pod_uid, "");
    container_list_done(&list);
}

static void docker_containers_of_the_kubelet_are_named_by_their_labels(void **state)
{
    (void)state;
    assert_int_equal(parse_docker("[{\"Id\":\"" ID
                                  "\",\"Names\":[\"/k8s_worker_train-0_ml_uid_0\"],"
                                  "\"Image\":\"sha256:1\",\"Labels\":{"
                                  "\"io.kubernetes.container.name\":\"worker\","
                                  "\"io.kubernetes.docker.type\":\"container\","
                                  "\"io.kubernetes.pod.name\":\"train-0\","
                                  "\"io.kubernetes.pod.namespace\":\"ml\","
                                  "\"io.kubernetes.pod.uid\":\"uid-7\"}}]"),
                     0);
    assert_int_equal(list.count, 1);
    assert_string_equal(list.items[0].name, "worker");
    assert_string_equal(list.items[0].namespace, "ml");
    assert_string_equal(list.items[0].pod, "train-0");
    assert_string_equal(list.items[0].pod_uid, "uid-7");
    container_list_done(&list);
}

static void the_docker_name_is_the_first_that_is_no_alias(void **state)
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
        assert_int_equal(parse_docker(body), 0);
        assert_int_equal(list.count, 1);
        if (strcmp(list.items[0].name, cases[i].name) != 0)
            fail_msg("%s: '%s'", cases[i].names, list.items[0].name);
        container_list_done(&list);
    }
}

static void docker_fields_of_another_type_are_ignored(void **state)
{
    static const char *const values[] = {"null", "true", "7", "-1.5", "[]", "{}", "[\"x\"]"};
    static const char *const fields[] = {"Names", "Image", "Labels", "State", "HostConfig"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(values) * ARRAY_SIZE(fields); i++) {
        char body[512];

        snprintf(body, sizeof(body), "[{\"Id\":\"" ID "\",\"%s\":%s}]",
                 fields[i % ARRAY_SIZE(fields)], values[i / ARRAY_SIZE(fields)]);
        assert_int_equal(parse_docker(body), 0);
        assert_int_equal(list.count, 1);
        assert_string_equal(list.items[0].image, "");
        assert_string_equal(list.items[0].pod, "");
        container_list_done(&list);
    }
    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        char body[512];

        snprintf(body, sizeof(body), "[{\"Id\":%s},%s,{\"Id\":\"" ID "\"}]", values[i], values[i]);
        assert_int_equal(parse_docker(body), 0);
        assert_int_equal(list.count, 1);
        container_list_done(&list);
    }
}

static void docker_labels_of_another_type_are_ignored(void **state)
{
    (void)state;
    assert_int_equal(parse_docker("[{\"Id\":\"" ID "\",\"Names\":[\"/web\"],\"Labels\":{"
                                  "\"io.kubernetes.container.name\":7,"
                                  "\"io.kubernetes.pod.name\":[\"x\"],"
                                  "\"io.kubernetes.pod.namespace\":null,"
                                  "\"io.kubernetes.pod.uid\":{}}}]"),
                     0);
    assert_string_equal(list.items[0].name, "web");
    assert_string_equal(list.items[0].pod, "");
    container_list_done(&list);
    assert_int_equal(parse_docker("[{\"Id\":\"" ID "\",\"Names\":[\"/web\"],\"Labels\":{"
                                  "\"io.kubernetes.container.name\":\"\"}}]"),
                     0);
    assert_string_equal(list.items[0].name, "web");
    container_list_done(&list);
}

static void a_label_does_not_rename_a_container_that_the_kubelet_did_not_make(void **state)
{
    (void)state;
    assert_int_equal(parse_docker("[{\"Id\":\"" ID "\",\"Names\":[\"/web\"],\"Labels\":{"
                                  "\"io.kubernetes.container.name\":\"c\"}}]"),
                     0);
    assert_string_equal(list.items[0].name, "web");
    container_list_done(&list);
}

static void names_of_a_megabyte_are_truncated(void **state)
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
    assert_int_equal(parse_docker(body), 0);
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
    assert_int_equal(parse(&runtime_docker, (struct span){body, 100000 * len + 1}), 0);
    assert_int_equal(list.count, RUNTIME_CONTAINERS_MAX);
    container_list_done(&list);
}

static void a_podman_container_has_its_name_and_its_pods(void **state)
{
    (void)state;
    assert_int_equal(parse(&runtime_podman, span_of(podman_list)), 0);
    assert_int_equal(list.count, 2);
    assert_string_equal(list.items[0].id, ID);
    assert_string_equal(list.items[0].name, "sleepy");
    assert_string_equal(list.items[0].pod, "train");
    assert_string_equal(list.items[0].image, "localhost/bb:1");
    assert_string_equal(list.items[0].namespace, "");
    assert_string_equal(list.items[0].pod_uid, "");
    container_list_done(&list);
}

static void the_infra_container_of_podman_is_the_pods_own(void **state)
{
    (void)state;
    assert_int_equal(parse(&runtime_podman, span_of(podman_list)), 0);
    assert_string_equal(list.items[1].id, INFRA);
    assert_string_equal(list.items[1].name, "POD");
    assert_string_equal(list.items[1].pod, "train");
    container_list_done(&list);
}

static void podman_fields_of_another_type_are_ignored(void **state)
{
    static const char *const values[] = {"null", "true", "7", "[]", "{}", "[7,\"x\"]"};
    static const char *const fields[] = {"Names", "Image", "PodName", "Pod"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(values) * ARRAY_SIZE(fields); i++) {
        char body[512];

        snprintf(body, sizeof(body), "[{\"Id\":\"" ID "\",\"IsInfra\":\"true\",\"%s\":%s}]",
                 fields[i % ARRAY_SIZE(fields)], values[i / ARRAY_SIZE(fields)]);
        assert_int_equal(parse(&runtime_podman, span_of(body)), 0);
        assert_int_equal(list.count, 1);
        assert_string_equal(list.items[0].name, "");
        assert_string_equal(list.items[0].image, "");
        assert_string_equal(list.items[0].pod, "");
        container_list_done(&list);
    }
}

/* From here on: both of them. */

/* "null" is the answer of older ones when nothing runs. */
static void json_without_a_list_has_no_containers(void **state)
{
    static const char *const bodies[] = {
        "[]", "null", "{}", "7", "\"x\"", "{\"message\":\"no\"}", "[null,7,\"x\",[],{}]"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bodies) * ARRAY_SIZE(runtimes); i++) {
        assert_int_equal(parse(runtimes[i % 2].runtime, span_of(bodies[i / 2])), 0);
        assert_int_equal(list.count, 0);
        container_list_done(&list);
    }
}

static void invalid_json_is_an_error(void **state)
{
    static const struct span bodies[] = {
        {NULL, 0}, {"<html>", 6}, {"[{\"Id\":", 7}, {"\0\0", 2}, {"[\"\xff\"]", 5},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bodies) * ARRAY_SIZE(runtimes); i++) {
        assert_int_equal(parse(runtimes[i % 2].runtime, bodies[i / 2]), -EBADMSG);
        assert_int_equal(list.count, 0);
        container_list_done(&list);
    }
}

static void a_truncated_list_has_no_entries(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++)
        for (size_t len = 0; len < strcspn(runtimes[i].list, "\n"); len++) {
            _cleanup_free_ char *cut = malloc(len + 1);

            assert_non_null(cut);
            memcpy(cut + 1, runtimes[i].list, len);
            assert_int_equal(parse(runtimes[i].runtime, (struct span){cut + 1, len}), -EBADMSG);
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
    for (size_t i = 0; i < ARRAY_SIZE(cases) * ARRAY_SIZE(runtimes); i++) {
        char body[256];

        snprintf(body, sizeof(body), "[{\"Id\":\"" ID "\",\"State\":%s}]", cases[i / 2].state);
        assert_int_equal(parse(runtimes[i % 2].runtime, span_of(body)), 0);
        assert_int_equal(list.count, 1);
        if (list.items[0].ended != cases[i / 2].ended)
            fail_msg("%s: %d", cases[i / 2].state, list.items[0].ended);
        container_list_done(&list);
    }
}

static struct runtime_call call_of(const struct runtime_ops *runtime)
{
    return (struct runtime_call){runtime, NULL, "/run/test.sock", 3000000};
}

static int list_containers(const struct runtime_ops *runtime, enum runtime_scope scope,
                           struct error *err)
{
    struct runtime_call call = call_of(runtime);
    int r;

    container_list_init(&list);
    r = runtime->list(&call, scope, &list, err);
    assert_int_equal(fake_client.asked, 1);
    assert_int_equal(fake_client.replies, 0);
    return r;
}

static void running_or_all_containers_are_requested(void **state)
{
    static const char *const queries[] = {
        [RUNTIME_RUNNING] = "/json?filters=%7B%22status%22%3A%5B%22running%22%2C%22paused%22%5D%7D",
        [RUNTIME_ALL] = "/json?all=true",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(runtimes) * ARRAY_SIZE(queries); i++) {
        enum runtime_scope scope = i / 2 ? RUNTIME_ALL : RUNTIME_RUNNING;
        struct error err = {""};
        char url[256];

        fake_reset(NULL);
        fake_client.answers[0] =
            (struct fake_answer){.status = 200, .body = span_of(runtimes[i % 2].list)};
        assert_int_equal(list_containers(runtimes[i % 2].runtime, scope, &err), 0);
        assert_string_equal(err.text, "");
        assert_int_equal(list.count, runtimes[i % 2].count);
        snprintf(url, sizeof(url), "%s%s", runtimes[i % 2].url, queries[scope]);
        assert_string_equal(fake_client.paths[0], url);
        container_list_done(&list);
    }
}

static int inspect(const struct runtime_ops *runtime, struct gpu_access_list *gpus,
                   struct error *err)
{
    struct runtime_call call = call_of(runtime);
    int r;

    gpus->count = 0;
    r = runtime->inspect(&call, ID, gpus, err);
    assert_int_equal(fake_client.replies, 0);
    return r;
}

static void a_container_is_inspected_by_its_id(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++) {
        struct gpu_access_list gpus;
        char url[256];

        fake_reset(NULL);
        fake_client.answers[0] = (struct fake_answer){
            .status = 200,
            .body = span_of("{\"HostConfig\":{\"Devices\":[{\"PathOnHost\":\"/dev/nvidia2\"}]}}")};
        assert_int_equal(inspect(runtimes[i].runtime, &gpus, NULL), 0);
        snprintf(url, sizeof(url), "%s/" ID "/json", runtimes[i].url);
        assert_string_equal(fake_client.paths[0], url);
        assert_int_equal(gpus.count, 1);
        assert_int_equal(gpus.items[0].index, 2);
    }
}

static void any_other_answer_is_an_errno_with_a_text(void **state)
{
    static const struct {
        int r, status;
        const char *body;
        int list, inspect;
        const char *text;
    } cases[] = {
        {0, 404, "{\"message\":\"No such container\"}", -EREMOTEIO, -ESRCH, "404"},
        {0, 400, "[]", -EREMOTEIO, -EREMOTEIO, "400"},
        {0, 401, "[]", -EACCES, -EACCES, "401"},
        {0, 403, "", -EACCES, -EACCES, "403"},
        {0, 500, "", -EREMOTEIO, -EREMOTEIO, "500"},
        {0, 204, "[]", -EREMOTEIO, -EREMOTEIO, "204"},
        {0, 301, "[]", -EREMOTEIO, -EREMOTEIO, "301"},
        {0, 200, "<html>", -EBADMSG, -EBADMSG, "invalid response"},
        {-ETIMEDOUT, 0, "", -ETIMEDOUT, -ETIMEDOUT, NULL},
        {-EFBIG, 0, "", -EFBIG, -EFBIG, NULL},
        {-ECANCELED, 0, "", -ECANCELED, -ECANCELED, NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases) * ARRAY_SIZE(runtimes) * 2; i++) {
        const struct runtime_ops *runtime = runtimes[i % 2].runtime;
        struct error err = {""};
        struct gpu_access_list gpus;
        size_t row = i / 4;
        char prefix[64];

        fake_reset(NULL);
        fake_client.answers[0] = (struct fake_answer){
            .r = cases[row].r, .status = cases[row].status, .body = span_of(cases[row].body)};
        if (i / 2 % 2) {
            assert_int_equal(list_containers(runtime, RUNTIME_RUNNING, &err), cases[row].list);
            assert_int_equal(list.count, 0);
            container_list_done(&list);
        } else {
            assert_int_equal(inspect(runtime, &gpus, &err), cases[row].inspect);
            assert_int_equal(gpus.count, 0);
        }
        snprintf(prefix, sizeof(prefix), "%s at '/run/test.sock'", runtime->name);
        if (!cases[row].text)
            assert_string_equal(err.text, "the client's text");
        else if (!strstr(err.text, cases[row].text) || strncmp(err.text, prefix, strlen(prefix)))
            fail_msg("row %zu: '%s'", row, err.text);
    }
}

/* From here on: inspection through CRI. */

/* As containerd answers, shortened. */
static struct buffer a_status(const char *info)
{
    struct buffer response = wire_new(), status = wire_new();

    wire_text(&status, 1, ID);
    protobuf_put_varint(&status, 3, 1);
    wire_message(&response, 1, &status);
    wire_entry(&response, 2, "other", "{\"runtimeSpec\":7}");
    wire_entry(&response, 2, "info", info);
    wire_unknown(&response);
    return response;
}

static const char an_info[] = "{\"runtimeSpec\":{\"linux\":{\"devices\":["
                              "{\"type\":\"c\",\"major\":195,\"minor\":5}]}}}";

static void cri_is_inspected_with_a_verbose_status(void **state)
{
    struct buffer response = a_status(an_info);
    struct gpu_access_list gpus;

    (void)state;
    fake_client.answers[0].body = wire_span(&response);
    assert_int_equal(inspect(&runtime_cri, &gpus, NULL), 0);
    assert_string_equal(fake_client.paths[0], "/runtime.v1.RuntimeService/ContainerStatus");
    assert_int_equal(fake_client.request_lens[0], 68);
    assert_memory_equal(fake_client.requests[0], "\x0a\x40" ID "\x10\x01", 68);
    assert_int_equal(gpus.count, 1);
    assert_int_equal(gpus.items[0].index, 5);
    buffer_done(&response);
}

static void cri_without_v1_is_inspected_in_v1alpha2(void **state)
{
    struct buffer response = a_status(an_info);
    struct gpu_access_list gpus;

    (void)state;
    fake_client.answers[0] = (struct fake_answer){.r = -EREMOTEIO, .status = 12};
    fake_client.answers[1].body = wire_span(&response);
    assert_int_equal(inspect(&runtime_cri, &gpus, NULL), 0);
    assert_string_equal(fake_client.paths[1], "/runtime.v1alpha2.RuntimeService/ContainerStatus");
    assert_int_equal(gpus.count, 1);
    buffer_done(&response);
}

static void a_container_unknown_to_cri_is_gone(void **state)
{
    struct gpu_access_list gpus;
    struct error err = {""};

    (void)state;
    fake_client.answers[0] = (struct fake_answer){.r = -EREMOTEIO, .status = 5};
    assert_int_equal(inspect(&runtime_cri, &gpus, &err), -ESRCH);
    assert_int_equal(fake_client.asked, 1);
}

static void a_status_without_info_is_a_container_without_gpus(void **state)
{
    struct buffer broken = a_status(an_info), bad = a_status("no json"), none = wire_new();
    struct gpu_access_list gpus;
    struct error err = {""};

    (void)state;
    wire_entry(&none, 2, "else", an_info);
    fake_client.answers[0].body = wire_span(&none);
    assert_int_equal(inspect(&runtime_cri, &gpus, &err), 0);
    assert_int_equal(gpus.count, 0);
    fake_client.answers[1].body = (struct span){broken.data, broken.len - 1};
    assert_int_equal(inspect(&runtime_cri, &gpus, &err), 0);
    assert_int_equal(gpus.count, 0);
    fake_client.answers[2].body = wire_span(&bad);
    assert_int_equal(inspect(&runtime_cri, &gpus, &err), -EBADMSG);
    assert_non_null(strstr(err.text, "/run/test.sock"));
    buffer_done(&broken);
    buffer_done(&bad);
    buffer_done(&none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(docker_names_begin_with_a_slash),
        cmocka_unit_test(docker_containers_of_the_kubelet_are_named_by_their_labels),
        cmocka_unit_test(the_docker_name_is_the_first_that_is_no_alias),
        cmocka_unit_test(docker_fields_of_another_type_are_ignored),
        cmocka_unit_test(docker_labels_of_another_type_are_ignored),
        cmocka_unit_test(a_label_does_not_rename_a_container_that_the_kubelet_did_not_make),
        cmocka_unit_test(names_of_a_megabyte_are_truncated),
        cmocka_unit_test(of_100000_containers_65536_are_kept),
        cmocka_unit_test(a_podman_container_has_its_name_and_its_pods),
        cmocka_unit_test(the_infra_container_of_podman_is_the_pods_own),
        cmocka_unit_test(podman_fields_of_another_type_are_ignored),
        cmocka_unit_test(json_without_a_list_has_no_containers),
        cmocka_unit_test(invalid_json_is_an_error),
        cmocka_unit_test(a_truncated_list_has_no_entries),
        cmocka_unit_test(what_does_not_run_has_ended),
        cmocka_unit_test(running_or_all_containers_are_requested),
        cmocka_unit_test(a_container_is_inspected_by_its_id),
        cmocka_unit_test(any_other_answer_is_an_errno_with_a_text),
        cmocka_unit_test_setup(cri_is_inspected_with_a_verbose_status, fake_reset),
        cmocka_unit_test_setup(cri_without_v1_is_inspected_in_v1alpha2, fake_reset),
        cmocka_unit_test_setup(a_container_unknown_to_cri_is_gone, fake_reset),
        cmocka_unit_test_setup(a_status_without_info_is_a_container_without_gpus, fake_reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
