/* Docker's list of containers. Pure: who asks is runtime_docker. */
#pragma once

#include "core/span.h"
#include "identity/runtimes/runtime.h"

/* From the body of GET /containers/json. What is not as documented is left out. 0, -EBADMSG (no
 * JSON) or -ENOMEM; what was read before counts. */
int docker_parse(struct span body, struct container_list *list);
