/* Workload: whom the joules are billed to. */
#pragma once

#include <stdbool.h>

enum workload_kind {
    WORKLOAD_PROCESS,   /* nothing is known but the pid */
    WORKLOAD_POD,       /* a container of a Kubernetes pod */
    WORKLOAD_CONTAINER, /* a container that belongs to no pod and no job */
    WORKLOAD_SLURM,     /* a job, on this node; likewise of the next two */
    WORKLOAD_LSF,
    WORKLOAD_PBS,
    WORKLOAD_VM,
    WORKLOAD_LXC,
    WORKLOAD_NSPAWN,
    WORKLOAD_UNIT,    /* of systemd */
    WORKLOAD_USER,    /* what a user runs outside of all that */
    WORKLOAD_SYSTEM,  /* what root runs outside of all that; shown as unowned */
    WORKLOAD_OTHER,   /* those cut by --max-workloads or --max-processes, together */
    WORKLOAD_RETIRED, /* those that ended longer than --metric-retention ago, together */
    WORKLOAD_KINDS,
};

/* The words of the label `kind`. */
extern const char *const workload_words[WORKLOAD_KINDS];

/* Of a batch scheduler. */
static inline bool workload_is_job(enum workload_kind kind)
{
    return kind == WORKLOAD_SLURM || kind == WORKLOAD_LSF || kind == WORKLOAD_PBS;
}

enum {
    WORKLOAD_ID_BYTES = 512,       /* a scope and a name of at most 255 bytes each */
    WORKLOAD_CONTAINER_BYTES = 65, /* 64 hex digits */
    WORKLOAD_POD_UID_BYTES = 128,  /* 36 digits and dashes; of a static pod any text */
};

/* Who pays for a process, as far as its cgroup and uid tell: no names are needed for it. */
struct workload_owner {
    enum workload_kind kind;
    /* "SCOPE/ID" where not the node's own services but whoever runs in SCOPE
     * (identity/cgroup/path.h) chose the id: it may be a copy of another's, and is not repeated in
     * the two below. */
    char id[WORKLOAD_ID_BYTES];
    /* The container that the process is in, also where a job or VM pays; "" if there is none. */
    char container_id[WORKLOAD_CONTAINER_BYTES];
    char pod_uid[WORKLOAD_POD_UID_BYTES];
    /* A job says that the process is in this container; it may be lying. */
    bool container_is_claim;
};

/* What is told of a workload beside who pays: its names, and the details of its info row. */
enum workload_text {
    WORKLOAD_TEXT_NAME,
    WORKLOAD_TEXT_NAMESPACE,
    WORKLOAD_TEXT_POD,
    WORKLOAD_TEXT_CONTAINER,
    WORKLOAD_TEXT_IMAGE,
    WORKLOAD_TEXT_USER,
    WORKLOAD_TEXT_ACCOUNT,
    WORKLOAD_TEXT_JOB_ID,
    WORKLOAD_TEXT_JOB_NAME,
    WORKLOAD_TEXT_UUID,
    WORKLOAD_TEXT_UNVERIFIED,
    WORKLOAD_TEXTS,
};

/* As the labels are called. */
extern const char *const workload_text_words[WORKLOAD_TEXTS];

/* How people call it; "" where there is no such name. */
struct workload_names {
    const char *name, *namespace, *pod, *container;
    const char *image; /* of the container; may be NULL */
};
