/* Every metric family, in the order of the page: METRIC(id, prefix, type, name, help), the name
 * without `_total`. text.h and text.c include it with METRIC defined. */

/* clang-format off: a table, not code. */
METRIC(PROCESS_ENERGY, PROCESS, COUNTER, "energy_joules",
       "GPU energy of a process. energy_estimated=false: windows in which it had the GPU to "
       "itself, as the hardware counted them; true: its share of the others. The sum is its "
       "energy.")
METRIC(PROCESS_ENERGY_SUM, PROCESS, GAUGE, "energy_joules",
       "GPU energy of a process, measured and estimated (compatibility name).")
METRIC(PROCESS_CONFIDENCE, PROCESS, GAUGE, "energy_confidence_ratio",
       "How well data determines the energy of a process: 0 by time share only, 1 fully.")
METRIC(PROCESS_SM_UTILIZATION, PROCESS, GAUGE, "sm_utilization_ratio",
       "SM utilisation in the driver's samples that the process won, over all samples of the "
       "last 10 s. Sums to at most 1 per GPU.")
METRIC(PROCESS_MEMORY_UTILIZATION, PROCESS, GAUGE, "memory_utilization_ratio",
       "Memory bandwidth utilisation of the whole device in the samples that the process won, "
       "over all samples of the last 10 s.")
METRIC(PROCESS_MEMORY_USED, PROCESS, GAUGE, "memory_used_bytes",
       "GPU memory of the process, as the driver reports it.")
METRIC(PROCESS_START_TIME, PROCESS, GAUGE, "start_time_seconds",
       "Start time of the process since the Unix epoch.")
METRIC(PROCESS_ACTIVE, PROCESS, GAUGE, "active",
       "1 while the driver lists the process, 0 from its end until --metric-retention drops its "
       "series.")
METRIC(COMPAT_GPU_ENERGY, PROCESS, COUNTER, "gpu_energy_joules",
       "Energy of a GPU (compatibility name of wattribute_meter_energy_joules).")
METRIC(METER_ENERGY, OWN, COUNTER, "meter_energy_joules",
       "Settled energy of a meter since its books began. Equals the sum over workloads and "
       "unowned.")
METRIC(METER_HARDWARE_ENERGY, OWN, COUNTER, "meter_hardware_energy_joules",
       "The hardware's own counter, as last read.")
METRIC(METER_POWER_LIMIT, OWN, GAUGE, "meter_power_limit_watts",
       "Enforced power limit of a meter's device, by the time it is averaged over (RAPL).")
METRIC(NODE_POWER, OWN, GAUGE, "node_power_watts",
       "Power of the whole node, as last reported by this source.")
METRIC(NODE_METER_INCLUDES_GPUS, OWN, GAUGE, "node_meter_includes_gpus",
       "1 if the node meter behind `rest` is assumed to include the GPUs.")
METRIC(NODE_METER_MISMATCH, OWN, GAUGE, "node_meter_mismatch",
       "1 while the parts of the node draw more than its meter reports: the meter does not cover "
       "what it is assumed to.")
METRIC(ENERGY_PENDING, OWN, GAUGE, "energy_pending_joules",
       "Energy that was read but is not settled yet.")
METRIC(UNOWNED_ENERGY, OWN, COUNTER, "unowned_energy_joules",
       "Energy that no workload owns: idle, system, unattributed (used by an unknown process) or "
       "gap (not observed).")
METRIC(EMISSION_FACTOR, OWN, GAUGE, "emission_factor_grams_per_kwh",
       "CO2 equivalent per kWh, by provider. The factor in force is applied to energy.")
METRIC(EMISSION_FACTOR_IN_FORCE, OWN, GAUGE, "emission_factor_in_force",
       "1 for the emission factor that is applied to energy now, 0 for the others.")
METRIC(EMISSION_FACTOR_STALE, OWN, GAUGE, "emission_factor_stale",
       "1 if the factor is older than the provider's usual lag. A factor older than a day is not "
       "used.")
METRIC(EMISSION_FACTOR_ESTIMATED, OWN, GAUGE, "emission_factor_estimated",
       "1 if the provider calls the factor an estimate or a forecast.")
METRIC(EMISSION_FACTOR_AGE, OWN, GAUGE, "emission_factor_age_seconds",
       "Time since the start of the period the factor is for, or since it was published, "
       "whichever is longer.")
METRIC(EMISSION_PROVIDER_UP, OWN, GAUGE, "emission_provider_up",
       "1 if the last request to the emission provider succeeded.")
METRIC(EMISSION_PROVIDER_ERRORS, OWN, COUNTER, "emission_provider_errors",
       "Failed requests to the emission provider.")
METRIC(METER_EMISSIONS, OWN, COUNTER, "meter_emissions_grams",
       "CO2 equivalent of a meter's settled energy, with PUE, each window by the factor of its "
       "time.")
METRIC(UNOWNED_EMISSIONS, OWN, COUNTER, "unowned_emissions_grams",
       "CO2 equivalent of energy that no workload owns.")
METRIC(METER_EMBODIED, OWN, COUNTER, "meter_embodied_grams",
       "Embodied CO2 equivalent of a meter's device, for the settled time. Equals the sum over "
       "workloads and unowned.")
METRIC(UNOWNED_EMBODIED, OWN, COUNTER, "unowned_embodied_grams",
       "Embodied CO2 equivalent of a device, for the time that no workload owns.")
METRIC(PRICE, OWN, GAUGE, "price_per_kwh",
       "Current price of a kWh, without PUE, in the labelled currency.")
METRIC(METER_COST, OWN, COUNTER, "meter_cost",
       "Cost of a meter's settled energy, with PUE, in the labelled currency.")
METRIC(UNOWNED_COST, OWN, COUNTER, "unowned_cost", "Cost of energy that no workload owns.")
METRIC(WORKLOAD_ENERGY, OWN, COUNTER, "workload_energy_joules",
       "Energy of a workload at a meter. tier: active, or its share of the idle level; method: "
       "how it was attributed.")
METRIC(WORKLOAD_POWER, OWN, GAUGE, "workload_power_watts",
       "Current power of a workload at a meter, smoothed over 10 s.")
METRIC(WORKLOAD_CONFIDENCE, OWN, GAUGE, "workload_energy_confidence_ratio",
       "How well data determines the workload's energy: 0 by time share only, 1 fully.")
METRIC(WORKLOAD_UNCERTAINTY, OWN, COUNTER, "workload_energy_uncertainty_joules",
       "Expected error of a workload's energy at a GPU, summed over its windows: an upper bound. "
       "Absent for other meters and with --attribution=timeshare: the error of their split is "
       "unknown.")
METRIC(WORKLOAD_EMISSIONS, OWN, COUNTER, "workload_emissions_grams",
       "CO2 equivalent of a workload's energy at a meter, with PUE, each window by the factor of "
       "its time.")
METRIC(WORKLOAD_EMBODIED, OWN, COUNTER, "workload_embodied_grams",
       "Embodied CO2 equivalent of a meter's device, for a workload's share of its time, which "
       "is its share of the energy.")
METRIC(WORKLOAD_COST, OWN, COUNTER, "workload_cost",
       "Cost of a workload's energy at a meter, with PUE, in the labelled currency.")
METRIC(WORKLOAD_INFO, OWN, GAUGE, "workload_info",
       "Names and details of a workload; always 1. `unverified` lists the labels that the "
       "workload could have forged.")
METRIC(WORKLOAD_GPU_ALLOCATED, OWN, GAUGE, "workload_gpu_allocated",
       "1 for each GPU that a workload was given, used or not.")
METRIC(GPU_INFO, OWN, GAUGE, "gpu_info", "Model and driver of a GPU; always 1.")
METRIC(GPU_INSTANCE_INFO, OWN, GAUGE, "gpu_instance_info", "MIG devices of a GPU; always 1.")
METRIC(GPU_SHARING, OWN, GAUGE, "gpu_sharing",
       "1 for the way in which a GPU is shared, as observed: exclusive (at most one process), "
       "time_sliced, mps, mig or vgpu.")
METRIC(GPU_POWER, OWN, GAUGE, "gpu_power_watts",
       "Power of a GPU as the driver reports it; of a MIG instance, an estimate.")
METRIC(GPU_POWER_LIMIT, OWN, GAUGE, "gpu_power_limit_watts", "Power limit of a GPU.")
METRIC(GPU_UTILIZATION, OWN, GAUGE, "gpu_utilization_ratio",
       "Fraction of time in which a GPU was busy.")
METRIC(GPU_MEMORY_UTILIZATION, OWN, GAUGE, "gpu_memory_utilization_ratio",
       "Fraction of time in which a GPU's memory was read or written.")
METRIC(GPU_CLOCK, OWN, GAUGE, "gpu_clock_hertz", "SM clock of a GPU.")
METRIC(GPU_MEMORY_CLOCK, OWN, GAUGE, "gpu_memory_clock_hertz", "Memory clock of a GPU.")
METRIC(GPU_TEMPERATURE, OWN, GAUGE, "gpu_temperature_celsius", "Temperature of a GPU.")
METRIC(GPU_MEMORY_TEMPERATURE, OWN, GAUGE, "gpu_memory_temperature_celsius",
       "Temperature of a GPU's memory.")
METRIC(GPU_PERFORMANCE_STATE, OWN, GAUGE, "gpu_performance_state",
       "Performance state of a GPU: 0 is the highest, 15 the lowest.")
METRIC(GPU_MEMORY_TOTAL, NONE, GAUGE, "gpu_memory_total_bytes", "Memory of a GPU.")
METRIC(GPU_MEMORY_RESERVED, NONE, GAUGE, "gpu_memory_reserved_bytes",
       "Memory of a GPU that the driver reserves.")
METRIC(GPU_MEMORY_USED, NONE, GAUGE, "gpu_memory_used_bytes",
       "Memory of a GPU in use, without the reserved part.")
METRIC(GPU_MEMORY_FREE, NONE, GAUGE, "gpu_memory_free_bytes", "Free memory of a GPU.")
METRIC(GPU_PCIE_SENT, OWN, COUNTER, "gpu_pcie_sent_bytes", "Bytes sent by a GPU over PCIe.")
METRIC(GPU_PCIE_RECEIVED, OWN, COUNTER, "gpu_pcie_received_bytes",
       "Bytes received by a GPU over PCIe.")
METRIC(GPU_PCIE_REPLAYS, OWN, COUNTER, "gpu_pcie_replays", "Packets retransmitted over PCIe.")
METRIC(GPU_PCIE_GENERATION, OWN, GAUGE, "gpu_pcie_link_generation",
       "Current generation of the PCIe link.")
METRIC(GPU_PCIE_WIDTH, OWN, GAUGE, "gpu_pcie_link_width",
       "Current number of lanes of the PCIe link.")
METRIC(GPU_NVLINK_SENT, OWN, COUNTER, "gpu_nvlink_sent_bytes",
       "Data bytes sent by a GPU over all NVLinks.")
METRIC(GPU_NVLINK_RECEIVED, OWN, COUNTER, "gpu_nvlink_received_bytes",
       "Data bytes received by a GPU over all NVLinks.")
METRIC(GPU_MEMORY_KNOWN, NONE, GAUGE, "gpu_memory_known_bytes",
       "Memory of a GPU in use by processes that the driver lists. Used = known + unknown.")
METRIC(GPU_MEMORY_UNKNOWN, NONE, GAUGE, "gpu_memory_unknown_bytes",
       "Memory of a GPU in use by no process that the driver lists.")
METRIC(GPU_INFERENCE_ACTIVE, NONE, GAUGE, "gpu_inference_active",
       "1 while unknown memory of a GPU is divided among the containers with access to it.")
METRIC(CONTAINER_GPU_MEMORY, NONE, GAUGE, "container_gpu_memory_bytes",
       "Memory of a GPU that a container uses. method: nvidia-smi, the driver lists its "
       "processes; inference, its share of the unknown.")
METRIC(CONTAINER_GPU_DETECTED, NONE, GAUGE, "container_gpu_detected",
       "1 for each container with access to a GPU.")
METRIC(GPU_THROTTLE, OWN, GAUGE, "gpu_throttle_active",
       "1 while this reason limits the clock of a GPU.")
METRIC(GPU_ECC_ERRORS, OWN, COUNTER, "gpu_ecc_errors", "Memory errors of a GPU over its lifetime.")
METRIC(GPU_XID_ERRORS, OWN, COUNTER, "gpu_xid_errors",
       "Errors that the driver has reported for a GPU since the exporter started, by XID.")
METRIC(PROGRAM_MEMORY_KNOWN, OWN, GAUGE, "program_memory_known_programs",
       "Programs whose power on a GPU is remembered. Absent with --attribution=timeshare.")
METRIC(PROGRAM_MEMORY_USED, OWN, GAUGE, "program_memory_used_processes",
       "Processes on a GPU whose estimate uses what is remembered of their program.")
METRIC(PROGRAM_MEMORY_SUSPENDED, OWN, GAUGE, "program_memory_suspended_processes",
       "Processes on a GPU that contradict what is remembered of their program, which is not used.")
METRIC(LEDGER_IMBALANCE, OWN, GAUGE, "ledger_imbalance_joules",
       "Meter minus everything booked, recomputed in integers. Always 0; anything else is a bug.")
METRIC(SOURCE_UP, OWN, GAUGE, "source_up", "1 if the source's last read succeeded and none hangs.")
METRIC(SOURCE_AGE, OWN, GAUGE, "source_age_seconds",
       "Time since the last successful read of the source.")
METRIC(SOURCE_DURATION, OWN, GAUGE, "source_duration_seconds",
       "Duration of the source's last read.")
METRIC(SOURCE_ERRORS, OWN, COUNTER, "source_errors", "Failed reads of the source.")
METRIC(SOURCE_RESETS, OWN, COUNTER, "source_resets",
       "Times a meter's counter went back, or jumped by more than the device can draw.")
METRIC(METER_UNKNOWN_GAPS, OWN, COUNTER, "meter_unknown_gaps",
       "Restarts during which a meter's energy was not counted: it has no counter of its own, or "
       "one that may have wrapped or was reset. That energy is missing.")
METRIC(STATE_UP, OWN, GAUGE, "state_up",
       "1 if the state file was written last time: counters survive a restart. Absent without one.")
METRIC(SAMPLES_DROPPED, OWN, COUNTER, "utilization_samples_dropped",
       "Utilisation samples that were discarded, by reason: garbage, repeated or late.")
METRIC(
    SERIES_DROPPED, OWN, COUNTER, "series_dropped",
    "Times a process or workload was booked to `other`, or a tenant's workload to the tenant, because "
    "of --max-processes or --max-workloads.")
METRIC(NODE_PROCESSES, OWN, GAUGE, "node_processes", "Processes of the node at the last scan.")
METRIC(NODE_PROCESSES_OUTSIDE, OWN, GAUGE, "node_processes_outside",
       "Processes whose owner is unknown because the exporter runs in its own cgroup namespace. "
       "Above 0: run it in the host's.")
METRIC(NODE_JOB_GPUS_UNKNOWN, OWN, GAUGE, "node_job_gpus_unknown",
       "GPUs of this node that batch jobs have by their own count, missing from "
       "wattribute_workload_gpu_allocated because nothing readable names them.")
METRIC(PUE, OWN, GAUGE, "pue_ratio",
       "Power usage effectiveness of the site (--pue). Applied to emissions and cost, not to "
       "energy.")
METRIC(REPLAY_ACTIVE, OWN, GAUGE, "replay_active",
       "1 if a recorded trace is replayed and nothing on this node is measured.")
METRIC(CHILD_STARTS, OWN, COUNTER, "child_starts",
       "Starts of each child process; more than one means that it died or was replaced.")
METRIC(CHILD_HANGS, OWN, COUNTER, "child_hangs",
       "Times that a child process did not answer the collector for 15 s and was killed.")
METRIC(FRONT_STARTS, OWN, COUNTER, "front_starts",
       "Deprecated: use wattribute_child_starts_total of the server.")
METRIC(BUILD_INFO, OWN, GAUGE, "build_info", "Version of the exporter; always 1.")
METRIC(SELF_CPU, NONE, COUNTER, "process_cpu_seconds", "CPU time of the collector process.")
METRIC(SELF_MEMORY, NONE, GAUGE, "process_resident_memory_bytes",
       "Resident memory of the collector process.")
METRIC(SELF_START_TIME, NONE, GAUGE, "process_start_time_seconds",
       "Start time of the collector process since the Unix epoch.")
METRIC(WORKLOAD_CPU, OWN, COUNTER, "workload_cpu_seconds", "CPU time of a workload, by mode.")
METRIC(WORKLOAD_CPU_PERIODS, OWN, COUNTER, "workload_cpu_periods",
       "Periods of the CPU quota in which a workload was runnable.")
METRIC(WORKLOAD_CPU_THROTTLED_PERIODS, OWN, COUNTER, "workload_cpu_throttled_periods",
       "Periods of the CPU quota in which a workload was throttled.")
METRIC(WORKLOAD_CPU_THROTTLED, OWN, COUNTER, "workload_cpu_throttled_seconds",
       "Time that a workload was throttled by its CPU quota, over all CPUs.")
METRIC(WORKLOAD_CPUS, OWN, GAUGE, "workload_cpus",
       "CPUs that a workload may use: those of its cpuset, or fewer by a quota.")
METRIC(WORKLOAD_MEMORY_RSS, OWN, GAUGE, "workload_memory_rss_bytes",
       "Anonymous memory of a workload.")
METRIC(WORKLOAD_MEMORY_CACHE, OWN, GAUGE, "workload_memory_cache_bytes",
       "Page cache of a workload, including shared memory.")
METRIC(WORKLOAD_MEMORY_USED, OWN, GAUGE, "workload_memory_used_bytes",
       "All memory that the kernel charges to a workload.")
METRIC(WORKLOAD_MEMORY_SWAP, OWN, GAUGE, "workload_memory_swap_bytes",
       "Swapped memory of a workload.")
METRIC(WORKLOAD_MEMORY_LIMIT, OWN, GAUGE, "workload_memory_limit_bytes",
       "Tightest memory limit of a workload; absent if there is none.")
METRIC(WORKLOAD_MEMORY_FAILURES, OWN, COUNTER, "workload_memory_failures",
       "Times a workload hit its memory limit.")
METRIC(WORKLOAD_MEMORY_OOM_KILLS, OWN, COUNTER, "workload_memory_oom_kills",
       "Processes of a workload killed by the OOM killer.")
METRIC(WORKLOAD_PRESSURE, OWN, COUNTER, "workload_pressure_seconds",
       "Time in which tasks of a workload waited for a resource: some of them, or all (full).")
METRIC(WORKLOAD_PIDS, OWN, GAUGE, "workload_pids", "Tasks (threads) of a workload.")
METRIC(WORKLOAD_MEMORY_WORKING_SET, OWN, GAUGE, "workload_memory_working_set_bytes",
       "Memory charged to a workload, without inactive page cache.")
METRIC(WORKLOAD_IO_READ, OWN, COUNTER, "workload_io_read_bytes",
       "Bytes read by a workload from a block device. Stacked devices (LVM, md) count the same "
       "byte: do not sum over devices.")
METRIC(WORKLOAD_IO_WRITTEN, OWN, COUNTER, "workload_io_written_bytes",
       "Bytes written by a workload to a block device. Do not sum over devices, as for bytes "
       "read.")
METRIC(WORKLOAD_IO_READS, OWN, COUNTER, "workload_io_reads",
       "Read operations of a workload on a block device.")
METRIC(WORKLOAD_IO_WRITES, OWN, COUNTER, "workload_io_writes",
       "Write operations of a workload on a block device.")
METRIC(WORKLOAD_RDMA_HANDLES, OWN, GAUGE, "workload_rdma_handles",
       "Handles of an RDMA device that a workload holds.")
METRIC(WORKLOAD_RDMA_OBJECTS, OWN, GAUGE, "workload_rdma_objects",
       "Objects of an RDMA device that a workload holds.")
METRIC(WORKLOAD_HUGETLB, OWN, GAUGE, "workload_hugetlb_bytes",
       "Huge pages of a workload, by page size.")
/* clang-format on */

#include "metrics/compat_table.h"
