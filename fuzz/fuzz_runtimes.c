/* What runtimes and the kubelet answer. The first byte says who; any bytes behind it are an error
 * or a list, and every entry of it is whole. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "../tests/unit/identity_checks.h"
#include "core/macros.h"
#include "identity/gpu_access.h"
#include "identity/gpus/device_rules.h"
#include "identity/runtime_table.h"
#include "identity/runtimes/parse.h"
#include "identity/runtimes/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int parse_docker(struct span reply, struct container_list *list)
{
    return runtime_http_parse(&runtime_docker, reply, list);
}

static int parse_podman(struct span reply, struct container_list *list)
{
    return runtime_http_parse(&runtime_podman, reply, list);
}

static int (*const runtimes[])(struct span reply, struct container_list *list) = {
    cri_parse_containers,
    cri_parse_sandboxes,
    parse_docker,
    parse_podman,
};

static void check_runtime(size_t index, struct span reply)
{
    struct container_list list;
    int r;

    container_list_init(&list);
    r = runtimes[index](reply, &list);
    if ((r != 0 && r != -EBADMSG) || !are_valid_containers(&list))
        abort();
    container_list_done(&list);
}

static void check_pod_resources(struct span reply)
{
    struct allocation_list list;
    int r;

    allocation_list_init(&list);
    r = pod_resources_parse(reply, &list);
    if ((r != 0 && r != -EBADMSG) || !are_valid_allocations(&list))
        abort();
    allocation_list_done(&list);
}

static bool is_valid_access(const struct gpu_access *gpu)
{
    struct span id = {gpu->id, strnlen(gpu->id, sizeof(gpu->id))};
    bool has_uuid = gpu->kind == ALLOCATION_GPU_UUID || gpu->kind == ALLOCATION_MIG_UUID;

    return id.len < sizeof(gpu->id) && is_kept_text(gpu->id) &&
           (has_uuid ? id.len > 4
                     : gpu->kind == ALLOCATION_ALL || gpu->kind == ALLOCATION_MINOR ||
                           gpu->kind == ALLOCATION_INDEX);
}

static int parse_cri_status(struct span message, struct gpu_access_list *gpus)
{
    struct span image = cri_find_image(message);

    if (image.len > 0 &&
        (image.data < message.data || image.data + image.len > message.data + message.len))
        abort();
    return inspect_parse_cri_info(cri_find_info(message), gpus);
}

static int (*const inspections[])(struct span reply, struct gpu_access_list *gpus) = {
    inspect_parse_container,
    inspect_parse_cri_info,
    parse_cri_status,
};

static void check_inspection(size_t index, struct span reply)
{
    struct gpu_access_list gpus = {.count = 0};
    int r = inspections[index](reply, &gpus);

    if ((r != 0 && r != -EBADMSG) || gpus.count > GPU_ACCESS_MAX)
        abort();
    for (size_t i = 0; i < gpus.count; i++)
        if (!is_valid_access(&gpus.items[i]))
            abort();
}

/* Not a runtime's, but as short: the text of a cgroup file or of a list of rules. */
static void check_rules(struct span text)
{
    struct span path;

    if (device_rules_allow_all(text) && !device_rules_allow(text, 195, 0))
        abort();
    if (device_rules_allow_all(text) && device_rules_are_specific(text, 195))
        abort();
    if (device_rules_find_path(text, &path) && (path.len == 0 || path.data[0] != '/'))
        abort();
    (void)gpu_access_profile_bytes(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span reply = {(const char *)data + 1, size - 1};
    size_t who;

    if (size == 0)
        return 0;
    who = data[0] % (ARRAY_SIZE(runtimes) + ARRAY_SIZE(inspections) + 2);
    if (who < ARRAY_SIZE(runtimes))
        check_runtime(who, reply);
    else if (who == ARRAY_SIZE(runtimes))
        check_pod_resources(reply);
    else if (who <= ARRAY_SIZE(runtimes) + ARRAY_SIZE(inspections))
        check_inspection(who - ARRAY_SIZE(runtimes) - 1, reply);
    else
        check_rules(reply);
    return 0;
}
