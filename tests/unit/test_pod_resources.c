/* identity/kubernetes/pod_resources: the GPUs that a kubelet allocated to containers. */
#include "unit.h"

#include <stdlib.h>

#include "fake_client.h"
#include "identity_checks.h"
#include "wire.h"

#define UUID "8f6b0c1e-1111-2222-3333-444455556666"

static const struct device_case {
    const char *resource, *device;
    enum allocation_kind kind;
    const char *id; /* NULL: no GPU that we know */
    uint32_t index;
    bool shared;
} devices[] = {
    {"nvidia.com/gpu", "GPU-" UUID, ALLOCATION_GPU_UUID, "GPU-" UUID, 0, false},
    {"nvidia.com/gpu", "GPU-" UUID "::3", ALLOCATION_GPU_UUID, "GPU-" UUID, 0, true},
    {"nvidia.com/gpu.shared", "GPU-" UUID "::0", ALLOCATION_GPU_UUID, "GPU-" UUID, 0, true},
    {"nvidia.com/gpu", "GPU-" UUID "::3::4", ALLOCATION_GPU_UUID, "GPU-" UUID, 0, true},
    {"nvidia.com/gpu", "MIG-" UUID, ALLOCATION_MIG_UUID, "MIG-" UUID, 0, false},
    {"nvidia.com/mig-1g.5gb", "MIG-" UUID "::1", ALLOCATION_MIG_UUID, "MIG-" UUID, 0, true},
    {"nvidia.com/mig-1g.5gb", "MIG-GPU-" UUID "/7/0", ALLOCATION_MIG_UUID, "MIG-GPU-" UUID "/7/0",
     0, false},
    {"nvidia.com/mig-1g.5gb", "MIG-GPU-" UUID "/7/0::1", ALLOCATION_MIG_UUID,
     "MIG-GPU-" UUID "/7/0", 0, true},
    {"nvidia.com/gpu", "tegra", ALLOCATION_TEGRA, "", 0, false},
    {"nvidia.com/gpu", "tegra::1", ALLOCATION_TEGRA, "", 0, true},
    {"nvidia.com/gpu", "all", ALLOCATION_ALL, "", 0, false},
    {"nvidia.com/gpu", "nvidia0", ALLOCATION_MINOR, "", 0, false},
    {"nvidia.com/gpu", "nvidia12", ALLOCATION_MINOR, "", 12, false},
    {"nvidia.com/gpu", "nvidia0/gi1", ALLOCATION_MINOR, "gi1", 0, false},
    {"nvidia.com/gpu", "nvidia3/vgpu0", ALLOCATION_MINOR, "", 3, true},
    {"nvidia.com/gpu", "nvidia3/gi13/vgpu0", ALLOCATION_MINOR, "gi13", 3, true},
    {"amd.com/gpu", "0000:19:00.0", ALLOCATION_PCI, "0000:19:00.0", 0, false},
    {"amd.com/gpu", "0000:C1:00.0", ALLOCATION_PCI, "0000:C1:00.0", 0, false},
    {"amd.com/cpx_nps4", "amdgpu_xcp_30", ALLOCATION_XCP, "", 30, false},
    {"gpu.intel.com/i915", "card0-0", ALLOCATION_CARD, "", 0, false},
    {"gpu.intel.com/xe", "card11-0", ALLOCATION_CARD, "", 11, false},
    {"gpu.intel.com/xe", "card1-2", ALLOCATION_CARD, "", 1, true},
    {"gpu.nvidia.com", "gpu-0", ALLOCATION_MINOR, "", 0, false},
    {"gpu.nvidia.com", "gpu-1-mig-2g47gb-14-0", ALLOCATION_MINOR, "mig-2g47gb-14-0", 1, false},
    {"gpu.nvidia.com", "gpu-1-mig-19-4-1", ALLOCATION_MINOR, "mig-19-4-1", 1, false},
    {"gpu.amd.com", "gpu-1-129", ALLOCATION_RENDER, "", 129, false},
    {"gpu.intel.com", "0000-03-00-0-0x56c0", ALLOCATION_PCI, "0000:03:00.0", 0, false},
    /* Renamed resources. */
    {"example.com/a100", "GPU-" UUID, ALLOCATION_GPU_UUID, "GPU-" UUID, 0, false},
    {"example.com/slice", "MIG-" UUID "::1", ALLOCATION_MIG_UUID, "MIG-" UUID, 0, true},

    /* No GPU that this node can meter, or no GPU. */
    {"gpu.nvidia.com", "gpu-vfio-0", 0, NULL, 0, false},
    {"gpu.nvidia.com", "gpu-", 0, NULL, 0, false},
    {"gpu.nvidia.com", "gpu-0x", 0, NULL, 0, false},
    {"gpu.nvidia.com", "gpu-0-", 0, NULL, 0, false},
    {"gpu.nvidia.com", "gpu-0-mig-", 0, NULL, 0, false},
    {"gpu.nvidia.com", "gpu-0-mig-\xff", 0, NULL, 0, false},
    {"gpu.nvidia.com", "gpu-0-vgpu-1", 0, NULL, 0, false},
    {"gpu.nvidia.com", "gpu-4294967296", 0, NULL, 0, false},
    {"compute-domain.nvidia.com", "channel-0", 0, NULL, 0, false},
    {"gpu.amd.com", "gpu-0-cpx-nps4", 0, NULL, 0, false},
    {"gpu.amd.com", "gpu-0", 0, NULL, 0, false},
    {"gpu.intel.com", "0000:03:00.0", 0, NULL, 0, false},
    {"gpu.intel.com", "0000-03-00-0-1x56c0", 0, NULL, 0, false},
    {"gpu.intel.com/i915_monitoring", "all", 0, NULL, 0, false},
    {"gpu.intel.com/i915", "card0", 0, NULL, 0, false},
    {"gpu.intel.com/i915", "card-0", 0, NULL, 0, false},
    {"gpu.intel.com/i915", "card0-0-0", 0, NULL, 0, false},
    {"gpu.intel.com/vfio", "0000:03:00.0", 0, NULL, 0, false},
    {"amd.com/gpu", "0000:19:00", 0, NULL, 0, false},
    {"amd.com/gpu", "0000:19:00.0.0", 0, NULL, 0, false},
    {"amd.com/gpu", "000g:19:00.0", 0, NULL, 0, false},
    {"amd.com/gpu", "amdgpu_xcp_", 0, NULL, 0, false},
    {"amd.com/gpu", "amdgpu_xcp_1x", 0, NULL, 0, false},
    {"nvidia.com/gpu", "", 0, NULL, 0, false},
    {"nvidia.com/gpu", "::3", 0, NULL, 0, false},
    {"nvidia.com/gpu", "GPU-", 0, NULL, 0, false},
    {"nvidia.com/gpu", "GPU-" UUID "-0", 0, NULL, 0, false},
    {"nvidia.com/gpu", "GPU-8f6b0c1e", 0, NULL, 0, false},
    {"nvidia.com/gpu", "GPU-8f6b0c1e-1111-2222-3333-44445555666g", 0, NULL, 0, false},
    {"nvidia.com/gpu", "gpu-" UUID, 0, NULL, 0, false},
    {"nvidia.com/gpu", UUID, 0, NULL, 0, false},
    {"nvidia.com/gpu", "MIG-GPU-" UUID, 0, NULL, 0, false},
    {"nvidia.com/gpu", "MIG-GPU-" UUID "/7", 0, NULL, 0, false},
    {"nvidia.com/gpu", "MIG-GPU-" UUID "/7/", 0, NULL, 0, false},
    {"nvidia.com/gpu", "MIG-GPU-" UUID "/7/0/1", 0, NULL, 0, false},
    {"nvidia.com/gpu", "nvidia", 0, NULL, 0, false},
    {"nvidia.com/gpu", "nvidiactl", 0, NULL, 0, false},
    {"nvidia.com/gpu", "nvidia0/", 0, NULL, 0, false},
    {"nvidia.com/gpu", "nvidia0/gi", 0, NULL, 0, false},
    {"nvidia.com/gpu", "nvidia0/vgpu", 0, NULL, 0, false},
    {"nvidia.com/gpu", "nvidia0/vgpu0/gi1", 0, NULL, 0, false},
    {"nvidia.com/gpu", "nvidia99999999999", 0, NULL, 0, false},
    {"nvidia.com/gpu", "17", 0, NULL, 0, false},
    {"nvidia.com.evil/gpu", "all", 0, NULL, 0, false},
    {"nvidia.com", "all", 0, NULL, 0, false},
    {"", "all", 0, NULL, 0, false},
    {"example.com/dev", "all", 0, NULL, 0, false},
    {"example.com/dev", "nvidia0", 0, NULL, 0, false},
    {"example.com/dev", "0000:19:00.0", 0, NULL, 0, false},
    {"gpu.nvidia.com.evil", "gpu-0", 0, NULL, 0, false},
    {"cpu.intel.com", "gpu-0", 0, NULL, 0, false},
};

static void every_form_of_a_device_id_is_known(void **state)
{
    struct arena arena;

    (void)state;
    arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
        const struct device_case *expected = &devices[i];
        struct allocation found = {.id = "untouched"};
        int r = pod_resources_parse_device(span_of(expected->resource), span_of(expected->device),
                                           &arena, &found);

        if (r != (expected->id != NULL))
            fail_msg("%s %s: %d", expected->resource, expected->device, r);
        if (r == 0) {
            assert_string_equal(found.id, "untouched");
            continue;
        }
        if (found.kind != expected->kind || strcmp(found.id, expected->id) != 0 ||
            found.index != expected->index || found.shared != expected->shared)
            fail_msg("%s %s: kind %d, id '%s', index %u, shared %d", expected->resource,
                     expected->device, (int)found.kind, found.id, found.index, found.shared);
        assert_string_equal(found.resource, expected->resource);
    }
    arena_done(&arena);
}

static void a_device_id_that_holds_nul_or_a_megabyte_is_none(void **state)
{
    size_t len = 1 << 20;
    _cleanup_free_ char *text = calloc(1, len);
    struct allocation found;
    struct arena arena;

    (void)state;
    assert_non_null(text);
    arena_init(&arena, 1 << 20);
    memset(text, '0', len);
    memcpy(text, "nvidia", 6);
    assert_int_equal(pod_resources_parse_device(span_of("nvidia.com/gpu"), (struct span){text, len},
                                                &arena, &found),
                     0);
    assert_int_equal(pod_resources_parse_device(span_of("nvidia.com/gpu"),
                                                (struct span){"nvidia0\0", 8}, &arena, &found),
                     0);
    assert_int_equal(pod_resources_parse_device(span_of("nvidia.com/gpu"),
                                                (struct span){"\0all", 4}, &arena, &found),
                     0);
    assert_int_equal(arena.used_bytes, 0);
    arena_done(&arena);
}

static void without_memory_there_is_no_device(void **state)
{
    struct allocation found;
    struct arena arena;

    (void)state;
    arena_init(&arena, 8);
    assert_int_equal(
        pod_resources_parse_device(span_of("nvidia.com/gpu"), span_of("all"), &arena, &found),
        -ENOMEM);
    arena_done(&arena);
}

static void add_devices(struct buffer *container, const char *resource, const char *first,
                        const char *second)
{
    struct buffer entry = wire_new(), topology = wire_new(), node = wire_new();

    protobuf_put_varint(&node, 1, 1);
    wire_message(&topology, 1, &node);
    wire_text(&entry, 1, resource);
    wire_text(&entry, 2, first);
    if (second)
        wire_text(&entry, 2, second);
    wire_message(&entry, 3, &topology);
    wire_message(container, 2, &entry);
}

static void add_named_claim(struct buffer *container, const char *cdi_name, const char *driver,
                            const char *device, const char *share)
{
    struct buffer claim = wire_new(), resource = wire_new(), cdi = wire_new();

    wire_text(&cdi, 1, cdi_name);
    wire_message(&resource, 1, &cdi);
    wire_text(&resource, 2, driver);
    wire_text(&resource, 3, "node-1");
    wire_text(&resource, 4, device);
    if (share)
        wire_text(&resource, 5, share);
    wire_text(&claim, 2, "claim");
    wire_text(&claim, 3, "ml");
    wire_message(&claim, 4, &resource);
    wire_message(container, 5, &claim);
}

static void add_claim(struct buffer *container, const char *driver, const char *device,
                      const char *share)
{
    add_named_claim(container, "k8s.gpu.nvidia.com/claim=uid-gpu-0", driver, device, share);
}

static struct buffer a_container(const char *name)
{
    struct buffer container = wire_new();

    wire_text(&container, 1, name);
    protobuf_put_bytes(&container, 3, (struct span){"\x01\x02\x03", 3}); /* packed CPUs */
    protobuf_put_varint(&container, 3, 4);                               /* and one alone */
    return container;
}

/* Ends the container. */
static struct buffer response_of(struct buffer *container)
{
    struct buffer response = wire_new(), pod = wire_new();

    wire_text(&pod, 1, "train-0");
    wire_text(&pod, 2, "ml");
    wire_message(&pod, 3, container);
    wire_unknown(&pod);
    wire_message(&response, 1, &pod);
    return response;
}

static struct allocation_list list;

/* Ends the response. */
static int parse(struct buffer *response)
{
    int r;

    allocation_list_init(&list);
    r = pod_resources_parse(wire_span(response), &list);
    assert_true(are_valid_allocations(&list));
    buffer_done(response);
    return r;
}

/* As a gRPC server of the reference sent it, without its frame. */
static void the_message_of_a_real_server_is_read(void **state)
{
    static const char message[] =
        "\x0a\x56\x0a\x07train-0\x12\x02ml\x1a\x47\x0a\x06worker\x12\x3d\x0a\x0envidia.com/gpu"
        "\x12\x2bGPU-8f6b0c1e-0000-0000-0000-000000000000::3";

    (void)state;
    assert_int_equal(sizeof(message) - 1, 0x58);
    allocation_list_init(&list);
    assert_int_equal(pod_resources_parse((struct span){message, sizeof(message) - 1}, &list), 0);
    assert_int_equal(list.count, 1);
    assert_string_equal(list.items[0].namespace, "ml");
    assert_string_equal(list.items[0].pod, "train-0");
    assert_string_equal(list.items[0].container, "worker");
    assert_string_equal(list.items[0].resource, "nvidia.com/gpu");
    assert_string_equal(list.items[0].id, "GPU-8f6b0c1e-0000-0000-0000-000000000000");
    assert_int_equal(list.items[0].kind, ALLOCATION_GPU_UUID);
    assert_true(list.items[0].shared);
    allocation_list_done(&list);
}

static void devices_of_all_entries_are_collected(void **state)
{
    struct buffer container = a_container("worker"), response;

    (void)state;
    add_devices(&container, "nvidia.com/gpu", "nvidia0", "nvidia1");
    add_devices(&container, "rdma/hca", "mlx5_0", NULL);
    add_devices(&container, "nvidia.com/gpu", "nvidia2", NULL);
    add_claim(&container, "gpu.nvidia.com", "gpu-3", NULL);
    response = response_of(&container);
    assert_int_equal(parse(&response), 0);
    assert_int_equal(list.count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(list.items[i].index, i);
        assert_string_equal(list.items[i].container, "worker");
        assert_string_equal(list.items[i].pod, "train-0");
        assert_false(list.items[i].shared);
        assert_int_equal(list.items[i].is_claim, i == 3);
    }
    assert_string_equal(list.items[3].resource, "gpu.nvidia.com");
    allocation_list_done(&list);
}

static void a_claim_with_a_share_id_is_shared(void **state)
{
    struct buffer container = a_container("worker"), response;

    (void)state;
    add_claim(&container, "gpu.nvidia.com", "gpu-0", "uid-1");
    add_claim(&container, "gpu.nvidia.com", "gpu-vfio-1", NULL);
    add_claim(&container, "", "gpu-1", NULL);
    response = response_of(&container);
    assert_int_equal(parse(&response), 0);
    assert_int_equal(list.count, 1);
    assert_true(list.items[0].shared);
    allocation_list_done(&list);
}

/* The name of the device counts; where that says nothing, its names for the runtime may. */
static void the_device_of_a_claim_is_found_by_either_of_its_names(void **state)
{
    static const struct {
        const char *cdi, *driver, *device, *share;
        enum allocation_kind kind;
        const char *id; /* NULL: none */
        uint32_t index;
    } cases[] = {
        {"k8s.gpu.nvidia.com/claim=" UUID "-gpu-5", "gpu.nvidia.com", "gpu-1", NULL,
         ALLOCATION_MINOR, "", 1},
        {"k8s.gpu.nvidia.com/claim=" UUID "-gpu-1-mig-2g47gb-14-0", "gpu.nvidia.com",
         "gpu-1-mig-2g47gb-14-0", NULL, ALLOCATION_MINOR, "mig-2g47gb-14-0", 1},
        {"k8s.gpu.amd.com/claim=" UUID "-gpu-0-128", "gpu.amd.com", "gpu-0-128", NULL,
         ALLOCATION_RENDER, "", 128},
        {"k8s.gpu.nvidia.com/claim=" UUID "-gpu-5", "gpu.example.com", "slice-7", "s",
         ALLOCATION_MINOR, "", 5},
        {"k8s.gpu.amd.com/claim=" UUID "-gpu-2-130", "gpu.example.com", "x", NULL,
         ALLOCATION_RENDER, "", 130},
        {"nvidia.com/gpu=GPU-" UUID, "gpu.example.com", "x", NULL, ALLOCATION_GPU_UUID, "GPU-" UUID,
         0},
        {"k8s.gpu.nvidia.com/claim=" UUID "-gpu-vfio-1", "gpu.nvidia.com", "gpu-vfio-1", NULL, 0,
         NULL, 0},
        {"k8s.gpu.nvidia.com/claim=" UUID, "gpu.example.com", "x", NULL, 0, NULL, 0},
        {"k8s.gpu.nvidia.com/claim=gpu-1", "gpu.example.com", "x", NULL, ALLOCATION_MINOR, "", 1},
        {"nvidia.com/gpu=0", "gpu.example.com", "x", NULL, ALLOCATION_INDEX, "", 0},
        {"nvidia.com/gpu=1:2", "gpu.example.com", "x", "s", ALLOCATION_INDEX, "2", 1},
        {"nvidia.com/gpu=MIG-" UUID, "gpu.example.com", "x", NULL, ALLOCATION_MIG_UUID, "MIG-" UUID,
         0},
        {"nvidia.com/pgpu=0", "gpu.example.com", "x", NULL, 0, NULL, 0},
        {"example.com/gpu=0", "gpu.example.com", "x", NULL, 0, NULL, 0},
        {"", "gpu.example.com", "x", NULL, 0, NULL, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct buffer container = a_container("worker"), response;

        add_named_claim(&container, cases[i].cdi, cases[i].driver, cases[i].device, cases[i].share);
        response = response_of(&container);
        assert_int_equal(parse(&response), 0);
        if (list.count != (cases[i].id != NULL) ||
            (list.count > 0 &&
             (list.items[0].kind != cases[i].kind || list.items[0].index != cases[i].index ||
              strcmp(list.items[0].id, cases[i].id) != 0 || !list.items[0].is_claim ||
              list.items[0].shared != (cases[i].share != NULL))))
            fail_msg("case %zu", i);
        allocation_list_done(&list);
    }
}

/* Names last, as no server sends them but the format allows. */
static void names_may_stand_behind_what_they_name(void **state)
{
    struct buffer devices_first = wire_new(), container = wire_new(), pod = wire_new(),
                  response = wire_new();

    (void)state;
    wire_text(&devices_first, 2, "nvidia0");
    wire_text(&devices_first, 1, "nvidia.com/gpu");
    wire_message(&container, 2, &devices_first);
    wire_text(&container, 1, "worker");
    wire_message(&pod, 3, &container);
    wire_text(&pod, 2, "ml");
    wire_text(&pod, 1, "train-0");
    wire_message(&response, 1, &pod);
    assert_int_equal(parse(&response), 0);
    assert_int_equal(list.count, 1);
    assert_string_equal(list.items[0].namespace, "ml");
    assert_string_equal(list.items[0].pod, "train-0");
    assert_string_equal(list.items[0].container, "worker");
    allocation_list_done(&list);
}

static void devices_without_a_whole_name_are_left_out(void **state)
{
    static const struct {
        struct span pod, namespace, container, resource;
    } cases[] = {
        {{"", 0}, {"ml", 2}, {"w", 1}, {"nvidia.com/gpu", 14}},
        {{"p", 1}, {"", 0}, {"w", 1}, {"nvidia.com/gpu", 14}},
        {{"p", 1}, {"ml", 2}, {"", 0}, {"nvidia.com/gpu", 14}},
        {{"p", 1}, {"ml", 2}, {"w", 1}, {"", 0}},
        {{"\xff", 1}, {"ml", 2}, {"w", 1}, {"nvidia.com/gpu", 14}},
        {{"p", 1}, {"m\0l", 3}, {"w", 1}, {"nvidia.com/gpu", 14}},
        {{"p", 1}, {"ml", 2}, {"w\xc3", 2}, {"nvidia.com/gpu", 14}},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct buffer entry = wire_new(), container = wire_new(), pod = wire_new(),
                      response = wire_new();

        protobuf_put_bytes(&entry, 1, cases[i].resource);
        wire_text(&entry, 2, "GPU-" UUID);
        protobuf_put_bytes(&container, 1, cases[i].container);
        wire_message(&container, 2, &entry);
        protobuf_put_bytes(&pod, 1, cases[i].pod);
        protobuf_put_bytes(&pod, 2, cases[i].namespace);
        wire_message(&pod, 3, &container);
        wire_message(&response, 1, &pod);
        assert_int_equal(parse(&response), 0);
        if (list.count != 0)
            fail_msg("case %zu", i);
        allocation_list_done(&list);
    }
}

static void fields_of_another_type_are_not_there(void **state)
{
    (void)state;
    for (uint32_t number = 1; number <= 8; number++)
        for (int depth = 0; depth < 3; depth++) {
            struct buffer entry = wire_new(), container = wire_new(), pod = wire_new(),
                          response = wire_new();
            struct buffer *levels[] = {&entry, &container, &pod};

            wire_text(&entry, 1, "nvidia.com/gpu");
            wire_text(&entry, 2, "nvidia0");
            wire_text(&container, 1, "worker");
            wire_text(&pod, 1, "train-0");
            wire_text(&pod, 2, "ml");
            protobuf_put_varint(levels[depth], number, 7);
            wire_message(&container, 2, &entry);
            wire_message(&pod, 3, &container);
            wire_message(&response, 1, &pod);
            protobuf_put_varint(&response, 1, 7);
            assert_int_equal(parse(&response), 0);
            assert_int_equal(list.count, 1);
            allocation_list_done(&list);
        }
}

/* Ends `bytes`. */
static void append(struct buffer *response, char *bytes, size_t len)
{
    buffer_bytes(response, bytes, len);
    free(bytes);
}

static void a_pod_that_is_broken_costs_no_other(void **state)
{
    struct buffer container = a_container("worker"), response, more;

    (void)state;
    add_devices(&container, "nvidia.com/gpu", "nvidia0", NULL);
    response = response_of(&container);
    protobuf_put_bytes(&response, 1, (struct span){"\x0a\x01p\x12\x01n\x1a\x7f", 8});
    container = a_container("other");
    add_devices(&container, "nvidia.com/gpu", "nvidia1", NULL);
    more = response_of(&container);
    append(&response, more.data, more.len);
    assert_int_equal(parse(&response), 0);
    assert_int_equal(list.count, 2);
    assert_string_equal(list.items[1].container, "other");
    allocation_list_done(&list);
}

static void a_list_that_breaks_off_is_read_up_to_there(void **state)
{
    struct buffer container = a_container("worker"), response;
    size_t first_len;
    struct span whole;

    (void)state;
    add_devices(&container, "nvidia.com/gpu", "GPU-" UUID "::1", "MIG-" UUID);
    add_claim(&container, "gpu.nvidia.com", "gpu-3", NULL);
    response = response_of(&container);
    first_len = response.len;
    append(&response, wire_cut(wire_span(&response), first_len), first_len);
    whole = wire_span(&response);
    for (size_t len = 0; len <= whole.len; len++) {
        _cleanup_free_ char *cut = wire_cut(whole, len);
        bool is_whole = len % first_len == 0;

        allocation_list_init(&list);
        assert_int_equal(pod_resources_parse((struct span){cut, len}, &list),
                         is_whole ? 0 : -EBADMSG);
        assert_int_equal(list.count, 3 * (len / first_len));
        assert_true(are_valid_allocations(&list));
        allocation_list_done(&list);
    }
    buffer_done(&response);
}

/* What is cut inside of a message that is whole. */
static void a_container_that_breaks_off_has_no_devices(void **state)
{
    struct buffer container = a_container("worker");
    struct span whole;

    (void)state;
    add_devices(&container, "nvidia.com/gpu", "GPU-" UUID "::1", "MIG-" UUID);
    add_claim(&container, "gpu.nvidia.com", "gpu-3", NULL);
    whole = wire_span(&container);
    for (size_t len = 0; len < whole.len; len++) {
        struct buffer part = wire_new(), response;

        buffer_bytes(&part, whole.data, len);
        response = response_of(&part);
        assert_int_equal(parse(&response), 0);
        assert_true(list.count == 0 || list.count == 2);
        allocation_list_done(&list);
    }
    buffer_done(&container);
}

static void of_100000_devices_65536_are_kept(void **state)
{
    struct buffer container = a_container("worker"), entry = wire_new(), response;

    (void)state;
    wire_text(&entry, 1, "nvidia.com/gpu");
    for (int i = 0; i < 100000; i++)
        wire_text(&entry, 2, "nvidia0");
    wire_message(&container, 2, &entry);
    response = response_of(&container);
    assert_int_equal(parse(&response), 0);
    assert_int_equal(list.count, ALLOCATIONS_MAX);
    allocation_list_done(&list);
}

/* Names that are long and copied for each of 100000 containers. */
static void a_list_that_is_full_keeps_what_it_has(void **state)
{
    struct buffer response = wire_new(), pod = wire_new(), container = wire_new();
    char name[513];

    (void)state;
    memset(name, 'x', 512);
    name[512] = '\0';
    wire_text(&container, 1, "c");
    add_devices(&container, "nvidia.com/gpu", "nvidia0", NULL);
    wire_text(&pod, 1, name);
    wire_text(&pod, 2, name);
    for (int i = 0; i < 100000; i++)
        protobuf_put_bytes(&pod, 3, wire_span(&container));
    buffer_done(&container);
    wire_message(&response, 1, &pod);
    assert_int_equal(parse(&response), -ENOMEM);
    assert_in_range(list.count, 10000, 60000);
    allocation_list_done(&list);
}

static void names_of_a_megabyte_are_cut_as_those_of_runtimes_are(void **state)
{
    size_t len = 1 << 20;
    _cleanup_free_ char *name = malloc(len + 1);
    struct buffer container, response;

    (void)state;
    assert_non_null(name);
    memset(name, 'x', len);
    name[len] = '\0';
    container = a_container(name);
    add_devices(&container, "nvidia.com/gpu", "nvidia0", name);
    add_devices(&container, name, "GPU-" UUID, NULL);
    response = response_of(&container);
    assert_int_equal(parse(&response), 0);
    assert_int_equal(list.count, 2);
    assert_int_equal(strlen(list.items[0].container), RUNTIME_TEXT_MAX);
    assert_int_equal(strlen(list.items[1].resource), RUNTIME_TEXT_MAX);
    allocation_list_done(&list);
}

static int list_devices(struct error *err)
{
    allocation_list_init(&list);
    return pod_resources_list(NULL, "/run/test.sock", 3000000, &list, err);
}

static void the_kubelet_is_requested_to_list_all_pods(void **state)
{
    struct buffer container = a_container("worker"), response;
    struct error err = {""};

    (void)state;
    add_devices(&container, "nvidia.com/gpu", "nvidia0", NULL);
    response = response_of(&container);
    fake_client.answers[0].body = wire_span(&response);
    assert_int_equal(list_devices(&err), 0);
    assert_string_equal(err.text, "");
    assert_int_equal(list.count, 1);
    assert_int_equal(fake_client.asked, 1);
    assert_int_equal(fake_client.replies, 0);
    assert_string_equal(fake_client.paths[0], "/v1.PodResourcesLister/List");
    assert_int_equal(fake_client.request_lens[0], 0);
    allocation_list_done(&list);
    buffer_done(&response);
}

static void a_refusal_of_the_kubelet_is_an_errno_with_a_text(void **state)
{
    static const struct {
        struct fake_answer answer;
        int expected;
    } cases[] = {
        {{.r = -EREMOTEIO, .status = 8}, -EAGAIN}, {{.r = -EREMOTEIO, .status = 12}, -EOPNOTSUPP},
        {{.r = -EREMOTEIO, .status = 7}, -EACCES}, {{.r = -EREMOTEIO, .status = 13}, -EREMOTEIO},
        {{.r = -ETIMEDOUT}, -ETIMEDOUT},           {{.r = -ENOENT}, -ENOENT},
        {{.body = {"\xff", 1}}, -EBADMSG},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct error err = {""};

        fake_reset(NULL);
        fake_client.answers[0] = cases[i].answer;
        assert_int_equal(list_devices(&err), cases[i].expected);
        assert_string_not_equal(err.text, "");
        assert_int_equal(list.count, 0);
        assert_int_equal(fake_client.replies, 0);
        allocation_list_done(&list);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_of_a_device_id_is_known),
        cmocka_unit_test(a_device_id_that_holds_nul_or_a_megabyte_is_none),
        cmocka_unit_test(without_memory_there_is_no_device),
        cmocka_unit_test(the_message_of_a_real_server_is_read),
        cmocka_unit_test(devices_of_all_entries_are_collected),
        cmocka_unit_test(a_claim_with_a_share_id_is_shared),
        cmocka_unit_test(the_device_of_a_claim_is_found_by_either_of_its_names),
        cmocka_unit_test(names_may_stand_behind_what_they_name),
        cmocka_unit_test(devices_without_a_whole_name_are_left_out),
        cmocka_unit_test(fields_of_another_type_are_not_there),
        cmocka_unit_test(a_pod_that_is_broken_costs_no_other),
        cmocka_unit_test(a_list_that_breaks_off_is_read_up_to_there),
        cmocka_unit_test(a_container_that_breaks_off_has_no_devices),
        cmocka_unit_test(of_100000_devices_65536_are_kept),
        cmocka_unit_test(a_list_that_is_full_keeps_what_it_has),
        cmocka_unit_test(names_of_a_megabyte_are_cut_as_those_of_runtimes_are),
        cmocka_unit_test_setup(the_kubelet_is_requested_to_list_all_pods, fake_reset),
        cmocka_unit_test_setup(a_refusal_of_the_kubelet_is_an_errno_with_a_text, fake_reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
