/*
 * Whole machines for an hour: the real sources on trees of files that a simulation writes before
 * each reading, through the real pipeline. Counters wrap, machines suspend, files hold garbage,
 * workloads come and go, sources and at last the exporter itself are started again. At each step
 * the books balance to the microjoule and hold what could be known, as the simulation reckons it;
 * in the end every workload has paid by what it did; and what was recorded replays to the same
 * ledger.
 *
 * A machine is a table of its meters and one of its other files: to add one is to add those.
 */
#include "sim_calls.h"
#include "sim_cgroup.h"

#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "attribution/pipeline.h"
#include "collector/source_set.h"
#include "core/fs.h"
#include "identity/identity.h"
#include "metrics/ledger_json.h"
#include "sources/cgroup/cgroups.h"
#include "sources/sensors/cray.h"
#include "sources/sensors/hwmon.h"
#include "sources/trace.h"

#define SECOND    USEC_PER_SEC
#define START_US  ((uint64_t)1800000000000000)
#define HOUR_US   (3600 * SECOND)
#define REPORT_US (5 * SECOND)

enum { METERS_MAX = 16, FILES_MAX = 40, ROWS_MAX = 128, NOBODY = 65534, CAP_BYTES = 1 << 30 };

struct file {
    const char *path, *text;
};

struct machine_plan {
    const char *name;
    bool is_v1;        /* its cgroups */
    bool is_as_nobody; /* RAPL is read without being root */
    struct sim_meter_plan meters[METERS_MAX];
    struct file files[FILES_MAX];
};

/* clang-format off: tables, not code. */
#define MODALIAS "sys/devices/system/cpu/modalias"
#define INTEL                                                                                      \
    {                                                                                              \
        MODALIAS, "cpu:type:x86,ven0000fam0006mod008F:feature:,0000\n"                             \
    }
#define AMD                                                                                        \
    {                                                                                              \
        MODALIAS, "cpu:type:x86,ven0002fam0019mod0011:feature:,0000\n"                             \
    }

#define POWERCAP   "class/powercap/"
#define ZONE(zone) .file = POWERCAP zone "/energy_uj"
#define ZONE_FILES(zone, name, range)                                                              \
    {"sys/" POWERCAP zone "/name", name "\n"},                                                     \
    {                                                                                              \
        "sys/" POWERCAP zone "/max_energy_range_uj", range "\n"                                    \
    }

#define HWMON      "class/hwmon/"
#define RAIL(chip) .file = HWMON chip "/power1_average"
#define CHIP(chip, label)                                                                          \
    {"sys/" HWMON chip "/name", "power_meter\n"},                                                  \
    {                                                                                              \
        "sys/" HWMON chip "/power1_oem_info", label "\n"                                           \
    }

#define CRAY(name) .file = "cray/pm_counters/" name

#define PMU "sys/bus/event_source/devices/power/"
#define EVENT(name, number)                                                                        \
    {PMU "events/" name, "event=" number "\n"},                                                    \
        {PMU "events/" name ".scale", "2.3283064365386962890625e-10\n"},                           \
    {                                                                                              \
        PMU "events/" name ".unit", "Joules\n"                                                     \
    }
/* clang-format on */

static const struct machine_plan intel_two_sockets = {
    .name = "Intel with two sockets, their memory, the platform, and a second view by MMIO",
    .meters =
        {
            {SIM_ZONE, METER_PACKAGE, "0", 220, 262143328850, ZONE("intel-rapl:0")},
            {SIM_ZONE, METER_DRAM, "0", 30, 65712999613, ZONE("intel-rapl:0:0")},
            {SIM_ZONE, METER_PACKAGE, "1", 300, 16000000000, ZONE("intel-rapl:1")}, /* 16 kJ */
            {SIM_ZONE, METER_DRAM, "1", 40, 65712999613, ZONE("intel-rapl:1:0")},
            {SIM_ZONE, METER_PSYS, "0", 700, 4294967295000000, ZONE("intel-rapl:2")},
        },
    .files = {INTEL,
              ZONE_FILES("intel-rapl:0", "package-0", "262143328850"),
              ZONE_FILES("intel-rapl:0:0", "dram", "65712999613"),
              ZONE_FILES("intel-rapl:1", "package-1", "16000000000"),
              ZONE_FILES("intel-rapl:1:0", "dram", "65712999613"),
              ZONE_FILES("intel-rapl:2", "psys", "4294967295000000"),
              ZONE_FILES("intel-rapl-mmio:0", "package-0", "262143328850"),
              {"sys/class/powercap/intel-rapl-mmio:0/energy_uj", "77\n"}},
};

static const struct machine_plan intel_client = {
    .name = "Intel of a laptop, whose memory only root may read",
    .is_v1 = true,
    .is_as_nobody = true,
    .meters =
        {
            {SIM_ZONE, METER_PACKAGE, "0", 28, 262143328850, ZONE("intel-rapl:0")},
            {SIM_ZONE, METER_CORE, "0", 15, 262143328850, ZONE("intel-rapl:0:0")},
            {SIM_ZONE, METER_UNCORE, "0", 5, 262143328850, ZONE("intel-rapl:0:1")},
            {SIM_ZONE, METER_DRAM, "0", 5, 262143328850, ZONE("intel-rapl:0:2"), true},
            {SIM_ZONE, METER_PSYS, "0", 40, 262143328850, ZONE("intel-rapl:1")},
        },
    .files = {INTEL, ZONE_FILES("intel-rapl:0", "package-0", "262143328850"),
              ZONE_FILES("intel-rapl:0:0", "core", "262143328850"),
              ZONE_FILES("intel-rapl:0:1", "uncore", "262143328850"),
              ZONE_FILES("intel-rapl:0:2", "dram", "262143328850"),
              ZONE_FILES("intel-rapl:1", "psys", "262143328850")},
};

static const struct machine_plan intel_by_perf = {
    .name = "Intel whose powercap only root may read, so that perf counts",
    .is_as_nobody = true,
    .meters =
        {
            {SIM_EVENT, METER_PACKAGE, "0", .watts = 250},
            {SIM_EVENT, METER_DRAM, "0", .watts = 30},
            {SIM_EVENT, METER_PACKAGE, "1", .watts = 250},
            {SIM_EVENT, METER_DRAM, "1", .watts = 30},
            {SIM_ZONE, METER_UNCORE, "0", 1, 262143328850, ZONE("intel-rapl:0"), true},
        },
    .files = {INTEL,
              {PMU "type", "22\n"},
              {PMU "cpumask", "0-1\n"},
              EVENT("energy-pkg", "0x02"),
              EVENT("energy-ram", "0x03"),
              {"sys/devices/system/cpu/cpu0/topology/physical_package_id", "0\n"},
              {"sys/devices/system/cpu/cpu1/topology/physical_package_id", "1\n"},
              {"sys/class/powercap/intel-rapl:0/name", "package-0\n"}},
};

static const struct machine_plan amd_with_dies = {
    .name = "AMD, whose dies all show the package, and whose cores are not counted",
    .is_v1 = true,
    .meters =
        {
            {SIM_ZONE, METER_PACKAGE, "0", 280, 65532610987, ZONE("intel-rapl:0")},
            {SIM_ZONE, METER_PACKAGE, "1", 320, 65532610987, ZONE("intel-rapl:2")},
        },
    .files = {AMD,
              ZONE_FILES("intel-rapl:0", "package-0-die-0", "65532610987"),
              ZONE_FILES("intel-rapl:0:0", "core", "65532610987"),
              {"sys/class/powercap/intel-rapl:0:0/energy_uj", "5\n"},
              ZONE_FILES("intel-rapl:1", "package-0-die-1", "65532610987"),
              {"sys/class/powercap/intel-rapl:1/energy_uj", "5\n"},
              ZONE_FILES("intel-rapl:2", "package-1-die-0", "65532610987")},
};

static const struct machine_plan amd_by_hwmon = {
    .name = "AMD by amd_energy, with an ACPI meter",
    .meters =
        {
            {SIM_ENERGY, METER_PACKAGE, "0", 180, .file = "class/hwmon/hwmon2/energy2_input"},
            {SIM_ENERGY, METER_PACKAGE, "1", 200, .file = "class/hwmon/hwmon2/energy3_input"},
            {SIM_POWER, METER_NODE, "hwmon", 600, RAIL("hwmon0")},
        },
    .files = {AMD,
              {"sys/class/hwmon/hwmon0/name", "power_meter\n"},
              {"sys/class/hwmon/hwmon2/name", "amd_energy\n"},
              {"sys/class/hwmon/hwmon2/energy1_label", "Ecore000\n"},
              {"sys/class/hwmon/hwmon2/energy1_input", "1\n"},
              {"sys/class/hwmon/hwmon2/energy2_label", "Esocket0\n"},
              {"sys/class/hwmon/hwmon2/energy3_label", "Esocket1\n"}},
};

static const struct machine_plan grace = {
    .name = "Grace with all rails",
    .meters =
        {
            {SIM_POWER, METER_MODULE, "0", 800, RAIL("hwmon1")},
            {SIM_POWER, METER_PACKAGE, "0", 250, RAIL("hwmon2")},
            {SIM_POWER, METER_CORE, "0", 150, RAIL("hwmon3")},
            {SIM_POWER, METER_UNCORE, "0", 40, RAIL("hwmon4")},
            {SIM_POWER, METER_MODULE, "1", 800, RAIL("hwmon5")},
            {SIM_POWER, METER_PACKAGE, "1", 250, RAIL("hwmon6")},
        },
    .files = {CHIP("hwmon1", "Module Power Socket 0"), CHIP("hwmon2", "Grace Power Socket 0"),
              CHIP("hwmon3", "CPU Power Socket 0"), CHIP("hwmon4", "SysIO Power Socket 0"),
              CHIP("hwmon5", "Module Power Socket 1"), CHIP("hwmon6", "Grace Power Socket 1")},
};

static const struct machine_plan grace_rails = {
    .name = "Grace that measures only its cores and its fabric",
    .meters =
        {
            {SIM_POWER, METER_PACKAGE, "0", 150, RAIL("hwmon0")},
            {SIM_POWER, METER_UNCORE, "0", 40, RAIL("hwmon1")},
        },
    .files = {CHIP("hwmon0", "CPU Power Socket 0"), CHIP("hwmon1", "SysIO Power Socket 0")},
};

static const struct machine_plan cray = {
    .name = "Cray",
    .meters =
        {
            {SIM_JOULES, METER_NODE, "cray", 900, CRAY("energy")},
            {SIM_JOULES, METER_PACKAGE, "cray", 200, CRAY("cpu_energy")},
            {SIM_JOULES, METER_DRAM, "cray", 70, CRAY("memory_energy")},
        },
};

static const struct machine_plan cray_with_rapl = {
    .name = "Cray whose packages RAPL counts",
    .meters =
        {
            {SIM_JOULES, METER_NODE, "cray", 900, CRAY("energy")},
            {SIM_ZONE, METER_PACKAGE, "0", 280, 65532610987, ZONE("intel-rapl:0")},
            {SIM_JOULES, METER_DRAM, "cray", 70, CRAY("memory_energy")},
        },
    .files = {AMD,
              ZONE_FILES("intel-rapl:0", "package-0", "65532610987"),
              {"sys/cray/pm_counters/cpu_energy", "5 J 1800000000000000 us\n"}},
};

static const struct machine_plan server_with_bmc = {
    .name = "Server with RAPL, an ACPI meter and a BMC",
    .meters =
        {
            {SIM_ZONE, METER_PACKAGE, "0", 200, 262143328850, ZONE("intel-rapl:0")},
            {SIM_POWER, METER_NODE, "hwmon", 500, RAIL("hwmon0")},
            {SIM_BMC, METER_NODE, "ipmi", .watts = 500},
        },
    .files = {INTEL,
              ZONE_FILES("intel-rapl:0", "package-0", "262143328850"),
              {"sys/class/hwmon/hwmon0/name", "power_meter\n"}},
};

#define CONTAINER "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static const struct sim_cgroup_plan cgroups_v2[] = {
    {"/system.slice/sshd.service", -1, false},
    {"/user.slice/user-1000.slice", -1, false},
    {"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" CONTAINER ".scope", 1,
     true},
    {"/system.slice/docker-" CONTAINER ".scope", -1, true},
    {"/system.slice/slurmstepd.scope/job_31", -1, true},
};

static const struct sim_cgroup_plan cgroups_v1[] = {
    {"/system.slice/sshd.service", -1, false},
    {"/user.slice/user-1000.slice", -1, false},
    {"/docker/" CONTAINER, -1, true},
    {"/slurm/uid_1000/job_31", -1, true},
    {"/lxc/box", -1, true},
};

/* A kind of meter whose energy is divided. */
enum { BY_CPU, BY_MEMORY, DIVISIONS };

/* A value that must never go back. */
struct row {
    char name[640];
    uint64_t value;
};

struct machine {
    const struct machine_plan *plan;
    char root[32];
    struct host host;
    struct clock_manual clock;
    struct random_source random;
    struct source_context context;
    struct sim_meter meters[METERS_MAX];
    size_t meter_count;
    struct sim_node node;
    struct sim_bmc bmc;
    bool has_source[SIM_SOURCES];
    void *sources[SIM_SOURCES];
    uint64_t steps, startups, next_restart_us;

    struct pipeline *pipeline;
    struct trace_writer writer;
    struct buffer recorded;
    bool has_books;                 /* there was a report that says what was done */
    uint64_t first_uj[METERS_MAX];  /* what was readable at the report before that, */
    uint64_t report_uj[METERS_MAX]; /* and at the last one */
    /* What everybody has to pay: a share is off by less than a microjoule. */
    long double owed_uj[SIM_CGROUPS_MAX][DIVISIONS], system_uj[DIVISIONS];
    uint64_t gap_uj[METERS_MAX];
    unsigned settled; /* meters of all windows */
    struct row rows[ROWS_MAX];
    size_t row_count;
};

static bool is_booked(const struct sim_meter *meter)
{
    return meter->plan->kind == METER_PACKAGE || meter->plan->kind == METER_DRAM;
}

/* Sources. */

static void set_user(const struct machine *machine, uid_t uid)
{
    if (machine->plan->is_as_nobody && getuid() == 0)
        assert_int_equal(seteuid(uid), 0);
}

static int open_one(struct machine *machine, enum sim_source source, struct error *err)
{
    void **state = &machine->sources[source];
    int r;

    switch (source) {
    case SIM_RAPL:
        set_user(machine, NOBODY);
        r = rapl_new(&machine->host, &machine->clock.clock, &sim_rapl_calls, (struct rapl **)state,
                     err);
        set_user(machine, 0);
        return r;
    case SIM_HWMON:
        return hwmon_source.open(&machine->context, state, err);
    case SIM_CRAY:
        return cray_source.open(&machine->context, state, err);
    case SIM_IPMI:
        return ipmi_open_with(&machine->context, &machine->bmc.calls, state, err);
    default:
        return cgroups_source.open(&machine->context, state, err);
    }
}

static void open_source(struct machine *machine, enum sim_source source)
{
    struct error err = {""};

    if (open_one(machine, source, &err) != 0)
        fail_msg("%s, source %d: %s", machine->plan->name, (int)source, err.text);
}

static void close_source(struct machine *machine, enum sim_source source)
{
    static const struct source_ops *const ops[SIM_SOURCES] = {
        &rapl_source, &hwmon_source, &cray_source, &ipmi_source, &cgroups_source};

    ops[source]->close(machine->sources[source]);
    machine->sources[source] = NULL;
    for (size_t i = 0; i < machine->meter_count; i++)
        if (sim_source_of(machine->meters[i].plan->form) == source)
            sim_meter_note_closed(&machine->meters[i]);
    if (source == SIM_CGROUPS)
        sim_node_note_closed(&machine->node);
}

static void take(struct machine *machine, const struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        trace_write_sample(&machine->writer, &batch->samples[i], &machine->recorded, NULL);
    assert_int_equal(pipeline_ingest(machine->pipeline, batch->samples, batch->count), 0);
}

/* Garbage everywhere makes it fail; what it means for the books shows there. */
static int read_one(struct machine *machine, enum sim_source source, struct batch *batch)
{
    struct error err = {""};
    void *state = machine->sources[source];
    int r;

    switch (source) {
    case SIM_RAPL:
        set_user(machine, NOBODY);
        r = rapl_read(state, batch, &err);
        set_user(machine, 0);
        return r;
    case SIM_HWMON:
        return hwmon_source.read(state, batch, &err);
    case SIM_CRAY:
        return cray_source.read(state, batch, &err);
    case SIM_IPMI:
        return ipmi_source.read(state, batch, &err);
    default:
        return cgroups_source.read(state, batch, &err);
    }
}

static void read_source(struct machine *machine, enum sim_source source)
{
    struct batch batch;

    batch_init(&batch);
    (void)read_one(machine, source, &batch);
    take(machine, &batch);
    batch_done(&batch);
    for (size_t i = 0; i < machine->meter_count && source != SIM_IPMI; i++)
        if (sim_source_of(machine->meters[i].plan->form) == source &&
            !machine->meters[i].plan->is_forbidden)
            sim_meter_note_read(&machine->meters[i], machine->clock.now_us);
}

/* What happens on the machine. */

static void write_cray(struct machine *machine)
{
    char text[32];

    snprintf(text, sizeof(text), "%ju\n", (uintmax_t)machine->startups);
    tree_write(machine->root, "sys/cray/pm_counters/startup", text);
    snprintf(text, sizeof(text), "%ju\n", (uintmax_t)machine->steps);
    tree_write(machine->root, "sys/cray/pm_counters/freshness", text);
}

static void restart_controller(struct machine *machine)
{
    machine->startups++;
    for (size_t i = 0; i < machine->meter_count; i++)
        if (machine->meters[i].plan->form == SIM_JOULES)
            machine->meters[i].has_last = false;
}

static void draw(struct machine *machine, uint64_t us)
{
    bool suspends = random_u64(&machine->random) % 400 == 0;

    machine->steps++;
    if (machine->has_source[SIM_CRAY] && random_u64(&machine->random) % 400 == 0)
        restart_controller(machine);
    for (size_t i = 0; i < machine->meter_count; i++) {
        struct sim_meter *meter = &machine->meters[i];

        if (suspends)
            sim_meter_reset(meter);
        sim_meter_draw(meter, us, &machine->random);
        /* A BMC is asked seldom. */
        meter->is_garbage =
            random_u64(&machine->random) % (meter->plan->form == SIM_BMC ? 5 : 60) == 0;
        if (meter->fd >= 0 && meter->is_garbage)
            sim_meter_write_garbage(meter, &machine->random);
        else if (meter->fd >= 0)
            sim_meter_write(meter, machine->clock.now_us);
    }
    if (machine->has_source[SIM_CRAY])
        write_cray(machine);
}

/* Every 5 to 10 minutes a source is closed and opened again. */
static void restart_something(struct machine *machine)
{
    enum sim_source source = (enum sim_source)(random_u64(&machine->random) % SIM_SOURCES);

    if (machine->clock.now_us < machine->next_restart_us || !machine->has_source[source])
        return;
    machine->next_restart_us =
        machine->clock.now_us + 300 * SECOND + random_u64(&machine->random) % (300 * SECOND);
    close_source(machine, source);
    open_source(machine, source);
}

/* What everybody owes after a window, reckoned from what the simulation knows. */

static void divide(struct machine *machine, enum meter_kind kind, uint64_t energy_uj)
{
    const struct sim_node *node = &machine->node;
    int division = kind == METER_DRAM ? BY_MEMORY : BY_CPU;
    uint64_t weights[SIM_CGROUPS_MAX] = {0}, system = node->system_us, idle = 0, all = 0;

    for (size_t i = 0; i < node->count; i++) {
        weights[i] = kind == METER_DRAM ? node->cgroups[i].held_bytes : node->cgroups[i].did_us;
        all += weights[i];
    }
    if (kind == METER_DRAM) {
        system = node->used_bytes;
        sim_take_out(&system, all);
        idle = SIM_MEMORY_BYTES - node->used_bytes;
    }
    all += system + idle;
    for (size_t i = 0; i < node->count; i++)
        machine->owed_uj[i][division] += (long double)energy_uj * weights[i] / all;
    machine->system_uj[division] += (long double)energy_uj * system / all;
    machine->settled++;
}

static void note_report(struct machine *machine)
{
    bool is_first = !machine->node.has_reported;

    sim_node_note_report(&machine->node);
    machine->has_books |= !is_first;
    for (size_t i = 0; i < machine->meter_count; i++) {
        const struct sim_meter *meter = &machine->meters[i];
        uint64_t energy_uj = meter->readable_uj - machine->report_uj[i];

        if (!machine->has_books)
            machine->first_uj[i] = meter->readable_uj;
        else if (is_booked(meter) && is_first)
            machine->gap_uj[i] += energy_uj;
        else if (is_booked(meter))
            divide(machine, meter->plan->kind, energy_uj);
        machine->report_uj[i] = meter->readable_uj;
    }
}

static void report(struct machine *machine, uint64_t us)
{
    bool is_garbage = random_u64(&machine->random) % 40 == 0; /* then there is none */

    if (!is_garbage)
        sim_node_change(&machine->node, &machine->random);
    sim_node_work(&machine->node, us, &machine->random);
    for (size_t i = 0; i < machine->node.count; i++)
        if (machine->node.cgroups[i].exists)
            sim_cgroup_write(&machine->node, &machine->node.cgroups[i]);
    sim_node_write(&machine->node, is_garbage);
    read_source(machine, SIM_CGROUPS);
    if (!is_garbage)
        note_report(machine);
}

/* What must be so at each step. */

static void assert_not_less(struct machine *machine, const char *kind, const char *id,
                            const char *meter_id, int more, uint64_t value)
{
    struct row row = {.value = value};
    size_t i = 0;

    snprintf(row.name, sizeof(row.name), "%s/%s/%s/%d", kind, id, meter_id, more);
    while (i < machine->row_count && strcmp(machine->rows[i].name, row.name) != 0)
        i++;
    if (i < machine->row_count && machine->rows[i].value > value)
        fail_msg("%s: %s went back", machine->plan->name, row.name);
    assert_true(i < ROWS_MAX);
    machine->rows[i] = row;
    machine->row_count = MAX(machine->row_count, i + 1);
}

static void check_nothing_goes_back(struct machine *machine, const struct snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->meter_count; i++) {
        const struct snapshot_meter *meter = &snapshot->meters[i];
        const char *kind = meter_words[meter->kind];

        assert_not_less(machine, kind, "", meter->meter_id, -1, meter->energy_uj);
        for (int unowned = 0; unowned < UNOWNED_COUNT; unowned++)
            assert_not_less(machine, kind, "", meter->meter_id, unowned,
                            meter->unowned_uj[unowned]);
    }
    for (size_t i = 0; i < snapshot->workload_count; i++) {
        const struct snapshot_workload *workload = &snapshot->workloads[i];
        const struct snapshot_meter *meter = &snapshot->meters[workload->meter];

        assert_not_less(machine, workload_words[workload->kind], workload->id, meter->meter_id,
                        (int)meter->kind, account_total_uj(&workload->account));
    }
}

static const struct snapshot_meter *find_booked(const struct snapshot *snapshot,
                                                const struct sim_meter *meter)
{
    for (size_t i = 0; i < snapshot->meter_count; i++)
        if (snapshot->meters[i].kind == meter->plan->kind &&
            strcmp(snapshot->meters[i].meter_id, meter->plan->id) == 0)
            return &snapshot->meters[i];
    return NULL;
}

static const struct snapshot_observed *find_observed(const struct snapshot *snapshot,
                                                     const struct sim_meter *meter)
{
    for (size_t i = 0; i < snapshot->observed_count; i++)
        if (snapshot->observed[i].kind == meter->plan->kind &&
            strcmp(snapshot->observed[i].id, meter->plan->id) == 0)
            return &snapshot->observed[i];
    return NULL;
}

/* It is booked or observed, never both, and says what could be known. */
static void check_meter(const struct machine *machine, size_t index,
                        const struct snapshot *snapshot)
{
    const struct sim_meter *meter = &machine->meters[index];
    const struct snapshot_meter *booked = find_booked(snapshot, meter);
    const struct snapshot_observed *observed = find_observed(snapshot, meter);
    bool is_stale = machine->clock.now_us - meter->last_us > 60 * SECOND;

    if (meter->plan->is_forbidden) {
        assert_true(!booked && !observed);
        return;
    }
    if (booked) {
        uint64_t uj = booked->energy_uj + booked->pending_uj;

        assert_true(is_booked(meter) && machine->has_books && !observed);
        if (uj != meter->readable_uj - machine->first_uj[index])
            fail_msg("%s, %s %s, step %ju: %ju uJ are booked or pending, %ju were readable",
                     machine->plan->name, meter_words[meter->plan->kind], meter->plan->id,
                     (uintmax_t)machine->steps, (uintmax_t)uj,
                     (uintmax_t)(meter->readable_uj - machine->first_uj[index]));
        assert_int_equal(booked->unowned_uj[UNOWNED_GAP], machine->gap_uj[index]);
    }
    if (!meter->is_shown)
        return; /* since its source was opened, or is not known any more */
    if (booked)
        assert_int_equal(booked->counter_uj, meter->counted_uj);
    else if (observed)
        assert_int_equal(observed->counter_uj, meter->counted_uj);
    else if (!is_stale)
        fail_msg("%s: no %s %s", machine->plan->name, meter_words[meter->plan->kind],
                 meter->plan->id);
}

static void check(struct machine *machine)
{
    struct snapshot snapshot;

    snapshot_init(&snapshot);
    assert_int_equal(
        pipeline_snapshot(machine->pipeline, machine->clock.now_us, 10 * SECOND, &snapshot), 0);
    for (size_t i = 0; i < snapshot.meter_count; i++) {
        enum meter_kind kind = snapshot.meters[i].kind;

        /* A platform contains its packages: only one of the two may be booked. */
        assert_true(kind == METER_PACKAGE || kind == METER_DRAM || kind == METER_NODE_OVERHEAD);
        assert_int_equal(snapshot.meters[i].imbalance_uj, 0);
    }
    for (size_t i = 0; i < machine->meter_count; i++)
        check_meter(machine, i, &snapshot);
    check_nothing_goes_back(machine, &snapshot);
    snapshot_done(&snapshot);
}

/* The end of a pipeline. */

static void print_ledger(const struct pipeline *pipeline, struct buffer *json)
{
    struct snapshot snapshot;

    snapshot_init(&snapshot);
    buffer_init(json, CAP_BYTES);
    assert_int_equal(pipeline_snapshot(pipeline, 0, 0, &snapshot), 0);
    ledger_json(&snapshot, json);
    snapshot_done(&snapshot);
}

static struct pipeline *new_pipeline(void)
{
    const struct pipeline_options options = {
        .gpu = {.interval_us = SECOND},
        .max_processes = 16,
        .max_workloads = 64,
        .retention_us = UINT64_MAX,
        .find_owner = identity_find_owner,
    };
    struct pipeline *pipeline;

    assert_int_equal(pipeline_new(&options, &pipeline), 0);
    return pipeline;
}

static void play(int fd, struct pipeline *pipeline)
{
    struct trace_reader *reader = NULL;
    struct error err = {""};
    struct batch batch;
    char path[32];
    int r;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    assert_int_equal(trace_reader_open(path, &reader, &err), 0);
    batch_init(&batch);
    while ((r = trace_reader_next(reader, &batch, &err)) > 0) {
        assert_int_equal(pipeline_ingest(pipeline, batch.samples, batch.count), 0);
        batch_reset(&batch);
    }
    if (r < 0)
        fail_msg("%s", err.text);
    assert_int_equal(pipeline_finish(pipeline), 0);
    batch_done(&batch);
    trace_reader_close(reader);
}

static void check_replay(const struct machine *machine)
{
    _cleanup_close_ int fd = memfd_create("recorded", MFD_CLOEXEC);
    struct pipeline *pipeline = new_pipeline();
    struct buffer live, replayed;

    assert_int_equal(fs_write_all(fd, machine->recorded.data, machine->recorded.len), 0);
    play(fd, pipeline);
    print_ledger(machine->pipeline, &live);
    print_ledger(pipeline, &replayed);
    if (live.len != replayed.len || memcmp(live.data, replayed.data, live.len) != 0)
        fail_msg("%s\nlive:\n%.*s\nreplayed:\n%.*s", machine->plan->name, (int)live.len, live.data,
                 (int)replayed.len, replayed.data);
    buffer_done(&live);
    buffer_done(&replayed);
    pipeline_free(pipeline);
}

static uint64_t paid_uj(const struct snapshot *snapshot, const struct workload_owner *owner,
                        enum meter_kind kind)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < snapshot->workload_count; i++) {
        const struct snapshot_workload *workload = &snapshot->workloads[i];

        if (workload->kind == owner->kind && strcmp(workload->id, owner->id) == 0 &&
            snapshot->meters[workload->meter].kind == kind)
            sum += account_total_uj(&workload->account);
    }
    return sum;
}

static uint64_t unowned_uj(const struct snapshot *snapshot, enum meter_kind kind,
                           enum unowned unowned)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < snapshot->meter_count; i++)
        if (snapshot->meters[i].kind == kind)
            sum += snapshot->meters[i].unowned_uj[unowned];
    return sum;
}

static void assert_near(const struct machine *machine, const char *who, uint64_t uj,
                        long double owed_uj)
{
    if (fabsl((long double)uj - owed_uj) > machine->settled)
        fail_msg("%s: %s has paid %ju uJ, and did work of %.3Lf", machine->plan->name, who,
                 (uintmax_t)uj, owed_uj);
}

static void check_shares(const struct machine *machine)
{
    static const enum meter_kind kinds[DIVISIONS] = {METER_PACKAGE, METER_DRAM};
    struct snapshot snapshot;

    snapshot_init(&snapshot);
    assert_int_equal(pipeline_snapshot(machine->pipeline, 0, 0, &snapshot), 0);
    for (int d = 0; d < DIVISIONS; d++) {
        for (size_t i = 0; i < machine->node.count; i++)
            assert_near(machine, machine->node.cgroups[i].plan->path,
                        paid_uj(&snapshot, &machine->node.cgroups[i].owner, kinds[d]),
                        machine->owed_uj[i][d]);
        assert_near(machine, "the system", unowned_uj(&snapshot, kinds[d], UNOWNED_SYSTEM),
                    machine->system_uj[d]);
        assert_int_equal(unowned_uj(&snapshot, kinds[d], UNOWNED_UNATTRIBUTED), 0);
    }
    snapshot_done(&snapshot);
}

static void begin_books(struct machine *machine)
{
    machine->pipeline = new_pipeline();
    machine->writer = (struct trace_writer){0};
    buffer_init(&machine->recorded, CAP_BYTES);
    trace_write_header(&machine->recorded);
    machine->has_books = false;
    machine->settled = 0;
    machine->row_count = 0;
    memset(machine->owed_uj, 0, sizeof(machine->owed_uj));
    memset(machine->system_uj, 0, sizeof(machine->system_uj));
    memset(machine->gap_uj, 0, sizeof(machine->gap_uj));
    for (enum sim_source source = 0; source < SIM_SOURCES; source++)
        if (machine->has_source[source])
            open_source(machine, source);
}

/* What is not divided yet is a gap then. */
static void end_books(struct machine *machine)
{
    assert_int_equal(pipeline_finish(machine->pipeline), 0);
    for (size_t i = 0; i < machine->meter_count; i++)
        if (is_booked(&machine->meters[i]) && machine->has_books)
            machine->gap_uj[i] += machine->meters[i].readable_uj - machine->report_uj[i];
    check(machine);
    check_shares(machine);
    check_replay(machine);
    for (enum sim_source source = 0; source < SIM_SOURCES; source++)
        if (machine->has_source[source])
            close_source(machine, source);
    pipeline_free(machine->pipeline);
    buffer_done(&machine->recorded);
}

/* The machine as a whole. */

static int open_below(const struct machine *machine, const char *name, int flags)
{
    char path[512];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", machine->root, name);
    fd = open(path, flags | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void make_meter(struct machine *machine, const struct sim_meter_plan *plan)
{
    struct sim_meter *meter = &machine->meters[machine->meter_count++];
    char path[256];

    *meter = (struct sim_meter){.plan = plan, .fd = -1};
    meter->drawn_uj = random_u64(&machine->random) % 1000000000000; /* since boot */
    machine->has_source[sim_source_of(plan->form)] |= !plan->is_forbidden;
    if (plan->form == SIM_BMC)
        machine->bmc.meter = meter;
    if (!plan->file)
        return;
    snprintf(path, sizeof(path), "sys/%s", plan->file);
    tree_write(machine->root, path, "");
    meter->fd = open_below(machine, path, O_WRONLY);
    if (plan->is_forbidden)
        assert_int_equal(fchmod(meter->fd, 0), 0);
}

static void make_cgroups(struct machine *machine)
{
    const struct sim_cgroup_plan *plans = machine->plan->is_v1 ? cgroups_v1 : cgroups_v2;
    struct sim_node *node = &machine->node;

    node->root = machine->root;
    node->is_v1 = machine->plan->is_v1;
    node->count = node->is_v1 ? ARRAY_SIZE(cgroups_v1) : ARRAY_SIZE(cgroups_v2);
    node->tick_us = SECOND / (uint64_t)sysconf(_SC_CLK_TCK);
    for (size_t i = 0; i < node->count; i++) {
        node->cgroups[i].plan = &plans[i];
        (void)source_set_classify_cgroup(NULL, plans[i].path, &node->cgroups[i].owner);
        if (!plans[i].comes_and_goes)
            sim_cgroup_create(node, &node->cgroups[i]);
    }
    tree_write(machine->root, "sys/fs/cgroup/memory/x", "");
    tree_write(machine->root, "sys/fs/cgroup/cpu,cpuacct/x", "");
    tree_write(machine->root, "proc/self/mountinfo",
               node->is_v1
                   ? "33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup x rw,cpu,cpuacct\n"
                     "34 31 0:31 / /sys/fs/cgroup/memory rw - cgroup x rw,memory\n"
                   : "33 31 0:30 / /sys/fs/cgroup rw - cgroup2 x rw\n");
}

static void make_machine(struct machine *machine, const struct machine_plan *plan, uint64_t seed)
{
    *machine = (struct machine){.plan = plan, .root = "/tmp/machineXXXXXX", .random = {seed}};
    assert_non_null(mkdtemp(machine->root));
    assert_int_equal(chmod(machine->root, 0755), 0);
    clock_manual_init(&machine->clock, START_US);
    for (size_t i = 0; i < FILES_MAX && plan->files[i].path; i++)
        tree_write(machine->root, plan->files[i].path, plan->files[i].text);
    sim_bmc_init(&machine->bmc, &machine->clock.clock, NULL);
    for (size_t i = 0; i < METERS_MAX && plan->meters[i].id; i++)
        make_meter(machine, &plan->meters[i]);
    make_cgroups(machine);
    machine->has_source[SIM_CGROUPS] = true;
    sim_perf.meters = machine->meters;
    sim_perf.count = machine->meter_count;
    sim_perf.event_count = 0;
    machine->host = (struct host){.procfs_fd = open_below(machine, "proc", O_PATH),
                                  .sysfs_fd = open_below(machine, "sys", O_PATH),
                                  .rootfs_fd = open_below(machine, ".", O_PATH)};
    machine->context = (struct source_context){.host = &machine->host,
                                               .clock = &machine->clock.clock,
                                               .interval_us = SECOND,
                                               .classify_cgroup = source_set_classify_cgroup};
    draw(machine, SECOND);
}

static void done_machine(struct machine *machine)
{
    for (size_t i = 0; i < machine->meter_count; i++)
        cleanup_close(&machine->meters[i].fd);
    host_close(&machine->host);
    tree_remove(machine->root, "");
}

/* About a second; now and then somebody holds the exporter up. */
static uint64_t step_us(struct machine *machine)
{
    if (random_u64(&machine->random) % 150 == 0)
        return 5 * SECOND + random_u64(&machine->random) % (4 * SECOND);
    return SECOND * 7 / 10 + random_u64(&machine->random) % (SECOND * 6 / 10);
}

static void live_until(struct machine *machine, uint64_t end_us)
{
    uint64_t reported_us = machine->clock.now_us;

    while (machine->clock.now_us < end_us) {
        uint64_t us = step_us(machine);

        machine->clock.now_us += us;
        draw(machine, us);
        restart_something(machine);
        for (enum sim_source source = 0; source < SIM_CGROUPS; source++)
            if (machine->has_source[source])
                read_source(machine, source);
        if (machine->clock.now_us - reported_us >= REPORT_US) {
            report(machine, machine->clock.now_us - reported_us);
            reported_us = machine->clock.now_us;
        }
        check(machine);
    }
}

static void live_for_an_hour(const struct machine_plan *plan)
{
    struct machine *machine = calloc(1, sizeof(*machine));

    assert_non_null(machine);
    make_machine(machine, plan, 0x9e3779b97f4a7c15);
    begin_books(machine);
    live_until(machine, START_US + HOUR_US * 2 / 3);
    end_books(machine);
    begin_books(machine); /* the exporter was started again */
    live_until(machine, START_US + HOUR_US);
    end_books(machine);
    done_machine(machine);
    free(machine);
}

#define MACHINE(plan)                                                                              \
    static void plan##_balances_for_an_hour(void **state)                                          \
    {                                                                                              \
        (void)state;                                                                               \
        live_for_an_hour(&(plan));                                                                 \
    }

MACHINE(intel_two_sockets)
MACHINE(intel_client)
MACHINE(intel_by_perf)
MACHINE(amd_with_dies)
MACHINE(amd_by_hwmon)
MACHINE(grace)
MACHINE(grace_rails)
MACHINE(cray)
MACHINE(cray_with_rapl)
MACHINE(server_with_bmc)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intel_two_sockets_balances_for_an_hour),
        cmocka_unit_test(intel_client_balances_for_an_hour),
        cmocka_unit_test(intel_by_perf_balances_for_an_hour),
        cmocka_unit_test(amd_with_dies_balances_for_an_hour),
        cmocka_unit_test(amd_by_hwmon_balances_for_an_hour),
        cmocka_unit_test(grace_balances_for_an_hour),
        cmocka_unit_test(grace_rails_balances_for_an_hour),
        cmocka_unit_test(cray_balances_for_an_hour),
        cmocka_unit_test(cray_with_rapl_balances_for_an_hour),
        cmocka_unit_test(server_with_bmc_balances_for_an_hour),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
