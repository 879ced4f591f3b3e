/*
 * What a process' cgroups say about where it runs. Pure: text in, struct out.
 *
 * It finds what is there; who pays is decided by owner.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/span.h"
#include "model/workload.h"

enum cgroup_kind {
    CGROUP_ROOT,    /* "/": kernel threads, or a cgroup namespace of its own */
    CGROUP_OUTSIDE, /* "/../": outside of our cgroup namespace */
    CGROUP_OTHER,   /* no shape that we know */
    CGROUP_USER,    /* a login session, or below a user's service manager */
    CGROUP_UNIT,
    CGROUP_MONITOR, /* conmon, slurmstepd, ...: beside a workload, not in it */
    CGROUP_NSPAWN,
    CGROUP_LXC,
    CGROUP_VM,
    CGROUP_LSF,
    CGROUP_PBS,
    CGROUP_SLURM,
    CGROUP_CONTAINER,
    CGROUP_POD,
};

enum cgroup_qos {
    CGROUP_QOS_NONE,
    CGROUP_QOS_GUARANTEED,
    CGROUP_QOS_BURSTABLE,
    CGROUP_QOS_BESTEFFORT
};

enum {
    CGROUP_NAME_BYTES = 256, /* NAME_MAX and a NUL */
    CGROUP_JOB_BYTES = 248,  /* of PBS, with the server's name; its scope is a name, too */
};

/* Texts are "" where there is none. */
struct cgroup_place {
    enum cgroup_kind kind; /* the innermost of what is below; a container in a pod is the pod's */
    const char *runtime;   /* "docker", "containerd", "cri-o", ...; static */
    char container_id[WORKLOAD_CONTAINER_BYTES];         /* the innermost */
    char outer_container_id[WORKLOAD_CONTAINER_BYTES];   /* the one around it */
    char pod_container_id[WORKLOAD_CONTAINER_BYTES];     /* the pod's own: right below the pod */
    char trusted_container_id[WORKLOAD_CONTAINER_BYTES]; /* the outermost, if its scope is "" */
    char pod_uid[WORKLOAD_POD_UID_BYTES];
    enum cgroup_qos qos;
    char job[CGROUP_JOB_BYTES];      /* of Slurm, LSF or PBS, as the scheduler prints it */
    char step[32], task[32];         /* Slurm */
    char machine[CGROUP_NAME_BYTES]; /* VM, LXC or nspawn, unescaped */
    char unit[CGROUP_NAME_BYTES];
    char parent[CGROUP_NAME_BYTES]; /* containerd's namespace, or a custom cgroup parent */
    bool has_uid;                   /* the path itself names a user */
    uint32_t uid;

    /* Which of pod, batch job and VM is the innermost: CGROUP_POD, _SLURM, _LSF, _PBS or _VM. It
     * owns what is in it. CGROUP_ROOT: there is none. */
    enum cgroup_kind holder;

    /*
     * Whoever runs below a certain point of the path can name cgroups as they like, so an id found
     * there must not pass for the same id elsewhere. This is the scope of the holder, or else of
     * the container, or else of the machine: "" if only the node's own services name cgroups there,
     * otherwise the first such point on the way down:
     *   "1000"                    a user's slice
     *   the container's id        whoever is root in a container
     *   "lxc:NAME", "nspawn:NAME" likewise
     *   "slurm:JOB"               Slurm's cgroup/v1 gives a step's cgroup to the user of the job
     *   "lsf:JOB", "pbs:JOB"      of these it is not known, so they are not trusted
     * No two kinds look alike, and none holds a '/'.
     */
    char scope[CGROUP_NAME_BYTES];
};

/* One path, as behind the second colon. */
void cgroup_path_parse(struct span path, struct cgroup_place *ret_place);

struct cgroup_file_faults {
    uint32_t lines_skipped; /* without two colons, or with a path that is none or too long */
};

/*
 * The text of /proc/PID/cgroup: the place that tells most, over all hierarchies. A text that
 * begins with '/' is one path (as traces hold it). 0 or -ENODATA: nothing in it. Adds to `faults`,
 * which may be NULL.
 */
int cgroup_file_parse(struct span text, struct cgroup_place *ret_place,
                      struct cgroup_file_faults *faults);
