/* Families under the names of other exporters, for --compat; those of my-gpu-exporter stand with
 * ours. Each means what it means there: docs/migration says which do not, and are not here. */

/* clang-format off: a table, not code. */
/* dcgm-exporter */
METRIC(DCGM_SM_CLOCK, NONE, GAUGE, "DCGM_FI_DEV_SM_CLOCK", "SM clock of a GPU in MHz.")
METRIC(DCGM_MEMORY_CLOCK, NONE, GAUGE, "DCGM_FI_DEV_MEM_CLOCK", "Memory clock of a GPU in MHz.")
METRIC(DCGM_MEMORY_TEMPERATURE, NONE, GAUGE, "DCGM_FI_DEV_MEMORY_TEMP",
       "Temperature of a GPU's memory in degrees Celsius.")
METRIC(DCGM_TEMPERATURE, NONE, GAUGE, "DCGM_FI_DEV_GPU_TEMP",
       "Temperature of a GPU in degrees Celsius.")
METRIC(DCGM_POWER, NONE, GAUGE, "DCGM_FI_DEV_POWER_USAGE", "Power of a GPU in watts.")
METRIC(DCGM_ENERGY, NONE, BARE_COUNTER, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
       "Energy of a GPU since its driver was loaded, in millijoules.")
METRIC(DCGM_PCIE_REPLAYS, NONE, BARE_COUNTER, "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
       "Packets retransmitted over PCIe.")
METRIC(DCGM_UTILIZATION, NONE, GAUGE, "DCGM_FI_DEV_GPU_UTIL",
       "Time in which a GPU was busy, in percent.")
METRIC(DCGM_MEMORY_UTILIZATION, NONE, GAUGE, "DCGM_FI_DEV_MEM_COPY_UTIL",
       "Time in which a GPU's memory was read or written, in percent.")
METRIC(DCGM_MEMORY_FREE, NONE, GAUGE, "DCGM_FI_DEV_FB_FREE", "Free memory of a GPU in MiB.")
METRIC(DCGM_MEMORY_USED, NONE, GAUGE, "DCGM_FI_DEV_FB_USED",
       "Memory of a GPU in use, in MiB, without the reserved part.")
METRIC(DCGM_MEMORY_RESERVED, NONE, GAUGE, "DCGM_FI_DEV_FB_RESERVED",
       "Memory of a GPU that the driver reserves, in MiB.")
/* Kepler */
METRIC(KEPLER_NODE_CPU_ENERGY, NONE, COUNTER, "kepler_node_cpu_joules",
       "Energy of a RAPL zone of a socket.")
METRIC(KEPLER_NODE_CPU_POWER, NONE, GAUGE, "kepler_node_cpu_watts",
       "Power of a RAPL zone of a socket.")
METRIC(KEPLER_NODE_GPU_ENERGY, NONE, COUNTER, "kepler_node_gpu_joules", "Energy of a GPU.")
METRIC(KEPLER_NODE_GPU_POWER, NONE, GAUGE, "kepler_node_gpu_watts", "Power of a GPU.")
METRIC(KEPLER_CONTAINER_CPU_ENERGY, NONE, COUNTER, "kepler_container_cpu_joules",
       "Active energy of a container in a RAPL zone.")
METRIC(KEPLER_CONTAINER_CPU_POWER, NONE, GAUGE, "kepler_container_cpu_watts",
       "Active power of a container in a RAPL zone.")
METRIC(KEPLER_CONTAINER_GPU_ENERGY, NONE, COUNTER, "kepler_container_gpu_joules",
       "Active energy of a container on GPUs.")
METRIC(KEPLER_POD_CPU_ENERGY, NONE, COUNTER, "kepler_pod_cpu_joules",
       "Active energy of a container of a pod in a RAPL zone.")
METRIC(KEPLER_POD_CPU_POWER, NONE, GAUGE, "kepler_pod_cpu_watts",
       "Active power of a pod in a RAPL zone.")
METRIC(KEPLER_POD_GPU_ENERGY, NONE, COUNTER, "kepler_pod_gpu_joules",
       "Active energy of a container of a pod on GPUs.")
METRIC(KEPLER_VM_CPU_ENERGY, NONE, COUNTER, "kepler_vm_cpu_joules",
       "Active energy of a virtual machine in a RAPL zone.")
METRIC(KEPLER_VM_CPU_POWER, NONE, GAUGE, "kepler_vm_cpu_watts",
       "Active power of a virtual machine in a RAPL zone.")
METRIC(KEPLER_CONTAINER_CPU_TIME, NONE, COUNTER, "kepler_container_cpu_seconds",
       "CPU time of a container.")
/* CEEMS exporter */
METRIC(CEEMS_PACKAGE_ENERGY, NONE, COUNTER, "ceems_rapl_package_joules",
       "Energy of a processor package.")
METRIC(CEEMS_DRAM_ENERGY, NONE, COUNTER, "ceems_rapl_dram_joules",
       "Energy of the memory of a processor package.")
METRIC(CEEMS_CORE_ENERGY, NONE, COUNTER, "ceems_rapl_core_joules",
       "Energy of the cores of a processor package.")
METRIC(CEEMS_UNCORE_ENERGY, NONE, COUNTER, "ceems_rapl_uncore_joules",
       "Energy of a processor package without its cores.")
METRIC(CEEMS_PSYS_ENERGY, NONE, COUNTER, "ceems_rapl_psys_joules", "Energy of the platform.")
METRIC(CEEMS_IPMI_POWER, NONE, GAUGE, "ceems_ipmi_dcmi_current_watts",
       "Power of the node by IPMI (until CEEMS 0.10).")
METRIC(CEEMS_IPMI_POWER_NEW, NONE, GAUGE, "ceems_ipmi_dcmi_power_current_watts",
       "Power of the node by IPMI (from CEEMS 0.11 on).")
METRIC(CEEMS_EMISSION_FACTOR, NONE, GAUGE, "ceems_emissions_gCo2_kWh",
       "Emission factor in grams of CO2 equivalent per kWh.")
METRIC(CEEMS_GPU_FLAG, NONE, GAUGE, "ceems_compute_unit_gpu_index_flag",
       "A GPU that a unit was given: 1, or its share.")
METRIC(CEEMS_UNITS, NONE, GAUGE, "ceems_compute_units", "Number of units.")
METRIC(CEEMS_CPU_USER, NONE, COUNTER, "ceems_compute_unit_cpu_user_seconds",
       "CPU time of a unit in user mode.")
METRIC(CEEMS_CPU_SYSTEM, NONE, COUNTER, "ceems_compute_unit_cpu_system_seconds",
       "CPU time of a unit in the kernel.")
METRIC(CEEMS_CPUS, NONE, GAUGE, "ceems_compute_unit_cpus", "CPUs given to a job.")
METRIC(CEEMS_MEMORY_RSS, NONE, GAUGE, "ceems_compute_unit_memory_rss_bytes",
       "Anonymous memory of a unit.")
METRIC(CEEMS_MEMORY_CACHE, NONE, GAUGE, "ceems_compute_unit_memory_cache_bytes",
       "Page cache of a unit.")
METRIC(CEEMS_MEMORY_USED, NONE, GAUGE, "ceems_compute_unit_memory_used_bytes",
       "Memory that the kernel charges to a unit.")
METRIC(CEEMS_MEMORY_TOTAL, NONE, GAUGE, "ceems_compute_unit_memory_total_bytes",
       "Memory limit of a unit.")
METRIC(CEEMS_CPU_PRESSURE, NONE, GAUGE, "ceems_compute_unit_cpu_psi_seconds",
       "Time in which all tasks of a unit waited for a CPU.")
METRIC(CEEMS_MEMORY_PRESSURE, NONE, GAUGE, "ceems_compute_unit_memory_psi_seconds",
       "Time in which all tasks of a unit waited for memory.")
/* clang-format on */
