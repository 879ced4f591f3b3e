/* Workload: the owner of joules. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum workload_kind {
    WORKLOAD_PROCESS,   /* only the pid is known */
    WORKLOAD_POD,       /* a container of a Kubernetes pod */
    WORKLOAD_CONTAINER, /* a container that belongs to no pod and no job */
    WORKLOAD_SLURM,     /* the part of a job on this node; the next two likewise */
    WORKLOAD_LSF,
    WORKLOAD_PBS,
    WORKLOAD_VM,
    WORKLOAD_LXC,
    WORKLOAD_NSPAWN,
    WORKLOAD_UNIT,    /* of systemd */
    WORKLOAD_USER,    /* processes of a user outside of all the above */
    WORKLOAD_SYSTEM,  /* likewise of root; shown as unowned */
    WORKLOAD_OTHER,   /* those cut by --max-workloads or --max-processes, together */
    WORKLOAD_RETIRED, /* those that ended longer than --metric-retention ago, together */
    WORKLOAD_KINDS,
};

/* Values of the label `kind`. */
extern const char *const workload_words[WORKLOAD_KINDS];

static inline bool workload_is_job(enum workload_kind kind)
{
    return kind == WORKLOAD_SLURM || kind == WORKLOAD_LSF || kind == WORKLOAD_PBS;
}

enum {
    WORKLOAD_ID_BYTES = 512,       /* a scope and a name of at most 255 bytes each */
    WORKLOAD_CONTAINER_BYTES = 65, /* 64 hex digits */
    WORKLOAD_POD_UID_BYTES = 128,  /* 36 digits and dashes; of a static pod any text */
};

/* The owner of a process, by its cgroup and uid alone: no names are needed. */
struct workload_owner {
    enum workload_kind kind;
    /* "SCOPE/ID" where the id was chosen not by the node's own services but inside SCOPE
     * (identity/cgroup_path.h): it may be a copy of another's, and is not repeated in the two
     * below. */
    char id[WORKLOAD_ID_BYTES];
    /* The container of the process, also where a job or VM is the owner; "" if there is none. */
    char container_id[WORKLOAD_CONTAINER_BYTES];
    char pod_uid[WORKLOAD_POD_UID_BYTES];
    /* The container was named by a job, which may lie. */
    bool container_is_claim;
};

/* Names of a workload, and the details of its info row. */
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

/* Names of the labels. */
extern const char *const workload_text_words[WORKLOAD_TEXTS];

/* "" where there is no such name. */
struct workload_names {
    const char *name, *namespace, *pod, *container;
    const char *image; /* of the container; may be NULL */
};

/* By which evidence a workload has a GPU, the strongest first: of several the first one counts. */
enum allocation_source {
    ALLOCATED_BY_KUBELET, /* a device plugin, by pod-resources */
    ALLOCATED_BY_DRA,     /* a ResourceClaim, likewise */
    ALLOCATED_BY_CRI,
    ALLOCATED_BY_DOCKER,
    ALLOCATED_BY_PODMAN,
    ALLOCATED_BY_QEMU,          /* the command line of a virtual machine's */
    ALLOCATED_BY_DEVICE_CGROUP, /* the rules of cgroup v1 */
    ALLOCATED_BY_DEVICE_NODES,  /* in a container's /dev */
    ALLOCATED_BY_ENVIRONMENT,   /* of a batch job: its own word alone */
    ALLOCATION_SOURCES,
};

/* Values of the label `source`. */
extern const char *const allocation_source_words[ALLOCATION_SOURCES];

enum { ATTACHED_MAX = 4096 }; /* of one GPU; more are left out */

/* A workload with access to a GPU, whether the driver lists a process of it or not. */
struct attached {
    struct workload_owner owner;
    enum allocation_source source;
    bool is_unverified; /* it could have forged that */
    bool is_allocated;  /* it was given this GPU, and not just any device */
    bool pays_idle;     /* with --idle-policy=reserved */
    bool is_candidate;  /* it can be behind usage without a visible process */
    /* They are final. Until then it is not shown. */
    bool is_named;
    /* "" if there is none. Longer ones are truncated. */
    char name[256], namespace[256], pod[256], container[256];
    uint64_t memory_bytes; /* requested; 0: unknown */
    uint32_t units;        /* how many shares (replicas) of the GPU it was allocated; at least 1 */
    bool is_of_instance;   /* it can use this GPU instance alone, not the whole board */
    uint32_t gpu_instance;
};

enum cgroup_verdict {
    CGROUP_IS_PASSAGE,  /* no workload, but some may be below */
    CGROUP_IS_WORKLOAD, /* with everything below */
    CGROUP_IS_HOLDER,   /* a workload with others below: a unit, a user */
};

/* Classifies a path ("/a/b", as in /proc/PID/cgroup). Writes the owner of workloads and holders. A
 * directory with the same owner as the holder around it is part of that one. */
typedef enum cgroup_verdict cgroup_find_owner(void *context, const char *path,
                                              struct workload_owner *ret_owner);
