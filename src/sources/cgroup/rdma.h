/* RDMA: verbs objects by device; the traffic is not counted by cgroup. Pure. */
#pragma once

#include "core/span.h"
#include "model/usage.h"

/* rdma.current, the same in v1 and v2: lines of "DEVICE hca_handle=N hca_object=N". */
void rdma_parse(struct span text, struct usage *usage);
