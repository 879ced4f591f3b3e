/*
 * Where a process runs, by its cgroup path. Pure: text in, struct out. A path may have a mark of
 * delegation (host/cgroup_delegation.h).
 *
 * This is what the path shows; owner.h decides which of it is charged.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/span.h"
#include "model/workload.h"

/* In ascending order of how much they say about the process. */
enum cgroup_kind {
    CGROUP_ROOT,    /* "/": kernel threads, or a cgroup namespace of its own */
    CGROUP_OUTSIDE, /* "/../": outside our cgroup namespace */
    CGROUP_OTHER,   /* no known layout */
    CGROUP_USER,    /* a login session, or below a user's service manager */
    CGROUP_UNIT,
    CGROUP_MONITOR, /* conmon, slurmstepd, ...: runs beside a workload, not in it */
    CGROUP_NSPAWN,
    CGROUP_LXC,
    CGROUP_VM,
    CGROUP_LSF,
    CGROUP_PBS,
    CGROUP_SLURM,
    CGROUP_CONTAINER,
    CGROUP_POD,
};

enum {
    CGROUP_NAME_BYTES = 256, /* NAME_MAX and a NUL */
    CGROUP_JOB_BYTES = 248,  /* PBS ids contain the server's name; "pbs:ID" must fit a name */
};

/* Absent texts are "". */
struct cgroup_place {
    enum cgroup_kind kind; /* the innermost of those below; a container in a pod is CGROUP_POD */
    char container_id[WORKLOAD_CONTAINER_BYTES];         /* the innermost */
    char outer_container_id[WORKLOAD_CONTAINER_BYTES];   /* the one around it */
    char pod_container_id[WORKLOAD_CONTAINER_BYTES];     /* the one right below the pod */
    char trusted_container_id[WORKLOAD_CONTAINER_BYTES]; /* the outermost, if its scope is "" */
    char pod_uid[WORKLOAD_POD_UID_BYTES];
    char job[CGROUP_JOB_BYTES];      /* Slurm, LSF or PBS id, as the scheduler prints it */
    char machine[CGROUP_NAME_BYTES]; /* VM, LXC or nspawn, unescaped */
    char unit[CGROUP_NAME_BYTES];
    bool has_uid; /* the path itself names a user */
    uint32_t uid;

    /* The innermost pod, batch job or VM: CGROUP_POD, _SLURM, _LSF, _PBS or _VM. It owns what runs
     * in it. CGROUP_ROOT: none. */
    enum cgroup_kind holder;

    /*
     * Below some point of the path, tenants can name cgroups as they like, so an id found there
     * must not pass for the same id elsewhere. This is the scope of the holder, or else of the
     * container, or else of the machine: "" if only the node's own services name cgroups there,
     * otherwise the first such point on the way down:
     *   "1000"                    a user's slice, or a directory of theirs
     *   a container id            root in that container
     *   "lxc:NAME", "nspawn:NAME" root in that machine
     *   "slurm:JOB"               Slurm's cgroup/v1 chowns a step's cgroup to the job's user
     *   "lsf:JOB", "pbs:JOB"      undocumented, so not trusted
     * No two kinds look alike, and none contains a '/'.
     */
    char scope[CGROUP_NAME_BYTES];
};

/* One path, as it stands after the second colon. */
void cgroup_path_parse(struct span path, struct cgroup_place *ret_place);

/* The text of /proc/PID/cgroup: the most specific place of all hierarchies. A text that begins with
 * '/' is one path, as in traces. 0, or -ENODATA: no valid path. */
int cgroup_file_parse(struct span text, struct cgroup_place *ret_place);
