/*
 * Who can use which GPU, brought from identity to the books: containers that the kubelet, a
 * runtime or the host itself says have access to it. We ourselves have, too, and do not count.
 */
#pragma once

#include "attribution/pipeline.h"
#include "identity/identity.h"

struct attached_set {
    char own_container_id[WORKLOAD_CONTAINER_BYTES]; /* "": we are in none */
};

void attached_set_init(struct attached_set *set, const struct host *host);

/* To be called at each scan. Out of memory: the GPU has nobody until the next one. */
void attached_set_refresh(const struct attached_set *set, struct identity *identity,
                          struct pipeline *pipeline);
