/* The walk down a cgroup path, component by component (path.c), and the matchers that recognise
 * them: containers.c, machines.c and schedulers.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/span.h"
#include "identity/cgroup_path.h"

/* What a component was, for those right below whose meaning depends on it. */
enum cgroup_level {
    LEVEL_OTHER,
    LEVEL_NSPAWN,
    LEVEL_SLURM_V1,
    LEVEL_SLURM_V1_USER,
    LEVEL_SLURM_V2,
    LEVEL_SLURM_JOB,
    LEVEL_SLURM_STEP,
    LEVEL_LSF,
    LEVEL_LSF_CLUSTER,
    LEVEL_PBS_SERVICE,
    LEVEL_PBS_SLICE,
    LEVEL_PBS_JOBS, /* jobs are right below */
};

struct cgroup_walk {
    struct cgroup_place place;

    /* The first point below which tenants name cgroups: the scope of everything after it. */
    char boundary[CGROUP_NAME_BYTES];
    bool boundary_is_user;
    bool is_delegated; /* below a directory that root does not own */

    size_t depth; /* components passed */
    struct span parent, grandparent;
    enum cgroup_level above, level; /* of the parent, and of the component itself */
    bool may_find_unit;             /* only slices so far */
    bool below_ecs;
};

/* Matchers return whether the component was theirs. */
bool cgroup_walk_match_vm(struct cgroup_walk *walk, struct span component);
bool cgroup_walk_match_machine(struct cgroup_walk *walk, struct span component);
bool cgroup_walk_match_pod(struct cgroup_walk *walk, struct span component);
bool cgroup_walk_match_container(struct cgroup_walk *walk, struct span component);
bool cgroup_walk_match_conmon(struct cgroup_walk *walk, struct span component);
bool cgroup_walk_match_slurm(struct cgroup_walk *walk, struct span component);
bool cgroup_walk_match_lsf(struct cgroup_walk *walk, struct span component);
bool cgroup_walk_match_pbs(struct cgroup_walk *walk, struct span component);

/* Enter a component first, then set the boundary that it is for those below. */
void cgroup_walk_enter_scope(struct cgroup_walk *walk);
void cgroup_walk_enter_holder(struct cgroup_walk *walk, enum cgroup_kind kind);
void cgroup_walk_set_boundary(struct cgroup_walk *walk, const char *prefix, const char *name);
void cgroup_walk_set_user(struct cgroup_walk *walk, uint32_t uid);

/* Monitors are not charged, so a container cannot have any: whoever is root in it could name its
 * processes so; nor can whoever owns the directory above. Those of a user are trusted, because the
 * user is charged for them anyway. */
bool cgroup_walk_trusts_monitors(const struct cgroup_walk *walk);
