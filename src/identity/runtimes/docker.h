/* Docker, by its own API. */
#pragma once

#include "core/span.h"
#include "identity/runtime.h"

extern const struct runtime_ops runtime_docker;

/* Pure. From the body of GET /containers/json. What is not as documented is left out. 0, -EBADMSG
 * (no JSON) or -ENOMEM; what was read before counts. */
int docker_parse(struct span body, struct container_list *list);
