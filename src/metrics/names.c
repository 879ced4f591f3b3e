#include "metrics/names.h"

#include <stddef.h>

/* clang-format off: a table, not code. */
const struct metric_name metric_names[METRIC_COUNT] = {
    [METRIC_PROCESS_ENERGY] =
        {METRIC_PREFIX_PROCESS, "energy_joules", METRIC_COUNTER, "joules",
         "GPU energy of a process. energy_estimated=false: windows of the hardware counter in "
         "which it was alone; true: its share of the others. The sum is its energy."},
    [METRIC_PROCESS_ENERGY_SUM] =
        {METRIC_PREFIX_PROCESS, "energy_joules", METRIC_GAUGE, "joules",
         "GPU energy of a process, measured and estimated (compatibility name)."},
    [METRIC_PROCESS_CONFIDENCE] =
        {METRIC_PREFIX_PROCESS, "energy_confidence_ratio", METRIC_GAUGE, "ratio",
         "How far the energy of a process is determined by data: 0 by time share only, 1 fully."},
    [METRIC_PROCESS_SM_UTILIZATION] =
        {METRIC_PREFIX_PROCESS, "sm_utilization_ratio", METRIC_GAUGE, "ratio",
         "SM utilisation in the driver's samples that the process won, over all samples of the "
         "last 10 s. Sums to at most 1 per GPU."},
    [METRIC_PROCESS_MEMORY_UTILIZATION] =
        {METRIC_PREFIX_PROCESS, "memory_utilization_ratio", METRIC_GAUGE, "ratio",
         "Memory bandwidth utilisation of the whole device in the samples that the process "
         "won, over all samples of the last 10 s."},
    [METRIC_PROCESS_MEMORY_USED] = {METRIC_PREFIX_PROCESS, "memory_used_bytes", METRIC_GAUGE,
                                    "bytes", "GPU memory that the driver counts to the process."},
    [METRIC_PROCESS_START_TIME] = {METRIC_PREFIX_PROCESS, "start_time_seconds", METRIC_GAUGE,
                                   "seconds", "When the process started, since the epoch."},
    [METRIC_PROCESS_ACTIVE] =
        {METRIC_PREFIX_PROCESS, "active", METRIC_GAUGE, NULL,
         "1 while the driver lists the process, 0 after it ended, until its series are "
         "forgotten."},
    [METRIC_COMPAT_GPU_ENERGY] =
        {METRIC_PREFIX_PROCESS, "gpu_energy_joules", METRIC_COUNTER, "joules",
         "Energy of a GPU (compatibility name of wattribute_meter_energy_joules)."},
    [METRIC_METER_ENERGY] =
        {METRIC_PREFIX_OWN, "meter_energy_joules", METRIC_COUNTER, "joules",
         "Energy of a meter that was settled, from 0 at start. Equals the sum over workloads "
         "and unowned."},
    [METRIC_METER_HARDWARE_ENERGY] = {METRIC_PREFIX_OWN, "meter_hardware_energy_joules",
                                      METRIC_COUNTER, "joules",
                                      "The hardware's own counter, as it was last read."},
    [METRIC_NODE_POWER] = {METRIC_PREFIX_OWN, "node_power_watts", METRIC_GAUGE, "watts",
                           "Power of the whole node, as the named source told it last."},
    [METRIC_NODE_METER_INCLUDES_GPUS] =
        {METRIC_PREFIX_OWN, "node_meter_includes_gpus", METRIC_GAUGE, NULL,
         "1 if the meter of the whole node, from which `rest` is taken, is held to measure its "
         "GPUs, too."},
    [METRIC_NODE_METER_MISMATCH] =
        {METRIC_PREFIX_OWN, "node_meter_mismatch", METRIC_GAUGE, NULL,
         "1 while the parts of the node use more than its whole: its meter does not measure what "
         "it is held to."},
    [METRIC_ENERGY_PENDING] = {METRIC_PREFIX_OWN, "energy_pending_joules", METRIC_GAUGE, "joules",
                               "Energy that was read but is not settled yet."},
    [METRIC_UNOWNED_ENERGY] =
        {METRIC_PREFIX_OWN, "unowned_energy_joules", METRIC_COUNTER, "joules",
         "Energy that no workload owns: idle, system, unattributed (used, but by whom is "
         "unknown) or gap (nobody watched)."},
    [METRIC_EMISSION_FACTOR] =
        {METRIC_PREFIX_OWN, "emission_factor_grams_per_kwh", METRIC_GAUGE, NULL,
         "CO2 equivalent per kWh, and who says so. What energy is billed with is the one in force."},
    [METRIC_EMISSION_FACTOR_IN_FORCE] =
        {METRIC_PREFIX_OWN, "emission_factor_in_force", METRIC_GAUGE, NULL,
         "1 for the emission factor that energy is billed with now, 0 for the others."},
    [METRIC_EMISSION_FACTOR_STALE] =
        {METRIC_PREFIX_OWN, "emission_factor_stale", METRIC_GAUGE, NULL,
         "1 if the factor is older than its provider's usually are. After a day it is not used."},
    [METRIC_EMISSION_FACTOR_ESTIMATED] =
        {METRIC_PREFIX_OWN, "emission_factor_estimated", METRIC_GAUGE, NULL,
         "1 if the provider calls the factor an estimate or a forecast."},
    [METRIC_EMISSION_FACTOR_AGE] =
        {METRIC_PREFIX_OWN, "emission_factor_age_seconds", METRIC_GAUGE, "seconds",
         "Time since what the factor is for began, or since it was told, whichever is longer."},
    [METRIC_EMISSION_PROVIDER_UP] =
        {METRIC_PREFIX_OWN, "emission_provider_up", METRIC_GAUGE, NULL,
         "1 if the last question to a provider of emission factors had a good answer."},
    [METRIC_EMISSION_PROVIDER_ERRORS] =
        {METRIC_PREFIX_OWN, "emission_provider_errors", METRIC_COUNTER, NULL,
         "Questions to a provider of emission factors that had no good answer."},
    [METRIC_METER_EMISSIONS] =
        {METRIC_PREFIX_OWN, "meter_emissions_grams", METRIC_COUNTER, "grams",
         "CO2 equivalent of a meter's settled energy, with PUE, each window by the factor of its "
         "time."},
    [METRIC_UNOWNED_EMISSIONS] = {METRIC_PREFIX_OWN, "unowned_emissions_grams", METRIC_COUNTER,
                                  "grams", "CO2 equivalent of energy that no workload owns."},
    [METRIC_METER_EMBODIED] =
        {METRIC_PREFIX_OWN, "meter_embodied_grams", METRIC_COUNTER, "grams",
         "CO2 equivalent of making a meter's device, for the time that was settled. Equals the sum "
         "over workloads and unowned."},
    [METRIC_UNOWNED_EMBODIED] =
        {METRIC_PREFIX_OWN, "unowned_embodied_grams", METRIC_COUNTER, "grams",
         "CO2 equivalent of making a device, for its time that no workload owns."},
    [METRIC_PRICE] = {METRIC_PREFIX_OWN, "price_per_kwh", METRIC_GAUGE, NULL,
                      "What a kWh costs now, without PUE, in the currency of the label."},
    [METRIC_METER_COST] =
        {METRIC_PREFIX_OWN, "meter_cost", METRIC_COUNTER, NULL,
         "What a meter's settled energy cost, with PUE, in the currency of the label."},
    [METRIC_UNOWNED_COST] = {METRIC_PREFIX_OWN, "unowned_cost", METRIC_COUNTER, NULL,
                             "What energy that no workload owns cost."},
    [METRIC_WORKLOAD_ENERGY] =
        {METRIC_PREFIX_OWN, "workload_energy_joules", METRIC_COUNTER, "joules",
         "Energy of a workload at a meter. tier: active, or its share of the idle level; "
         "method: how it came to the workload."},
    [METRIC_WORKLOAD_POWER] = {METRIC_PREFIX_OWN, "workload_power_watts", METRIC_GAUGE, "watts",
                               "Current power of a workload at a meter, smoothed over 10 s."},
    [METRIC_WORKLOAD_CONFIDENCE] =
        {METRIC_PREFIX_OWN, "workload_energy_confidence_ratio", METRIC_GAUGE, "ratio",
         "How far the workload's energy is determined by data: 0 by time share only, 1 fully."},
    [METRIC_WORKLOAD_EMISSIONS] =
        {METRIC_PREFIX_OWN, "workload_emissions_grams", METRIC_COUNTER, "grams",
         "CO2 equivalent of a workload's energy at a meter, with PUE, each window by the factor of "
         "its time."},
    [METRIC_WORKLOAD_EMBODIED] =
        {METRIC_PREFIX_OWN, "workload_embodied_grams", METRIC_COUNTER, "grams",
         "CO2 equivalent of making a meter's device, for a workload's part of its time: as its "
         "part of the joules."},
    [METRIC_WORKLOAD_COST] =
        {METRIC_PREFIX_OWN, "workload_cost", METRIC_COUNTER, NULL,
         "What a workload's energy at a meter cost, with PUE, in the currency of the label."},
    [METRIC_WORKLOAD_INFO] =
        {METRIC_PREFIX_OWN, "workload_info", METRIC_GAUGE, NULL,
         "What is known of a workload; always 1. `unverified` names the labels that the workload "
         "itself could have made up."},
    [METRIC_WORKLOAD_GPU_ALLOCATED] =
        {METRIC_PREFIX_OWN, "workload_gpu_allocated", METRIC_GAUGE, NULL,
         "1 for each GPU that the kubelet has given to a container, used or not."},
    [METRIC_WORKLOAD_CPU] = {METRIC_PREFIX_OWN, "workload_cpu_seconds", METRIC_COUNTER, "seconds",
                             "CPU time of a workload, by mode."},
    [METRIC_WORKLOAD_CPU_PERIODS] = {METRIC_PREFIX_OWN, "workload_cpu_periods", METRIC_COUNTER,
                                     NULL,
                                     "Periods of the CPU quota in which a workload had work."},
    [METRIC_WORKLOAD_CPU_THROTTLED_PERIODS] =
        {METRIC_PREFIX_OWN, "workload_cpu_throttled_periods", METRIC_COUNTER, NULL,
         "Periods of the CPU quota in which a workload used it up and had to wait."},
    [METRIC_WORKLOAD_CPU_THROTTLED] =
        {METRIC_PREFIX_OWN, "workload_cpu_throttled_seconds", METRIC_COUNTER, "seconds",
         "Time that a workload had to wait for its CPU quota, over all CPUs."},
    [METRIC_WORKLOAD_MEMORY_RSS] = {METRIC_PREFIX_OWN, "workload_memory_rss_bytes", METRIC_GAUGE,
                                    "bytes", "Anonymous memory of a workload."},
    [METRIC_WORKLOAD_MEMORY_CACHE] = {METRIC_PREFIX_OWN, "workload_memory_cache_bytes",
                                      METRIC_GAUGE, "bytes",
                                      "Page cache of a workload, with shared memory."},
    [METRIC_WORKLOAD_MEMORY_USED] = {METRIC_PREFIX_OWN, "workload_memory_used_bytes", METRIC_GAUGE,
                                     "bytes", "All memory that the kernel charges to a workload."},
    [METRIC_WORKLOAD_MEMORY_WORKING_SET] =
        {METRIC_PREFIX_OWN, "workload_memory_working_set_bytes", METRIC_GAUGE, "bytes",
         "Memory charged to a workload, without page cache that was not used for long."},
    [METRIC_WORKLOAD_MEMORY_SWAP] = {METRIC_PREFIX_OWN, "workload_memory_swap_bytes", METRIC_GAUGE,
                                     "bytes", "Memory of a workload that is swapped out."},
    [METRIC_WORKLOAD_MEMORY_LIMIT] =
        {METRIC_PREFIX_OWN, "workload_memory_limit_bytes", METRIC_GAUGE, "bytes",
         "The tightest limit on the memory of a workload; absent if there is none."},
    [METRIC_WORKLOAD_MEMORY_FAILURES] = {METRIC_PREFIX_OWN, "workload_memory_failures",
                                         METRIC_COUNTER, NULL,
                                         "Times that a workload hit its memory limit."},
    [METRIC_WORKLOAD_MEMORY_OOM_KILLS] =
        {METRIC_PREFIX_OWN, "workload_memory_oom_kills", METRIC_COUNTER, NULL,
         "Processes of a workload that were killed for lack of memory."},
    [METRIC_WORKLOAD_IO_READ] =
        {METRIC_PREFIX_OWN, "workload_io_read_bytes", METRIC_COUNTER, "bytes",
         "Bytes that a workload read from a block device. Disks and what lies on them (LVM, "
         "md) count the same byte: do not add up devices."},
    [METRIC_WORKLOAD_IO_WRITTEN] =
        {METRIC_PREFIX_OWN, "workload_io_written_bytes", METRIC_COUNTER, "bytes",
         "Bytes that a workload wrote to a block device. Do not add up devices, as for those read."},
    [METRIC_WORKLOAD_IO_READS] = {METRIC_PREFIX_OWN, "workload_io_reads", METRIC_COUNTER, NULL,
                                  "Read operations of a workload on a block device."},
    [METRIC_WORKLOAD_IO_WRITES] = {METRIC_PREFIX_OWN, "workload_io_writes", METRIC_COUNTER, NULL,
                                   "Write operations of a workload on a block device."},
    [METRIC_WORKLOAD_PRESSURE] =
        {METRIC_PREFIX_OWN, "workload_pressure_seconds", METRIC_COUNTER, "seconds",
         "Time in which tasks of a workload waited for a resource: some of them, or all "
         "(full) so that nothing was done."},
    [METRIC_WORKLOAD_PIDS] = {METRIC_PREFIX_OWN, "workload_pids", METRIC_GAUGE, NULL,
                              "Tasks (threads) of a workload."},
    [METRIC_WORKLOAD_RDMA_HANDLES] = {METRIC_PREFIX_OWN, "workload_rdma_handles", METRIC_GAUGE,
                                      NULL, "Handles of an RDMA device that a workload holds."},
    [METRIC_WORKLOAD_RDMA_OBJECTS] = {METRIC_PREFIX_OWN, "workload_rdma_objects", METRIC_GAUGE,
                                      NULL, "Objects of an RDMA device that a workload holds."},
    [METRIC_WORKLOAD_HUGETLB] = {METRIC_PREFIX_OWN, "workload_hugetlb_bytes", METRIC_GAUGE, "bytes",
                                 "Huge pages of a workload, by the size of a page."},
    [METRIC_GPU_INFO] = {METRIC_PREFIX_OWN, "gpu_info", METRIC_GAUGE, NULL,
                         "What a GPU is; always 1."},
    [METRIC_GPU_POWER] = {METRIC_PREFIX_OWN, "gpu_power_watts", METRIC_GAUGE, "watts",
                          "Power of a GPU as the driver reports it."},
    [METRIC_GPU_POWER_LIMIT] = {METRIC_PREFIX_OWN, "gpu_power_limit_watts", METRIC_GAUGE, "watts",
                                "Power limit of a GPU."},
    [METRIC_GPU_UTILIZATION] = {METRIC_PREFIX_OWN, "gpu_utilization_ratio", METRIC_GAUGE, "ratio",
                                "Part of the time in which a GPU had work."},
    [METRIC_GPU_MEMORY_UTILIZATION] =
        {METRIC_PREFIX_OWN, "gpu_memory_utilization_ratio", METRIC_GAUGE, "ratio",
         "Part of the time in which a GPU's memory was read or written."},
    [METRIC_GPU_CLOCK] = {METRIC_PREFIX_OWN, "gpu_clock_hertz", METRIC_GAUGE, "hertz",
                          "SM clock of a GPU."},
    [METRIC_GPU_MEMORY_CLOCK] = {METRIC_PREFIX_OWN, "gpu_memory_clock_hertz", METRIC_GAUGE, "hertz",
                                 "Memory clock of a GPU."},
    [METRIC_GPU_TEMPERATURE] = {METRIC_PREFIX_OWN, "gpu_temperature_celsius", METRIC_GAUGE,
                                "celsius", "Temperature of a GPU."},
    [METRIC_GPU_MEMORY_TEMPERATURE] = {METRIC_PREFIX_OWN, "gpu_memory_temperature_celsius",
                                       METRIC_GAUGE, "celsius", "Temperature of a GPU's memory."},
    [METRIC_GPU_PERFORMANCE_STATE] =
        {METRIC_PREFIX_OWN, "gpu_performance_state", METRIC_GAUGE, NULL,
         "Performance state of a GPU: 0 is the highest, 15 the lowest."},
    [METRIC_GPU_THROTTLE] = {METRIC_PREFIX_OWN, "gpu_throttle_active", METRIC_GAUGE, NULL,
                             "1 while the clock of a GPU is held down for this reason."},
    [METRIC_GPU_MEMORY_TOTAL] = {METRIC_PREFIX_NONE, "gpu_memory_total_bytes", METRIC_GAUGE,
                                 "bytes", "Memory of a GPU."},
    [METRIC_GPU_MEMORY_RESERVED] = {METRIC_PREFIX_NONE, "gpu_memory_reserved_bytes", METRIC_GAUGE,
                                    "bytes", "Memory of a GPU that the driver keeps for itself."},
    [METRIC_GPU_MEMORY_USED] = {METRIC_PREFIX_NONE, "gpu_memory_used_bytes", METRIC_GAUGE, "bytes",
                                "Memory of a GPU in use, without what is reserved."},
    [METRIC_GPU_MEMORY_FREE] = {METRIC_PREFIX_NONE, "gpu_memory_free_bytes", METRIC_GAUGE, "bytes",
                                "Memory of a GPU that is free."},
    [METRIC_GPU_MEMORY_KNOWN] =
        {METRIC_PREFIX_NONE, "gpu_memory_known_bytes", METRIC_GAUGE, "bytes",
         "Memory of a GPU in use by processes that the driver shows. Used = known + unknown."},
    [METRIC_GPU_MEMORY_UNKNOWN] =
        {METRIC_PREFIX_NONE, "gpu_memory_unknown_bytes", METRIC_GAUGE, "bytes",
         "Memory of a GPU in use, but by no process that the driver shows."},
    [METRIC_GPU_INFERENCE_ACTIVE] =
        {METRIC_PREFIX_NONE, "gpu_inference_active", METRIC_GAUGE, NULL,
         "1 while unknown memory of a GPU is divided among the containers that can use it."},
    [METRIC_CONTAINER_GPU_MEMORY] =
        {METRIC_PREFIX_NONE, "container_gpu_memory_bytes", METRIC_GAUGE, "bytes",
         "Memory of a GPU that a container uses. method: nvidia-smi, the driver shows its "
         "processes; inference, its share of the unknown."},
    [METRIC_CONTAINER_GPU_DETECTED] = {METRIC_PREFIX_NONE, "container_gpu_detected", METRIC_GAUGE,
                                       NULL,
                                       "1 for each container that uses a GPU, or can use one."},
    [METRIC_GPU_ECC_ERRORS] = {METRIC_PREFIX_OWN, "gpu_ecc_errors", METRIC_COUNTER, NULL,
                               "Memory errors that a GPU has counted over its life."},
    [METRIC_GPU_XID_ERRORS] =
        {METRIC_PREFIX_OWN, "gpu_xid_errors", METRIC_COUNTER, NULL,
         "Errors that the driver has reported of a GPU since the start, by their number."},
    [METRIC_GPU_PCIE_SENT] = {METRIC_PREFIX_OWN, "gpu_pcie_sent_bytes", METRIC_COUNTER, "bytes",
                              "Bytes that a GPU has sent over PCIe."},
    [METRIC_GPU_PCIE_RECEIVED] = {METRIC_PREFIX_OWN, "gpu_pcie_received_bytes", METRIC_COUNTER,
                                  "bytes", "Bytes that a GPU has received over PCIe."},
    [METRIC_GPU_PCIE_REPLAYS] = {METRIC_PREFIX_OWN, "gpu_pcie_replays", METRIC_COUNTER, NULL,
                                 "Packets that had to be sent again over PCIe."},
    [METRIC_GPU_PCIE_GENERATION] = {METRIC_PREFIX_OWN, "gpu_pcie_link_generation", METRIC_GAUGE,
                                    NULL, "Generation of the PCIe link as it runs now."},
    [METRIC_GPU_PCIE_WIDTH] = {METRIC_PREFIX_OWN, "gpu_pcie_link_width", METRIC_GAUGE, NULL,
                               "Lanes of the PCIe link as it runs now."},
    [METRIC_GPU_NVLINK_SENT] = {METRIC_PREFIX_OWN, "gpu_nvlink_sent_bytes", METRIC_COUNTER, "bytes",
                                "Bytes of data that a GPU has sent over all NVLinks."},
    [METRIC_GPU_NVLINK_RECEIVED] = {METRIC_PREFIX_OWN, "gpu_nvlink_received_bytes", METRIC_COUNTER,
                                    "bytes",
                                    "Bytes of data that a GPU has received over all NVLinks."},
    [METRIC_LEDGER_IMBALANCE] =
        {METRIC_PREFIX_OWN, "ledger_imbalance_joules", METRIC_GAUGE, "joules",
         "Meter minus everything booked, recomputed in integers. Always 0; anything else is a "
         "bug."},
    [METRIC_SOURCE_UP] = {METRIC_PREFIX_OWN, "source_up", METRIC_GAUGE, NULL,
                          "1 if the source's last read succeeded and none hangs."},
    [METRIC_SOURCE_AGE] = {METRIC_PREFIX_OWN, "source_age_seconds", METRIC_GAUGE, "seconds",
                           "Time since the source was last read successfully."},
    [METRIC_SOURCE_DURATION] = {METRIC_PREFIX_OWN, "source_duration_seconds", METRIC_GAUGE,
                                "seconds", "How long the source's last read took."},
    [METRIC_SOURCE_ERRORS] = {METRIC_PREFIX_OWN, "source_errors", METRIC_COUNTER, NULL,
                              "Reads of the source that failed."},
    [METRIC_SOURCE_RESETS] =
        {METRIC_PREFIX_OWN, "source_resets", METRIC_COUNTER, NULL,
         "Times that a meter's counter went back or jumped by more than the board can use."},
    [METRIC_SAMPLES_DROPPED] =
        {METRIC_PREFIX_OWN, "utilization_samples_dropped", METRIC_COUNTER, NULL,
         "Utilisation samples that were not counted, by reason: garbage, repeated or late."},
    [METRIC_SERIES_DROPPED] =
        {METRIC_PREFIX_OWN, "series_dropped", METRIC_COUNTER, NULL,
         "Times that a process or workload was booked to `other` because of --max-processes or "
         "--max-workloads."},
    [METRIC_NODE_PROCESSES] = {METRIC_PREFIX_OWN, "node_processes", METRIC_GAUGE, NULL,
                               "Processes of the node at the last scan."},
    [METRIC_NODE_PROCESSES_OUTSIDE] =
        {METRIC_PREFIX_OWN, "node_processes_outside", METRIC_GAUGE, NULL,
         "Processes whose owner cannot be told, because the exporter runs in a cgroup namespace "
         "of its own. Above 0: run it in the host's."},
    [METRIC_PUE] =
        {METRIC_PREFIX_OWN, "pue_ratio", METRIC_GAUGE, "ratio",
         "What the site uses for each joule of its machines (--pue). Joules are without it, "
         "emissions and cost with it."},
    [METRIC_REPLAY_ACTIVE] =
        {METRIC_PREFIX_OWN, "replay_active", METRIC_GAUGE, NULL,
         "1 if a recorded trace is played and nothing of this node is measured."},
    [METRIC_CHILD_STARTS] =
        {METRIC_PREFIX_OWN, "child_starts", METRIC_COUNTER, NULL,
         "Times that a process of the exporter was started; above 1, it died or its keys changed."},
    [METRIC_FRONT_STARTS] =
        {METRIC_PREFIX_OWN, "front_starts", METRIC_COUNTER, NULL,
         "Deprecated: the starts of the server, as wattribute_child_starts_total has them."},
    [METRIC_BUILD_INFO] = {METRIC_PREFIX_OWN, "build_info", METRIC_GAUGE, NULL,
                           "What is running; always 1."},
    [METRIC_SELF_CPU] = {METRIC_PREFIX_NONE, "process_cpu_seconds", METRIC_COUNTER, "seconds",
                         "CPU time of the collector process."},
    [METRIC_SELF_MEMORY] = {METRIC_PREFIX_NONE, "process_resident_memory_bytes", METRIC_GAUGE,
                            "bytes", "Resident memory of the collector process."},
    [METRIC_SELF_START_TIME] = {METRIC_PREFIX_NONE, "process_start_time_seconds", METRIC_GAUGE,
                                "seconds", "When the collector process started, since the epoch."},
};
/* clang-format on */
