/* What runtimes answer, for the runtimes, tests and fuzzers. Pure. */
#pragma once

#include "core/span.h"
#include "identity/gpu_access.h"
#include "identity/runtime.h"

/* Labels that the kubelet gives to every container, whichever runtime keeps them. */
#define KUBERNETES_POD_NAME       "io.kubernetes.pod.name"
#define KUBERNETES_POD_NAMESPACE  "io.kubernetes.pod.namespace"
#define KUBERNETES_POD_UID        "io.kubernetes.pod.uid"
#define KUBERNETES_CONTAINER_NAME "io.kubernetes.container.name"

/* The body of Docker's GET /containers/ID/json, and of Podman's, which has the same fields here.
 * Unexpected types are left out. 0, -EBADMSG (no JSON) or -ENOMEM. */
int inspect_parse_container(struct span body, struct gpu_access_list *list);

/* The text of "info" in a verbose ContainerStatusResponse of CRI. As above. */
int inspect_parse_cri_info(struct span text, struct gpu_access_list *list);

/* A ListContainersResponse and a ListPodSandboxResponse. Invalid entries are left out. 0, -ENOMEM
 * or -EBADMSG: no such message; what was read before counts. */
int cri_parse_containers(struct span message, struct container_list *list);
int cri_parse_sandboxes(struct span message, struct container_list *list);

/* The JSON in a verbose ContainerStatusResponse; empty if there is none. */
struct span cri_find_info(struct span message);

/* The name of the container's image in a ContainerStatusResponse: as the pod has it, or as the
 * runtime knows it, with a tag or at least a repository; empty if it has no name. */
struct span cri_find_image(struct span message);
