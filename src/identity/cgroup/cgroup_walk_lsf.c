/*
 * LSF's cgroups: lsf/CLUSTER/job.ID.PID.TIME, the same in every hierarchy of v1 and in v2. A job
 * that runs several times on a node has as many of them, and is one workload.
 */
#include "identity/cgroup/cgroup_component.h"
#include "identity/cgroup/cgroup_walk.h"

static bool match_job(struct cgroup_walk *walk, struct span component)
{
    struct cgroup_place *place = &walk->place;
    struct span job;

    if (!component_is_lsf_job(component, &job) ||
        !component_copy(job, place->job, sizeof(place->job)))
        return false;
    place->step[0] = place->task[0] = '\0';
    cgroup_walk_enter_holder(walk, CGROUP_LSF, "lsf");
    /* Its source is closed: whether a job may make cgroups below is not known. */
    cgroup_walk_set_boundary(walk, "lsf:", place->job);
    return true;
}

bool cgroup_walk_match_lsf(struct cgroup_walk *walk, struct span component)
{
    if (walk->above == LEVEL_LSF_CLUSTER && match_job(walk, component))
        return true;
    if (walk->above == LEVEL_LSF)
        walk->level = LEVEL_LSF_CLUSTER;
    else if (span_equals(component, "lsf"))
        walk->level = LEVEL_LSF;
    return walk->level != LEVEL_OTHER;
}
