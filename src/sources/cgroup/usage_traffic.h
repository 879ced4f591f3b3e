/* Whose memory traffic it was: the groups of resctrl, matched with workloads by container. */
#pragma once

#include "model/sample.h"
#include "model/usage.h"
#include "sources/resctrl/resctrl.h"

/* After a reading that gave true. Writes the traffic of `usage->count` workloads, which are those
 * of the items, and of the others together; nothing if nobody has a group. */
void usage_traffic_take(const struct resctrl *resctrl, const struct usage_owner *items,
                        struct sample_workload *workloads, struct sample_usage *usage);
