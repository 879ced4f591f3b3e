/* How the runtimes name the cgroups of containers and pods. Pure. */
#pragma once

#include <stdbool.h>

#include "core/span.h"
#include "identity/cgroup_path.h"
#include "model/workload.h"

/* 64 lower-case hex digits. */
bool cgroup_container_is_id(struct span component);
/* "0123...-3054012820", as Fargate names containers below their task. */
bool cgroup_container_is_fargate_id(struct span component);

struct cgroup_container {
    const char *runtime;
    struct span id;
};

/* "docker-ID.scope", "cri-containerd-ID", ... */
bool cgroup_container_parse(struct span component, struct cgroup_container *ret_container);
/* The process that looks after one: "crio-conmon-ID.scope", "libpod-conmon-ID". */
bool cgroup_container_parse_monitor(struct span component, struct cgroup_container *ret_container);

struct cgroup_pod {
    char uid[WORKLOAD_POD_UID_BYTES];
    enum cgroup_qos qos;
    struct cgroup_container container; /* `runtime` is NULL if none is named */
};

/* systemd's driver: "kubepods-burstable-podUID.slice", and with ":cri-containerd:ID" behind it. */
bool cgroup_container_parse_pod_slice(struct span component, struct cgroup_pod *ret_pod);

/*
 * A static pod may have any text without '_' and '/' as its uid: metadata.uid of its manifest. It
 * counts only where the kubelet alone makes cgroups: right below the slice of all pods, or of a QoS
 * class. systemd's driver writes its '-' as '_'.
 */
bool cgroup_container_parse_static_pod_slice(struct span parent, struct span component,
                                             struct cgroup_pod *ret_pod);

/* The cgroupfs driver: "podUID", which does not tell the QoS. Only for what is right below the
 * cgroup of all pods or of a QoS class, as the uid may be any such text here, too. */
bool cgroup_container_parse_pod_uid(struct span component, char uid[WORKLOAD_POD_UID_BYTES]);
