/* identity/runtimes/docker, podman and cri: a container is asked for by its id, and may be gone. */
#include "unit.h"

#include <stdio.h>

#include "fake_client.h"
#include "identity/gpu_access.h"
#include "identity/runtime.h"
#include "identity/runtime_table.h"
#include "wire.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct gpu_access_list gpus;

static int inspect(const struct runtime_ops *runtime, struct error *err)
{
    int r;

    gpus.count = 0;
    r = runtime->inspect(&(struct runtime_call){runtime, NULL, "/run/test.sock", 3000000}, ID,
                         &gpus, err);
    assert_int_equal(fake_client.replies, 0);
    return r;
}

static void docker_and_podman_are_asked_by_the_containers_id(void **state)
{
    static const struct {
        const struct runtime_ops *runtime;
        const char *url;
    } cases[] = {
        {&runtime_docker, "http://localhost/v1.40/containers/" ID "/json"},
        {&runtime_podman, "http://localhost/v4.0.0/libpod/containers/" ID "/json"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        fake_reset(NULL);
        fake_client.answers[0] = (struct fake_answer){
            .status = 200,
            .body = span_of("{\"HostConfig\":{\"Devices\":[{\"PathOnHost\":\"/dev/nvidia2\"}]}}")};
        assert_int_equal(inspect(cases[i].runtime, NULL), 0);
        assert_string_equal(fake_client.paths[0], cases[i].url);
        assert_int_equal(gpus.count, 1);
        assert_int_equal(gpus.items[0].index, 2);
    }
}

static void an_answer_other_than_the_container_is_an_errno_with_a_text(void **state)
{
    static const struct {
        int r, status;
        const char *body;
        int expected;
    } cases[] = {
        {0, 404, "{\"message\":\"No such container\"}", -ESRCH},
        {0, 403, "", -EACCES},
        {0, 500, "", -EREMOTEIO},
        {0, 200, "<html>", -EBADMSG},
        {-ETIMEDOUT, 0, "", -ETIMEDOUT},
        {-EFBIG, 0, "", -EFBIG},
        {-ECANCELED, 0, "", -ECANCELED},
    };
    const struct runtime_ops *const runtimes[] = {&runtime_docker, &runtime_podman};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases) * ARRAY_SIZE(runtimes); i++) {
        struct error err = {""};

        fake_reset(NULL);
        fake_client.answers[0] = (struct fake_answer){
            .r = cases[i / 2].r, .status = cases[i / 2].status, .body = span_of(cases[i / 2].body)};
        assert_int_equal(inspect(runtimes[i % 2], &err), cases[i / 2].expected);
        assert_true(err.text[0] != '\0');
        assert_int_equal(gpus.count, 0);
    }
}

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

static void cri_is_asked_for_all_that_it_knows_of_the_container(void **state)
{
    struct buffer response = a_status(an_info);

    (void)state;
    fake_client.answers[0].body = wire_span(&response);
    assert_int_equal(inspect(&runtime_cri, NULL), 0);
    assert_string_equal(fake_client.paths[0], "/runtime.v1.RuntimeService/ContainerStatus");
    assert_int_equal(fake_client.request_lens[0], 68);
    assert_memory_equal(fake_client.requests[0], "\x0a\x40" ID "\x10\x01", 68);
    assert_int_equal(gpus.count, 1);
    assert_int_equal(gpus.items[0].index, 5);
    buffer_done(&response);
}

static void a_runtime_that_does_not_know_v1_is_asked_in_v1alpha2(void **state)
{
    struct buffer response = a_status(an_info);

    (void)state;
    fake_client.answers[0] = (struct fake_answer){.r = -EREMOTEIO, .status = 12};
    fake_client.answers[1].body = wire_span(&response);
    assert_int_equal(inspect(&runtime_cri, NULL), 0);
    assert_string_equal(fake_client.paths[1], "/runtime.v1alpha2.RuntimeService/ContainerStatus");
    assert_int_equal(gpus.count, 1);
    buffer_done(&response);
}

static void a_container_that_cri_does_not_know_is_gone(void **state)
{
    struct error err = {""};

    (void)state;
    fake_client.answers[0] = (struct fake_answer){.r = -EREMOTEIO, .status = 5};
    assert_int_equal(inspect(&runtime_cri, &err), -ESRCH);
    assert_int_equal(fake_client.asked, 1);
}

static void a_status_without_info_is_a_container_without_gpus(void **state)
{
    struct buffer broken = a_status(an_info), bad = a_status("no json"), none = wire_new();
    struct error err = {""};

    (void)state;
    wire_entry(&none, 2, "else", an_info);
    fake_client.answers[0].body = wire_span(&none);
    assert_int_equal(inspect(&runtime_cri, &err), 0);
    assert_int_equal(gpus.count, 0);
    fake_client.answers[1].body = (struct span){broken.data, broken.len - 1};
    assert_int_equal(inspect(&runtime_cri, &err), 0);
    assert_int_equal(gpus.count, 0);
    fake_client.answers[2].body = wire_span(&bad);
    assert_int_equal(inspect(&runtime_cri, &err), -EBADMSG);
    assert_non_null(strstr(err.text, "/run/test.sock"));
    buffer_done(&broken);
    buffer_done(&bad);
    buffer_done(&none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(docker_and_podman_are_asked_by_the_containers_id),
        cmocka_unit_test(an_answer_other_than_the_container_is_an_errno_with_a_text),
        cmocka_unit_test_setup(cri_is_asked_for_all_that_it_knows_of_the_container, fake_reset),
        cmocka_unit_test_setup(a_runtime_that_does_not_know_v1_is_asked_in_v1alpha2, fake_reset),
        cmocka_unit_test_setup(a_container_that_cri_does_not_know_is_gone, fake_reset),
        cmocka_unit_test_setup(a_status_without_info_is_a_container_without_gpus, fake_reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
