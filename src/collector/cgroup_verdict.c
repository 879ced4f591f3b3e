#include "collector/cgroup_verdict.h"

#include "identity/cgroup_path.h"
#include "identity/owner.h"

enum cgroup_verdict cgroup_verdict_find(void *context, const char *path,
                                        struct workload_owner *ret_owner)
{
    struct cgroup_place place;

    (void)context;
    cgroup_path_parse(span_of(path), &place);
    owner_find(&place, OWNER_UID_UNKNOWN, ret_owner);
    switch (ret_owner->kind) {
    case WORKLOAD_POD:
        return place.pod_container_id[0] != '\0' ? CGROUP_IS_WORKLOAD : CGROUP_IS_PASSAGE;
    case WORKLOAD_CONTAINER:
    case WORKLOAD_SLURM:
    case WORKLOAD_LSF:
    case WORKLOAD_PBS:
    case WORKLOAD_VM:
    case WORKLOAD_LXC:
    case WORKLOAD_NSPAWN:
        return CGROUP_IS_WORKLOAD;
    case WORKLOAD_UNIT:
    case WORKLOAD_USER:
        return CGROUP_IS_HOLDER;
    default:
        return CGROUP_IS_PASSAGE;
    }
}
