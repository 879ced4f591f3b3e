/*
 * sources/rapl/rapl, on trees as powercap and perf show them: which meters are counted, under which
 * names, each once; and that one that goes astray takes none of the others with it.
 */
#include "tree_fixture.h"

#include <stdlib.h>

#include "model/report.h"
#include "sources/rapl/rapl.h"

#define START_US   ((uint64_t)1800000000000000)
#define SECOND     USEC_PER_SEC
#define RANGE      "262143328850"
#define DRAM_RANGE "65712999613"
#define SCALE      "2.3283064365386962890625e-10"
#define JOULE      ((uint64_t)1 << 32) /* counts of perf */

enum { EVENTS_MAX = 512, NOBODY = 65534 };

static const char intel[] = "cpu:type:x86,ven0000fam0006mod008F:feature:,0000,0001\n";
static const char amd[] = "cpu:type:x86,ven0002fam0019mod0011:feature:,0000,0001\n";

/* The events that were opened, and their counts. */
struct fake_event {
    int fd;
    uint32_t type;
    uint64_t config;
    int cpu;
    uint64_t count;
    ssize_t len; /* of its answers; 0: its CPU is gone */
};

static struct {
    struct fake_event events[EVENTS_MAX];
    size_t count;
    int refusal;            /* -errno for every event */
    uint64_t refused_event; /* -EINVAL for this one */
} perf;

static int pread_errno; /* for every zone */

struct rig {
    char root[32];
    struct host host;
    struct clock_manual clock;
    struct rapl *rapl;
    struct batch batch;
    struct error err;
};

static int fake_perf_event_open(struct perf_event_attr *attr, int cpu)
{
    int fd;

    assert_int_equal(attr->size, sizeof(*attr));
    assert_int_equal(attr->sample_period, 0);
    assert_int_equal(attr->exclude_kernel, 0);
    if (perf.refusal)
        return perf.refusal;
    if (attr->config == perf.refused_event)
        return -EINVAL;
    assert_true(perf.count < EVENTS_MAX);
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    perf.events[perf.count++] = (struct fake_event){
        .fd = fd, .type = attr->type, .config = attr->config, .cpu = cpu, .len = sizeof(uint64_t)};
    return fd;
}

static ssize_t fake_read(int fd, void *buffer, size_t size_bytes)
{
    assert_int_equal(size_bytes, sizeof(uint64_t));
    for (size_t i = perf.count; i-- > 0;)
        if (perf.events[i].fd == fd) {
            memcpy(buffer, &perf.events[i].count, sizeof(uint64_t));
            return perf.events[i].len;
        }
    fail_msg("descriptor %d is no event", fd);
    return -1;
}

/* As sysfs does: a file that was removed does not answer. */
static ssize_t fake_pread(int fd, void *buffer, size_t size_bytes, off_t offset)
{
    struct stat st;

    assert_int_equal(fstat(fd, &st), 0);
    errno = st.st_nlink == 0 ? ENODEV : pread_errno;
    return errno ? -1 : pread(fd, buffer, size_bytes, offset);
}

static const struct rapl_calls calls = {
    .perf_event_open = fake_perf_event_open, .read = fake_read, .pread = fake_pread};

static void write_energy(const struct rig *rig, const char *zone, const char *energy_uj)
{
    char path[128], text[128];

    snprintf(path, sizeof(path), "class/powercap/%s/energy_uj", zone);
    snprintf(text, sizeof(text), "%s\n", energy_uj);
    tree_write(rig->root, path, text);
}

static void write_zone(const struct rig *rig, const char *zone, const char *name,
                       const char *energy_uj, const char *range_uj)
{
    char path[128], text[128];

    snprintf(path, sizeof(path), "class/powercap/%s/name", zone);
    snprintf(text, sizeof(text), "%s\n", name);
    tree_write(rig->root, path, text);
    if (range_uj) {
        snprintf(path, sizeof(path), "class/powercap/%s/max_energy_range_uj", zone);
        snprintf(text, sizeof(text), "%s\n", range_uj);
        tree_write(rig->root, path, text);
    }
    if (energy_uj)
        write_energy(rig, zone, energy_uj);
}

/* `index` is the kernel's; limits that it does not have have no file. */
static void write_limit(const struct rig *rig, const char *zone, unsigned index, const char *name,
                        const char *limit_uw)
{
    char path[128];

    snprintf(path, sizeof(path), "class/powercap/%s/constraint_%u_name", zone, index);
    tree_write(rig->root, path, name);
    snprintf(path, sizeof(path), "class/powercap/%s/constraint_%u_power_limit_uw", zone, index);
    tree_write(rig->root, path, limit_uw);
}

static void enable_limits(const struct rig *rig, const char *zone, const char *enabled)
{
    char path[128];

    snprintf(path, sizeof(path), "class/powercap/%s/enabled", zone);
    tree_write(rig->root, path, enabled);
}

static void remove_zone(const struct rig *rig, const char *zone)
{
    char path[128];

    snprintf(path, sizeof(path), "class/powercap/%s", zone);
    tree_remove(rig->root, path);
}

static void write_event(const struct rig *rig, const char *name, const char *event,
                        const char *scale, const char *unit)
{
    char path[128];

    snprintf(path, sizeof(path), "bus/event_source/devices/power/events/%s", name);
    tree_write(rig->root, path, event);
    snprintf(path, sizeof(path), "bus/event_source/devices/power/events/%s.scale", name);
    tree_write(rig->root, path, scale);
    snprintf(path, sizeof(path), "bus/event_source/devices/power/events/%s.unit", name);
    tree_write(rig->root, path, unit);
}

static void write_pmu(const struct rig *rig, const char *cpumask)
{
    static const char *const names[] = {"energy-cores", "energy-pkg", "energy-ram", "energy-gpu",
                                        "energy-psys"};

    tree_write(rig->root, "bus/event_source/devices/power/type", "22\n");
    tree_write(rig->root, "bus/event_source/devices/power/cpumask", cpumask);
    for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
        char event[32];

        snprintf(event, sizeof(event), "event=0x%02x\n", i + 1);
        write_event(rig, names[i], event, SCALE "\n", "Joules\n");
    }
}

static void write_cpu(const struct rig *rig, unsigned cpu, const char *package, const char *die)
{
    char path[128];

    snprintf(path, sizeof(path), "devices/system/cpu/cpu%u/topology/physical_package_id", cpu);
    tree_write(rig->root, path, package);
    snprintf(path, sizeof(path), "devices/system/cpu/cpu%u/topology/die_id", cpu);
    tree_write(rig->root, path, die);
}

static void make_rig(struct rig *rig, const char *modalias)
{
    *rig = (struct rig){.root = "/tmp/raplXXXXXX"};
    memset(&perf, 0, sizeof(perf));
    perf.refused_event = UINT64_MAX;
    pread_errno = 0;
    assert_non_null(mkdtemp(rig->root));
    assert_int_equal(chmod(rig->root, 0755), 0);
    tree_write(rig->root, "devices/system/cpu/modalias", modalias);
    rig->host.procfs_fd = rig->host.rootfs_fd = -1;
    rig->host.sysfs_fd = open(rig->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    clock_manual_init(&rig->clock, START_US);
    batch_init(&rig->batch);
}

static int open_rig(struct rig *rig)
{
    return rapl_new(&rig->host, &rig->clock.clock, &calls, &rig->rapl, &rig->err);
}

static void done_rig(struct rig *rig)
{
    rapl_free(rig->rapl);
    batch_done(&rig->batch);
    close(rig->host.sysfs_fd);
    for (size_t i = 0; i < perf.count; i++)
        assert_int_equal(fcntl(perf.events[i].fd, F_GETFD), -1); /* closed */
    tree_remove(rig->root, "");
}

/* Moves the clock and reads; "package 0=5" for each sample, "!2" added for 2 breaks. */
static void assert_read(struct rig *rig, uint64_t seconds, int result, const char *expected)
{
    char text[8192] = "";
    size_t len = 0;

    rig->clock.now_us += seconds * SECOND;
    batch_reset(&rig->batch);
    assert_int_equal(rapl_read(rig->rapl, &rig->batch, &rig->err), result);
    for (size_t i = 0; i < rig->batch.count; i++) {
        const struct sample *sample = &rig->batch.samples[i];

        assert_int_equal(sample->kind, SAMPLE_METER);
        assert_int_equal(sample->gpu, 0);
        assert_int_equal(sample->t_us, rig->clock.now_us);
        assert_false(sample->meter.integrated);
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s %s=%llu", len > 0 ? ", " : "",
                                meter_words[sample->meter.kind], sample->meter.id,
                                (unsigned long long)sample->meter.counter_uj);
        if (sample->meter.breaks > 0)
            len += (size_t)snprintf(text + len, sizeof(text) - len, "!%u", sample->meter.breaks);
        assert_true(len < sizeof(text));
    }
    assert_string_equal(text, expected);
}

static void write_two_sockets(const struct rig *rig)
{
    tree_write(rig->root, "class/powercap/intel-rapl/enabled", "1\n");
    write_zone(rig, "intel-rapl:0", "package-0", "262143328000", RANGE);
    write_zone(rig, "intel-rapl:0:0", "dram", "12", DRAM_RANGE);
    write_zone(rig, "intel-rapl:1", "package-1", "1000", RANGE);
    write_zone(rig, "intel-rapl:1:0", "dram", "2000", DRAM_RANGE);
    write_zone(rig, "intel-rapl:2", "psys", "7000000", "4294967295000000");
}

static void two_sockets_with_memory_and_platform_are_five_meters(void **state)
{
    struct rig rig;

    (void)state;
    make_rig(&rig, intel);
    write_two_sockets(&rig);
    assert_int_equal(open_rig(&rig), 0);
    assert_string_equal(rig.rapl->backend->name, "powercap");
    assert_read(&rig, 0, 0, "package 0=0, dram 0=0, package 1=0, dram 1=0, psys 0=0");
    write_energy(&rig, "intel-rapl:0", "500000"); /* it wrapped */
    write_energy(&rig, "intel-rapl:0:0", "13");
    write_energy(&rig, "intel-rapl:1", "1500");
    write_energy(&rig, "intel-rapl:2", "9000000");
    assert_read(&rig, 1, 0, "package 0=500850, dram 0=1, package 1=500, dram 1=0, psys 0=2000000");
    done_rig(&rig);
}

static void assert_limits(const struct rig *rig, size_t index, uint64_t long_term_uw,
                          uint64_t short_term_uw, uint64_t peak_power_uw)
{
    const uint64_t *uw = rig->batch.samples[index].meter.limits.uw;

    assert_int_equal(uw[METER_LIMIT_LONG_TERM], long_term_uw);
    assert_int_equal(uw[METER_LIMIT_SHORT_TERM], short_term_uw);
    assert_int_equal(uw[METER_LIMIT_PEAK_POWER], peak_power_uw);
}

static void enforced_limits_come_with_their_meter_and_are_read_again(void **state)
{
    struct rig rig;

    (void)state;
    make_rig(&rig, intel);
    write_two_sockets(&rig);
    write_limit(&rig, "intel-rapl:0", 0, "long_term\n", "225000000\n");
    write_limit(&rig, "intel-rapl:0", 1, "short_term\n", "270000000\n");
    write_limit(&rig, "intel-rapl:0", 2, "peak_power\n", "0\n"); /* none */
    enable_limits(&rig, "intel-rapl:0", "1\n");
    write_limit(&rig, "intel-rapl:0:0", 0, "long_term\n", "41250000\n");
    enable_limits(&rig, "intel-rapl:0:0", "0\n");                       /* not enforced */
    write_limit(&rig, "intel-rapl:1", 0, "short_term\n", "99000000\n"); /* in any order */
    write_limit(&rig, "intel-rapl:1", 1, "unheard_of\n", "1000000\n");
    write_limit(&rig, "intel-rapl:1", 2, "long_term\n", "-5\n");
    enable_limits(&rig, "intel-rapl:1", "1\n");
    assert_int_equal(open_rig(&rig), 0);
    assert_read(&rig, 0, 0, "package 0=0, dram 0=0, package 1=0, dram 1=0, psys 0=0");
    assert_limits(&rig, 0, 225000000, 270000000, 0);
    assert_limits(&rig, 1, 0, 0, 0);
    assert_limits(&rig, 2, 0, 99000000, 0);
    assert_limits(&rig, 4, 0, 0, 0);
    write_limit(&rig, "intel-rapl:0", 0, "long_term\n", "150000000\n");
    assert_read(&rig, 11, 0, "package 0=0, dram 0=0, package 1=0, dram 1=0, psys 0=0");
    assert_limits(&rig, 0, 150000000, 270000000, 0);
    enable_limits(&rig, "intel-rapl:0", "0\n");
    assert_read(&rig, 11, 0, "package 0=0, dram 0=0, package 1=0, dram 1=0, psys 0=0");
    assert_limits(&rig, 0, 0, 0, 0);
    done_rig(&rig);
}

static void every_part_of_a_client_processor_has_its_kind(void **state)
{
    struct rig rig;

    (void)state;
    make_rig(&rig, intel);
    write_zone(&rig, "intel-rapl:0", "package-0", "1", RANGE);
    write_zone(&rig, "intel-rapl:0:0", "core", "2", RANGE);
    write_zone(&rig, "intel-rapl:0:1", "uncore", "3", RANGE);
    write_zone(&rig, "intel-rapl:1", "psys", "4", RANGE);
    write_zone(&rig, "intel-rapl:a", "psys-3", "5", RANGE);
    assert_int_equal(open_rig(&rig), 0);
    assert_read(&rig, 0, 0, "package 0=0, core 0=0, uncore 0=0, psys 0=0, psys 3=0");
    done_rig(&rig);
}

static void of_amd_only_packages_are_counted(void **state)
{
    struct rig rig;

    (void)state;
    make_rig(&rig, amd);
    write_zone(&rig, "intel-rapl:0", "package-0", "1", "65532610987");
    write_zone(&rig, "intel-rapl:0:0", "core", "2", "65532610987");
    write_zone(&rig, "intel-rapl:1", "package-1", "3", "65532610987");
    write_zone(&rig, "intel-rapl:1:0", "core", "4", "65532610987");
    assert_int_equal(open_rig(&rig), 0);
    assert_read(&rig, 0, 0, "package 0=0, package 1=0");
    done_rig(&rig);
}

static void the_dies_of_amd_are_one_package(void **state)
{
    struct rig rig;

    (void)state;
    make_rig(&rig, amd);
    write_zone(&rig, "intel-rapl:0", "package-0-die-0", "10", "65532610987");
    write_zone(&rig, "intel-rapl:1", "package-0-die-1", "20", "65532610987");
    write_zone(&rig, "intel-rapl:2", "package-1-die-0", "30", "65532610987");
    assert_int_equal(open_rig(&rig), 0);
    assert_read(&rig, 0, 0, "package 0=0, package 1=0");
    write_energy(&rig, "intel-rapl:0", "11");
    assert_read(&rig, 1, 0, "package 0=1, package 1=0");
    done_rig(&rig);
}

static void the_dies_of_intel_are_meters_of_their_own(void **state)
{
    struct rig rig;

    (void)state;
    make_rig(&rig, intel);
    write_zone(&rig, "intel-rapl:0", "package-0-die-0", "1", RANGE);
    write_zone(&rig, "intel-rapl:0:0", "dram", "2", RANGE);
    write_zone(&rig, "intel-rapl:1", "package-0-die-1", "3", RANGE);
    write_zone(&rig, "intel-rapl:1:0", "dram", "4", RANGE);
    assert_int_equal(open_rig(&rig), 0);
    assert_read(&rig, 0, 0, "package 0-die-0=0, dram 0-die-0=0, package 0-die-1=0, dram 0-die-1=0");
    done_rig(&rig);
}

static void the_second_view_by_mmio_is_not_counted(void **state)
{
    struct rig rig;

    (void)state;
    make_rig(&rig, intel);
    write_zone(&rig, "intel-rapl-mmio:0", "package-0", "9", RANGE);
    write_zone(&rig, "intel-rapl-mmio:0:0", "dram", "9", RANGE);
    write_zone(&rig, "intel-rapl:0", "package-0", "1", RANGE);
    assert_int_equal(open_rig(&rig), 0);
    assert_int_equal(rig.rapl->meters[0].counter.range, 262143328850);
    assert_read(&rig, 0, 0, "package 0=0");
    write_energy(&rig, "intel-rapl:0", "2");
    assert_read(&rig, 1, 0, "package 0=1");
    done_rig(&rig);
}

static void mmio_is_counted_where_it_is_the_only_view(void **state)
{
    struct rig rig;

    (void)state;
    make_rig(&rig, intel);
    write_zone(&rig, "intel-rapl-mmio:0", "package-0", "9", RANGE);
    write_zone(&rig, "intel-rapl-mmio:0:0", "dram", "9", RANGE);
    assert_int_equal(open_rig(&rig), 0);
    assert_read(&rig, 0, 0, "package 0=0, dram 0=0");
    done_rig(&rig);
}

static void a_zone_that_is_there_twice_is_counted_once(void **state)
{
    struct rig rig;

    (void)state;
    make_rig(&rig, intel);
    write_zone(&rig, "intel-rapl:0", "package-0", "1", RANGE);
    write_zone(&rig, "intel-rapl:1", "package-0", "2", RANGE);
    assert_int_equal(open_rig(&rig), 0);
    assert_read(&rig, 0, 0, "package 0=0");
    done_rig(&rig);
}

static void what_is_not_a_zone_of_rapl_is_left_out(void **state)
{
    struct rig rig;

    (void)state;
    make_rig(&rig, intel);
    write_zone(&rig, "intel-rapl:0", "package-0", "1", RANGE);
    write_zone(&rig, "intel-rapl:0:0", "package-7", "1", RANGE); /* not below another */
    write_zone(&rig, "intel-rapl:1", "dram", "1", RANGE);        /* without a package */
    write_zone(&rig, "intel-rapl:2", "package-x", "1", RANGE);
    write_zone(&rig, "intel-rapl:3", "", "1", RANGE);
    write_zone(&rig, "intel-rapl:4:0", "dram", "1", RANGE); /* its parent is missing */
    write_zone(&rig, "intel-rapl:5", "psys", "1", RANGE);
    write_zone(&rig, "intel-rapl:5:0", "dram", "1", RANGE); /* its parent is no package */
    write_zone(&rig, "dtpm:0", "package-3", "1", RANGE);
    write_zone(&rig, "intel-rapl:g", "package-4", "1", RANGE);
    tree_write(rig.root, "class/powercap/intel-rapl:6/energy_uj", "5\n"); /* no name */
    assert_int_equal(open_rig(&rig), 0);
    assert_read(&rig, 0, 0, "package 0=0, psys 0=0");
    done_rig(&rig);
}

static void without_a_range_what_goes_back_is_a_break(void **state)
{
    struct rig rig;

    (void)state;
    make_rig(&rig, intel);
    write_zone(&rig, "intel-rapl:0", "package-0", "1000000", NULL);
    assert_int_equal(open_rig(&rig), 0);
    assert_read(&rig, 0, 0, "package 0=0");
    write_energy(&rig, "intel-rapl:0", "1000007");
    assert_read(&rig, 1, 0, "package 0=7");
    write_energy(&rig, "intel-rapl:0", "7");
    assert_read(&rig, 1, 0, "package 0=7!1");
    done_rig(&rig);
}

static void a_meter_that_stands_at_zero_is_none(void **state)
{
    struct rig rig;

    (void)state;
    make_rig(&rig, intel);
    write_zone(&rig, "intel-rapl:0", "package-0", "5", RANGE);
    write_zone(&rig, "intel-rapl:0:0", "dram", "0", RANGE);
    assert_int_equal(open_rig(&rig), 0);
    assert_read(&rig, 0, 0, "package 0=0");
    assert_read(&rig, 1, 0, "package 0=0");
    write_energy(&rig, "intel-rapl:0:0", "300");
    assert_read(&rig, 1, 0, "package 0=0, dram 0=300");
    done_rig(&rig);
}

static void a_meter_that_stands_still_for_a_minute_is_none_until_it_moves(void **state)
{
    struct rig rig;

    (void)state;
    make_rig(&rig, intel);
    write_zone(&rig, "intel-rapl:0", "package-0", "5", RANGE);
    write_zone(&rig, "intel-rapl:1", "package-1", "7", RANGE);
    assert_int_equal(open_rig(&rig), 0);
    assert_read(&rig, 0, 0, "package 0=0, package 1=0");
    write_energy(&rig, "intel-rapl:1", "8");
    assert_read(&rig, 30, 0, "package 0=0, package 1=1");
    assert_read(&rig, 30, 0, "package 1=1");
    assert_read(&rig, 30, 0, "");
    write_energy(&rig, "intel-rapl:0", "25");
    assert_read(&rig, 1, 0, "package 0=20");
    done_rig(&rig);
}

static void an_answer_that_is_no_count_costs_that_meter_a_break(void **state)
{
    static const char *const answers[] = {
        "",
        "-5",
        "garbage",
        "18446744073709551616",
        "262143328851",
        "12 13",
        "0x10",
        "+5",
        "99999999999999999999999999999999999999999999",
    };
    struct rig rig;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
        make_rig(&rig, intel);
        write_zone(&rig, "intel-rapl:0", "package-0", "1000", RANGE);
        write_zone(&rig, "intel-rapl:1", "package-1", "1000", RANGE);
        assert_int_equal(open_rig(&rig), 0);
        assert_read(&rig, 0, 0, "package 0=0, package 1=0");
        write_energy(&rig, "intel-rapl:0", "1100");
        write_energy(&rig, "intel-rapl:1", "1001");
        assert_read(&rig, 1, 0, "package 0=100, package 1=1");
        write_energy(&rig, "intel-rapl:0", answers[i]);
        write_energy(&rig, "intel-rapl:1", "1002");
        assert_read(&rig, 1, 0, "package 1=2");
        assert_read(&rig, 1, 0, "package 1=2");
        write_energy(&rig, "intel-rapl:0", "1300");
        assert_read(&rig, 1, 0, "package 0=100!1, package 1=2");
        write_energy(&rig, "intel-rapl:0", "1310");
        assert_read(&rig, 1, 0, "package 0=110!1, package 1=2");
        done_rig(&rig);
    }
}

static void a_file_that_is_empty_is_no_count_of_zero(void **state)
{
    struct rig rig;

    (void)state;
    make_rig(&rig, intel);
    write_zone(&rig, "intel-rapl:0", "package-0", "1000", RANGE);
    tree_write(rig.root, "class/powercap/intel-rapl:0/energy_uj", "");
    assert_int_equal(open_rig(&rig), 0);
    assert_read(&rig, 0, -EIO, "");
    assert_non_null(strstr(rig.err.text, "none of 1 meters answers"));
    write_energy(&rig, "intel-rapl:0", "1000");
    assert_read(&rig, 1, 0, "package 0=0");
    done_rig(&rig);
}

static void a_passing_error_loses_nothing(void **state)
{
    struct rig rig;

    (void)state;
    make_rig(&rig, intel);
    write_zone(&rig, "intel-rapl:0", "package-0", "1000", RANGE);
    assert_int_equal(open_rig(&rig), 0);
    assert_read(&rig, 0, 0, "package 0=0");
    pread_errno = EIO;
    assert_read(&rig, 1, -EIO, "");
    pread_errno = 0;
    write_energy(&rig, "intel-rapl:0", "1700");
    assert_read(&rig, 1, 0, "package 0=700");
    done_rig(&rig);
}

static void a_zone_that_vanishes_leaves_the_others_and_comes_back_under_its_name(void **state)
{
    struct rig rig;

    (void)state;
    make_rig(&rig, intel);
    write_two_sockets(&rig);
    assert_int_equal(open_rig(&rig), 0);
    assert_read(&rig, 0, 0, "package 0=0, dram 0=0, package 1=0, dram 1=0, psys 0=0");
    write_energy(&rig, "intel-rapl:1", "1400");
    assert_read(&rig, 1, 0, "package 0=0, dram 0=0, package 1=400, dram 1=0, psys 0=0");
    remove_zone(&rig, "intel-rapl:1");
    remove_zone(&rig, "intel-rapl:1:0");
    assert_read(&rig, 1, 0, "package 0=0, dram 0=0, psys 0=0");
    assert_read(&rig, 10, 0, "package 0=0, dram 0=0, psys 0=0");
    write_zone(&rig, "intel-rapl:3", "package-1", "1450", RANGE); /* under another number */
    write_zone(&rig, "intel-rapl:3:0", "dram", "60", DRAM_RANGE);
    assert_read(&rig, 10, 0, "package 0=0, dram 0=0, package 1=400!1, dram 1=0!1, psys 0=0");
    write_energy(&rig, "intel-rapl:3", "1451");
    assert_read(&rig, 1, 0, "package 0=0, dram 0=0, package 1=401!1, dram 1=0!1, psys 0=0");
    done_rig(&rig);
}

static void a_zone_that_vanishes_before_it_is_opened_is_searched_for(void **state)
{
    struct rig rig;

    (void)state;
    make_rig(&rig, intel);
    write_zone(&rig, "intel-rapl:0", "package-0", "1", RANGE);
    write_zone(&rig, "intel-rapl:1", "package-1", NULL, RANGE); /* no energy_uj any more */
    assert_int_equal(open_rig(&rig), 0);
    assert_read(&rig, 0, 0, "package 0=0");
    write_energy(&rig, "intel-rapl:1", "5");
    assert_read(&rig, 9, 0, "package 0=0");
    assert_read(&rig, 1, 0, "package 0=0, package 1=0");
    done_rig(&rig);
}

static void all_that_vanish_are_an_error_until_one_is_back(void **state)
{
    struct rig rig;

    (void)state;
    make_rig(&rig, intel);
    write_zone(&rig, "intel-rapl:0", "package-0", "1", RANGE);
    assert_int_equal(open_rig(&rig), 0);
    tree_remove(rig.root, "class/powercap");
    assert_read(&rig, 1, -EIO, "");
    assert_read(&rig, 10, -EIO, "");
    write_zone(&rig, "intel-rapl:0", "package-0", "1", RANGE);
    assert_read(&rig, 10, 0, "package 0=0");
    done_rig(&rig);
}

static void a_long_gap_is_a_break(void **state)
{
    struct rig rig;

    (void)state;
    make_rig(&rig, amd);
    write_zone(&rig, "intel-rapl:0", "package-0", "1", "65532610987");
    assert_int_equal(open_rig(&rig), 0);
    assert_read(&rig, 0, 0, "package 0=0");
    write_energy(&rig, "intel-rapl:0", "1001");
    assert_read(&rig, 16, 0, "package 0=1000"); /* half of 65 kJ at 2 kW */
    write_energy(&rig, "intel-rapl:0", "2001");
    assert_read(&rig, 17, 0, "package 0=1000!1");
    done_rig(&rig);
}

static void there_are_no_more_than_64_zones(void **state)
{
    struct rig rig;
    char zone[32], name[32];

    (void)state;
    make_rig(&rig, intel);
    for (unsigned i = 0; i < 100; i++) {
        snprintf(zone, sizeof(zone), "intel-rapl:%x", i);
        snprintf(name, sizeof(name), "package-%u", i);
        write_zone(&rig, zone, name, "1", RANGE);
    }
    assert_int_equal(open_rig(&rig), 0);
    assert_int_equal(rig.rapl->meter_count, 64);
    for (unsigned i = 0; i < 3; i++) {
        rig.clock.now_us += 10 * SECOND;
        batch_reset(&rig.batch);
        assert_int_equal(rapl_read(rig.rapl, &rig.batch, &rig.err), 0);
        assert_int_equal(rig.batch.count, 64);
    }
    done_rig(&rig);
}

/* As an ordinary user: root reads everything. */
static int open_unprivileged(struct rig *rig)
{
    bool is_root = geteuid() == 0;
    int r;

    assert_false(is_root && seteuid(NOBODY) < 0);
    r = open_rig(rig);
    assert_false(is_root && seteuid(0) < 0);
    return r;
}

static void forbid(const struct rig *rig, const char *name)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", rig->root, name);
    assert_int_equal(chmod(path, 0), 0);
}

static void meters_that_may_not_be_read_are_an_error_with_a_remedy(void **state)
{
    struct rig rig;

    (void)state;
    make_rig(&rig, intel);
    write_zone(&rig, "intel-rapl:0", "package-0", "1", RANGE);
    forbid(&rig, "class/powercap/intel-rapl:0/energy_uj");
    assert_int_equal(open_unprivileged(&rig), -EACCES);
    assert_non_null(strstr(rig.err.text, "only root may read energy_uj"));
    assert_non_null(strstr(rig.err.text, "run as root, or with CAP_PERFMON"));
    write_pmu(&rig, "0\n");
    write_cpu(&rig, 0, "0\n", "0\n");
    perf.refusal = -EACCES;
    assert_int_equal(open_unprivileged(&rig), -EACCES);
    assert_non_null(strstr(rig.err.text, "perf_event_paranoid"));
    done_rig(&rig);
}

static void perf_is_the_way_where_powercap_may_not_be_read(void **state)
{
    struct rig rig;

    (void)state;
    make_rig(&rig, intel);
    write_zone(&rig, "intel-rapl:0", "package-0", "1", RANGE);
    forbid(&rig, "class/powercap/intel-rapl:0/energy_uj");
    write_pmu(&rig, "0\n");
    write_cpu(&rig, 0, "0\n", "0\n");
    assert_int_equal(open_unprivileged(&rig), 0);
    assert_string_equal(rig.rapl->backend->name, "perf");
    done_rig(&rig);
}

static void one_zone_that_may_be_read_is_enough_for_powercap(void **state)
{
    struct rig rig;

    (void)state;
    make_rig(&rig, intel);
    write_zone(&rig, "intel-rapl:0", "package-0", "1", RANGE);
    write_zone(&rig, "intel-rapl:1", "package-1", "1", RANGE);
    forbid(&rig, "class/powercap/intel-rapl:0/energy_uj");
    write_pmu(&rig, "0\n");
    write_cpu(&rig, 0, "0\n", "0\n");
    assert_int_equal(open_unprivileged(&rig), 0);
    assert_string_equal(rig.rapl->backend->name, "powercap");
    assert_int_equal(perf.count, 0);
    assert_read(&rig, 0, 0, "package 1=0");
    done_rig(&rig);
}

static void zones_that_a_container_hides_are_reported(void **state)
{
    struct rig rig;
    char path[128];

    (void)state;
    make_rig(&rig, intel);
    tree_write(rig.root, "class/powercap/intel-rapl/enabled", "1\n");
    snprintf(path, sizeof(path), "%s/class/powercap/intel-rapl:0", rig.root);
    assert_int_equal(symlink("../../devices/virtual/powercap/intel-rapl/intel-rapl:0", path), 0);
    assert_int_equal(open_rig(&rig), -EACCES);
    assert_non_null(strstr(rig.err.text, "mount the host's /sys"));
    done_rig(&rig);
}

static void a_node_without_rapl_has_none(void **state)
{
    struct rig rig;

    (void)state;
    make_rig(&rig, intel);
    assert_int_equal(open_rig(&rig), -ENODEV);
    tree_write(rig.root, "class/powercap/dtpm/enabled", "1\n");
    assert_int_equal(open_rig(&rig), -ENODEV);
    assert_non_null(strstr(rig.err.text, "no zone of RAPL"));
    done_rig(&rig);
}

static struct fake_event *find_event(uint64_t config, int cpu)
{
    for (size_t i = perf.count; i-- > 0;)
        if (perf.events[i].config == config && perf.events[i].cpu == cpu)
            return &perf.events[i];
    fail_msg("event %llu of CPU %d was not opened", (unsigned long long)config, cpu);
    return NULL;
}

static void perf_has_an_event_of_each_domain_and_package(void **state)
{
    struct rig rig;

    (void)state;
    make_rig(&rig, intel);
    write_pmu(&rig, "0,24\n");
    write_cpu(&rig, 0, "0\n", "0\n");
    write_cpu(&rig, 24, "1\n", "0\n");
    perf.refused_event = 4; /* no integrated GPU */
    assert_int_equal(open_rig(&rig), 0);
    assert_int_equal(perf.count, 8);
    assert_int_equal(find_event(2, 24)->type, 22);
    assert_read(&rig, 0, 0, ""); /* they begin at 0, which may be all there ever is */
    find_event(2, 0)->count = 3 * JOULE;
    find_event(2, 24)->count = JOULE / 2;
    find_event(3, 24)->count = 1;
    find_event(1, 0)->count = 4295; /* one more than a microjoule */
    find_event(5, 0)->count = JOULE + 4295;
    assert_read(&rig, 1, 0, "package 0=3000000, package 1=500000, core 0=1, psys 0=1000001");
    done_rig(&rig);
}

static void perfs_counts_do_not_drift(void **state)
{
    const uint64_t step = 1000003; /* 232.8 microjoules */
    struct rig rig;

    (void)state;
    make_rig(&rig, intel);
    write_pmu(&rig, "0\n");
    write_cpu(&rig, 0, "0\n", "0\n");
    assert_int_equal(open_rig(&rig), 0);
    assert_read(&rig, 0, 0, "");
    for (int i = 1; i <= 10000; i++) {
        find_event(2, 0)->count += step;
        rig.clock.now_us += SECOND;
        batch_reset(&rig.batch);
        assert_int_equal(rapl_read(rig.rapl, &rig.batch, &rig.err), 0);
        assert_int_equal(rig.batch.samples[0].meter.counter_uj,
                         (uint64_t)i * step * 15625 / (1 << 26));
    }
    done_rig(&rig);
}

static void a_count_that_does_not_fit_in_microjoules_is_a_break(void **state)
{
    struct rig rig;

    (void)state;
    make_rig(&rig, intel);
    write_pmu(&rig, "0\n");
    write_event(&rig, "energy-pkg", "event=0x02\n", "1\n", "Joules\n");
    write_cpu(&rig, 0, "0\n", "0\n");
    assert_int_equal(open_rig(&rig), 0);
    find_event(2, 0)->count = 3;
    assert_read(&rig, 0, 0, "package 0=0");
    find_event(2, 0)->count = UINT64_MAX;
    assert_read(&rig, 1, 0, "");
    find_event(2, 0)->count = 5;
    assert_read(&rig, 1, 0, "package 0=0!1");
    find_event(2, 0)->count = 7;
    assert_read(&rig, 1, 0, "package 0=2000000!1");
    done_rig(&rig);
}

static void dies_are_named_as_by_powercap(void **state)
{
    struct rig rig;

    (void)state;
    make_rig(&rig, intel);
    write_pmu(&rig, "0,24,48\n");
    write_cpu(&rig, 0, "0\n", "0\n");
    write_cpu(&rig, 24, "0\n", "1\n");
    write_cpu(&rig, 48, "1\n", "0\n");
    assert_int_equal(open_rig(&rig), 0);
    assert_read(&rig, 0, 0, "");
    find_event(2, 0)->count = find_event(2, 24)->count = find_event(2, 48)->count = JOULE;
    assert_read(&rig, 1, 0, "package 0-die-0=1000000, package 0-die-1=1000000, package 1=1000000");
    done_rig(&rig);
}

static void of_amds_events_there_is_one_of_each_package(void **state)
{
    struct rig rig;

    (void)state;
    make_rig(&rig, amd);
    write_pmu(&rig, "0,8,16,96\n"); /* one of each core complex die, as Linux 6.9 lists them */
    write_cpu(&rig, 0, "0\n", "0\n");
    write_cpu(&rig, 8, "0\n", "1\n");
    write_cpu(&rig, 16, "0\n", "2\n");
    write_cpu(&rig, 96, "1\n", "12\n");
    assert_int_equal(open_rig(&rig), 0);
    assert_int_equal(perf.count, 2);
    find_event(2, 0)->count = find_event(2, 96)->count = JOULE;
    assert_read(&rig, 0, 0, "package 0=0, package 1=0");
    done_rig(&rig);
}

static void an_event_whose_cpu_goes_is_opened_again(void **state)
{
    struct rig rig;

    (void)state;
    make_rig(&rig, intel);
    write_pmu(&rig, "0,24\n");
    write_cpu(&rig, 0, "0\n", "0\n");
    write_cpu(&rig, 24, "1\n", "0\n");
    assert_int_equal(open_rig(&rig), 0);
    find_event(2, 0)->count = find_event(2, 24)->count = JOULE;
    assert_read(&rig, 0, 0, "package 0=0, package 1=0");
    find_event(2, 24)->count += JOULE;
    assert_read(&rig, 1, 0, "package 0=0, package 1=1000000");
    find_event(2, 24)->len = 0;
    tree_write(rig.root, "bus/event_source/devices/power/cpumask", "0\n");
    assert_read(&rig, 1, 0, "package 0=0");
    tree_write(rig.root, "bus/event_source/devices/power/cpumask", "0,25\n");
    write_cpu(&rig, 25, "1\n", "0\n");
    assert_read(&rig, 10, 0, "package 0=0, package 1=1000000!1");
    find_event(2, 25)->count = 2 * JOULE;
    assert_read(&rig, 1, 0, "package 0=0, package 1=3000000!1");
    done_rig(&rig);
}

/* The kernel's sum of signed differences can run backwards. */
static void a_count_of_perf_that_goes_back_is_a_break(void **state)
{
    struct rig rig;

    (void)state;
    make_rig(&rig, intel);
    write_pmu(&rig, "0\n");
    write_cpu(&rig, 0, "0\n", "0\n");
    assert_int_equal(open_rig(&rig), 0);
    find_event(2, 0)->count = 5 * JOULE;
    assert_read(&rig, 0, 0, "package 0=0");
    find_event(2, 0)->count = 4 * JOULE;
    assert_read(&rig, 1, 0, "package 0=0!1");
    find_event(2, 0)->count = 6 * JOULE;
    assert_read(&rig, 31, 0, "package 0=0!2"); /* and so is a gap */
    find_event(2, 0)->count = 7 * JOULE;
    find_event(2, 0)->len = 4;
    assert_read(&rig, 1, 0, "");
    done_rig(&rig);
}

static void a_pmu_without_packages_is_none(void **state)
{
    struct rig rig;

    (void)state;
    make_rig(&rig, intel);
    write_pmu(&rig, "0\n");
    write_cpu(&rig, 0, "0\n", "0\n");
    write_event(&rig, "energy-pkg", "event=0x02\n", SCALE "\n", "Watts\n");
    assert_int_equal(open_rig(&rig), -ENODEV);
    write_event(&rig, "energy-pkg", "event=0x02,umask=1\n", SCALE "\n", "Joules\n");
    assert_int_equal(open_rig(&rig), -ENODEV);
    write_event(&rig, "energy-pkg", "event=0x02\n", "nan\n", "Joules\n");
    assert_int_equal(open_rig(&rig), -ENODEV);
    write_event(&rig, "energy-pkg", "event=0x02\n", SCALE "\n", "Joules\n");
    tree_write(rig.root, "bus/event_source/devices/power/cpumask", "\n");
    assert_int_equal(open_rig(&rig), -ENODEV);
    tree_write(rig.root, "bus/event_source/devices/power/cpumask", "1\n"); /* a CPU of no package */
    assert_int_equal(open_rig(&rig), -ENODEV);
    tree_write(rig.root, "bus/event_source/devices/power/cpumask", "0-100000\n");
    assert_int_equal(open_rig(&rig), -ENODEV);
    tree_write(rig.root, "bus/event_source/devices/power/cpumask", "0\n");
    perf.refused_event = 2;
    assert_int_equal(open_rig(&rig), -ENODEV);
    assert_int_equal(perf.count, 0);
    done_rig(&rig);
}

static void names_of_zones_are_parsed_strictly(void **state)
{
    static const struct {
        const char *text;
        int result;
        enum meter_kind kind;
        const char *id;
    } cases[] = {
        {"package-0", 0, METER_PACKAGE, "0"},
        {"package-12", 0, METER_PACKAGE, "12"},
        {"package-0-die-1", 0, METER_PACKAGE, "0-die-1"},
        {"psys", 0, METER_PSYS, "0"},
        {"psys-1", 0, METER_PSYS, "1"},
        {"core", 0, METER_CORE, "0"},
        {"uncore", 0, METER_UNCORE, "0"},
        {"dram", 0, METER_DRAM, "0"},
        {"", -EINVAL, 0, NULL},
        {"\n", -EINVAL, 0, NULL},
        {"package", -EINVAL, 0, NULL},
        {"package-", -EINVAL, 0, NULL},
        {"package--1", -EINVAL, 0, NULL},
        {"package-0-", -EINVAL, 0, NULL},
        {"package-0-die", -EINVAL, 0, NULL},
        {"package-0-die-", -EINVAL, 0, NULL},
        {"package-0-die-1-2", -EINVAL, 0, NULL},
        {"package-70000", -EINVAL, 0, NULL},
        {"package-0 ", -EINVAL, 0, NULL},
        {"psys-", -EINVAL, 0, NULL},
        {"Core", -EINVAL, 0, NULL},
        {"dram0", -EINVAL, 0, NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        enum meter_kind kind = METER_KINDS;
        char id[RAPL_ID_BYTES];
        int r = rapl_parse_name(span_of(cases[i].text), &kind, id);

        if (r != cases[i].result)
            fail_msg("'%s': %d", cases[i].text, r);
        if (r < 0) {
            assert_int_equal(kind, METER_KINDS);
            continue;
        }
        assert_int_equal(kind, cases[i].kind);
        assert_string_equal(id, cases[i].id);
    }
}

static void directories_are_parsed_strictly(void **state)
{
    static const char *const wrong[] = {
        "",
        "intel-rapl",
        "intel-rapl:",
        "intel-rapl:0:",
        "intel-rapl:0:0:0",
        "intel-rapl:x",
        "intel-rapl:-1",
        "intel-rapl:10000",
        "intel-rapl-msr:0",
        "dtpm:0",
        "intel-rapl:F",
        ".",
    };
    struct rapl_directory directory;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        if (rapl_parse_directory(span_of(wrong[i]), &directory) != -EINVAL)
            fail_msg("'%s' is taken for a zone", wrong[i]);
    assert_int_equal(rapl_parse_directory(span_of("intel-rapl:1f:a"), &directory), 0);
    assert_false(directory.is_mmio);
    assert_true(directory.is_below);
    assert_string_equal(directory.name, "intel-rapl:1f:a");
    assert_int_equal(directory.parent_len, strlen("intel-rapl:1f"));
    assert_int_equal(rapl_parse_directory(span_of("intel-rapl-mmio:0"), &directory), 0);
    assert_true(directory.is_mmio);
    assert_false(directory.is_below);
}

static void scales_are_powers_of_two(void **state)
{
    static const struct {
        const char *text;
        int result;
        uint8_t shift;
    } cases[] = {
        {SCALE, 0, 32},
        {"1", 0, 0},
        {"0.5", 0, 1},
        {"6.103515625e-05", 0, 14},
        {"1.0842021724855044e-19", 0, 63},
        {"5.421010862427522e-20", -ERANGE, 0},
        {"2.3283064365386e-10", -EINVAL, 0}, /* rounded */
        {"1e-6", -EINVAL, 0},
        {"2", -EINVAL, 0},
        {"0", -EINVAL, 0},
        {"-1", -EINVAL, 0},
        {"", -EINVAL, 0},
        {".", -EINVAL, 0},
        {"1e", -EINVAL, 0},
        {"1.2.3", -EINVAL, 0},
        {"nan", -EINVAL, 0},
        {"inf", -EINVAL, 0},
        {"1 J", -EINVAL, 0},
        {"1.00000000000000000000000000000000000000000000000000000000000000", -EINVAL, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint8_t shift = 0;
        int r = rapl_parse_scale(span_of(cases[i].text), &shift);

        if (r != cases[i].result || shift != cases[i].shift)
            fail_msg("'%s': %d, %u", cases[i].text, r, shift);
    }
}

static void events_are_numbers_of_eight_bits(void **state)
{
    static const char *const wrong[] = {"",          "event=",   "event=0x",        "event=0x100",
                                        "event=256", "event=-1", "event=2,umask=1", "config=2",
                                        "event=0xg"};
    uint8_t event;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        if (rapl_parse_event(span_of(wrong[i]), &event) != -EINVAL)
            fail_msg("'%s' is taken for an event", wrong[i]);
    assert_int_equal(rapl_parse_event(span_of("event=0x02"), &event), 0);
    assert_int_equal(event, 2);
    assert_int_equal(rapl_parse_event(span_of("event=255"), &event), 0);
    assert_int_equal(event, 255);
    assert_int_equal(rapl_parse_event(span_of("event=0xff"), &event), 0);
    assert_int_equal(event, 255);
}

static void lists_of_cpus_are_numbers_and_ranges(void **state)
{
    static const char *const wrong[] = {"a", "1-", "-1", "3-1", "1,,2", "1-2-3", "70000", "1 2"};
    uint32_t cpus[5];
    size_t count = 9;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        if (rapl_parse_cpus(span_of(wrong[i]), cpus, ARRAY_SIZE(cpus), &count) != -EINVAL)
            fail_msg("'%s' is taken for a list of CPUs", wrong[i]);
    assert_int_equal(rapl_parse_cpus(span_of("0-5"), cpus, 5, &count), -ERANGE);
    assert_int_equal(count, 9);
    assert_int_equal(rapl_parse_cpus(span_of(""), cpus, 5, &count), 0);
    assert_int_equal(count, 0);
    assert_int_equal(rapl_parse_cpus(span_of("0-2,24,48"), cpus, 5, &count), 0);
    assert_int_equal(count, 5);
    assert_int_equal(cpus[2], 2);
    assert_int_equal(cpus[4], 48);
}

static void a_vendor_is_known_by_its_number(void **state)
{
    (void)state;
    assert_true(rapl_modalias_is_amd(span_of(amd)));
    assert_true(rapl_modalias_is_amd(span_of("cpu:type:x86,ven0009fam0018mod0000:feature:")));
    assert_false(rapl_modalias_is_amd(span_of(intel)));
    assert_false(rapl_modalias_is_amd(span_of("")));
    assert_false(rapl_modalias_is_amd(span_of("cpu:type:aarch64:feature:,0000")));
}

static void the_source_is_silent_in_a_replay_and_starts_without_permission(void **state)
{
    struct rig rig;
    struct source_context context;
    void *source;

    (void)state;
    make_rig(&rig, intel);
    context = (struct source_context){.host = &rig.host, .clock = &rig.clock.clock};
    assert_int_equal(rapl_source.open(&context, &source, &rig.err), -ENODEV);
    tree_write(rig.root, "class/powercap/intel-rapl:0/other", "");
    assert_int_equal(rapl_source.open(&context, &source, &rig.err), -ENOTSUP); /* hidden */
    write_zone(&rig, "intel-rapl:0", "package-0", "1", RANGE);
    context.replay_path = "a.trace";
    assert_int_equal(rapl_source.open(&context, &source, &rig.err), -ENODEV);
    context.replay_path = NULL;
    assert_int_equal(rapl_source.open(&context, &source, &rig.err), 0);
    assert_int_equal(rapl_source.read(source, &rig.batch, &rig.err), 0);
    assert_int_equal(rig.batch.count, 1);
    rapl_source.close(source);
    rapl_source.close(NULL);
    done_rig(&rig);
}

static const struct finding *find_finding(const struct report *report, const char *what)
{
    for (size_t i = 0; i < report->count; i++)
        if (strcmp(report->findings[i].what, what) == 0)
            return &report->findings[i];
    fail_msg("no finding about '%s'", what);
    return NULL;
}

static void check_reports_meters_backend_and_what_is_missing(void **state)
{
    _cleanup_free_ struct report *report = calloc(1, sizeof(*report));
    struct rig rig;

    (void)state;
    make_rig(&rig, intel);
    write_zone(&rig, "intel-rapl:0", "package-0", "5", RANGE);
    write_zone(&rig, "intel-rapl:0:0", "core", "0", RANGE);
    rapl_source.check(&(struct source_context){.host = &rig.host, .clock = &clock_system}, report);
    assert_int_equal(report->count, 4);
    assert_string_equal(find_finding(report, "rapl")->detail, "2 meters, read by powercap");
    assert_int_equal(find_finding(report, "rapl: package 0")->verdict, VERDICT_OK);
    assert_int_equal(find_finding(report, "rapl: core 0")->verdict, VERDICT_MISSING);
    assert_int_equal(find_finding(report, "rapl: dram")->verdict, VERDICT_LIMITED);
    tree_remove(rig.root, "class/powercap");
    report->count = 0;
    rapl_source.check(&(struct source_context){.host = &rig.host, .clock = &clock_system}, report);
    assert_int_equal(report->count, 1);
    assert_int_equal(report->findings[0].verdict, VERDICT_MISSING);
    assert_non_null(strstr(report->findings[0].remedy, "modprobe intel_rapl_msr"));
    tree_write(rig.root, "class/powercap/intel-rapl:0/other", "");
    report->count = 0;
    rapl_source.check(&(struct source_context){.host = &rig.host, .clock = &clock_system}, report);
    assert_non_null(strstr(report->findings[0].detail, "the container hides"));
    assert_non_null(strstr(report->findings[0].remedy, "run as root"));
    done_rig(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_sockets_with_memory_and_platform_are_five_meters),
        cmocka_unit_test(enforced_limits_come_with_their_meter_and_are_read_again),
        cmocka_unit_test(every_part_of_a_client_processor_has_its_kind),
        cmocka_unit_test(of_amd_only_packages_are_counted),
        cmocka_unit_test(the_dies_of_amd_are_one_package),
        cmocka_unit_test(the_dies_of_intel_are_meters_of_their_own),
        cmocka_unit_test(the_second_view_by_mmio_is_not_counted),
        cmocka_unit_test(mmio_is_counted_where_it_is_the_only_view),
        cmocka_unit_test(a_zone_that_is_there_twice_is_counted_once),
        cmocka_unit_test(what_is_not_a_zone_of_rapl_is_left_out),
        cmocka_unit_test(without_a_range_what_goes_back_is_a_break),
        cmocka_unit_test(a_meter_that_stands_at_zero_is_none),
        cmocka_unit_test(a_meter_that_stands_still_for_a_minute_is_none_until_it_moves),
        cmocka_unit_test(an_answer_that_is_no_count_costs_that_meter_a_break),
        cmocka_unit_test(a_file_that_is_empty_is_no_count_of_zero),
        cmocka_unit_test(a_passing_error_loses_nothing),
        cmocka_unit_test(a_zone_that_vanishes_leaves_the_others_and_comes_back_under_its_name),
        cmocka_unit_test(a_zone_that_vanishes_before_it_is_opened_is_searched_for),
        cmocka_unit_test(all_that_vanish_are_an_error_until_one_is_back),
        cmocka_unit_test(a_long_gap_is_a_break),
        cmocka_unit_test(there_are_no_more_than_64_zones),
        cmocka_unit_test(meters_that_may_not_be_read_are_an_error_with_a_remedy),
        cmocka_unit_test(perf_is_the_way_where_powercap_may_not_be_read),
        cmocka_unit_test(one_zone_that_may_be_read_is_enough_for_powercap),
        cmocka_unit_test(zones_that_a_container_hides_are_reported),
        cmocka_unit_test(a_node_without_rapl_has_none),
        cmocka_unit_test(perf_has_an_event_of_each_domain_and_package),
        cmocka_unit_test(perfs_counts_do_not_drift),
        cmocka_unit_test(a_count_that_does_not_fit_in_microjoules_is_a_break),
        cmocka_unit_test(dies_are_named_as_by_powercap),
        cmocka_unit_test(of_amds_events_there_is_one_of_each_package),
        cmocka_unit_test(an_event_whose_cpu_goes_is_opened_again),
        cmocka_unit_test(a_count_of_perf_that_goes_back_is_a_break),
        cmocka_unit_test(a_pmu_without_packages_is_none),
        cmocka_unit_test(names_of_zones_are_parsed_strictly),
        cmocka_unit_test(directories_are_parsed_strictly),
        cmocka_unit_test(scales_are_powers_of_two),
        cmocka_unit_test(events_are_numbers_of_eight_bits),
        cmocka_unit_test(lists_of_cpus_are_numbers_and_ranges),
        cmocka_unit_test(a_vendor_is_known_by_its_number),
        cmocka_unit_test(the_source_is_silent_in_a_replay_and_starts_without_permission),
        cmocka_unit_test(check_reports_meters_backend_and_what_is_missing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
