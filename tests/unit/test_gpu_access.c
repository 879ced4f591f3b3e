/* identity/gpus/gpu_access and identity/inspect: the GPUs that a container was given, in
 * everybody's words. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "identity/gpu_access.h"
#include "identity/gpus/attachments.h"
#include "identity/runtimes/parse.h"

#define UUID "GPU-8dea0b1f-4c4e-7a1b-9d3c-0123456789ab"
#define MIG  "MIG-11111111-2222-3333-4444-555555555555"

static struct gpu_access_list list;

/* "all", "i1", "i1:0" (a MIG device), "m0" (a minor), or a uuid; "!" before what is a privilege,
 * "?" before what may be forged. */
static const char *shown(void)
{
    static char text[8192];
    size_t len = 0;

    text[0] = '\0';
    for (size_t i = 0; i < list.count; i++) {
        const struct gpu_access *gpu = &list.items[i];
        char name[128];

        switch (gpu->kind) {
        case ALLOCATION_ALL:
            snprintf(name, sizeof(name), "all");
            break;
        case ALLOCATION_INDEX:
            snprintf(name, sizeof(name), "i%u%s%s", gpu->index, gpu->id[0] ? ":" : "", gpu->id);
            break;
        case ALLOCATION_MINOR:
            snprintf(name, sizeof(name), "m%u", gpu->index);
            break;
        case ALLOCATION_RENDER:
            snprintf(name, sizeof(name), "r%u", gpu->index);
            break;
        case ALLOCATION_GPU_UUID:
        case ALLOCATION_MIG_UUID:
            snprintf(name, sizeof(name), "%s", gpu->id);
            break;
        default:
            fail_msg("kind %d", (int)gpu->kind);
        }
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s%s", len > 0 ? " " : "",
                                gpu->is_privileged   ? "!"
                                : gpu->is_unverified ? "?"
                                                     : "",
                                name);
        assert_true(len < sizeof(text));
    }
    return text;
}

static void assert_shown(const char *what, const char *expected)
{
    if (strcmp(shown(), expected) != 0)
        fail_msg("%s: '%s', not '%s'", what, shown(), expected);
}

static void names_of_visible_devices_are_all_indices_and_uuids(void **state)
{
    static const struct {
        const char *names, *expected;
    } cases[] = {
        {"all", "all"},
        {"0", "i0"},
        {"0,2,10", "i0 i2 i10"},
        {"1:0", "i1:0"},
        {"1:", ""},
        {":0", ""},
        {"0,0,0:1,0:1", "i0 i0:1"},
        {UUID, UUID},
        {"GPU-8dea", "GPU-8dea"},
        {MIG "," UUID, MIG " " UUID},
        {"MIG-" UUID "/7/0", "MIG-" UUID "/7/0"},
        {"none", ""},
        {"void", ""},
        {"", ""},
        {",,", ""},
        {"/var/run/nvidia-container-devices", ""},
        {"GPU-", ""},
        {"MIG-", ""},
        {"MIG-GPU-", ""},
        {"GPU-xyz", ""},
        {"-1", ""},
        {"+1", ""},
        {" 1", ""},
        {":1", ""},
        {"1:x", ""},
        {"4294967296", ""},
        {"99999999999999999999999", ""},
        {"ALL", ""},
        {"0,bogus,1", "i0 i1"},
        {"0:00000000000000000000000000000000000000000000000000000000000000000000000000", ""},
        {"GPU-00000000000000000000000000000000000000000000000000000000000000000000000", ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        list.count = 0;
        gpu_access_add_visible(&list, span_of(cases[i].names));
        assert_shown(cases[i].names, cases[i].expected);
    }
}

static void names_of_cdi_count_if_they_are_gpus_of_nvidia(void **state)
{
    static const struct {
        const char *name, *expected;
    } cases[] = {
        {"nvidia.com/gpu=all", "all"},
        {"nvidia.com/gpu=0", "i0"},
        {"nvidia.com/gpu=gpu3", "i3"},
        {"nvidia.com/gpu=1:0", "i1:0"},
        {"management.nvidia.com/gpu=all", "!all"},
        {"nvidia.com/gpu=mig1:0", "i1:0"},
        {"nvidia.com/gpu=" UUID, UUID},
        {"nvidia.com/gpu=" MIG, MIG},
        {"k8s.device-plugin.nvidia.com/gpu=" UUID, UUID},
        {"notnvidia.com/gpu=0", ""},
        {"amd.com/gpu=all", ""},
        {"nvidia.com/nic=0", ""},
        {"nvidia.com/gpu", ""},
        {"nvidia.com/gpu=", ""},
        {"nvidia.com=0", ""},
        {"=", ""},
        {"", ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        list.count = 0;
        gpu_access_add_cdi(&list, span_of(cases[i].name));
        assert_shown(cases[i].name, cases[i].expected);
    }
}

static void a_container_has_no_more_gpus_than_fit(void **state)
{
    (void)state;
    list.count = 0;
    for (int i = 0; i < 2 * GPU_ACCESS_MAX; i++) {
        char index[16];

        snprintf(index, sizeof(index), "%d", i);
        gpu_access_add_visible(&list, span_of(index));
    }
    assert_int_equal(list.count, GPU_ACCESS_MAX);
}

static void a_mig_profile_contains_its_memory(void **state)
{
    static const struct {
        const char *profile;
        uint64_t gib;
    } cases[] = {
        {"nvidia.com/mig-1g.10gb", 10},
        {"nvidia.com/mig-1g.10gb.me", 10},
        {"mig-2g47gb-14-0", 47},
        {"1c.3g.20gb", 20},
        {"7g.141gb", 141},
        {"nvidia.com/gpu", 0},
        {"gi1", 0},
        {"gb", 0},
        {"", 0},
        {"1g.99999999999999999999gb", 0},
        {"example.com/80gb-card", 0},
        {"10gb", 0},
        {"g.10gb", 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (gpu_access_profile_bytes(span_of(cases[i].profile)) != cases[i].gib << 30)
            fail_msg("%s", cases[i].profile);
}

/* As dockerd answers, as far as it counts; %s is inside HostConfig. */
static void docker_grants_gpus_by_requests_devices_and_runtime(void **state)
{
    static const struct {
        const char *host_config, *env, *expected;
    } cases[] = {
        {"\"DeviceRequests\":null", "[]", ""},
        {"\"DeviceRequests\":[]", "[]", ""},
        {"\"Runtime\":\"runc\"", "null", ""},
        /* --gpus all; --gpus 2; --gpus '"device=GPU-...,1"' */
        {"\"DeviceRequests\":[{\"Driver\":\"\",\"Count\":-1,\"DeviceIDs\":null,"
         "\"Capabilities\":[[\"gpu\"]],\"Options\":{}}]",
         "[]", "all"},
        {"\"DeviceRequests\":[{\"Driver\":\"\",\"Count\":2,\"DeviceIDs\":null,"
         "\"Capabilities\":[[\"gpu\"]]}]",
         "[]", "i0 i1"},
        {"\"DeviceRequests\":[{\"Driver\":\"\",\"Count\":0,\"DeviceIDs\":[\"" UUID "\",\"1\"],"
         "\"Capabilities\":[[\"gpu\"]]}]",
         "[]", UUID " i1"},
        {"\"DeviceRequests\":[{\"Driver\":\"\",\"Count\":0,\"DeviceIDs\":[],"
         "\"Capabilities\":[[\"gpu\"]]}]",
         "[]", ""},
        /* Compose */
        {"\"DeviceRequests\":[{\"Driver\":\"nvidia\",\"Count\":-1,\"Capabilities\":[[\"gpu\"]]}]",
         "[]", "all"},
        {"\"DeviceRequests\":[{\"Driver\":\"nvidia\",\"Count\":1,\"Capabilities\":null}]", "[]",
         "i0"},
        {"\"DeviceRequests\":[{\"Driver\":\"\",\"Count\":-1,"
         "\"Capabilities\":[[\"x\"],[\"utility\",\"nvidia\"]]}]",
         "[]", "all"},
        {"\"DeviceRequests\":[{\"Driver\":\"cdi\",\"Count\":0,"
         "\"DeviceIDs\":[\"nvidia.com/gpu=0\",\"amd.com/gpu=1\",\"nvidia.com/gpu=" UUID "\"]}]",
         "[]", "i0 " UUID},
        {"\"DeviceRequests\":[{\"Driver\":\"nvidia.cdi\",\"Count\":9999999999999,"
         "\"Capabilities\":[[\"x\"]],\"DeviceIDs\":[\"3\"]}]",
         "[]", "i3"},
        /* other makers, other things */
        {"\"DeviceRequests\":[{\"Driver\":\"amd\",\"Count\":-1,\"Capabilities\":[[\"gpu\"]]}]",
         "[]", ""},
        {"\"DeviceRequests\":[{\"Driver\":\"\",\"Count\":-1,\"Capabilities\":[[\"gpu\",\"amd\"]]}]",
         "[]", ""},
        {"\"DeviceRequests\":[{\"Driver\":\"\",\"Count\":-1,\"Capabilities\":[[\"tpu\"]]}]", "[]",
         ""},
        /* types that are not as documented */
        {"\"DeviceRequests\":[null,7,\"gpu\",[],{\"Capabilities\":\"gpu\",\"Count\":-1},"
         "{\"Capabilities\":[\"gpu\"],\"Count\":-1},{\"Capabilities\":[[7]],\"Count\":-1},"
         "{\"Capabilities\":[[\"gpu\"]],\"Count\":\"-1\"},"
         "{\"Capabilities\":[[\"gpu\"]],\"DeviceIDs\":[null,7,{}]},"
         "{\"Capabilities\":[[\"gpu\"]],\"DeviceIDs\":\"0\"}]",
         "[]", ""},
        {"\"DeviceRequests\":{\"Count\":-1,\"Driver\":\"nvidia\"}", "[]", ""},
        /* --device */
        {"\"Devices\":[{\"PathOnHost\":\"/dev/nvidia0\",\"PathInContainer\":\"/dev/nvidia7\"},"
         "{\"PathOnHost\":\"/dev/nvidiactl\"},{\"PathOnHost\":\"/dev/nvidia-uvm\"},"
         "{\"PathOnHost\":\"/dev/nvidia255\"},{\"PathOnHost\":\"/dev/nvidia\"},"
         "{\"PathOnHost\":\"/dev/kfd\"},{\"PathOnHost\":7},null,\"/dev/nvidia1\"]",
         "[]", "m0"},
        {"\"Devices\":null", "[]", ""},
        /* the runtime, with and without the environment */
        {"\"Runtime\":\"nvidia\"", "[\"A=1\",\"NVIDIA_VISIBLE_DEVICES=all\"]", "all"},
        {"\"Runtime\":\"nvidia\"",
         "[\"NVIDIA_VISIBLE_DEVICES=all\",7,null,\"NVIDIA_VISIBLE_DEVICES=1\"]", "i1"},
        {"\"Runtime\":\"nvidia\"", "[\"NVIDIA_VISIBLE_DEVICES=none\"]", ""},
        {"\"Runtime\":\"nvidia\"", "[\"NVIDIA_VISIBLE_DEVICES=void\"]", ""},
        {"\"Runtime\":\"nvidia\"", "[\"NVIDIA_VISIBLE_DEVICES=\"]", ""},
        {"\"Runtime\":\"nvidia\"", "[\"NVIDIA_VISIBLE_DEVICES\"]", ""},
        {"\"Runtime\":\"nvidia\"", "[]", ""},
        {"\"Runtime\":\"runc\"", "[\"NVIDIA_VISIBLE_DEVICES=all\"]", ""},
        {"\"Runtime\":null", "[\"NVIDIA_VISIBLE_DEVICES=all\"]", ""},
        {"\"Privileged\":true", "[\"NVIDIA_VISIBLE_DEVICES=all\"]", "!all"},
        {"\"Privileged\":true,\"DeviceRequests\":[{\"Driver\":\"nvidia\",\"Count\":1}]", "[]",
         "i0 !all"},
        {"\"Privileged\":\"true\"", "[]", ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char body[2048];

        list.count = 0;
        snprintf(body, sizeof(body),
                 "{\"Id\":\"x\",\"State\":{\"Running\":true},\"HostConfig\":{%s},"
                 "\"Config\":{\"Env\":%s}}",
                 cases[i].host_config, cases[i].env);
        assert_int_equal(inspect_parse_container(span_of(body), &list), 0);
        assert_shown(body, cases[i].expected);
    }
}

static void podman_names_its_runtime_elsewhere(void **state)
{
    (void)state;
    list.count = 0;
    assert_int_equal(inspect_parse_container(
                         span_of("{\"OCIRuntime\":\"nvidia\",\"HostConfig\":{\"Runtime\":\"oci\","
                                 "\"Devices\":[{\"PathOnHost\":\"/dev/nvidia3\"}]},"
                                 "\"Config\":{\"Env\":[\"NVIDIA_VISIBLE_DEVICES=3\"]}}"),
                         &list),
                     0);
    assert_shown("podman", "m3 i3");
    list.count = 0;
    assert_int_equal(
        inspect_parse_container(
            span_of("{\"OCIRuntime\":\"crun\",\"HostConfig\":{\"Runtime\":\"oci\",\"Devices\":[]},"
                    "\"Config\":{\"Env\":[\"NVIDIA_VISIBLE_DEVICES=3\"]}}"),
            &list),
        0);
    assert_shown("podman", "");
}

static void cri_grants_gpus_by_nodes_cdi_and_runtime(void **state)
{
#define NODE(path, minor) "{\"path\":\"" path "\",\"type\":\"c\",\"major\":195,\"minor\":" minor "}"
#define ENV               "\"process\":{\"env\":[\"NVIDIA_VISIBLE_DEVICES=" UUID "\"]}"
    static const struct {
        const char *info, *expected;
    } cases[] = {
        {"{\"runtimeSpec\":{\"linux\":{\"devices\":[" NODE("/dev/nvidia1", "1") "," NODE(
             "/dev/nvidiactl",
             "255") "," NODE("/dev/nvidia-modeset",
                             "254") ","
                                    "{\"path\":\"/dev/nvidia-uvm\",\"type\":\"c\",\"major\":511,"
                                    "\"minor\":0}]}}}",
         "m1"},
        {"{\"config\":{\"CDI_devices\":[{\"name\":\"nvidia.com/gpu=" UUID "\"},{\"name\":7},null]},"
         "\"runtimeSpec\":{" ENV "}}",
         UUID},
        {"{\"runtimeOptions\":{\"BinaryName\":\"/usr/bin/nvidia-container-runtime\"},"
         "\"runtimeSpec\":{" ENV "}}",
         "?" UUID},
        {"{\"runtimeOptions\":{\"binary_name\":\"/x/nvidia-container-runtime.cdi\"},"
         "\"runtimeSpec\":{" ENV "}}",
         "?" UUID},
        {"{\"runtimeOptions\":{\"BinaryName\":\"/usr/bin/runc\"},\"runtimeSpec\":{" ENV "}}", ""},
        {"{\"runtimeSpec\":{" ENV "}}", ""},
        /* CRI-O, containerd */
        {"{\"privileged\":true,\"runtimeSpec\":{\"linux\":{\"devices\":[" NODE("/dev/nvidia0",
                                                                               "0") "]}}}",
         "!m0"},
        {"{\"config\":{\"linux\":{\"security_context\":{\"privileged\":true}}},"
         "\"runtimeSpec\":{\"linux\":{\"devices\":[" NODE("/dev/nvidia0", "0") "]}}}",
         "!m0"},
        {"{\"runtimeSpec\":{\"linux\":{\"devices\":["
         "{\"type\":\"b\",\"major\":195,\"minor\":0},{\"type\":\"c\",\"major\":195,\"minor\":-1},"
         "{\"type\":\"c\",\"major\":\"195\",\"minor\":0},{\"major\":195,\"minor\":0},7,null]}}}",
         ""},
        {"{\"runtimeSpec\":{\"linux\":{\"devices\":["
         "{\"type\":\"c\",\"major\":226,\"minor\":129},{\"type\":\"c\",\"major\":226,\"minor\":0},"
         "{\"type\":\"c\",\"major\":226,\"minor\":4711}]}}}",
         "r129"},
        {"{\"runtimeSpec\":{\"linux\":{\"devices\":null}}}", ""},
        {"{\"runtimeSpec\":null,\"config\":7}", ""},
        {"[]", ""},
        {"null", ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        list.count = 0;
        assert_int_equal(inspect_parse_cri_info(span_of(cases[i].info), &list), 0);
        assert_shown(cases[i].info, cases[i].expected);
    }
}

static void what_is_no_json_is_an_error(void **state)
{
    static const char *const texts[] = {"", "<html>", "{\"HostConfig\":", "{}x"};

    (void)state;
    list.count = 0;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        assert_int_equal(inspect_parse_container(span_of(texts[i]), &list), -EBADMSG);
        assert_int_equal(inspect_parse_cri_info(span_of(texts[i]), &list), -EBADMSG);
        assert_int_equal(list.count, 0);
    }
}

static void a_request_of_100000_ids_is_cut(void **state)
{
    size_t size_bytes = 2 << 20, len;
    _cleanup_free_ char *body = malloc(size_bytes);

    (void)state;
    assert_non_null(body);
    list.count = 0;
    len = (size_t)snprintf(
        body, size_bytes,
        "{\"HostConfig\":{\"DeviceRequests\":[{\"Driver\":\"cdi\",\"DeviceIDs\":[");
    for (int i = 0; i < 100000; i++)
        len += (size_t)snprintf(body + len, size_bytes - len, "%s\"%d\"", i ? "," : "", i);
    len += (size_t)snprintf(body + len, size_bytes - len, "]}]}}");
    assert_int_equal(inspect_parse_container((struct span){body, len}, &list), 0);
    assert_int_equal(list.count, GPU_ACCESS_MAX);
}

static void a_part_that_is_not_there_is_nobodys(void **state)
{
    static const struct snapshot_mig_device devices[] = {
        {1, 0, "MIG-a", "1g.10gb", 0, {.is_known = true, .profile = 19, .start = 2, .size = 1}}};
    static const struct attachment parts[] = {
        {.kind = ALLOCATION_MINOR, .id = "gi1", .index = 3},
        {.kind = ALLOCATION_MINOR, .id = "mig-1g10gb-19-2", .index = 3},
        {.kind = ALLOCATION_MIG_UUID, .id = "MIG-" UUID "/1/0"},
    };
    struct snapshot_gpu gpu = {.uuid = UUID,
                               .has_minor = true,
                               .minor = 3,
                               .sharing = GPU_SHARING_MIG,
                               .mig_devices = devices,
                               .mig_device_count = 1};
    uint32_t instance;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        assert_true(attachment_is_of(&parts[i], &gpu, &instance));
        assert_int_equal(instance, 1);
    }
    /* Another place than the driver tells. */
    assert_false(attachment_is_of(
        &(struct attachment){.kind = ALLOCATION_MINOR, .id = "mig-1g10gb-19-3", .index = 3}, &gpu,
        &instance));
    gpu.mig_device_count = 0;
    gpu.sharing = GPU_SHARING_EXCLUSIVE;
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        assert_false(attachment_is_of(&parts[i], &gpu, &instance));
}

static void an_attachment_is_of_the_gpu_that_it_names(void **state)
{
    static const struct snapshot_mig_device devices[] = {
        {1, 0, "MIG-a", "3g.40gb", 0, {0}},    {2, 0, "MIG-b", "1c.2g.20gb", 1, {0}},
        {2, 1, "MIG-c", "1c.2g.20gb", 2, {0}}, {5, 0, MIG, "1g.10gb+me", 3, {0}},
        {6, 0, "MIG-e", "1g.10gb", 4, {0}},    {7, 0, "MIG-f", "1g.10gb", 5, {0}}};
    static const struct snapshot_gpu gpu = {.gpu = 1,
                                            .uuid = UUID,
                                            .has_minor = true,
                                            .minor = 3,
                                            .pci = "0000:1a:00.0",
                                            .sharing = GPU_SHARING_MIG,
                                            .mig_devices = devices,
                                            .mig_device_count = ARRAY_SIZE(devices)};
    enum { NO = -2, WHOLE = -1 };
    static const struct {
        struct attachment attachment;
        int is; /* or the GPU instance */
    } cases[] = {
        {{.kind = ALLOCATION_GPU_UUID, .id = UUID}, WHOLE},
        {{.kind = ALLOCATION_GPU_UUID, .id = "GPU-8dea"}, WHOLE},
        {{.kind = ALLOCATION_GPU_UUID, .id = "GPU-8DEA0B1F"}, WHOLE},
        {{.kind = ALLOCATION_GPU_UUID, .id = "GPU-8deb"}, NO},
        {{.kind = ALLOCATION_GPU_UUID, .id = UUID "0"}, NO},
        {{.kind = ALLOCATION_GPU_UUID, .id = ""}, NO},
        {{.kind = ALLOCATION_MIG_UUID, .id = "MIG-" UUID "/7/0"}, 7},
        {{.kind = ALLOCATION_MIG_UUID, .id = "MIG-" UUID "/x/0"}, NO},
        {{.kind = ALLOCATION_MIG_UUID, .id = "MIG-" UUID "/8/0"}, NO},
        {{.kind = ALLOCATION_MIG_UUID, .id = MIG}, 5},
        {{.kind = ALLOCATION_MIG_UUID, .id = "mig-C"}, 2},
        {{.kind = ALLOCATION_MIG_UUID, .id = "MIG-of-another-board"}, NO},
        {{.kind = ALLOCATION_INDEX, .id = "", .index = 1}, WHOLE},
        {{.kind = ALLOCATION_INDEX, .id = "3", .index = 1}, 5},
        {{.kind = ALLOCATION_INDEX, .id = "9", .index = 1}, NO},
        {{.kind = ALLOCATION_INDEX, .id = "", .index = 3}, NO},
        {{.kind = ALLOCATION_MINOR, .id = "", .index = 3}, WHOLE},
        {{.kind = ALLOCATION_MINOR, .id = "gi6", .index = 3}, 6},
        {{.kind = ALLOCATION_MINOR, .id = "gix", .index = 3}, NO},
        {{.kind = ALLOCATION_MINOR, .id = "gi99", .index = 3}, NO},
        {{.kind = ALLOCATION_MINOR, .id = "mig-3g40gb-9-0", .index = 3}, 1},
        {{.kind = ALLOCATION_MINOR, .id = "mig-1c2g20gb-9-0", .index = 3}, 2},
        {{.kind = ALLOCATION_MINOR, .id = "mig-1g10gb-me-9-0", .index = 3}, 5},
        {{.kind = ALLOCATION_MINOR, .id = "mig-9-0-1", .index = 3}, WHOLE}, /* has no name */
        {{.kind = ALLOCATION_MINOR, .id = "mig-3g40gb", .index = 3}, WHOLE},
        {{.kind = ALLOCATION_MINOR, .id = "mig-1g10gb-9-0", .index = 3}, WHOLE}, /* one of two */
        {{.kind = ALLOCATION_MINOR, .id = "", .index = 1}, NO},
        {{.kind = ALLOCATION_ALL, .id = ""}, WHOLE},
        {{.kind = ALLOCATION_PCI, .id = "0000:1A:00.0"}, WHOLE},
        {{.kind = ALLOCATION_PCI, .id = "0000:19:00.0"}, NO},
        {{.kind = ALLOCATION_PCI, .id = ""}, NO},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint32_t instance = 0;
        bool is = attachment_is_of(&cases[i].attachment, &gpu, &instance);

        if (is != (cases[i].is != NO) || (is && (int)instance != cases[i].is))
            fail_msg("case %zu", i);
    }
}

static void gpus_of_amd_and_intel_are_found_by_their_own_ids(void **state)
{
    enum { NO = -2, WHOLE = -1 };
    static const struct snapshot_mig_device partitions[] = {
        {0, 0, "PCI-0000:63:00.0", "CPX", 128, {.is_known = false}},
        {1, 0, "amdgpu_xcp_1", "CPX", 129, {.is_known = false}}};
    static const struct snapshot_mig_device dies[] = {
        {0, 0, "PCI-0000:63:00.0", "die", 128, {.is_known = false}},
        {1, 0, "PCI-0000:64:00.0", "die", 129, {.is_known = false}}};
    const struct snapshot_gpu gpus[] = {
        {.uuid = "AMD-1f0a",
         .pci = "0000:63:00.0",
         .has_minor = true,
         .minor = 1,
         .render_minor = 128},
        {.uuid = "AMD-1f0a",
         .pci = "0000:63:00.0",
         .has_minor = true,
         .minor = 1,
         .render_minor = 128,
         .sharing = GPU_SHARING_PARTITIONED,
         .mig_devices = partitions,
         .mig_device_count = 2},
        {.uuid = "AMD-1f0a",
         .pci = "0000:63:00.0",
         .has_minor = true,
         .minor = 1,
         .render_minor = 128,
         .sharing = GPU_SHARING_PARTITIONED,
         .mig_devices = dies,
         .mig_device_count = 2},
        {.uuid = UUID, .pci = "0000:99:00.0", .has_minor = true, .minor = 1}};
    static const struct {
        struct attachment attachment;
        int is[ARRAY_SIZE(gpus)]; /* whole, in partitions, of two dies, NVIDIA's */
    } cases[] = {
        {{.kind = ALLOCATION_PCI, .id = "0000:63:00.0"}, {WHOLE, 0, 0, NO}},
        {{.kind = ALLOCATION_PCI, .id = "0000:64:00.0"}, {NO, NO, 1, NO}},
        {{.kind = ALLOCATION_CARD, .id = "", .index = 1}, {WHOLE, WHOLE, WHOLE, NO}},
        {{.kind = ALLOCATION_CARD, .id = "", .index = 0}, {NO, NO, NO, NO}},
        {{.kind = ALLOCATION_RENDER, .id = "", .index = 128}, {WHOLE, 0, 0, NO}},
        {{.kind = ALLOCATION_RENDER, .id = "", .index = 129}, {NO, 1, 1, NO}},
        {{.kind = ALLOCATION_RENDER, .id = "", .index = 0}, {NO, NO, NO, NO}},
        {{.kind = ALLOCATION_XCP, .id = "", .index = 1}, {NO, 1, NO, NO}},
        {{.kind = ALLOCATION_XCP, .id = "", .index = 2}, {NO, NO, NO, NO}},
        {{.kind = ALLOCATION_GPU_UUID, .id = "AMD-1f0a"}, {WHOLE, WHOLE, WHOLE, NO}},
        /* NVIDIA's ids */
        {{.kind = ALLOCATION_MINOR, .id = "", .index = 1}, {NO, NO, NO, WHOLE}},
        {{.kind = ALLOCATION_INDEX, .id = "", .index = 0}, {NO, NO, NO, WHOLE}},
        {{.kind = ALLOCATION_ALL, .id = ""}, {NO, NO, NO, WHOLE}},
        {{.kind = ALLOCATION_ALL, .id = "", .is_privileged = true}, {WHOLE, WHOLE, WHOLE, WHOLE}},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        for (size_t g = 0; g < ARRAY_SIZE(gpus); g++) {
            uint32_t instance = 0;
            bool is = attachment_is_of(&cases[i].attachment, &gpus[g], &instance);

            if (is != (cases[i].is[g] != NO) || (is && (int)instance != cases[i].is[g]))
                fail_msg("case %zu, GPU %zu: %d, %d", i, g, is, (int)instance);
        }
}

static void a_number_of_a_scheduler_does_not_name_a_gpu_that_was_renumbered(void **state)
{
    static const enum allocation_kind kinds[] = {ALLOCATION_INDEX, ALLOCATION_ORDINAL};
    struct snapshot_gpu gpu = {.gpu = 1, .uuid = UUID, .pci = "", .has_minor = true, .minor = 1};
    uint32_t instance;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        const struct attachment attachment = {.kind = kinds[i], .id = "", .index = 1};

        gpu.is_renumbered = false;
        assert_true(attachment_is_of(&attachment, &gpu, &instance));
        gpu.is_renumbered = true;
        assert_false(attachment_is_of(&attachment, &gpu, &instance));
    }
}

/* A driver of DRA gives its devices the names of their places. */
static void a_claim_is_of_the_instance_at_its_place(void **state)
{
    static const struct snapshot_mig_device devices[] = {
        {1, 0, "MIG-a", "3g.40gb", 0, {true, 9, 4, 4}},
        {7, 0, "MIG-b", "1g.10gb", 1, {true, 19, 0, 1}},
        {8, 0, "MIG-c", "1g.10gb", 2, {true, 19, 2, 1}},
        {9, 0, "MIG-d", "1g.10gb+me", 3, {true, 20, 3, 1}}};
    static const struct snapshot_gpu gpu = {.uuid = UUID,
                                            .has_minor = true,
                                            .sharing = GPU_SHARING_MIG,
                                            .mig_devices = devices,
                                            .mig_device_count = ARRAY_SIZE(devices)};
    enum { NO = -2, WHOLE = -1 };
    static const struct {
        const char *id;
        int instance;
    } cases[] = {
        {"mig-3g40gb-9-4", 1},
        {"mig-1g10gb-19-0", 7},
        {"mig-1g10gb-19-2", 8},
        {"mig-1g10gb-me-20-3", 9},
        {"mig-9-4-4", 1},
        {"mig-19-2-1", 8},
        {"mig-1g10gb-19-1", NO}, /* not there (yet), whatever else has its profile */
        {"mig-3g40gb-9-0", NO},
        {"mig-19-1-1", NO},
        {"mig-19-2", WHOLE},
        {"mig--19-2", WHOLE},
        {"mig-1g10gb-19-", WHOLE},
        {"mig-", WHOLE},
        {"mig-1g10gb-19-99999999999", WHOLE},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct attachment attachment = {.kind = ALLOCATION_MINOR, .id = cases[i].id};
        uint32_t instance = 0;

        bool is = attachment_is_of(&attachment, &gpu, &instance);

        if (is != (cases[i].instance != NO) || (is && (int)instance != cases[i].instance))
            fail_msg("%s is of %d", cases[i].id, (int)instance);
    }
}

/* Where the driver does not tell the places: as it names compute instances. */
static void a_claim_is_of_the_only_instance_of_its_profile_also_if_that_is_split(void **state)
{
    static const struct snapshot_mig_device devices[] = {{2, 0, "MIG-a", "1c.4g.40gb", 0, {0}},
                                                         {2, 1, "MIG-b", "3c.4g.40gb", 1, {0}},
                                                         {3, 0, "MIG-c", "1g.10gb", 2, {0}},
                                                         {5, 0, "MIG-d", "1c.2g.20gb", 3, {0}},
                                                         {6, 0, "MIG-e", "2g.20gb", 4, {0}}};
    static const struct snapshot_gpu gpu = {.uuid = UUID,
                                            .has_minor = true,
                                            .sharing = GPU_SHARING_MIG,
                                            .mig_devices = devices,
                                            .mig_device_count = ARRAY_SIZE(devices)};
    static const struct {
        const char *id;
        uint32_t instance;
    } cases[] = {
        {"mig-4g40gb-5-0", 2},
        {"mig-1g10gb-19-6", 3},
        {"mig-2g20gb-14-4", ATTACHMENT_NO_INSTANCE}, /* there are two */
        {"mig-3c4g40gb-5-0", 2},
        {"mig-3g40gb-9-0", ATTACHMENT_NO_INSTANCE},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct attachment attachment = {.kind = ALLOCATION_MINOR, .id = cases[i].id};
        uint32_t instance = 0;

        assert_true(attachment_is_of(&attachment, &gpu, &instance));
        if (instance != cases[i].instance)
            fail_msg("%s is of %d", cases[i].id, (int)instance);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_visible_devices_are_all_indices_and_uuids),
        cmocka_unit_test(names_of_cdi_count_if_they_are_gpus_of_nvidia),
        cmocka_unit_test(a_container_has_no_more_gpus_than_fit),
        cmocka_unit_test(a_mig_profile_contains_its_memory),
        cmocka_unit_test(docker_grants_gpus_by_requests_devices_and_runtime),
        cmocka_unit_test(podman_names_its_runtime_elsewhere),
        cmocka_unit_test(cri_grants_gpus_by_nodes_cdi_and_runtime),
        cmocka_unit_test(what_is_no_json_is_an_error),
        cmocka_unit_test(a_request_of_100000_ids_is_cut),
        cmocka_unit_test(an_attachment_is_of_the_gpu_that_it_names),
        cmocka_unit_test(a_part_that_is_not_there_is_nobodys),
        cmocka_unit_test(gpus_of_amd_and_intel_are_found_by_their_own_ids),
        cmocka_unit_test(a_number_of_a_scheduler_does_not_name_a_gpu_that_was_renumbered),
        cmocka_unit_test(a_claim_is_of_the_instance_at_its_place),
        cmocka_unit_test(a_claim_is_of_the_only_instance_of_its_profile_also_if_that_is_split),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
