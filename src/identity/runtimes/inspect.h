/* What runtimes say of one container's GPUs. Pure. */
#pragma once

#include "core/span.h"
#include "identity/gpu_access.h"

/*
 * The body of Docker's GET /containers/ID/json, and of Podman's, which has the same shape where it
 * counts. What is not as documented is left out. 0, -EBADMSG (no JSON) or -ENOMEM.
 */
int inspect_parse_container(struct span body, struct gpu_access_list *list);

/* The text behind "info" in a verbose ContainerStatusResponse of CRI. As above. */
int inspect_parse_cri_info(struct span text, struct gpu_access_list *list);
