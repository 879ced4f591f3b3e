/* The messages of the Kubernetes container runtime interface (runtime.v1, and v1alpha2 before it,
 * which has the same numbers): what is written and read is pure, and runtime_cri asks. */
#pragma once

#include "core/buffer.h"
#include "core/span.h"
#include "identity/runtime.h"

extern const struct runtime_ops runtime_cri;

/* For running containers, and for sandboxes that are ready; or for all of them. */
void cri_put_containers_request(struct buffer *out, enum runtime_scope scope);
void cri_put_sandboxes_request(struct buffer *out, enum runtime_scope scope);

/* For the status of one container, or for all that is known of it (cri_find_info). */
void cri_put_status_request(struct buffer *out, const char *container_id, bool verbose);

/* The JSON in a ContainerStatusResponse that was asked for all; empty if there is none. */
struct span cri_find_info(struct span message);

/* What the container's image is called, by a ContainerStatusResponse: as the pod has it, or as the
 * runtime knows it, with a tag or at least with a repository; empty if it has no name. */
struct span cri_find_image(struct span message);

/* From a ListContainersResponse and a ListPodSandboxResponse. What is broken inside is left out. 0,
 * -ENOMEM or -EBADMSG: no such message; what was read before counts. */
int cri_parse_containers(struct span message, struct container_list *list);
int cri_parse_sandboxes(struct span message, struct container_list *list);
