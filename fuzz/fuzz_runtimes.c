/* What runtimes and the kubelet answer. The first byte says who; any bytes behind it are an error
 * or a list, and every entry of it is whole. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "../tests/unit/identity_checks.h"
#include "core/macros.h"
#include "identity/cri.h"
#include "identity/docker.h"
#include "identity/podman.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int (*const runtimes[])(struct span reply, struct container_list *list) = {
    cri_parse_containers,
    cri_parse_sandboxes,
    docker_parse,
    podman_parse,
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span reply = {(const char *)data + 1, size - 1};
    size_t who;

    if (size == 0)
        return 0;
    who = data[0] % (ARRAY_SIZE(runtimes) + 1);
    if (who < ARRAY_SIZE(runtimes))
        check_runtime(who, reply);
    else
        check_pod_resources(reply);
    return 0;
}
