/* The cgroups of batch schedulers. A job is recognised only where its scheduler puts it: each level
 * right below the one before. */
#include "core/parse.h"
#include "identity/cgroup/component.h"
#include "identity/cgroup/walk.h"

/* `boundary` is the scope of what the job may name itself; NULL if it cannot make cgroups. */
static bool enter_job(struct cgroup_walk *walk, enum cgroup_kind kind, struct span job,
                      const char *boundary)
{
    if (!component_copy(job, walk->place.job, sizeof(walk->place.job)))
        return false;
    cgroup_walk_enter_holder(walk, kind);
    if (boundary)
        cgroup_walk_set_boundary(walk, boundary, walk->place.job);
    return true;
}

/* From here on: Slurm, ROOT[/uid_N]/JOB[/STEP[/user][/TASK]]. */

enum { SLURM_JOB_BYTES = 32, SLUID_LEN = 14 };

/* "slurmstepd.scope", "NODE_slurmstepd.scope" */
static bool is_slurm_v2(struct span component)
{
    return span_strip_suffix(&component, "slurmstepd.scope") &&
           (component.len == 0 || (span_strip_suffix(&component, "_") && component.len > 0));
}

/* "slurm", "slurm_NODE" */
static bool is_slurm_v1(struct span component)
{
    return span_equals(component, "slurm") ||
           (span_strip_prefix(&component, "slurm_") && component.len > 0);
}

/* Crockford's base 32: no I, L, O, U. */
static bool is_base32(char c)
{
    return parse_is_digit(c) ||
           (c >= 'A' && c <= 'Z' && c != 'I' && c != 'L' && c != 'O' && c != 'U');
}

static bool is_sluid(struct span component)
{
    return component.len == SLUID_LEN && span_strip_prefix(&component, "s") &&
           component_is_made_of(component, is_base32);
}

/* v1 gives the steps below to the user, by chown(2); all of v2's tree stays root's (Slurm's
 * xcgroup_create_hierarchy(), cgroup_v2.c). */
static bool match_slurm_job(struct cgroup_walk *walk, struct span component, bool is_v1)
{
    if (!is_sluid(component) &&
        (!span_strip_prefix(&component, "job_") || !component_is_decimal(component)))
        return false;
    if (component.len >= SLURM_JOB_BYTES ||
        !enter_job(walk, CGROUP_SLURM, component, is_v1 ? "slurm:" : NULL))
        return false;
    walk->level = LEVEL_SLURM_JOB;
    return true;
}

static bool is_slurm_step(struct span step)
{
    struct span component, number;

    if (!span_strip_prefix(&step, "step_"))
        return false;
    if (span_equals(step, "batch") || span_equals(step, "extern") ||
        span_equals(step, "interactive"))
        return true;
    component = step;
    number = span_cut(&component, '+'); /* after it: the component of a heterogeneous job */
    return component_is_decimal(number) &&
           (number.len == step.len || component_is_decimal(component));
}

static bool match_slurm_level(struct cgroup_walk *walk, struct span component)
{
    struct span user = component;
    uint32_t uid;

    switch (walk->above) {
    case LEVEL_SLURM_V1:
        if (span_strip_prefix(&user, "uid_") && component_parse_uid(user, &uid)) {
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
        if (is_slurm_step(component))
            walk->level = LEVEL_SLURM_STEP;
        return walk->level == LEVEL_SLURM_STEP;
    case LEVEL_SLURM_STEP:
        if (!span_equals(component, "slurm") || !cgroup_walk_trusts_monitors(walk))
            return false;
        walk->place.kind = CGROUP_MONITOR;
        return true;
    default:
        return false;
    }
}

bool cgroup_walk_match_slurm(struct cgroup_walk *walk, struct span component)
{
    if (match_slurm_level(walk, component))
        return true;
    if (is_slurm_v1(component))
        walk->level = LEVEL_SLURM_V1;
    else if (is_slurm_v2(component))
        walk->level = LEVEL_SLURM_V2;
    return walk->level != LEVEL_OTHER;
}

/* "12345" or, in an array, "12345[7]". */
static bool is_job_number(struct span id)
{
    struct span index = id, number = span_cut(&index, '[');

    return component_is_decimal(number) &&
           (number.len == id.len ||
            (span_strip_suffix(&index, "]") && component_is_decimal(index)));
}

/*
 * From here on: LSF, lsf/CLUSTER/job.ID.PID.TIME, the same in every hierarchy of v1 and in v2. A
 * job that runs several times on a node has several of them, and is one workload. LSF is closed
 * source: whether a job may make cgroups below is not known.
 */

static bool match_lsf_job(struct cgroup_walk *walk, struct span component)
{
    struct span job, pid;

    if (!span_strip_prefix(&component, "job."))
        return false;
    job = span_cut(&component, '.');
    pid = span_cut(&component, '.');
    return is_job_number(job) && component_is_decimal(pid) && component_is_decimal(component) &&
           enter_job(walk, CGROUP_LSF, job, "lsf:");
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
 *   pbspro/ID                            before 2020, without
 * The first part is configurable; another name for it is a unit, not a guess. The site may change
 * the hook: what it gives to a job's user is not known.
 */

static bool is_host_name_char(char c)
{
    return parse_is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '-' || c == '_';
}

/* "12345[7].server", maybe escaped: the server's name is part of the id. */
static bool match_pbs_job(struct cgroup_walk *walk, struct span component)
{
    char job[CGROUP_NAME_BYTES];
    struct span server;

    if (!component_unescape(component, job))
        return false;
    server = span_of(job);
    return is_job_number(span_cut(&server, '.')) &&
           component_is_made_of(server, is_host_name_char) &&
           enter_job(walk, CGROUP_PBS, span_of(job), "pbs:");
}

bool cgroup_walk_match_pbs(struct cgroup_walk *walk, struct span component)
{
    struct span slice = component, service = component;

    if (walk->above == LEVEL_PBS_JOBS && match_pbs_job(walk, component))
        return true;
    if (walk->above == LEVEL_PBS_SLICE && component_strip(&slice, "pbspro-", ".slice") &&
        match_pbs_job(walk, slice))
        return true;
    if ((walk->above == LEVEL_PBS_SERVICE &&
         (span_equals(component, "jobid") || span_equals(component, "jobs"))) ||
        span_equals(component, "pbspro"))
        walk->level = LEVEL_PBS_JOBS;
    else if (span_equals(component, "pbspro.slice"))
        walk->level = LEVEL_PBS_SLICE;
    else if (span_strip_suffix(&service, ".service") &&
             (span_equals(service, "pbs_jobs") || span_equals(service, "pbspro") ||
              span_equals(service, "pbs")))
        walk->level = LEVEL_PBS_SERVICE;
    return walk->level != LEVEL_OTHER;
}
