/* identity/runtimes/cri: names from a container runtime, and from one that lies. */
#include "unit.h"

#include <stdlib.h>

#include "fake_client.h"
#include "identity/runtime_table.h"
#include "identity/runtimes/parse.h"
#include "identity_checks.h"
#include "wire.h"

#define ID      "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define SANDBOX "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define UID     "c9b5c5e0-6c6a-4a9c-9b1f-0f8e5d2b7a11"

enum { RUNNING = 1 };

/* As containerd sends it, with all fields. */
static struct buffer a_container(void)
{
    struct buffer container = wire_new(), metadata = wire_new(), image = wire_new();

    wire_text(&metadata, 1, "worker-metadata");
    protobuf_put_varint(&metadata, 2, 3);
    wire_text(&image, 1, "sha256:1234");
    wire_entry(&image, 2, "annotation", "x");
    wire_text(&image, 18, "registry/worker:1.2");
    wire_text(&container, 1, ID);
    wire_text(&container, 2, SANDBOX);
    wire_message(&container, 3, &metadata);
    wire_message(&container, 4, &image);
    wire_text(&container, 5, "sha256:1234");
    protobuf_put_varint(&container, 6, RUNNING);
    protobuf_put_varint(&container, 7, 1700000000000000000);
    wire_entry(&container, 8, "io.kubernetes.container.name", "worker");
    wire_entry(&container, 8, "io.kubernetes.pod.name", "train-0");
    wire_entry(&container, 8, "io.kubernetes.pod.namespace", "ml");
    wire_entry(&container, 8, "io.kubernetes.pod.uid", UID);
    wire_entry(&container, 9, "io.kubernetes.pod.name", "an annotation");
    wire_text(&container, 10, "sha256:1234");
    wire_unknown(&container);
    return container;
}

static struct buffer a_sandbox(void)
{
    struct buffer sandbox = wire_new(), metadata = wire_new();

    wire_text(&metadata, 1, "train-0");
    wire_text(&metadata, 2, UID);
    wire_text(&metadata, 3, "ml");
    protobuf_put_varint(&metadata, 4, 1);
    wire_text(&sandbox, 1, SANDBOX);
    wire_message(&sandbox, 2, &metadata);
    protobuf_put_varint(&sandbox, 4, 1700000000000000000);
    wire_entry(&sandbox, 5, "app", "train");
    wire_unknown(&sandbox);
    return sandbox;
}

static struct buffer response_of(struct buffer item)
{
    struct buffer response = wire_new();

    wire_message(&response, 1, &item);
    return response;
}

/* Parses and ends the response. */
static int parse_containers(struct buffer *response, struct container_list *list)
{
    int r;

    container_list_init(list);
    r = cri_parse_containers(wire_span(response), list);
    buffer_done(response);
    assert_true(are_valid_containers(list));
    return r;
}

static void a_container_has_the_names_that_the_kubelet_gave_it(void **state)
{
    struct buffer response = response_of(a_container());
    struct container_list list;

    (void)state;
    assert_int_equal(parse_containers(&response, &list), 0);
    assert_int_equal(list.count, 1);
    assert_string_equal(list.items[0].id, ID);
    assert_string_equal(list.items[0].name, "worker");
    assert_string_equal(list.items[0].namespace, "ml");
    assert_string_equal(list.items[0].pod, "train-0");
    assert_string_equal(list.items[0].pod_uid, UID);
    assert_string_equal(list.items[0].image, "registry/worker:1.2");
    container_list_done(&list);
}

static void without_labels_the_metadata_has_the_name(void **state)
{
    struct buffer container = wire_new(), metadata = wire_new(), image = wire_new(), response;
    struct container_list list;

    (void)state;
    wire_text(&metadata, 1, "worker");
    wire_text(&image, 1, "registry/worker");
    wire_message(&container, 3, &metadata);
    wire_message(&container, 4, &image);
    wire_text(&container, 1, ID);
    wire_entry(&container, 8, "io.kubernetes.container.name", "");
    response = response_of(container);
    assert_int_equal(parse_containers(&response, &list), 0);
    assert_string_equal(list.items[0].name, "worker");
    assert_string_equal(list.items[0].image, "registry/worker");
    assert_string_equal(list.items[0].pod, "");
    container_list_done(&list);
}

static void a_sandbox_is_the_pods_own_container(void **state)
{
    struct buffer response = response_of(a_sandbox());
    struct container_list list;

    (void)state;
    container_list_init(&list);
    assert_int_equal(cri_parse_sandboxes(wire_span(&response), &list), 0);
    buffer_done(&response);
    assert_int_equal(list.count, 1);
    assert_string_equal(list.items[0].id, SANDBOX);
    assert_string_equal(list.items[0].name, "POD");
    assert_string_equal(list.items[0].namespace, "ml");
    assert_string_equal(list.items[0].pod, "train-0");
    assert_string_equal(list.items[0].pod_uid, UID);
    assert_string_equal(list.items[0].image, "");
    container_list_done(&list);
}

static void of_a_field_that_comes_twice_the_last_counts(void **state)
{
    struct buffer container = a_container(), image = wire_new(), response;
    struct container_list list;

    (void)state;
    wire_text(&image, 1, "other");
    wire_text(&container, 1, SANDBOX);
    wire_message(&container, 4, &image);
    wire_entry(&container, 8, "io.kubernetes.pod.name", "train-1");
    response = response_of(container);
    assert_int_equal(parse_containers(&response, &list), 0);
    assert_int_equal(list.count, 1);
    assert_string_equal(list.items[0].id, SANDBOX);
    assert_string_equal(list.items[0].image, "other");
    assert_string_equal(list.items[0].pod, "train-1");
    container_list_done(&list);
}

static void invalid_labels_are_ignored(void **state)
{
    static const struct span entries[] = {
        {"", 0},                                /* neither key nor value */
        {"\x12\x01x", 3},                       /* no key */
        {"\x0a\x16io.kubernetes.pod.name", 24}, /* no value */
        {"\x08\x01\x10\x02", 4},                /* numbers */
        {"\x0a\x16io.kubernetes.pod.name\x10\x07", 26},
        {"\x0a\x16io.kubernetes.pod.name\x12\x05x", 27},     /* cut */
        {"\x0a\x16io.kubernetes.pod.name\x12\x01x\x0b", 28}, /* a group behind it */
        {"\x0a\x16io.kubernetes.pod.name\x12\x01\xff", 27},  /* no UTF-8 */
        {"\x0a\x16io.kubernetes.pod.name\x12\x03"
         "a\0b",
         29},
        {"\x0a\x16io.kubernetes.pod.NAME\x12\x01x", 27},
        {"\x0a\x17io.kubernetes.pod.name\0\x12\x01x", 28},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
        struct buffer container = wire_new(), response;
        struct container_list list;

        wire_text(&container, 1, ID);
        protobuf_put_bytes(&container, 8, entries[i]);
        response = response_of(container);
        assert_int_equal(parse_containers(&response, &list), 0);
        assert_int_equal(list.count, 1);
        if (*list.items[0].pod)
            fail_msg("case %zu: '%s'", i, list.items[0].pod);
        container_list_done(&list);
    }
}

static void fields_of_another_type_are_not_there(void **state)
{
    struct container_list list;

    (void)state;
    for (uint32_t number = 1; number <= 20; number++) {
        struct buffer container = wire_new(), response;

        wire_text(&container, 1, ID);
        protobuf_put_varint(&container, number, 7);
        response = response_of(container);
        assert_int_equal(parse_containers(&response, &list), 0);
        assert_int_equal(list.count, 1);
        container_list_done(&list);
    }
    for (uint32_t number = 2; number <= 20; number++) {
        struct buffer container = wire_new(), response;

        wire_text(&container, 1, ID);
        protobuf_put_bytes(&container, number, (struct span){"\xff\xff\xff", 3});
        response = response_of(container);
        assert_int_equal(parse_containers(&response, &list), 0);
        assert_int_equal(list.count, 1);
        container_list_done(&list);
    }
}

static void a_container_that_is_broken_costs_no_other(void **state)
{
    static const char *const broken[] = {"\x0b", "\x0a\x7f", "\xff", "\x0e"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
        struct buffer response = wire_new(), bad = a_container(), good = a_container();
        struct container_list list;

        buffer_str(&bad, broken[i]);
        wire_message(&response, 1, &bad);
        wire_message(&response, 1, &good);
        assert_int_equal(parse_containers(&response, &list), 0);
        assert_int_equal(list.count, 1);
        container_list_done(&list);
    }
}

static void what_is_no_message_is_an_error_and_what_came_before_counts(void **state)
{
    struct buffer response = response_of(a_container());
    struct container_list list;

    (void)state;
    buffer_str(&response, "{\"message\":\"not found\"}");
    assert_int_equal(parse_containers(&response, &list), -EBADMSG);
    assert_int_equal(list.count, 1);
    container_list_done(&list);
}

static void nothing_is_a_list_of_none(void **state)
{
    struct buffer response = wire_new();
    struct container_list list;

    (void)state;
    assert_int_equal(parse_containers(&response, &list), 0);
    assert_int_equal(list.count, 0);
    container_list_done(&list);
}

/* Two entries, cut at every byte: each that is left is whole. */
static void check_every_cut(struct buffer *first, struct buffer *second,
                            int (*parse)(struct span message, struct container_list *list))
{
    struct buffer response = wire_new();
    struct span whole;
    size_t first_len;

    wire_message(&response, 1, first);
    first_len = response.len;
    wire_message(&response, 1, second);
    whole = wire_span(&response);
    for (size_t len = 0; len <= whole.len; len++) {
        _cleanup_free_ char *cut = wire_cut(whole, len);
        size_t entries = (len >= first_len) + (len == whole.len);
        bool is_whole = len == 0 || len == first_len || len == whole.len;
        struct container_list list;

        container_list_init(&list);
        assert_int_equal(parse((struct span){cut, len}, &list), is_whole ? 0 : -EBADMSG);
        assert_int_equal(list.count, entries);
        assert_true(are_valid_containers(&list));
        if (entries > 0)
            assert_string_equal(list.items[0].pod, "train-0");
        container_list_done(&list);
    }
    buffer_done(&response);
}

static void a_list_that_breaks_off_is_read_up_to_there(void **state)
{
    struct buffer first = a_container(), second = a_container();

    (void)state;
    check_every_cut(&first, &second, cri_parse_containers);
    first = a_sandbox();
    second = a_sandbox();
    check_every_cut(&first, &second, cri_parse_sandboxes);
}

/* An item that is cut inside a list that is whole. */
static void an_item_that_breaks_off_is_never_half_an_entry(void **state)
{
    struct buffer container = a_container();
    struct span whole = wire_span(&container);

    (void)state;
    for (size_t len = 0; len < whole.len; len++) {
        struct buffer response = wire_new();
        struct container_list list;

        protobuf_put_bytes(&response, 1, (struct span){whole.data, len});
        assert_int_equal(parse_containers(&response, &list), 0);
        assert_true(list.count <= 1);
        container_list_done(&list);
    }
    buffer_done(&container);
}

static void names_of_a_megabyte_are_cut(void **state)
{
    size_t len = 1 << 20;
    _cleanup_free_ char *text = malloc(len + 1);
    struct buffer container = wire_new(), metadata = wire_new(), image = wire_new(), response;
    struct container_list list;

    (void)state;
    assert_non_null(text);
    memset(text, 'x', len);
    text[len] = '\0';
    wire_text(&metadata, 1, text);
    wire_text(&image, 1, text);
    wire_text(&container, 1, ID);
    wire_message(&container, 3, &metadata);
    wire_message(&container, 4, &image);
    wire_entry(&container, 8, "io.kubernetes.pod.name", text);
    wire_entry(&container, 8, text, text);
    response = response_of(container);
    assert_int_equal(parse_containers(&response, &list), 0);
    assert_int_equal(strlen(list.items[0].name), RUNTIME_TEXT_MAX);
    assert_int_equal(strlen(list.items[0].image), RUNTIME_TEXT_MAX);
    assert_int_equal(strlen(list.items[0].pod), RUNTIME_TEXT_MAX);
    container_list_done(&list);
}

static void of_100000_containers_65536_are_kept(void **state)
{
    struct buffer response = wire_new(), container = wire_new();
    struct container_list list;

    (void)state;
    wire_text(&container, 1, ID);
    wire_entry(&container, 8, "io.kubernetes.pod.name", "p");
    for (int i = 0; i < 100000; i++)
        protobuf_put_bytes(&response, 1, wire_span(&container));
    buffer_done(&container);
    assert_int_equal(parse_containers(&response, &list), 0);
    assert_int_equal(list.count, RUNTIME_CONTAINERS_MAX);
    container_list_done(&list);
}

/* Four million labels on one container, and nothing is kept of them. */
static void labels_without_end_cost_nothing_but_time(void **state)
{
    struct buffer container = a_container(), response;
    struct container_list list;

    (void)state;
    for (int i = 0; i < 4000000; i++)
        buffer_bytes(&container, "\x42\x00", 2);
    response = response_of(container);
    assert_int_equal(parse_containers(&response, &list), 0);
    assert_int_equal(list.count, 1);
    assert_true(list.arena.used_bytes < 1024);
    container_list_done(&list);
}

static const struct runtime_call call_of_test = {&runtime_cri, NULL, "/run/test.sock", 3000000};
static struct container_list list_of_test;

static int list_in_scope(enum runtime_scope scope, struct error *err)
{
    container_list_init(&list_of_test);
    return runtime_cri.list(&call_of_test, scope, &list_of_test, err);
}

static int list_containers(struct error *err)
{
    return list_in_scope(RUNTIME_RUNNING, err);
}

static void running_containers_and_ready_sandboxes_are_requested(void **state)
{
    struct buffer containers = response_of(a_container()), sandboxes = response_of(a_sandbox());
    struct error err = {""};

    (void)state;
    fake_client.answers[0].body = wire_span(&containers);
    fake_client.answers[1].body = wire_span(&sandboxes);
    assert_int_equal(list_containers(&err), 0);
    assert_string_equal(err.text, "");
    assert_int_equal(fake_client.asked, 2);
    assert_string_equal(fake_client.paths[0], "/runtime.v1.RuntimeService/ListContainers");
    assert_int_equal(fake_client.request_lens[0], 6);
    assert_memory_equal(fake_client.requests[0], "\x0a\x04\x12\x02\x08\x01", 6);
    assert_string_equal(fake_client.paths[1], "/runtime.v1.RuntimeService/ListPodSandbox");
    assert_int_equal(fake_client.request_lens[1], 6);
    assert_memory_equal(fake_client.requests[1], "\x0a\x04\x12\x02\x08\x00", 6);
    assert_int_equal(list_of_test.count, 2);
    assert_string_equal(list_of_test.items[0].name, "worker");
    assert_string_equal(list_of_test.items[1].name, "POD");
    assert_int_equal(fake_client.replies, 0);
    container_list_done(&list_of_test);
    buffer_done(&containers);
    buffer_done(&sandboxes);
}

static void put_state(struct buffer *item, uint32_t number, uint64_t state)
{
    if (state > 0)
        protobuf_put_varint(item, number, state);
}

static void all_are_requested_without_a_filter_and_ended_ones_are_marked(void **state)
{
    struct buffer containers = wire_new(), sandboxes = wire_new();

    (void)state;
    for (uint64_t i = 0; i < 4; i++) { /* created, running, exited, unknown */
        struct buffer item = wire_new();

        wire_text(&item, 1, ID);
        put_state(&item, 6, i);
        wire_message(&containers, 1, &item);
    }
    for (uint64_t i = 0; i < 2; i++) { /* ready, not ready */
        struct buffer item = a_sandbox();

        put_state(&item, 3, i);
        wire_message(&sandboxes, 1, &item);
    }
    fake_client.answers[0].body = wire_span(&containers);
    fake_client.answers[1].body = wire_span(&sandboxes);
    assert_int_equal(list_in_scope(RUNTIME_ALL, NULL), 0);
    assert_int_equal(fake_client.request_lens[0], 0);
    assert_int_equal(fake_client.request_lens[1], 0);
    assert_int_equal(list_of_test.count, 6);
    for (size_t i = 0; i < list_of_test.count; i++)
        assert_int_equal(list_of_test.items[i].ended, i == 2 || i == 5);
    container_list_done(&list_of_test);
    buffer_done(&containers);
    buffer_done(&sandboxes);
}

static void of_too_many_sandboxes_only_ready_ones_are_requested(void **state)
{
    struct buffer containers = response_of(a_container()), sandboxes = response_of(a_sandbox());

    (void)state;
    fake_client.answers[0].body = wire_span(&containers);
    fake_client.answers[1] = (struct fake_answer){.r = -EFBIG};
    fake_client.answers[2].body = wire_span(&sandboxes);
    assert_int_equal(list_in_scope(RUNTIME_ALL, NULL), 0);
    assert_int_equal(fake_client.asked, 3);
    assert_int_equal(fake_client.request_lens[2], 6);
    assert_int_equal(list_of_test.count, 2);
    container_list_done(&list_of_test);
    buffer_done(&containers);
    buffer_done(&sandboxes);
}

#define DIGEST "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void an_image_that_is_a_digest_is_marked(void **state)
{
    static const struct {
        const char *name, *specified;
        bool is_digest;
    } cases[] = {
        {DIGEST, "", true},
        {ID, "", true},
        {DIGEST, "registry/worker:1.2", false},
        {"registry/worker@" DIGEST, "", false},
        {"registry/worker:1.2", "", false},
        {"sha256:0123", "", false},
        {"", "", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct buffer container = wire_new(), image = wire_new(), response;
        struct container_list list;

        wire_text(&image, 1, cases[i].name);
        wire_text(&image, 18, cases[i].specified);
        wire_text(&container, 1, ID);
        wire_message(&container, 4, &image);
        response = response_of(container);
        assert_int_equal(parse_containers(&response, &list), 0);
        if (list.items[0].image_is_digest != cases[i].is_digest)
            fail_msg("case %zu", i);
        container_list_done(&list);
    }
}

static void the_status_has_the_name_of_the_image(void **state)
{
    static const struct {
        const char *name, *specified, *reference, *expected;
    } cases[] = {
        /* containerd 1.6, for a pod that has "busybox:1.36" */
        {"docker.io/library/busybox:1.36", "", "docker.io/library/busybox@" DIGEST,
         "docker.io/library/busybox:1.36"},
        {DIGEST, "busybox:1.36", "docker.io/library/busybox@" DIGEST, "busybox:1.36"},
        {DIGEST, "", "docker.io/library/busybox@" DIGEST, "docker.io/library/busybox@" DIGEST},
        {DIGEST, "", DIGEST, ""},
        {"", "", "", ""},
        {"\xff", "", "", ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct buffer response = wire_new(), status = wire_new(), image = wire_new();
        char found[RUNTIME_TEXT_MAX + 1] = "";
        int r;

        wire_text(&image, 1, cases[i].name);
        wire_text(&image, 18, cases[i].specified);
        wire_text(&status, 1, ID);
        wire_message(&status, 8, &image);
        wire_text(&status, 9, cases[i].reference);
        wire_message(&response, 1, &status);
        fake_reset(NULL);
        fake_client.answers[0].body = wire_span(&response);
        r = runtime_cri.find_image(&call_of_test, ID, found, NULL);
        assert_int_equal(r, cases[i].expected[0] ? 0 : -ENODATA);
        assert_string_equal(found, cases[i].expected);
        assert_string_equal(fake_client.paths[0], "/runtime.v1.RuntimeService/ContainerStatus");
        assert_int_equal(fake_client.request_lens[0], 2 + 64); /* the id, and not all of it */
        assert_int_equal(fake_client.replies, 0);
        buffer_done(&response);
    }
}

static void a_runtime_without_v1_is_called_in_v1alpha2(void **state)
{
    struct buffer containers = response_of(a_container()), sandboxes = response_of(a_sandbox());

    (void)state;
    fake_client.answers[0] = (struct fake_answer){.r = -EREMOTEIO, .status = 12};
    fake_client.answers[1].body = wire_span(&containers);
    fake_client.answers[2] = (struct fake_answer){.r = -EREMOTEIO, .status = 12};
    fake_client.answers[3].body = wire_span(&sandboxes);
    assert_int_equal(list_containers(NULL), 0);
    assert_int_equal(fake_client.asked, 4);
    assert_string_equal(fake_client.paths[1], "/runtime.v1alpha2.RuntimeService/ListContainers");
    assert_string_equal(fake_client.paths[3], "/runtime.v1alpha2.RuntimeService/ListPodSandbox");
    assert_int_equal(list_of_test.count, 2);
    container_list_done(&list_of_test);
    buffer_done(&containers);
    buffer_done(&sandboxes);
}

static void a_socket_without_cri_behind_it_is_not_supported(void **state)
{
    struct error err = {""};

    (void)state;
    fake_client.answers[0] = (struct fake_answer){.r = -EREMOTEIO, .status = 12};
    fake_client.answers[1] = (struct fake_answer){.r = -EREMOTEIO, .status = 12};
    assert_int_equal(list_containers(&err), -EOPNOTSUPP);
    assert_int_equal(fake_client.asked, 2);
    assert_string_not_equal(err.text, "");
    container_list_done(&list_of_test);
}

static void the_clients_error_is_passed_on(void **state)
{
    static const struct {
        int r, status, expected;
    } cases[] = {
        {-ENOENT, 0, -ENOENT},        {-ECONNREFUSED, 0, -ECONNREFUSED},
        {-EACCES, 0, -EACCES},        {-ETIMEDOUT, 0, -ETIMEDOUT},
        {-EFBIG, 0, -EFBIG},          {-ECANCELED, 0, -ECANCELED},
        {-EPROTO, 0, -EPROTO},        {-EREMOTEIO, 2, -EREMOTEIO},
        {-EREMOTEIO, 14, -EREMOTEIO}, {-EREMOTEIO, 7, -EACCES},
        {-EREMOTEIO, 16, -EACCES},    {-EREMOTEIO, 8, -EAGAIN},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct error err = {""};

        fake_reset(NULL);
        fake_client.answers[0] = (struct fake_answer){.r = cases[i].r, .status = cases[i].status};
        assert_int_equal(list_containers(&err), cases[i].expected);
        assert_int_equal(fake_client.asked, 1);
        assert_int_equal(fake_client.replies, 0);
        assert_string_equal(err.text, "the client's text");
        container_list_done(&list_of_test);
    }
}

static void an_answer_that_is_no_message_has_a_text(void **state)
{
    struct error err = {""};

    (void)state;
    fake_client.answers[0].body = span_of("HTTP/1.1 400 Bad Request");
    assert_int_equal(list_containers(&err), -EBADMSG);
    assert_non_null(strstr(err.text, "/run/test.sock"));
    container_list_done(&list_of_test);
}

static void without_sandboxes_the_containers_count(void **state)
{
    static const struct fake_answer second[] = {
        {.r = -EREMOTEIO, .status = 12}, {.r = -ETIMEDOUT}, {.body = {"\xff\xff", 2}}};
    struct buffer containers = response_of(a_container());

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(second); i++) {
        struct error err = {""};

        fake_reset(NULL);
        fake_client.answers[0].body = wire_span(&containers);
        fake_client.answers[1] = second[i];
        assert_int_equal(list_containers(&err), 0);
        assert_string_equal(err.text, "");
        assert_int_equal(list_of_test.count, 1);
        container_list_done(&list_of_test);
    }
    buffer_done(&containers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_container_has_the_names_that_the_kubelet_gave_it),
        cmocka_unit_test(without_labels_the_metadata_has_the_name),
        cmocka_unit_test(a_sandbox_is_the_pods_own_container),
        cmocka_unit_test(of_a_field_that_comes_twice_the_last_counts),
        cmocka_unit_test(invalid_labels_are_ignored),
        cmocka_unit_test(fields_of_another_type_are_not_there),
        cmocka_unit_test(a_container_that_is_broken_costs_no_other),
        cmocka_unit_test(what_is_no_message_is_an_error_and_what_came_before_counts),
        cmocka_unit_test(nothing_is_a_list_of_none),
        cmocka_unit_test(a_list_that_breaks_off_is_read_up_to_there),
        cmocka_unit_test(an_item_that_breaks_off_is_never_half_an_entry),
        cmocka_unit_test(names_of_a_megabyte_are_cut),
        cmocka_unit_test(of_100000_containers_65536_are_kept),
        cmocka_unit_test(labels_without_end_cost_nothing_but_time),
        cmocka_unit_test_setup(running_containers_and_ready_sandboxes_are_requested, fake_reset),
        cmocka_unit_test_setup(all_are_requested_without_a_filter_and_ended_ones_are_marked,
                               fake_reset),
        cmocka_unit_test_setup(of_too_many_sandboxes_only_ready_ones_are_requested, fake_reset),
        cmocka_unit_test(an_image_that_is_a_digest_is_marked),
        cmocka_unit_test(the_status_has_the_name_of_the_image),
        cmocka_unit_test_setup(a_runtime_without_v1_is_called_in_v1alpha2, fake_reset),
        cmocka_unit_test_setup(a_socket_without_cri_behind_it_is_not_supported, fake_reset),
        cmocka_unit_test_setup(the_clients_error_is_passed_on, fake_reset),
        cmocka_unit_test_setup(an_answer_that_is_no_message_has_a_text, fake_reset),
        cmocka_unit_test_setup(without_sandboxes_the_containers_count, fake_reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
