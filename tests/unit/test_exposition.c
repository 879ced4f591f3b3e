/* metrics/exposition: whole pages against golden files, and what must never be on one. */
#include "unit.h"

#include <string.h>

#include "../golden/golden.h"
#include "core/macros.h"
#include "core/utf8.h"
#include "metrics/exposition.h"

enum { CAP_BYTES = 1 << 20 };

#define HOSTILE "a\"b\\c\nd\xff\x1b[0m caf\xc3\xa9"

/* Of this time of a device with 28.5 g an hour. */
#define EMBODIED(us) ((us)*BILL_ONE / 3600000000000000 * 28500000)

/* Two GPUs that are present and one that was removed; each number is unique to its field. */
static const struct snapshot_meter meters[] = {
    {.gpu = 0,
     .meter_id = "GPU-79185bc1-0000-4000-8000-000000000000",
     .has_uncertainty = true,
     .has_counter = true,
     .counter_uj = 15503172000,
     .energy_uj = 9007199254740993, /* 2^53 + 1: through a double it would be another number */
     .pending_uj = 250000,
     .unowned_uj = {1000000, 2000001, 3000020, 4000300},
     /* 12.345678901|5: rounded up; money whose billionths exceed 64 bits */
     .bill = {BILL_ONE / 10000000000 * 123456789015, BILL_ONE * 9876543210987,
              EMBODIED(3600000000)}, /* an hour, of which a GPU has 28.5 g */
     /* just less than half of a billionth, and half */
     .unowned_bill = {{BILL_ONE / 2000000000 - 1, BILL_ONE / 2000000000, EMBODIED(1800000000)},
                      {BILL_ONE, 0, 0},
                      [UNOWNED_GAP] = {0, 0, EMBODIED(1)}}},
    {.gpu = 1,
     .meter_id = HOSTILE,
     .has_counter = true,
     .counter_uj = 1000,
     .energy_uj = 500000,
     .unowned_uj = {500000, 0, 0, 0},
     .imbalance_uj = -1,
     .resets = 3},
    {.gpu = 2, .meter_id = "GPU-gone", .energy_uj = 7000000, .unowned_uj = {0, 0, 0, 7000000}},
    {.kind = METER_NODE_OVERHEAD,
     .meter_id = "ipmi",
     .energy_uj = 2400000000,
     .unowned_uj = {2400000000, 0, 0, 0}},
};

/* The second is stale: what does not age stays, gauges go. */
/* The second has no reading yet. */
static const struct snapshot_instance instances[] = {
    {.gpu_instance = 1,
     .profile = "3g.40gb",
     .valid = 1ULL << GPU_GAUGE_POWER_MW | 1ULL << GPU_GAUGE_UTILISATION_PERCENT |
              1ULL << GPU_GAUGE_MEMORY_USED_BYTES,
     .gauges = {[GPU_GAUGE_POWER_MW] = 61500,
                [GPU_GAUGE_UTILISATION_PERCENT] = 75,
                [GPU_GAUGE_MEMORY_USED_BYTES] = 5000}},
    {.gpu_instance = 13, .profile = HOSTILE},
};

static const struct snapshot_mig_device mig_devices[] = {{1, 0, "MIG-11", "1c.3g.40gb", 0, {0}},
                                                         {1, 1, "MIG-12", "2c.3g.40gb", 1, {0}},
                                                         {13, 0, HOSTILE, HOSTILE, 2, {0}}};

static const struct snapshot_gpu gpus[] = {
    {.gpu = 0,
     .uuid = "GPU-79185bc1-0000-4000-8000-000000000000",
     .name = "NVIDIA H200",
     .driver = "580.159.04",
     .valid = (1ULL << GPU_GAUGE_COUNT) - 1,
     .gauges =
         {
             [GPU_GAUGE_POWER_MW] = 123162,
             [GPU_GAUGE_POWER_LIMIT_MW] = 700000,
             [GPU_GAUGE_UTILISATION_PERCENT] = 99,
             [GPU_GAUGE_MEMORY_UTILISATION_PERCENT] = 100,
             [GPU_GAUGE_SM_CLOCK_MHZ] = 1980,
             [GPU_GAUGE_MEMORY_CLOCK_MHZ] = 3201,
             [GPU_GAUGE_TEMPERATURE_C] = 64,
             [GPU_GAUGE_MEMORY_TEMPERATURE_C] = 70,
             [GPU_GAUGE_PERFORMANCE_STATE] = 0,
             [GPU_GAUGE_MEMORY_TOTAL_BYTES] = 150754820096ULL,
             [GPU_GAUGE_MEMORY_RESERVED_BYTES] = 644939776,
             [GPU_GAUGE_MEMORY_USED_BYTES] = 1000,
             [GPU_GAUGE_MEMORY_FREE_BYTES] = 150109879320ULL,
             [GPU_GAUGE_THROTTLE_MASK] = 5,
             [GPU_GAUGE_ECC_CORRECTED] = 3,
             [GPU_GAUGE_ECC_UNCORRECTED] = 0,
             [GPU_GAUGE_PCIE_TX_BYTES] = 12345,
             [GPU_GAUGE_PCIE_RX_BYTES] = 67890,
             [GPU_GAUGE_PCIE_REPLAYS] = 2,
             [GPU_GAUGE_PCIE_GENERATION] = 5,
             [GPU_GAUGE_PCIE_WIDTH] = 16,
             [GPU_GAUGE_NVLINK_TX_KIB] = 7,
             [GPU_GAUGE_NVLINK_RX_KIB] = 8,
         },
     .xids = {{48, 2}, {79, 1}},
     .has_unknown = true,
     .unknown_bytes = 400,
     .inference_active = true,
     .samples_garbage = 1,
     .samples_repeated = 2,
     .samples_late = 3,
     .has_program_memory = true,
     .programs_known = 17,
     .processes_recalled = 4,
     .processes_suspended = 2},
    {.gpu = 1,
     .uuid = HOSTILE,
     .name = "",
     .driver = "",
     .sharing = GPU_SHARING_MIG,
     .instances = instances,
     .instance_count = 2,
     .mig_devices = mig_devices,
     .mig_device_count = 3,
     .gauges = {111111, 222222, 33, 44, 555, 66}},
};

#define CONTAINER "a3b2dd09eb6d57788518913639c2dbd4ea223a20f68f6e8408ada4e70ee62ec6"
#define POD_UID   "2c9f8a79-5391-454b-88cb-86190881cb96"
#define NAMELESS  .names = {"", "", "", "", ""}, .container_id = "", .pod_uid = ""

static const struct snapshot_process processes[] = {
    /* What --max-processes cut, together. */
    {.gpu = 0, .pid = 0, .name = "", NAMELESS, .active_uj = 600, .idle_uj = 66},
    /* Alone on its GPU all the time. */
    {.gpu = 0,
     .pid = 100,
     .active = true,
     .valid = SNAPSHOT_PROCESS_UTILISATION | SNAPSHOT_PROCESS_MEMORY | SNAPSHOT_PROCESS_START,
     .name = "python3",
     NAMELESS,
     .active_uj = 5000000,
     .idle_uj = 1500000,
     .measured_uj = 6500000,
     .known_uj = 6500000,
     .sm_won_percent = 4950,
     .memory_won_percent = 1000,
     .samples = 60,
     .memory_bytes = 150754820096,
     .start_us = 1785000000123456},
    /* In a pod's container. */
    {.gpu = 0,
     .pid = 103,
     .name = "worker",
     .names = {.name = "train-0", .namespace = "ml", .pod = "train-0", .container = "worker"},
     .container_id = CONTAINER,
     .pod_uid = POD_UID,
     .active_uj = 2000000,
     .known_uj = 1850000},
    /* Its names may still come. */
    {.gpu = 0, .pid = 104, .hidden = true, .name = "nameless-yet", NAMELESS, .active_uj = 888},
    /* Its pid was used before. */
    {.gpu = 0, .pid = 101, .superseded = true, .name = "superseded", NAMELESS, .active_uj = 777},
    /* Shared, and the driver made no samples. */
    {.gpu = 0,
     .pid = 101,
     .active = true,
     .valid = SNAPSHOT_PROCESS_UTILISATION,
     .name = "shared",
     NAMELESS,
     .active_uj = 3000000,
     .idle_uj = 1,
     .measured_uj = 1000000,
     .known_uj = 1000000},
    /* Ended, with a name that was meant to break the page. */
    {.gpu = 0, .pid = 102, .name = HOSTILE, NAMELESS, .active_uj = 1},
    /* A client of MPS: the driver does not report its memory. */
    {.gpu = 1,
     .pid = 100,
     .active = true,
     .valid = SNAPSHOT_PROCESS_MEMORY,
     .name = "mps-client",
     NAMELESS,
     .sm_won_percent = 88,
     .samples = 8},
};

static const struct snapshot_workload workloads[] = {
    {.kind = WORKLOAD_PROCESS,
     .id = "101@1785000000",
     NAMELESS,
     .meter = 0,
     .account = {{[TIER_ACTIVE] = {1000000, 2000000, 0, 0}, [TIER_IDLE] = {0, 1, 0, 0}},
                 .known_uj = 1000000,
                 .uncertain_uj = 600003,
                 .bill = {BILL_ONE / 1000 * 1500, BILL_ONE / 1000 * 25, EMBODIED(900000000)}},
     .power_mw = 61499.5},
    {.kind = WORKLOAD_POD,
     .id = CONTAINER,
     .names = {.name = "train-0", .namespace = "ml", .pod = "train-0", .container = "worker"},
     .container_id = CONTAINER,
     .pod_uid = POD_UID,
     .meter = 0,
     .account = {.energy_uj = {[TIER_ACTIVE] = {0, 2000000, 0, 0}},
                 .known_uj = 1850000,
                 .uncertain_uj = 48000},
     .power_mw = 20000},
    {.kind = WORKLOAD_CONTAINER, .id = "1000/" CONTAINER, NAMELESS, .meter = 0, .power_mw = 0},
    {.kind = WORKLOAD_SLURM,
     .id = "211",
     .names = {.name = "211", .namespace = "", .pod = "", .container = ""},
     .container_id = "",
     .pod_uid = "",
     .meter = 0,
     .power_mw = 0},
    {.kind = WORKLOAD_UNIT, .id = HOSTILE ".service", NAMELESS, .meter = 0, .power_mw = 0},
    {.kind = WORKLOAD_UNIT,
     .id = HOSTILE ".service",
     NAMELESS,
     .meter = 1,
     .account = {.energy_uj = {[TIER_ACTIVE] = {0, 0, 5000000, 0}, [TIER_IDLE] = {0, 0, 0, 7}},
                 .uncertain_uj = 5000000},
     .power_mw = 0.4},
    {.kind = WORKLOAD_OTHER,
     .id = "other",
     NAMELESS,
     .meter = 0,
     .account = {.energy_uj = {[TIER_ACTIVE] = {0, 600, 0, 0}, [TIER_IDLE] = {0, 66, 0, 0}}},
     .power_mw = 1},
    {.kind = WORKLOAD_RETIRED,
     .id = "1785000100.000042",
     NAMELESS,
     .meter = 0,
     .account = {.energy_uj = {[TIER_ACTIVE] = {2000000, 1000000, 0, 0}},
                 .known_uj = 2500000,
                 .uncertain_uj = 70000,
                 .bill = {.embodied = EMBODIED(899999999)}},
     .power_mw = -1},
    {.kind = WORKLOAD_RETIRED, .id = "1785000100.000042", NAMELESS, .meter = 1, .power_mw = -1},
};

static const struct snapshot_info infos[] = {
    {.kind = WORKLOAD_POD,
     .id = CONTAINER,
     .namespace = "ml",
     .pod = "train-0",
     .container = "worker",
     .image = "registry.example/ml/train:1.2",
     .user = "",
     .account = "",
     .job_id = "",
     .job_name = "",
     .uuid = "",
     .container_id = CONTAINER,
     .pod_uid = POD_UID,
     .unverified = ""},
    {.kind = WORKLOAD_SLURM,
     .id = "211",
     .namespace = "",
     .pod = "",
     .container = "",
     .image = "",
     .user = "alice",
     .account = HOSTILE,
     .job_id = "211",
     .job_name = "fine-tune",
     .uuid = "",
     .container_id = "",
     .pod_uid = "",
     .unverified = "account,job_name"},
};

/* All that can be known of a workload; and a unit that has ended, of which only counters are. */
#define NAMED                                                                                      \
    .names = {.name = "train-0", .namespace = "ml", .pod = "train-0", .container = "worker"}
static struct usage_io usage_ios[] = {
    {8, 0, 15, "sda", {4096, 8192, 1, 2}},
    {259, 1, 1U << USAGE_IO_READ_BYTES, HOSTILE, {512}},
};
static struct usage_rdma usage_rdmas[] = {{"mlx5_0", true, true, 3, 44},
                                          {"mlx5_1", true, false, 5, 0}};
static struct usage_hugetlb usage_hugetlbs[] = {{2097152, 4194304}, {1073741824, 0}};
static const struct snapshot_usage usages[] = {
    {.kind = WORKLOAD_POD,
     .id = CONTAINER,
     NAMED,
     .container_id = CONTAINER,
     .pod_uid = POD_UID,
     .usage = {.valid = (1U << USAGE_FIELDS) - 1,
               .io_count = ARRAY_SIZE(usage_ios),
               .rdma_count = ARRAY_SIZE(usage_rdmas),
               .hugetlb_count = ARRAY_SIZE(usage_hugetlbs),
               .values =
                   {
                       [USAGE_CPU_US] = 3000003,
                       [USAGE_CPU_USER_US] = 2000002,
                       [USAGE_CPU_SYSTEM_US] = 1000001,
                       [USAGE_CPU_PERIODS] = 100,
                       [USAGE_CPU_THROTTLED_PERIODS] = 7,
                       [USAGE_CPU_THROTTLED_US] = 123456,
                       [USAGE_MEMORY_FAILURES] = 5,
                       [USAGE_MEMORY_OOM_KILLS] = 1,
                       [USAGE_CPU_SOME_US] = 11,
                       [USAGE_CPU_FULL_US] = 12,
                       [USAGE_MEMORY_SOME_US] = 13,
                       [USAGE_MEMORY_FULL_US] = 14,
                       [USAGE_IO_SOME_US] = 15,
                       [USAGE_IO_FULL_US] = 16,
                       [USAGE_MEMORY_RSS_BYTES] = 1000,
                       [USAGE_MEMORY_CACHE_BYTES] = 2000,
                       [USAGE_MEMORY_INACTIVE_FILE_BYTES] = 500,
                       [USAGE_MEMORY_USED_BYTES] = 3100,
                       [USAGE_MEMORY_LIMIT_BYTES] = 4096,
                       [USAGE_MEMORY_SWAP_BYTES] = 17,
                       [USAGE_PIDS] = 19,
                       [USAGE_CPUS_THOUSANDTHS] = 2500,
                   },
               .io = usage_ios,
               .rdma = usage_rdmas,
               .hugetlb = usage_hugetlbs}},
    {.kind = WORKLOAD_UNIT,
     .id = HOSTILE ".service",
     NAMELESS,
     .usage = {.valid = USAGE_COUNTERS, .values = {[USAGE_CPU_USER_US] = 1}}},
};

static const struct snapshot_container containers[] = {
    {.gpu = 0,
     .container_id = CONTAINER,
     .name = "worker",
     .pod = "train-0",
     .namespace = "ml",
     .has_bytes = true,
     .bytes = 600},
    {.gpu = 0,
     .container_id = CONTAINER "2",
     .name = HOSTILE,
     .pod = "",
     .namespace = "",
     .inferred = true,
     .has_bytes = true,
     .bytes = 400},
    {.gpu = 1,
     .container_id = CONTAINER,
     .name = "worker",
     .pod = "train-0",
     .namespace = "ml",
     .inferred = true},
};

static const struct snapshot_allocation allocations[] = {
    {.kind = WORKLOAD_POD,
     .id = CONTAINER,
     .names = {.name = "train-0", .namespace = "ml", .pod = "train-0", .container = "worker"},
     .gpu = 1,
     .uuid = "GPU-1",
     .source = ALLOCATED_BY_KUBELET},
    {.kind = WORKLOAD_SLURM,
     .id = "4711",
     .names = {.name = "4711", .namespace = "", .pod = "", .container = ""},
     .gpu = 0,
     .uuid = HOSTILE,
     .has_instance = true,
     .gpu_instance = 7,
     .source = ALLOCATED_BY_ENVIRONMENT,
     .is_unverified = true},
};

static const struct snapshot_source sources[] = {
    {.name = "nvml", .up = true, .age_us = 250000, .duration_us = 1234, .errors = 0},
    {.name = "replay", .up = false, .age_us = 3600000000, .duration_us = 3000001, .errors = 17},
};

static const struct snapshot_factor factors[] = {
    {.factor = {.provider = "electricity_maps",
                .zone = "FR",
                .signal = PRICE_AVERAGE,
                .basis = PRICE_LIFECYCLE},
     .is_live = true,
     .age_us = 90000000000,
     .errors = 7},
    {.factor = {.known = true,
                .ug_per_kwh = 413858000,
                .provider = "watttime",
                .zone = "CAISO_NORTH",
                .signal = PRICE_MARGINAL,
                .basis = PRICE_DIRECT},
     .is_live = true,
     .is_estimated = true,
     .is_up = true,
     .age_us = 300000001,
     .errors = 1},
    {.factor = {.known = true,
                .ug_per_kwh = 23000000,
                .provider = "rte",
                .zone = "FR",
                .signal = PRICE_AVERAGE,
                .basis = PRICE_DIRECT},
     .is_live = true,
     .is_stale = true,
     .age_us = 7200000000},
    {.factor = {.known = true,
                .ug_per_kwh = 473007000,
                .provider = "global",
                .zone = HOSTILE,
                .signal = PRICE_AVERAGE,
                .basis = PRICE_LIFECYCLE},
     .in_force = true},
};

static const struct snapshot_power_limits power_limits[] = {
    {METER_PACKAGE, "0", {{[METER_LIMIT_LONG_TERM] = 225000000, [METER_LIMIT_SHORT_TERM] = 1}}},
    {METER_DRAM, "0", {{0}}},
};

static const struct snapshot_node_power node_powers[] = {{"ipmi", 451250}};

static const struct snapshot full = {
    .node_powers = node_powers,
    .node_power_count = ARRAY_SIZE(node_powers),
    .power_limits = power_limits,
    .power_limit_count = ARRAY_SIZE(power_limits),
    .meters = meters,
    .meter_count = ARRAY_SIZE(meters),
    .overhead_source = "ipmi",
    .overhead_mismatch = true,
    .gpus = gpus,
    .gpu_count = ARRAY_SIZE(gpus),
    .processes = processes,
    .process_count = ARRAY_SIZE(processes),
    .workloads = workloads,
    .workload_count = ARRAY_SIZE(workloads),
    .usages = usages,
    .usage_count = ARRAY_SIZE(usages),
    .containers = containers,
    .container_count = ARRAY_SIZE(containers),
    .detected = containers,
    .detected_count = 2,
    .infos = infos,
    .info_count = ARRAY_SIZE(infos),
    .allocations = allocations,
    .allocation_count = ARRAY_SIZE(allocations),
    .node = "node-7",
    .processes_scanned = true,
    .node_processes = 345,
    .node_processes_outside = 6,
    .node_job_gpus_unknown = 3,
    .price = {.factor = {.known = true,
                         .ug_per_kwh = 473007000,
                         .provider = "global",
                         .zone = HOSTILE,
                         .signal = PRICE_AVERAGE,
                         .basis = PRICE_LIFECYCLE},
              .cost = {.known = true, .micro_per_kwh = 250000, .currency = "EUR"},
              .pue_millionths = 1250000},
    .embodied = {{[METER_GPU] = {true, 28500000}}},
    .processes_dropped = 11,
    .workloads_dropped = 12,
    .factors = factors,
    .factor_count = ARRAY_SIZE(factors),
    .sources = sources,
    .source_count = ARRAY_SIZE(sources),
    .replay_active = true,
    .children = {{"server", 1, 0}, {"emissions", 2, 1}},
    .child_count = 2,
    .self_cpu_us = 1500000,
    .self_rss_bytes = 12345678,
    .start_us = 1785000000000001,
};

static const struct snapshot nothing = {.start_us = 1785000000000000};

static struct buffer render(const struct snapshot *snapshot, enum page_format format, bool compat)
{
    const struct exposition_options options = {
        .format = format,
        .process_prefix = "my_gpu_process",
        .compat = compat ? COMPAT_MY_GPU_EXPORTER : 0,
        .pue_millionths = snapshot == &full ? 1250000 : 0,
        .version = "1.2.3",
    };
    struct buffer page;

    buffer_init(&page, CAP_BYTES);
    exposition_render(snapshot, &options, EXPOSITION_ALL, &page);
    return page;
}

/* Every page of the fixture. */
static const struct {
    const struct snapshot *snapshot;
    enum page_format format;
    bool compat;
    const char *golden;
} pages[] = {
    {&full, PAGE_TEXT, false, "exposition.txt"},
    {&full, PAGE_OPENMETRICS, false, "exposition.openmetrics.txt"},
    {&full, PAGE_TEXT, true, "exposition.compat.txt"},
    {&full, PAGE_OPENMETRICS, true, "exposition.compat.openmetrics.txt"},
    {&nothing, PAGE_TEXT, false, "exposition.empty.txt"},
    {&nothing, PAGE_OPENMETRICS, true, "exposition.empty.openmetrics.txt"},
};

static void pages_are_those_of_the_golden_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(pages); i++) {
        struct buffer page = render(pages[i].snapshot, pages[i].format, pages[i].compat);

        golden_check(pages[i].golden, &page);
        buffer_done(&page);
    }
}

/* Lines that state a rule; the golden files hold them too, but not why. */
static void a_page_shows_what_is_known_and_nothing_else(void **state)
{
#define PROCESS(metric, pid, gpu, name)                                                            \
    "\nmy_gpu_process_" metric "{pid=\"" pid "\",gpu=\"" gpu "\",process_name=\"" name "\""
    static const struct {
        const char *why, *text;
        bool shown;
    } cases[] = {
        {"an overflow has the pid 'other'", PROCESS("energy_joules_total", "other", "0", ""), true},
        {"no process has the pid 0", "pid=\"0\"", false},
        {"many in one row are neither active nor not", PROCESS("active", "other", "0", ""), false},
        {"a process whose names may still come is hidden", "nameless-yet", false},
        {"a superseded process is hidden", "superseded", false},
        {"its successor is not", PROCESS("energy_joules_total", "101", "0", "shared"), true},
        {"no samples on a device that is read: idle",
         PROCESS("sm_utilization_ratio", "101", "0", "shared"), true},
        {"an MPS client's utilisation is unknown", "sm_utilization_ratio{pid=\"100\",gpu=\"1\"",
         false},
        {"its memory is known, and 0", PROCESS("memory_used_bytes", "100", "1", "mps-client"),
         true},
        {"memory that the driver does not report is absent",
         PROCESS("memory_used_bytes", "101", "0", "shared"), false},
        {"a start that is unknown is absent", PROCESS("start_time_seconds", "101", "0", "shared"),
         false},
        {"what was measured is not estimated",
         "process_name=\"python3\",pod=\"\",namespace=\"\",container=\"\",pod_uid=\"\","
         "container_id=\"\",energy_estimated=\"false\"} 6.5\n",
         true},
        {"what was learned of a process makes its share more certain",
         PROCESS("energy_confidence_ratio", "103", "0",
                 "worker") ",pod=\"train-0\","
                           "namespace=\"ml\",container=\"worker\",pod_uid=\"" POD_UID "\","
                           "container_id=\"" CONTAINER "\"} 0.925\n",
         true},
        {"a time share is not certain at all",
         PROCESS("energy_confidence_ratio", "other", "0",
                 "") ",pod=\"\",namespace=\"\","
                     "container=\"\",pod_uid=\"\",container_id=\"\"} 0\n",
         true},
        {"a process without energy has no confidence",
         PROCESS("energy_confidence_ratio", "100", "1", "mps-client"), false},
        {"a stale gauge is absent: power", "\nwattribute_gpu_power_watts{gpu=\"1\"}", false},
        {"a stale gauge is absent: clock", "\nwattribute_gpu_clock_hertz{gpu=\"1\"}", false},
        {"a limit that is unknown is absent", "\nwattribute_gpu_power_limit_watts{gpu=\"1\"}",
         false},
        {"a counter beyond 2^53 is exact", "} 9007199254.740993\n", true},
        {"a meter that was never read has no hardware counter",
         "\nwattribute_meter_hardware_energy_joules_total{meter=\"gpu\",meter_id=\"GPU-gone\"}",
         false},
        {"but its energy stays",
         "\nwattribute_meter_energy_joules_total{meter=\"gpu\",meter_id=\"GPU-gone\"} 7\n", true},
        {"retired workloads have no power", "\nwattribute_workload_power_watts{kind=\"retired\"",
         false},
        {"but keep their energy", "\nwattribute_workload_energy_joules_total{kind=\"retired\"",
         true},
        {"a workload without energy has no confidence",
         "\nwattribute_workload_energy_confidence_ratio{kind=\"retired\",id=\"1785000100.000042\","
         "name=\"\",namespace=\"\",pod=\"\",container=\"\",meter=\"gpu\",meter_id=\"a\\\"b",
         false},
        {"a bill can say what it may be off by",
         "\nwattribute_workload_energy_uncertainty_joules_total{kind=\"pod\",id=\"" CONTAINER
         "\",name=\"train-0\",namespace=\"ml\",pod=\"train-0\",container=\"worker\",meter=\"gpu\","
         "meter_id=\"GPU-79185bc1-0000-4000-8000-000000000000\"} 0.048\n",
         true},
        {"also for those that ended",
         "\nwattribute_workload_energy_uncertainty_joules_total{kind=\"retired\",id=\"1785000100."
         "000042\",name=\"\",namespace=\"\",pod=\"\",container=\"\",meter=\"gpu\",meter_id=\"GPU-"
         "79185bc1-0000-4000-8000-000000000000\"} 0.07\n",
         true},
        {"and from the first joule on",
         "\nwattribute_workload_energy_uncertainty_joules_total{kind=\"slurm\",id=\"211\",name=\"211"
         "\",namespace=\"\",pod=\"\",container=\"\",meter=\"gpu\",meter_id=\"GPU-79185bc1-0000-4000-"
         "8000-000000000000\"} 0\n",
         true},
        {"where errors are not estimated, no uncertainty is 0",
         "\nwattribute_workload_energy_uncertainty_joules_total{kind=\"unit\",id=\"a\\\"b\\\\c\\nd" UTF8_REPLACEMENT
         "ff" UTF8_REPLACEMENT "1b[0m caf\xc3\xa9.service\",name=\"\",namespace=\"\","
         "pod=\"\",container=\"\",meter=\"gpu\",meter_id=\"a\\\"b",
         false},
        {"but the board's energy is there",
         "\nwattribute_workload_energy_joules_total{kind=\"unit\",id=\"a\\\"b\\\\c\\nd" UTF8_REPLACEMENT
         "ff" UTF8_REPLACEMENT "1b[0m caf\xc3\xa9.service\",name=\"\",namespace=\"\","
         "pod=\"\",container=\"\",meter=\"gpu\",meter_id=\"a\\\"b",
         true},
        {"what is remembered of programs is counted",
         "\nwattribute_program_memory_known_programs{gpu=\"0\"} 17\n", true},
        {"with the processes that it serves",
         "\nwattribute_program_memory_used_processes{gpu=\"0\"} 4\n", true},
        {"and those that contradict it",
         "\nwattribute_program_memory_suspended_processes{gpu=\"0\"} 2\n", true},
        {"without the estimator nothing is remembered", "program_memory_known_programs{gpu=\"1\"}",
         false},
        {"an hour of a device is its rate, without PUE",
         "\nwattribute_meter_embodied_grams_total{meter=\"gpu\",meter_id=\"GPU-79185bc1-0000-4000-"
         "8000-000000000000\"} 28.5\n",
         true},
        {"a quarter of its time is a quarter of it",
         "\nwattribute_workload_embodied_grams_total{kind=\"process\",id=\"101@1785000000\",name="
         "\"\",namespace=\"\",pod=\"\",container=\"\",meter=\"gpu\",meter_id=\"GPU-79185bc1-0000-"
         "4000-8000-000000000000\"} 7.125\n",
         true},
        {"a device whose rate was not given has none", "embodied_grams_total{meter=\"rest\"",
         false},
        {"compatibility names are not there unasked", "process_gpu_energy_joules", false},
        {"hostile bytes are escaped or replaced",
         "process_name=\"a\\\"b\\\\c\\nd" UTF8_REPLACEMENT "ff" UTF8_REPLACEMENT
         "1b[0m caf\xc3\xa9\"",
         true},
    };
#undef PROCESS
    struct buffer page = render(&full, PAGE_TEXT, false);

    (void)state;
    buffer_char(&page, '\0');
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if ((strstr(page.data, cases[i].text) != NULL) != cases[i].shown)
            fail_msg("%s: %s", cases[i].why, cases[i].text);
    buffer_done(&page);
}

/* --expose narrows what is shown; meters and unowned energy are always shown. */
static void what_is_exposed_can_be_narrowed(void **state)
{
    static const struct {
        enum expose expose;
        bool processes, jobs, containers;
    } cases[] = {
        {EXPOSE_ALL, true, true, true},
        {EXPOSE_CONTAINERS, false, false, true},
        {EXPOSE_PODS, false, false, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct exposition_options options = {
            .process_prefix = "my_gpu_process", .version = "1.2.3", .expose = cases[i].expose};
        struct buffer page;

        buffer_init(&page, CAP_BYTES);
        exposition_render(&full, &options, EXPOSITION_ALL, &page);
        buffer_char(&page, '\0');
        assert_int_equal(strstr(page.data, "\nmy_gpu_process_") != NULL, cases[i].processes);
        assert_int_equal(strstr(page.data, "joules_total{kind=\"slurm\"") != NULL, cases[i].jobs);
        assert_int_equal(strstr(page.data, "workload_info{kind=\"slurm\"") != NULL, cases[i].jobs);
        assert_int_equal(strstr(page.data, "joules_total{kind=\"container\"") != NULL,
                         cases[i].containers);
        assert_non_null(strstr(page.data, "joules_total{kind=\"pod\""));
        assert_non_null(strstr(page.data, "\nwattribute_unowned_energy_joules_total"));
        buffer_done(&page);
    }
}

static size_t count_of(const char *text, const char *wanted)
{
    size_t count = 0;

    for (const char *at = text; (at = strstr(at, wanted)); at++)
        count++;
    return count;
}

static void a_meter_that_is_no_gpu_shows_only_what_it_is_booked_as(void **state)
{
    static const struct snapshot_meter node_meters[] = {
        {.kind = METER_PACKAGE, .meter_id = "0"},
        {.kind = METER_NODE_OVERHEAD, .meter_id = "ipmi"},
        {.kind = METER_PACKAGE, .meter_id = "model", .modelled = true},
    };
    static const struct snapshot_workload paying[] = {
        {.kind = WORKLOAD_USER, .id = "1000", NAMELESS, .meter = 0},
        {.kind = WORKLOAD_USER, .id = "1000", NAMELESS, .meter = 1},
        {.kind = WORKLOAD_USER, .id = "1000", NAMELESS, .meter = 2},
    };
    const struct snapshot snapshot = {.meters = node_meters,
                                      .meter_count = ARRAY_SIZE(node_meters),
                                      .workloads = paying,
                                      .workload_count = ARRAY_SIZE(paying)};
    struct buffer page = render(&snapshot, PAGE_TEXT, false);

    (void)state;
    buffer_char(&page, '\0');
#define ROW(meter, id, tier, method)                                                               \
    "meter=\"" meter "\",meter_id=\"" id "\",tier=\"" tier "\",method=\"" method "\"} 0\n"
    assert_int_equal(count_of(page.data, "\nwattribute_workload_energy_joules_total{"), 4);
    assert_non_null(strstr(page.data, ROW("package", "0", "active", "shared")));
    assert_non_null(strstr(page.data, ROW("rest", "ipmi", "active", "shared")));
    assert_non_null(strstr(page.data, ROW("rest", "ipmi", "idle", "shared")));
    assert_non_null(strstr(page.data, ROW("package", "model", "active", "modelled")));
    buffer_done(&page);
}

static void a_memory_use_that_is_unknown_has_no_series(void **state)
{
    struct buffer page = render(&nothing, PAGE_TEXT, false);

    (void)state;
    buffer_char(&page, '\0');
    assert_null(strstr(page.data, "process_resident_memory_bytes"));
    assert_non_null(strstr(page.data, "\nprocess_start_time_seconds 1785000000\n"));
    buffer_done(&page);
}

static bool begins_with(struct span text, struct span start)
{
    return text.len >= start.len && memcmp(text.data, start.data, start.len) == 0;
}

/* The name of the family that a "# HELP NAME ..." line opens. */
static struct span family_of(struct span line)
{
    span_cut(&line, ' ');
    span_cut(&line, ' ');
    return span_cut(&line, ' ');
}

static void families_stand_together_and_are_opened_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(pages); i++) {
        struct buffer page = render(pages[i].snapshot, pages[i].format, pages[i].compat);
        struct span rest = {page.data, page.len}, family = {"", 0}, seen[METRIC_COUNT];
        size_t seen_count = 0;

        assert_int_equal(page.data[page.len - 1], '\n');
        while (rest.len > 0) {
            struct span line = span_cut(&rest, '\n');

            if (begins_with(line, span_of("# HELP "))) {
                family = family_of(line);
                for (size_t s = 0; s < seen_count; s++)
                    if (family.len == seen[s].len && begins_with(family, seen[s]))
                        fail_msg("%s: %.*s twice", pages[i].golden, (int)family.len, family.data);
                assert_true(seen_count < ARRAY_SIZE(seen));
                seen[seen_count++] = family;
            } else if (line.data[0] == '#' && rest.len > 0) {
                struct span again = family_of(line);

                assert_true(again.len == family.len && begins_with(again, family));
            } else if (line.data[0] != '#') {
                assert_true(begins_with(line, family));
            }
        }
        buffer_done(&page);
    }
}

/* The part of a sample's line that names the series: all but its value. */
static struct span series_of(struct span line)
{
    while (line.len > 0 && line.data[line.len - 1] != ' ')
        line.len--;
    return line;
}

static void no_series_is_there_twice(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(pages); i++) {
        struct buffer page = render(pages[i].snapshot, pages[i].format, pages[i].compat);
        struct span rest = {page.data, page.len};

        while (rest.len > 0) {
            struct span series = series_of(span_cut(&rest, '\n')), others = rest;

            while (series.data[0] != '#' && others.len > 0) {
                struct span other = series_of(span_cut(&others, '\n'));

                if (other.len == series.len && begins_with(other, series))
                    fail_msg("%s: %.*s", pages[i].golden, (int)series.len, series.data);
            }
        }
        buffer_done(&page);
    }
}

static void a_page_is_valid_utf8_without_control_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(pages); i++) {
        struct buffer page = render(pages[i].snapshot, pages[i].format, pages[i].compat);
        struct span rest = {page.data, page.len};

        while (rest.len > 0) {
            size_t len = utf8_char_len(rest);

            assert_true(len > 0);
            assert_true(rest.data[0] == '\n' || (unsigned char)rest.data[0] >= 0x20);
            rest.data += len;
            rest.len -= len;
        }
        buffer_done(&page);
    }
}

static void a_page_that_does_not_fit_is_marked_as_failed(void **state)
{
    const struct exposition_options options = {
        .format = PAGE_TEXT, .process_prefix = "x", .version = "1"};
    struct buffer whole = render(&full, PAGE_TEXT, false), page;

    (void)state;
    buffer_init(&page, whole.len / 2);
    exposition_render(&full, &options, EXPOSITION_ALL, &page);
    assert_true(buffer_failed(&page));
    assert_true(page.len <= whole.len / 2);
    buffer_done(&page);
    buffer_done(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_are_those_of_the_golden_files),
        cmocka_unit_test(a_page_shows_what_is_known_and_nothing_else),
        cmocka_unit_test(what_is_exposed_can_be_narrowed),
        cmocka_unit_test(a_meter_that_is_no_gpu_shows_only_what_it_is_booked_as),
        cmocka_unit_test(a_memory_use_that_is_unknown_has_no_series),
        cmocka_unit_test(families_stand_together_and_are_opened_once),
        cmocka_unit_test(no_series_is_there_twice),
        cmocka_unit_test(a_page_is_valid_utf8_without_control_bytes),
        cmocka_unit_test(a_page_that_does_not_fit_is_marked_as_failed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
