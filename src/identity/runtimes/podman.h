/* Podman's list of containers. Pure: who asks is runtime_podman. */
#pragma once

#include "core/span.h"
#include "identity/runtimes/runtime.h"

/* From the body of GET /libpod/containers/json. What is not as documented is left out. 0, -EBADMSG
 * (no JSON) or -ENOMEM; what was read before counts. */
int podman_parse(struct span body, struct container_list *list);
