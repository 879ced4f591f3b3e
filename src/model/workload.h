/* Workload: whom the joules are billed to. */
#pragma once

enum workload_kind {
    WORKLOAD_PROCESS, /* nothing is known but the pid */
    WORKLOAD_CGROUP,  /* the process' cgroup, as an opaque id */
    WORKLOAD_OTHER,   /* those cut by --max-workloads or --max-processes, together */
    WORKLOAD_RETIRED, /* those that ended longer than --metric-retention ago, together */
};
