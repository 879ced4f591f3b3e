/* sources/sensors/hwmon: which chips are meters, and what of their values is believed. */
#include "sysfs_fixture.h"

#include <errno.h>

#include "sources/sensors/hwmon.h"

#define SECOND USEC_PER_SEC
#define JOULE  ((uint64_t)1000000)

static void write_chip(const struct machine *machine, unsigned number, const char *name,
                       const char *file, const char *text)
{
    char path[128];

    snprintf(path, sizeof(path), "class/hwmon/hwmon%u/name", number);
    machine_write(machine, path, name);
    snprintf(path, sizeof(path), "class/hwmon/hwmon%u/%s", number, file);
    machine_write(machine, path, text);
}

static void write_rail(const struct machine *machine, unsigned number, const char *label,
                       const char *power)
{
    write_chip(machine, number, "power_meter\n", "power1_oem_info", label);
    write_chip(machine, number, "power_meter\n", "power1_average", power);
}

static void set_device(const struct machine *machine, unsigned number, const char *target)
{
    char path[64];

    snprintf(path, sizeof(path), "class/hwmon/hwmon%u/device", number);
    assert_int_equal(symlinkat(target, machine->fd, path), 0);
}

static void power_that_cannot_be_is_refused(void **state)
{
    static const struct {
        const char *text;
        int r;
        uint64_t power_uw;
    } cases[] = {
        {"312000000\n", 0, 312000000},
        {"1", 0, 1},
        {"49999999999\n", 0, 49999999999},
        {"50000000000\n", -ENODATA, 0},
        {"4294967295000\n", -ENODATA, 0},
        {"65535000000\n", -ENODATA, 0},
        {"32767000000\n", -ENODATA, 0},
        {"18446744073709551615\n", -ENODATA, 0},
        {"99999999999999999999999\n", -ENODATA, 0},
        {"0\n", -ENODATA, 0},
        {"-5000000\n", -EINVAL, 0},
        {"\n", -EINVAL, 0},
        {"", -EINVAL, 0},
        {"12 W\n", -EINVAL, 0},
        {"1\n2\n", -EINVAL, 0},
        {"0x10\n", -EINVAL, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t power_uw = 0;

        assert_int_equal(hwmon_parse_power(span_of(cases[i].text), &power_uw), cases[i].r);
        assert_int_equal(power_uw, cases[i].power_uw);
    }
}

static void the_label_of_a_rail_has_its_meter_and_socket(void **state)
{
    static const struct {
        const char *text;
        int r;
        enum meter_kind kind;
        uint32_t socket;
    } cases[] = {
        {"Module Power Socket 0\n", 0, METER_MODULE, 0},
        {"Grace Power Socket 1", 0, METER_PACKAGE, 1},
        {"CPU Power Socket 12 \n", 0, METER_CORE, 12},
        {"SysIO Power Socket 255\n", 0, METER_UNCORE, 255},
        {"Some New Power Socket 0\n", 0, METER_KINDS, 0},
        {"cpu Power Socket 0\n", 0, METER_KINDS, 0},
        {"CPU Power Socket 256\n", -EINVAL, 0, 0},
        {"CPU Power Socket \n", -EINVAL, 0, 0},
        {"CPU Power Socket -1\n", -EINVAL, 0, 0},
        {"CPU Power\n", -EINVAL, 0, 0},
        {"a vendor's words\n", -EINVAL, 0, 0},
        {"\n", -EINVAL, 0, 0},
        {"", -EINVAL, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct hwmon_rail rail = {0};

        assert_int_equal(hwmon_parse_rail(span_of(cases[i].text), &rail), cases[i].r);
        assert_int_equal(rail.kind, cases[i].kind);
        assert_int_equal(rail.socket, cases[i].socket);
    }
}

static void the_power_of_the_node_is_sampled_and_integrated(void **state)
{
    struct machine *machine = *state;
    const struct sample *sample;

    write_chip(machine, 3, "power_meter\n", "power1_average", "300000000\n");
    assert_int_equal(machine_open(machine, &hwmon_source), 0);
    assert_int_equal(machine_read(machine), 0);
    assert_int_equal(machine->batch.count, 2);
    machine_expect(machine, METER_NODE, "hwmon", 0, 0);

    write_chip(machine, 3, "power_meter\n", "power1_average", "500000000\n");
    assert_int_equal(machine_read_after(machine, SECOND), 0);
    machine_expect(machine, METER_NODE, "hwmon", 400 * JOULE, 0);
    sample = machine_find(machine, METER_NODE, "hwmon");
    assert_true(sample->meter.integrated);
    assert_int_equal(sample->t_us, MACHINE_START_US + SECOND);
    sample = machine_node_power(machine);
    assert_non_null(sample);
    assert_string_equal(sample->node_power.source, "hwmon");
    assert_int_equal(sample->node_power.power_mw, 500000);
    assert_int_equal(sample->t_us, MACHINE_START_US + SECOND);

    assert_int_equal(machine_read_after(machine, 3 * SECOND + 1), 0); /* a gap */
    machine_expect(machine, METER_NODE, "hwmon", 400 * JOULE, 1);
}

static void older_kernels_have_the_files_in_the_device(void **state)
{
    struct machine *machine = *state;

    write_chip(machine, 0, "power_meter\n", "device/power1_average", "120000000\n");
    assert_int_equal(machine_open(machine, &hwmon_source), 0);
    assert_int_equal(machine_read(machine), 0);
    assert_int_equal(machine_node_power(machine)->node_power.power_mw, 120000);
}

static void a_file_that_is_in_both_places_is_taken_once(void **state)
{
    struct machine *machine = *state;

    write_chip(machine, 0, "power_meter\n", "device/power1_average", "120000000\n");
    write_chip(machine, 0, "power_meter\n", "power1_average", "130000000\n");
    assert_int_equal(machine_open(machine, &hwmon_source), 0);
    assert_int_equal(machine_read(machine), 0);
    assert_int_equal(machine->batch.count, 2);
    assert_int_equal(machine_node_power(machine)->node_power.power_mw, 130000);
}

static void a_counter_is_preferred_to_a_mean_and_a_mean_to_an_instant(void **state)
{
    struct machine *machine = *state;
    struct hwmon_scan scan;

    write_chip(machine, 0, "power_meter\n", "power1_input", "1\n");
    hwmon_scan(&machine->host, NULL, &scan);
    assert_string_equal(scan.found[0].path, "class/hwmon/hwmon0/power1_input");
    write_chip(machine, 0, "power_meter\n", "power1_average", "1\n");
    hwmon_scan(&machine->host, NULL, &scan);
    assert_string_equal(scan.found[0].path, "class/hwmon/hwmon0/power1_average");
    assert_false(scan.found[0].counts);
    write_chip(machine, 0, "power_meter\n", "energy1_input", "1\n");
    hwmon_scan(&machine->host, NULL, &scan);
    assert_string_equal(scan.found[0].path, "class/hwmon/hwmon0/energy1_input");
    assert_true(scan.found[0].counts);
    write_chip(machine, 0, "power_meter\n", "energy1_enable", "0\n"); /* answers ENODATA */
    hwmon_scan(&machine->host, NULL, &scan);
    assert_string_equal(scan.found[0].path, "class/hwmon/hwmon0/power1_average");
    assert_int_equal(scan.count, 1);
}

static void of_two_meters_of_a_node_the_first_device_counts(void **state)
{
    struct machine *machine = *state;
    struct hwmon_scan scan;

    write_chip(machine, 2, "power_meter\n", "power1_average", "100000000\n");
    write_chip(machine, 7, "power_meter\n", "power1_average", "200000000\n");
    set_device(machine, 2, "../../../ACPI000D:01");
    set_device(machine, 7, "../../../ACPI000D:00");
    hwmon_scan(&machine->host, NULL, &scan);
    assert_int_equal(scan.count, 1);
    assert_int_equal(scan.repeated, 1);
    assert_string_equal(scan.found[0].path, "class/hwmon/hwmon7/power1_average");
}

static void what_measures_something_else_is_left_alone(void **state)
{
    static const char *const names[] = {
        "amdgpu",   "xe",         "i915",    "nouveau",      "radeon", "nvidia",
        "pmbus",    "ibm-cffps1", "ina3221", "ltc2991",      "BAT0",   "corsairpsu",
        "zenpower", "occ",        "nvme",    "power_meters", ""};
    struct machine *machine = *state;

    for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
        write_chip(machine, i, names[i], "power1_average", "75000000\n"); /* amdgpu: PPT */
        write_chip(machine, i, names[i], "power1_label", "PPT\n");
    }
    write_chip(machine, 90, "power_meter\n", "power1_average", "9000000\n");
    write_chip(machine, 90, "power_meter\n", "power1_is_battery", "1\n");
    write_rail(machine, 91, "Fan Power Socket 0\n", "9000000\n");
    write_chip(machine, 92, "power_meter\n", "power1_cap", "9000000\n");
    machine_write(machine, "class/hwmon/hwmon/name", "power_meter\n");
    machine_write(machine, "class/hwmon/hwmonx/name", "power_meter\n");
    machine_write(machine, "class/hwmon/hwmon99999999999999999999/name", "power_meter\n");
    assert_int_equal(machine_open(machine, &hwmon_source), -ENODEV);
}

static void a_machine_without_hwmon_is_no_error(void **state)
{
    struct machine *machine = *state;

    assert_int_equal(machine_open(machine, &hwmon_source), -ENODEV);
    assert_string_equal(machine->err.text, "");
}

static void a_replay_reads_no_chip(void **state)
{
    struct machine *machine = *state;

    write_chip(machine, 3, "power_meter\n", "power1_average", "300000000\n");
    machine->context.replay_path = "some.trace";
    assert_int_equal(machine_open(machine, &hwmon_source), -ENODEV);
}

static void write_grace_hopper(const struct machine *machine)
{
    write_rail(machine, 1, "Module Power Socket 0\n", "600000000\n");
    write_rail(machine, 2, "Grace Power Socket 0\n", "150000000\n");
    write_rail(machine, 3, "CPU Power Socket 0\n", "90000000\n");
    write_rail(machine, 4, "SysIO Power Socket 0\n", "20000000\n");
    write_rail(machine, 5, "Module Power Socket 1\n", "500000000\n");
    write_rail(machine, 6, "Grace Power Socket 1\n", "140000000\n");
}

static void a_grace_hopper_has_its_modules_and_sockets(void **state)
{
    struct machine *machine = *state;

    write_grace_hopper(machine);
    assert_int_equal(machine_open(machine, &hwmon_source), 0);
    assert_int_equal(machine_read(machine), 0);
    assert_int_equal(machine_read_after(machine, SECOND), 0);
    assert_int_equal(machine->batch.count, 6);
    machine_expect(machine, METER_MODULE, "0", 600 * JOULE, 0);
    machine_expect(machine, METER_PACKAGE, "0", 150 * JOULE, 0);
    machine_expect(machine, METER_CORE, "0", 90 * JOULE, 0);
    machine_expect(machine, METER_UNCORE, "0", 20 * JOULE, 0);
    machine_expect(machine, METER_MODULE, "1", 500 * JOULE, 0);
    machine_expect(machine, METER_PACKAGE, "1", 140 * JOULE, 0);
    assert_null(machine_node_power(machine)); /* fans and network cards are in no module */
}

static void without_its_socket_the_cores_are_all_that_is_known_of_it(void **state)
{
    struct machine *machine = *state;

    write_rail(machine, 3, "CPU Power Socket 0\n", "90000000\n");
    write_rail(machine, 4, "SysIO Power Socket 0\n", "20000000\n");
    assert_int_equal(machine_open(machine, &hwmon_source), 0);
    assert_int_equal(machine_read(machine), 0);
    assert_int_equal(machine->batch.count, 2);
    assert_non_null(machine_find(machine, METER_PACKAGE, "0"));
    assert_non_null(machine_find(machine, METER_UNCORE, "0"));
}

static void one_rail_is_listed_once(void **state)
{
    struct machine *machine = *state;
    struct hwmon_scan scan;

    write_rail(machine, 1, "Grace Power Socket 0\n", "1\n");
    write_rail(machine, 2, "Grace Power Socket 0\n", "2\n");
    hwmon_scan(&machine->host, NULL, &scan);
    assert_int_equal(scan.count, 1);
    assert_int_equal(scan.repeated, 1);
}

static void cpus_that_have_finer_meters_are_left_to_them(void **state)
{
    static const struct {
        const char *path, *text;
    } others[] = {
        {"class/powercap/intel-rapl:0/name", "package-0\n"},
        {"cray/pm_counters/cpu_energy", "1 J 1 us\n"},
    };
    static const struct source_switches switches = {{"rapl", "cray"}, 2};
    struct machine *machine = *state;
    struct hwmon_scan scan;

    write_grace_hopper(machine);
    machine_write(machine, "class/powercap/intel-rapl:0/energy_uj", "1\n");
    machine_write(machine, "class/powercap/intel-rapl-mmio:0/name", "package-0\n");
    machine_write(machine, "class/powercap/intel-rapl-mmio:0/energy_uj", "1\n");
    hwmon_scan(&machine->host, NULL, &scan);
    assert_int_equal(scan.count, 6);
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        machine_write(machine, others[i].path, others[i].text);
        hwmon_scan(&machine->host, NULL, &scan);
        assert_int_equal(scan.count, 4);
        assert_int_equal(scan.elsewhere, 2);
        for (size_t k = 0; k < scan.count; k++)
            assert_int_not_equal(scan.found[k].kind, METER_PACKAGE);
        hwmon_scan(&machine->host, &switches, &scan); /* unless those are off */
        assert_int_equal(scan.count, 6);
        machine_remove(machine, others[i].path);
    }
}

static void amd_energy_counts_sockets(void **state)
{
    struct machine *machine = *state;

    write_chip(machine, 0, "amd_energy\n", "energy1_label", "Ecore000\n");
    write_chip(machine, 0, "amd_energy\n", "energy1_input", "11\n");
    write_chip(machine, 0, "amd_energy\n", "energy2_label", "Esocket0\n");
    write_chip(machine, 0, "amd_energy\n", "energy2_input", "5000000000\n");
    write_chip(machine, 0, "amd_energy\n", "energy3_label", "Esocket1\n");
    write_chip(machine, 0, "amd_energy\n", "energy3_input", "7000000000\n");
    write_chip(machine, 1, "amd_hsmp_hwmon\n", "power1_input", "90000000\n"); /* is socket 0, too */
    assert_int_equal(machine_open(machine, &hwmon_source), 0);
    assert_int_equal(machine_read(machine), 0);
    assert_int_equal(machine->batch.count, 2);
    write_chip(machine, 0, "amd_energy\n", "energy2_input", "5100000000\n");
    write_chip(machine, 0, "amd_energy\n", "energy3_input", "6999999999\n"); /* restarted */
    assert_int_equal(machine_read_after(machine, SECOND), 0);
    machine_expect(machine, METER_PACKAGE, "0", 100 * JOULE, 0);
    machine_expect(machine, METER_PACKAGE, "1", 0, 1);
    assert_false(machine_find(machine, METER_PACKAGE, "0")->meter.integrated);
}

static void each_socket_has_a_chip_where_only_power_is_known(void **state)
{
    struct machine *machine = *state;
    struct hwmon_scan scan;

    write_chip(machine, 0, "fam15h_power\n", "power1_input", "80000000\n");
    write_chip(machine, 1, "fam15h_power\n", "power1_input", "90000000\n");
    set_device(machine, 0, "../../../0000:00:19.4");
    set_device(machine, 1, "../../../0000:00:18.4");
    hwmon_scan(&machine->host, NULL, &scan);
    assert_int_equal(scan.count, 2);
    assert_string_equal(scan.found[0].id, "0");
    assert_string_equal(scan.found[0].path, "class/hwmon/hwmon1/power1_input");
    assert_string_equal(scan.found[1].id, "1");
    assert_int_equal(scan.found[1].kind, METER_PACKAGE);
}

static void what_answers_nonsense_loses_its_own_series_only(void **state)
{
    static const char *const answers[] = {"4294967295000\n",
                                          "65535000000\n",
                                          "-1\n",
                                          "0\n",
                                          "",
                                          "nonsense\n",
                                          "1111111111111111111111111111111111111111111111\n"};
    struct machine *machine = *state;

    write_grace_hopper(machine);
    assert_int_equal(machine_open(machine, &hwmon_source), 0);
    assert_int_equal(machine_read(machine), 0);
    for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
        write_rail(machine, 2, "Grace Power Socket 0\n", answers[i]);
        assert_int_equal(machine_read_after(machine, SECOND), 0);
        assert_int_equal(machine->batch.count, 5);
        assert_null(machine_find(machine, METER_PACKAGE, "0"));
    }
    write_rail(machine, 2, "Grace Power Socket 0\n", "150000000\n");
    assert_int_equal(machine_read_after(machine, SECOND), 0);
    machine_expect(machine, METER_PACKAGE, "0", 0, 1);
    machine_expect(machine, METER_PACKAGE, "1", 8 * 140 * JOULE, 0);
}

static void the_source_is_down_with_a_reason_when_nothing_answers(void **state)
{
    struct machine *machine = *state;

    write_chip(machine, 3, "power_meter\n", "power1_average", "4294967295000\n");
    assert_int_equal(machine_open(machine, &hwmon_source), 0);
    assert_int_equal(machine_read(machine), -EIO);
    assert_non_null(strstr(machine->err.text, "class/hwmon/hwmon3/power1_average"));
    assert_int_equal(machine->batch.count, 0);
    write_chip(machine, 3, "power_meter\n", "power1_average", "200000000\n");
    assert_int_equal(machine_read_after(machine, SECOND), 0);
}

static void a_chip_that_goes_is_missed_and_comes_back_under_another_number(void **state)
{
    struct machine *machine = *state;

    write_grace_hopper(machine);
    assert_int_equal(machine_open(machine, &hwmon_source), 0);
    assert_int_equal(machine_read(machine), 0);
    assert_int_equal(machine_read_after(machine, SECOND), 0);
    machine_expect(machine, METER_MODULE, "1", 500 * JOULE, 0);
    machine_remove(machine, "class/hwmon/hwmon5");
    assert_int_equal(machine_read_after(machine, 30 * SECOND), 0);
    assert_int_equal(machine->batch.count, 5);
    assert_null(machine_find(machine, METER_MODULE, "1"));

    write_rail(machine, 17, "Module Power Socket 1\n", "700000000\n");
    assert_int_equal(machine_read_after(machine, 30 * SECOND), 0);
    machine_expect(machine, METER_MODULE, "1", 500 * JOULE, 1);
    write_rail(machine, 17, "Module Power Socket 1\n", "500000000\n");
    assert_int_equal(machine_read_after(machine, SECOND), 0);
    machine_expect(machine, METER_MODULE, "1", 1100 * JOULE, 1);

    machine_remove(machine, "class/hwmon");
    assert_int_equal(machine_read_after(machine, 30 * SECOND), -ENODEV);
}

static void a_chip_that_appears_later_is_found(void **state)
{
    struct machine *machine = *state;

    write_rail(machine, 1, "Grace Power Socket 0\n", "150000000\n");
    assert_int_equal(machine_open(machine, &hwmon_source), 0);
    assert_int_equal(machine_read(machine), 0);
    write_rail(machine, 2, "Module Power Socket 0\n", "600000000\n");
    assert_int_equal(machine_read_after(machine, 30 * SECOND), 0);
    machine_expect(machine, METER_MODULE, "0", 0, 0);
}

/* Reads once a second. The last result. */
static int read_for(struct machine *machine, unsigned seconds)
{
    int r = 0;

    for (unsigned i = 0; i < seconds; i++)
        r = machine_read_after(machine, SECOND);
    return r;
}

static void power_that_stands_still_for_a_minute_is_not_believed(void **state)
{
    struct machine *machine = *state;

    write_chip(machine, 3, "power_meter\n", "power1_average", "300000000\n");
    assert_int_equal(machine_open(machine, &hwmon_source), 0);
    assert_int_equal(machine_read(machine), 0);
    assert_int_equal(read_for(machine, 59), 0);
    machine_expect(machine, METER_NODE, "hwmon", 59 * 300 * JOULE, 0);
    assert_int_equal(read_for(machine, 1), -EIO);
    assert_non_null(strstr(machine->err.text, "has not moved"));
    assert_int_equal(machine->batch.count, 0);
    assert_int_equal(read_for(machine, 100), -EIO);

    write_chip(machine, 3, "power_meter\n", "power1_average", "301000000\n");
    assert_int_equal(read_for(machine, 1), 0);
    machine_expect(machine, METER_NODE, "hwmon", 59 * 300 * JOULE, 1);
    assert_int_equal(read_for(machine, 1), 0);
    machine_expect(machine, METER_NODE, "hwmon", (59 * 300 + 301) * JOULE, 1);
}

static void a_meter_that_is_refreshed_slowly_may_stand_still_for_ten_times_that(void **state)
{
    struct machine *machine = *state;

    write_chip(machine, 3, "power_meter\n", "power1_average", "300000000\n");
    write_chip(machine, 3, "power_meter\n", "power1_average_interval", "30000\n");
    assert_int_equal(machine_open(machine, &hwmon_source), 0);
    assert_int_equal(machine_read(machine), 0);
    assert_int_equal(read_for(machine, 299), 0);
    assert_int_equal(read_for(machine, 1), -EIO);
}

static void a_refresh_interval_that_cannot_be_is_no_excuse(void **state)
{
    struct machine *machine = *state;

    write_chip(machine, 3, "power_meter\n", "power1_average", "300000000\n");
    write_chip(machine, 3, "power_meter\n", "power1_average_interval", "4294967295000\n");
    assert_int_equal(machine_open(machine, &hwmon_source), 0);
    assert_int_equal(machine_read(machine), 0);
    assert_int_equal(read_for(machine, 60), -EIO);
}

static void a_counter_that_stood_still_goes_on_where_it_was(void **state)
{
    struct machine *machine = *state;

    write_chip(machine, 0, "amd_energy\n", "energy1_label", "Esocket0\n");
    write_chip(machine, 0, "amd_energy\n", "energy1_input", "5000000000\n");
    assert_int_equal(machine_open(machine, &hwmon_source), 0);
    assert_int_equal(machine_read(machine), 0);
    assert_int_equal(read_for(machine, 60), -EIO);
    write_chip(machine, 0, "amd_energy\n", "energy1_input", "5600000000\n");
    assert_int_equal(read_for(machine, 1), 0);
    machine_expect(machine, METER_PACKAGE, "0", 600 * JOULE, 0);
}

static void a_counter_under_another_number_is_not_counted_on(void **state)
{
    struct machine *machine = *state;

    write_chip(machine, 0, "amd_energy\n", "energy1_label", "Esocket0\n");
    write_chip(machine, 0, "amd_energy\n", "energy1_input", "5000000000\n");
    assert_int_equal(machine_open(machine, &hwmon_source), 0);
    assert_int_equal(machine_read(machine), 0);
    machine_remove(machine, "class/hwmon/hwmon0");
    write_chip(machine, 4, "amd_energy\n", "energy1_label", "Esocket0\n");
    write_chip(machine, 4, "amd_energy\n", "energy1_input", "5600000000\n");
    assert_int_equal(machine_read_after(machine, 30 * SECOND), 0);
    machine_expect(machine, METER_PACKAGE, "0", 0, 1);
}

static void power_does_not_go_on_in_the_place_of_a_counter(void **state)
{
    struct machine *machine = *state;

    write_grace_hopper(machine);
    write_chip(machine, 2, "power_meter\n", "energy1_input", "5000000000\n");
    assert_int_equal(machine_open(machine, &hwmon_source), 0);
    assert_int_equal(machine_read(machine), 0);
    write_chip(machine, 2, "power_meter\n", "energy1_input", "5600000000\n");
    assert_int_equal(machine_read_after(machine, SECOND), 0);
    machine_expect(machine, METER_PACKAGE, "0", 600 * JOULE, 0);
    machine_remove(machine, "class/hwmon/hwmon2/energy1_input");
    assert_int_equal(machine_read_after(machine, 30 * SECOND), 0);
    assert_null(machine_find(machine, METER_PACKAGE, "0")); /* it would begin at 0 */
}

static void a_chip_that_failed_is_opened_again(void **state)
{
    struct machine *machine = *state;

    write_grace_hopper(machine);
    assert_int_equal(machine_open(machine, &hwmon_source), 0);
    assert_int_equal(machine_read(machine), 0);
    write_rail(machine, 2, "Grace Power Socket 0\n", ""); /* as the driver goes */
    assert_int_equal(machine_read_after(machine, SECOND), 0);
    machine_remove(machine, "class/hwmon/hwmon2");
    write_rail(machine, 2, "Grace Power Socket 0\n", "150000000\n");
    assert_int_equal(machine_read_after(machine, SECOND), 0);
    assert_null(machine_find(machine, METER_PACKAGE, "0"));
    assert_int_equal(machine_read_after(machine, 30 * SECOND), 0);
    machine_expect(machine, METER_PACKAGE, "0", 0, 1);
}

static void few_readings_are_no_proof_that_a_value_stands_still(void **state)
{
    struct machine *machine = *state;

    machine->context.interval_us = 20 * SECOND;
    write_chip(machine, 3, "power_meter\n", "power1_average", "300000000\n");
    assert_int_equal(machine_open(machine, &hwmon_source), 0);
    assert_int_equal(machine_read(machine), 0);
    for (int i = 0; i < 9; i++)
        assert_int_equal(machine_read_after(machine, 20 * SECOND), 0);
    machine_expect(machine, METER_NODE, "hwmon", 180 * 300 * JOULE, 0);
    assert_int_equal(machine_read_after(machine, 20 * SECOND), -EIO);
}

static void a_counter_of_a_later_chip_replaces_power_of_an_earlier(void **state)
{
    struct machine *machine = *state;
    struct hwmon_scan scan;

    write_chip(machine, 0, "amd_hsmp_hwmon\n", "power1_input", "90000000\n");
    write_chip(machine, 1, "amd_energy\n", "energy1_label", "Esocket0\n");
    write_chip(machine, 1, "amd_energy\n", "energy1_input", "5000000000\n");
    hwmon_scan(&machine->host, NULL, &scan);
    assert_int_equal(scan.count, 1);
    assert_true(scan.found[0].counts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(power_that_cannot_be_is_refused),
        cmocka_unit_test(the_label_of_a_rail_has_its_meter_and_socket),
        machine_test(the_power_of_the_node_is_sampled_and_integrated),
        machine_test(older_kernels_have_the_files_in_the_device),
        machine_test(a_file_that_is_in_both_places_is_taken_once),
        machine_test(a_counter_is_preferred_to_a_mean_and_a_mean_to_an_instant),
        machine_test(of_two_meters_of_a_node_the_first_device_counts),
        machine_test(what_measures_something_else_is_left_alone),
        machine_test(a_machine_without_hwmon_is_no_error),
        machine_test(a_replay_reads_no_chip),
        machine_test(a_grace_hopper_has_its_modules_and_sockets),
        machine_test(without_its_socket_the_cores_are_all_that_is_known_of_it),
        machine_test(one_rail_is_listed_once),
        machine_test(cpus_that_have_finer_meters_are_left_to_them),
        machine_test(amd_energy_counts_sockets),
        machine_test(each_socket_has_a_chip_where_only_power_is_known),
        machine_test(what_answers_nonsense_loses_its_own_series_only),
        machine_test(the_source_is_down_with_a_reason_when_nothing_answers),
        machine_test(a_chip_that_goes_is_missed_and_comes_back_under_another_number),
        machine_test(a_chip_that_appears_later_is_found),
        machine_test(power_that_stands_still_for_a_minute_is_not_believed),
        machine_test(a_meter_that_is_refreshed_slowly_may_stand_still_for_ten_times_that),
        machine_test(a_refresh_interval_that_cannot_be_is_no_excuse),
        machine_test(a_counter_that_stood_still_goes_on_where_it_was),
        machine_test(a_counter_under_another_number_is_not_counted_on),
        machine_test(power_does_not_go_on_in_the_place_of_a_counter),
        machine_test(a_chip_that_failed_is_opened_again),
        machine_test(few_readings_are_no_proof_that_a_value_stands_still),
        machine_test(a_counter_of_a_later_chip_replaces_power_of_an_earlier),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
