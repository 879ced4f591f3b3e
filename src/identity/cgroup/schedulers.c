/* The cgroups of batch schedulers, below which a job pays. */
#include "identity/cgroup/component.h"
#include "identity/cgroup/walk.h"

static bool enter_job(struct cgroup_walk *walk, struct span job, enum cgroup_kind kind,
                      const char *scheduler)
{
    struct cgroup_place *place = &walk->place;

    if (!component_copy(job, place->job, sizeof(place->job)))
        return false;
    place->step[0] = place->task[0] = '\0';
    cgroup_walk_enter_holder(walk, kind, scheduler);
    return true;
}

/* From here on: Slurm, ROOT[/uid_N]/JOB[/STEP[/user][/TASK]]. */

enum { SLURM_JOB_BYTES = 32 };

static bool match_slurm_job(struct cgroup_walk *walk, struct span component, bool is_v1)
{
    struct span job;

    if (!component_is_slurm_job(component, &job) || job.len >= SLURM_JOB_BYTES ||
        !enter_job(walk, job, CGROUP_SLURM, "slurm"))
        return false;
    /* v1 gives the steps below to the user, by chown(2); all of v2's tree stays root's (Slurm's
     * xcgroup_create_hierarchy(), cgroup_v2.c). */
    if (is_v1)
        cgroup_walk_set_boundary(walk, "slurm:", walk->place.job);
    walk->level = LEVEL_SLURM_JOB;
    return true;
}

static bool match_step(struct cgroup_walk *walk, struct span component)
{
    struct span step;

    if (!component_is_slurm_step(component, &step) ||
        !component_copy(step, walk->place.step, sizeof(walk->place.step)))
        return false;
    walk->level = LEVEL_SLURM_STEP;
    return true;
}

static bool match_task(struct cgroup_walk *walk, struct span component)
{
    struct span task;

    return component_is_slurm_task(component, &task) &&
           component_copy(task, walk->place.task, sizeof(walk->place.task));
}

/* A job is one only where Slurm puts it: each level right below the one before. */
static bool match_slurm_level(struct cgroup_walk *walk, struct span component)
{
    uint32_t uid;

    switch (walk->above) {
    case LEVEL_SLURM_V1:
        if (component_is_slurm_uid(component, &uid)) {
            cgroup_walk_set_user(walk, uid);
            walk->level = LEVEL_SLURM_V1_USER;
            return true;
        }
        return match_slurm_job(walk, component, true);
    case LEVEL_SLURM_V1_USER:
        return match_slurm_job(walk, component, true);
    case LEVEL_SLURM_V2:
        return match_slurm_job(walk, component, false);
    case LEVEL_SLURM_JOB:
        return match_step(walk, component);
    case LEVEL_SLURM_STEP:
        if (span_equals(component, "slurm") && cgroup_walk_believes_monitors(walk)) {
            cgroup_walk_enter_monitor(walk, "slurm");
            return true;
        }
        if (span_equals(component, "user")) {
            walk->level = LEVEL_SLURM_STEP_USER;
            return true;
        }
        return match_task(walk, component);
    case LEVEL_SLURM_STEP_USER:
        return match_task(walk, component);
    default:
        return false;
    }
}

bool cgroup_walk_match_slurm(struct cgroup_walk *walk, struct span component)
{
    if (match_slurm_level(walk, component))
        return true;
    if (component_is_slurm_v1(component))
        walk->level = LEVEL_SLURM_V1;
    else if (component_is_slurm_v2(component))
        walk->level = LEVEL_SLURM_V2;
    return walk->level != LEVEL_OTHER;
}

/*
 * From here on: LSF, lsf/CLUSTER/job.ID.PID.TIME, the same in every hierarchy of v1 and in v2. A
 * job that runs several times on a node has as many of them, and is one workload.
 */

static bool match_lsf_job(struct cgroup_walk *walk, struct span component)
{
    struct span job;

    if (!component_is_lsf_job(component, &job) || !enter_job(walk, job, CGROUP_LSF, "lsf"))
        return false;
    /* Its source is closed: whether a job may make cgroups below is not known. */
    cgroup_walk_set_boundary(walk, "lsf:", walk->place.job);
    return true;
}

bool cgroup_walk_match_lsf(struct cgroup_walk *walk, struct span component)
{
    if (walk->above == LEVEL_LSF_CLUSTER && match_lsf_job(walk, component))
        return true;
    if (walk->above == LEVEL_LSF)
        walk->level = LEVEL_LSF_CLUSTER;
    else if (span_equals(component, "lsf"))
        walk->level = LEVEL_LSF;
    return walk->level != LEVEL_OTHER;
}

/*
 * From here on: PBS (OpenPBS, PBS Professional), as its hook pbs_cgroups names them:
 *   pbs_jobs.service/jobid/ID            v1
 *   pbs_jobs.service/jobs/ID             v2
 *   pbspro.slice/pbspro-ID.slice         before 2020, with systemd; ID is escaped
 *   pbspro/ID                            likewise, without
 * The first part can be configured; what somebody else calls theirs is a unit, not a guess.
 */

static bool match_pbs_job(struct cgroup_walk *walk, struct span component)
{
    char job[CGROUP_NAME_BYTES];

    if (!component_is_pbs_job(component, job) || !enter_job(walk, span_of(job), CGROUP_PBS, "pbs"))
        return false;
    /* The hook is the site's to change: what it gives to a job's user is not known. */
    cgroup_walk_set_boundary(walk, "pbs:", walk->place.job);
    return true;
}

/* A job is one only where PBS puts it: each level right below the one before. */
static bool match_pbs_level(struct cgroup_walk *walk, struct span component)
{
    switch (walk->above) {
    case LEVEL_PBS_SERVICE:
        if (span_equals(component, "jobid") || span_equals(component, "jobs"))
            walk->level = LEVEL_PBS_JOBS;
        return walk->level == LEVEL_PBS_JOBS;
    case LEVEL_PBS_JOBS:
        return match_pbs_job(walk, component);
    case LEVEL_PBS_SLICE:
        return span_strip_prefix(&component, "pbspro-") &&
               span_strip_suffix(&component, ".slice") && match_pbs_job(walk, component);
    default:
        return false;
    }
}

bool cgroup_walk_match_pbs(struct cgroup_walk *walk, struct span component)
{
    if (match_pbs_level(walk, component))
        return true;
    if (component_is_pbs_service(component))
        walk->level = LEVEL_PBS_SERVICE;
    else if (span_equals(component, "pbspro.slice"))
        walk->level = LEVEL_PBS_SLICE;
    else if (span_equals(component, "pbspro"))
        walk->level = LEVEL_PBS_JOBS;
    return walk->level != LEVEL_OTHER;
}
