/* The way down a cgroup path, component by component: path.c's inner half. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/span.h"
#include "identity/cgroup_path.h"

/* What a component was, for those right below whose meaning depends on it. */
enum cgroup_level {
    LEVEL_OTHER,
    LEVEL_POD,
    LEVEL_NSPAWN,
    LEVEL_SLURM_V1,
    LEVEL_SLURM_V1_USER,
    LEVEL_SLURM_V2,
    LEVEL_SLURM_JOB,
    LEVEL_SLURM_STEP,
    LEVEL_SLURM_STEP_USER, /* "user", between the step and its tasks */
    LEVEL_LSF,
    LEVEL_LSF_CLUSTER,
    LEVEL_PBS_SERVICE,
    LEVEL_PBS_SLICE,
    LEVEL_PBS_JOBS, /* right below are the jobs */
};

struct cgroup_walk {
    struct cgroup_place place;

    /* The first point below which strangers name cgroups: the scope of all that comes after it. */
    char boundary[CGROUP_NAME_BYTES];
    bool boundary_is_user;

    size_t depth; /* components passed */
    struct span parent, grandparent;
    enum cgroup_level above, level; /* of the parent, and of the component itself */
    bool unit_is_ahead;             /* only slices so far */
    bool below_ecs;
};

void cgroup_walk(struct span path, struct cgroup_walk *ret_walk);

/* For the matchers, which say whether the component was theirs. */
bool cgroup_walk_match_slurm(struct cgroup_walk *walk, struct span component);
bool cgroup_walk_match_lsf(struct cgroup_walk *walk, struct span component);
bool cgroup_walk_match_pbs(struct cgroup_walk *walk, struct span component);

/* What is entered takes its scope first, and may then be a boundary for what is below. */
void cgroup_walk_enter_holder(struct cgroup_walk *walk, enum cgroup_kind kind, const char *runtime);
void cgroup_walk_set_boundary(struct cgroup_walk *walk, const char *prefix, const char *name);
void cgroup_walk_set_user(struct cgroup_walk *walk, uint32_t uid);

/* What is called a monitor does not pay, so there is none inside of a container. Those of a user
 * are believed: the user pays for them all the same. */
bool cgroup_walk_believes_monitors(const struct cgroup_walk *walk);
void cgroup_walk_enter_monitor(struct cgroup_walk *walk, const char *runtime);
