/* The words for what the model counts: label values, and words of traces. */
#include "model/snapshot.h"

const char *const meter_words[METER_KINDS] = {
    [METER_GPU] = "gpu",   [METER_PACKAGE] = "package",
    [METER_DRAM] = "dram", [METER_NODE_OVERHEAD] = "rest",
    [METER_CORE] = "core", [METER_UNCORE] = "uncore",
    [METER_PSYS] = "psys", [METER_MODULE] = "module",
    [METER_NODE] = "node",
};

const char *const meter_limit_words[METER_LIMITS] = {
    [METER_LIMIT_LONG_TERM] = "long_term",
    [METER_LIMIT_SHORT_TERM] = "short_term",
    [METER_LIMIT_PEAK_POWER] = "peak_power",
};

const char *const unowned_words[UNOWNED_COUNT] = {
    [UNOWNED_IDLE] = "idle",
    [UNOWNED_SYSTEM] = "system",
    [UNOWNED_UNATTRIBUTED] = "unattributed",
    [UNOWNED_GAP] = "gap",
};

const char *const gpu_sharing_words[GPU_SHARING_MODES] = {
    [GPU_SHARING_EXCLUSIVE] = "exclusive",
    [GPU_SHARING_TIME_SLICED] = "time_sliced",
    [GPU_SHARING_MPS] = "mps",
    [GPU_SHARING_MIG] = "mig",
    [GPU_SHARING_VGPU] = "vgpu",
    [GPU_SHARING_PARTITIONED] = "partitioned",
};

const char *const workload_words[WORKLOAD_KINDS] = {
    [WORKLOAD_PROCESS] = "process",
    [WORKLOAD_POD] = "pod",
    [WORKLOAD_CONTAINER] = "container",
    [WORKLOAD_SLURM] = "slurm",
    [WORKLOAD_LSF] = "lsf",
    [WORKLOAD_PBS] = "pbs",
    [WORKLOAD_VM] = "vm",
    [WORKLOAD_LXC] = "lxc",
    [WORKLOAD_NSPAWN] = "nspawn",
    [WORKLOAD_UNIT] = "unit",
    [WORKLOAD_USER] = "user",
    [WORKLOAD_SYSTEM] = "system",
    [WORKLOAD_OTHER] = "other",
    [WORKLOAD_RETIRED] = "retired",
};

const char *const allocation_source_words[ALLOCATION_SOURCES] = {
    [ALLOCATED_BY_KUBELET] = "kubelet",
    [ALLOCATED_BY_DRA] = "dra",
    [ALLOCATED_BY_CRI] = "cri",
    [ALLOCATED_BY_DOCKER] = "docker",
    [ALLOCATED_BY_PODMAN] = "podman",
    [ALLOCATED_BY_QEMU] = "qemu",
    [ALLOCATED_BY_DEVICE_CGROUP] = "device_cgroup",
    [ALLOCATED_BY_DEVICE_NODES] = "device_nodes",
    [ALLOCATED_BY_ENVIRONMENT] = "environment",
};

const char *const workload_text_words[WORKLOAD_TEXTS] = {
    [WORKLOAD_TEXT_NAME] = "name",
    [WORKLOAD_TEXT_NAMESPACE] = "namespace",
    [WORKLOAD_TEXT_POD] = "pod",
    [WORKLOAD_TEXT_CONTAINER] = "container",
    [WORKLOAD_TEXT_IMAGE] = "image",
    [WORKLOAD_TEXT_USER] = "user",
    [WORKLOAD_TEXT_ACCOUNT] = "account",
    [WORKLOAD_TEXT_JOB_ID] = "job_id",
    [WORKLOAD_TEXT_JOB_NAME] = "job_name",
    [WORKLOAD_TEXT_UUID] = "uuid",
    [WORKLOAD_TEXT_UNVERIFIED] = "unverified",
};
