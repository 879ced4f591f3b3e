#include "model/workload.h"

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
