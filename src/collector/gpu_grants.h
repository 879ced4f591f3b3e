/*
 * Who can use which GPU, brought from identity to the books: containers that the kubelet, a
 * runtime or the host itself says have access to it. We ourselves have, too, and do not count.
 */
#pragma once

#include "attribution/pipeline.h"
#include "identity/identity.h"

struct gpu_grants {
    char own_container_id[WORKLOAD_CONTAINER_BYTES]; /* "": we are in none */
};

void gpu_grants_init(struct gpu_grants *set, const struct host *host);

/* To be called at each scan. Out of memory: the GPU has nobody until the next one. */
void gpu_grants_refresh(const struct gpu_grants *set, struct identity *identity,
                        struct pipeline *pipeline);
