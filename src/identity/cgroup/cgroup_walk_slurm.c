/* Slurm's cgroups: ROOT[/uid_N]/JOB[/STEP[/user][/TASK]]. */
#include "identity/cgroup/cgroup_component.h"
#include "identity/cgroup/cgroup_walk.h"

enum { SLURM_JOB_BYTES = 32 };

static bool match_job(struct cgroup_walk *walk, struct span component, bool is_v1)
{
    struct cgroup_place *place = &walk->place;
    struct span job;

    if (!component_is_slurm_job(component, &job) ||
        !component_copy(job, place->job, SLURM_JOB_BYTES))
        return false;
    place->step[0] = place->task[0] = '\0';
    cgroup_walk_enter_holder(walk, CGROUP_SLURM, "slurm");
    /* v1 gives the steps below to the user, by chown(2); all of v2's tree stays root's (Slurm's
     * xcgroup_create_hierarchy(), cgroup_v2.c). */
    if (is_v1)
        cgroup_walk_set_boundary(walk, "slurm:", place->job);
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
static bool match_level(struct cgroup_walk *walk, struct span component)
{
    uint32_t uid;

    switch (walk->above) {
    case LEVEL_SLURM_V1:
        if (component_is_slurm_uid(component, &uid)) {
            cgroup_walk_set_user(walk, uid);
            walk->level = LEVEL_SLURM_V1_USER;
            return true;
        }
        return match_job(walk, component, true);
    case LEVEL_SLURM_V1_USER:
        return match_job(walk, component, true);
    case LEVEL_SLURM_V2:
        return match_job(walk, component, false);
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
    if (match_level(walk, component))
        return true;
    if (component_is_slurm_v1(component))
        walk->level = LEVEL_SLURM_V1;
    else if (component_is_slurm_v2(component))
        walk->level = LEVEL_SLURM_V2;
    return walk->level != LEVEL_OTHER;
}
