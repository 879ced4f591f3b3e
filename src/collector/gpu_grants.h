/*
 * GPU grants, from identity to the books: the containers that have access to each GPU according to
 * the kubelet, a runtime or the host. Our own container has access, too, and does not count.
 */
#pragma once

#include "attribution/pipeline.h"
#include "identity/identity.h"

struct gpu_grants {
    char own_container_id[WORKLOAD_CONTAINER_BYTES]; /* "": we are in none */
};

void gpu_grants_init(struct gpu_grants *grants, const struct host *host);

/* To be called at each scan. Out of memory: the rows are missing until the next one. */
void gpu_grants_refresh(const struct gpu_grants *grants, struct identity *identity,
                        struct pipeline *pipeline);
