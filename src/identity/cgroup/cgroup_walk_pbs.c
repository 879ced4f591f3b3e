/*
 * The cgroups of PBS (OpenPBS, PBS Professional), as its hook pbs_cgroups names them:
 *   pbs_jobs.service/jobid/ID            v1
 *   pbs_jobs.service/jobs/ID             v2
 *   pbspro.slice/pbspro-ID.slice         before 2020, with systemd; ID is escaped
 *   pbspro/ID                            likewise, without
 * The first part can be configured; what somebody else calls theirs is a unit, not a guess.
 */
#include "identity/cgroup/cgroup_component.h"
#include "identity/cgroup/cgroup_walk.h"

static bool match_job(struct cgroup_walk *walk, struct span component)
{
    struct cgroup_place *place = &walk->place;
    char job[CGROUP_NAME_BYTES];

    if (!component_is_pbs_job(component, job) ||
        !component_copy(span_of(job), place->job, sizeof(place->job)))
        return false;
    place->step[0] = place->task[0] = '\0';
    cgroup_walk_enter_holder(walk, CGROUP_PBS, "pbs");
    /* The hook is the site's to change: what it gives to a job's user is not known. */
    cgroup_walk_set_boundary(walk, "pbs:", place->job);
    return true;
}

/* A job is one only where PBS puts it: each level right below the one before. */
static bool match_level(struct cgroup_walk *walk, struct span component)
{
    switch (walk->above) {
    case LEVEL_PBS_SERVICE:
        if (span_equals(component, "jobid") || span_equals(component, "jobs"))
            walk->level = LEVEL_PBS_JOBS;
        return walk->level == LEVEL_PBS_JOBS;
    case LEVEL_PBS_JOBS:
        return match_job(walk, component);
    case LEVEL_PBS_SLICE:
        return span_strip_prefix(&component, "pbspro-") &&
               span_strip_suffix(&component, ".slice") && match_job(walk, component);
    default:
        return false;
    }
}

bool cgroup_walk_match_pbs(struct cgroup_walk *walk, struct span component)
{
    if (match_level(walk, component))
        return true;
    if (component_is_pbs_service(component))
        walk->level = LEVEL_PBS_SERVICE;
    else if (span_equals(component, "pbspro.slice"))
        walk->level = LEVEL_PBS_SLICE;
    else if (span_equals(component, "pbspro"))
        walk->level = LEVEL_PBS_JOBS;
    return walk->level != LEVEL_OTHER;
}
