/* sources/sensors/cray: counters of one instant, by the controller's own clock. */
#include "sysfs_fixture.h"

#include <errno.h>

#include "core/fs.h"
#include "sources/sensors/cray.h"

#define SECOND   USEC_PER_SEC
#define JOULE    ((uint64_t)1000000)
#define COUNTERS "cray/pm_counters/"

static void write_counter(const struct machine *machine, const char *name, uint64_t value,
                          const char *unit, uint64_t t_us)
{
    char path[64], text[96];

    snprintf(path, sizeof(path), COUNTERS "%s", name);
    snprintf(text, sizeof(text), "%ju %s %ju us\n", (uintmax_t)value, unit, (uintmax_t)t_us);
    machine_write(machine, path, text);
}

/* What the controller writes after so many seconds of 873 W. */
static void write_second(const struct machine *machine, unsigned second)
{
    uint64_t t_us = MACHINE_START_US + second * SECOND;
    char freshness[32];

    write_counter(machine, "power", 873, "W", t_us);
    write_counter(machine, "energy", 1360621494 + 873 * (uint64_t)second, "J", t_us);
    write_counter(machine, "cpu_energy", 139431088 + 83 * (uint64_t)second, "J", t_us);
    write_counter(machine, "memory_energy", 104283458 + 75 * (uint64_t)second, "J", t_us);
    write_counter(machine, "accel0_energy", 208970342 + 99 * (uint64_t)second, "J", t_us);
    snprintf(freshness, sizeof(freshness), "%u\n", 1000 + 10 * second);
    machine_write(machine, COUNTERS "freshness", freshness);
    machine_write(machine, COUNTERS "startup", "1734090000000000\n");
}

static void open_cray(struct machine *machine)
{
    write_second(machine, 0);
    assert_int_equal(machine_open(machine, &cray_source), 0);
    assert_int_equal(machine_read(machine), 0);
    machine_expect(machine, METER_NODE, "cray", 0, 0);
}

static void a_line_is_a_number_with_its_unit_and_time(void **state)
{
    static const struct {
        enum cray_file file;
        const char *text;
        int r;
        uint64_t number, t_us;
    } cases[] = {
        {CRAY_POWER, "873 W 1734094386462336 us\n", 0, 873, 1734094386462336},
        {CRAY_ENERGY, "1360621494 J 1734094386462336 us", 0, 1360621494, 1734094386462336},
        {CRAY_ENERGY, "12 J\n", 0, 12, 0},
        {CRAY_FRESHNESS, "77\n", 0, 77, 0},
        {CRAY_STARTUP, "77 1734094386462336 us\n", 0, 77, 0},
        {CRAY_POWER, "49999 W\n", 0, 49999, 0},
        {CRAY_POWER, "50000 W\n", -ERANGE, 0, 0},
        {CRAY_ENERGY, "18446744073709 J\n", 0, 18446744073709, 0},
        {CRAY_ENERGY, "18446744073710 J\n", -ERANGE, 0, 0},
        {CRAY_ENERGY, "99999999999999999999999 J 1 us\n", -ERANGE, 0, 0},
        {CRAY_ENERGY, "1 J 99999999999999999999999 us\n", -ERANGE, 0, 0},
        {CRAY_ENERGY, "12 W 1 us\n", -EINVAL, 0, 0},
        {CRAY_ENERGY, "12\n", -EINVAL, 0, 0},
        {CRAY_ENERGY, "-12 J 1 us\n", -EINVAL, 0, 0},
        {CRAY_ENERGY, "12 J 1 ms\n", -EINVAL, 0, 0},
        {CRAY_ENERGY, "12 J us\n", -EINVAL, 0, 0},
        {CRAY_ENERGY, "\n", -EINVAL, 0, 0},
        {CRAY_ENERGY, "", -EINVAL, 0, 0},
        {CRAY_FRESHNESS, "", -EINVAL, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct cray_value value = {0};

        assert_int_equal(cray_parse(cases[i].file, span_of(cases[i].text), &value), cases[i].r);
        assert_int_equal(value.valid, cases[i].r == 0);
        assert_int_equal(value.number, cases[i].number);
        assert_int_equal(value.t_us, cases[i].t_us);
    }
}

static void node_cpus_and_memory_are_counted_and_accelerators_are_not(void **state)
{
    struct machine *machine = *state;
    const struct sample *power;

    open_cray(machine);
    write_second(machine, 2);
    assert_int_equal(machine_read_after(machine, 2 * SECOND + 70000), 0);
    assert_int_equal(machine->batch.count, 4);
    machine_expect(machine, METER_NODE, "cray", 2 * 873 * JOULE, 0);
    machine_expect(machine, METER_PACKAGE, "cray", 2 * 83 * JOULE, 0);
    machine_expect(machine, METER_DRAM, "cray", 2 * 75 * JOULE, 0);
    assert_false(machine_find(machine, METER_NODE, "cray")->meter.integrated);
    power = machine_node_power(machine);
    assert_non_null(power);
    assert_string_equal(power->node_power.source, "cray");
    assert_int_equal(power->node_power.power_mw, 873000);
    /* When the controller measured, not when it was read. */
    assert_int_equal(power->t_us, MACHINE_START_US + 2 * SECOND);
    assert_int_equal(machine_find(machine, METER_NODE, "cray")->t_us,
                     MACHINE_START_US + 2 * SECOND);
}

static void how_much_is_plausible_goes_by_the_controllers_time(void **state)
{
    struct machine *machine = *state;

    open_cray(machine);
    write_second(machine, 2);
    write_counter(machine, "energy", 1360621494 + 60000, "J", MACHINE_START_US + 2 * SECOND);
    assert_int_equal(machine_read_after(machine, SECOND), 0); /* 30 kW, not 60 */
    machine_expect(machine, METER_NODE, "cray", 60000 * JOULE, 0);
}

static void a_controller_whose_clock_is_not_set_gets_the_nodes_time(void **state)
{
    struct machine *machine = *state;

    open_cray(machine);
    write_second(machine, 1);
    write_counter(machine, "power", 900, "W", 7 * SECOND);
    assert_int_equal(machine_read_after(machine, SECOND + 70000), 0);
    assert_int_equal(machine_node_power(machine)->t_us, MACHINE_START_US + SECOND + 70000);
}

static void a_controller_that_started_again_is_a_break(void **state)
{
    struct machine *machine = *state;

    open_cray(machine);
    write_second(machine, 1);
    write_counter(machine, "energy", 12, "J", MACHINE_START_US + SECOND);
    machine_write(machine, COUNTERS "startup", "1734090000000001\n");
    assert_int_equal(machine_read_after(machine, SECOND), 0);
    machine_expect(machine, METER_NODE, "cray", 0, 1);
    machine_expect(machine, METER_PACKAGE, "cray", 0, 1); /* though it counted on */
    write_second(machine, 2);
    machine_write(machine, COUNTERS "startup", "1734090000000001\n");
    write_counter(machine, "energy", 912, "J", MACHINE_START_US + 2 * SECOND);
    assert_int_equal(machine_read_after(machine, SECOND), 0);
    machine_expect(machine, METER_NODE, "cray", 900 * JOULE, 1);
    machine_expect(machine, METER_PACKAGE, "cray", 83 * JOULE, 1);
}

static void a_counter_that_goes_back_is_a_break_of_its_own(void **state)
{
    struct machine *machine = *state;

    open_cray(machine);
    write_second(machine, 1);
    write_counter(machine, "energy", 12, "J", MACHINE_START_US + SECOND);
    assert_int_equal(machine_read_after(machine, SECOND), 0);
    machine_expect(machine, METER_NODE, "cray", 0, 1);
    machine_expect(machine, METER_PACKAGE, "cray", 83 * JOULE, 0);
}

static void a_file_that_is_missing_costs_its_own_series(void **state)
{
    struct machine *machine = *state;

    write_second(machine, 0);
    machine_remove(machine, COUNTERS "accel0_energy");
    machine_remove(machine, COUNTERS "cpu_energy");
    assert_int_equal(machine_open(machine, &cray_source), 0);
    assert_int_equal(machine_read(machine), 0);
    assert_int_equal(machine->batch.count, 3);
    assert_null(machine_find(machine, METER_PACKAGE, "cray"));

    write_second(machine, 31);
    assert_int_equal(machine_read_after(machine, 31 * SECOND), 0);
    machine_expect(machine, METER_PACKAGE, "cray", 0, 0); /* it came, and was found */
}

static void what_answers_nonsense_loses_its_own_series_only(void **state)
{
    static const char *const answers[] = {
        "",
        "\n",
        "-5 J 1 us\n",
        "99999999999999999999999 J 1 us\n",
        "5 kJ 1 us\n",
        ("0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"
         "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"),
    };
    struct machine *machine = *state;

    open_cray(machine);
    for (unsigned i = 0; i < ARRAY_SIZE(answers); i++) {
        write_second(machine, i + 1);
        machine_write(machine, COUNTERS "cpu_energy", answers[i]);
        machine_write(machine, COUNTERS "power", "0 W 1 us\n");
        assert_int_equal(machine_read_after(machine, SECOND), 0);
        assert_int_equal(machine->batch.count, 2);
        machine_expect(machine, METER_DRAM, "cray", (i + 1) * 75 * JOULE, 0);
    }
    write_second(machine, 7);
    assert_int_equal(machine_read_after(machine, SECOND), 0);
    machine_expect(machine, METER_PACKAGE, "cray", 7 * 83 * JOULE, 0);
}

static void a_controller_that_hangs_is_down_after_two_seconds(void **state)
{
    struct machine *machine = *state;

    open_cray(machine);
    assert_int_equal(machine_read_after(machine, SECOND), 0); /* nothing new */
    assert_int_equal(machine->batch.count, 0);
    assert_int_equal(machine_read_after(machine, SECOND), -ESTALE);
    assert_non_null(strstr(machine->err.text, "freshness"));
    assert_int_equal(machine->batch.count, 0);
    write_second(machine, 3);
    assert_int_equal(machine_read_after(machine, SECOND), 0);
    machine_expect(machine, METER_NODE, "cray", 3 * 873 * JOULE, 0);
}

static void without_freshness_the_counters_are_read_all_the_same(void **state)
{
    struct machine *machine = *state;

    open_cray(machine);
    for (unsigned second = 1; second < 5; second++) {
        write_second(machine, second);
        machine_write(machine, COUNTERS "freshness", "");
        assert_int_equal(machine_read_after(machine, SECOND), 0);
        machine_expect(machine, METER_NODE, "cray", second * 873 * JOULE, 0);
    }
}

static void nothing_that_answers_is_an_error(void **state)
{
    static const char *const names[] = {"power", "energy", "cpu_energy", "memory_energy"};
    struct machine *machine = *state;
    char path[64];

    open_cray(machine);
    write_second(machine, 1);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        snprintf(path, sizeof(path), COUNTERS "%s", names[i]);
        machine_write(machine, path, "");
    }
    assert_int_equal(machine_read_after(machine, SECOND), -EIO);
    assert_int_equal(machine->batch.count, 0);
}

/* The controller at work: so many reads of freshness find another value than the one before. */
static struct {
    const struct machine *machine;
    int freshness_fd;
    unsigned changes;
    unsigned reads;
} controller;

static int read_while_it_writes(int fd, char *buffer, size_t size_bytes, size_t *ret_len)
{
    int r = fs_reread(fd, buffer, size_bytes, ret_len);

    if (fd == controller.freshness_fd && controller.changes > 0) {
        controller.changes--;
        write_second(controller.machine, ++controller.reads);
    }
    return r;
}

static void counters_are_read_again_when_they_changed_meanwhile(void **state)
{
    struct machine *machine = *state;

    for (unsigned changes = 0; changes < 5; changes++) {
        struct cray_counters counters;
        struct cray_value values[CRAY_FILES] = {0};

        write_second(machine, 0);
        assert_int_equal(cray_counters_open(machine->fd, &counters), 0);
        controller.machine = machine;
        controller.freshness_fd = counters.fds[CRAY_FRESHNESS];
        controller.changes = changes;
        controller.reads = 0;
        counters.read_kept = read_while_it_writes;
        if (changes < 3) {
            assert_int_equal(cray_counters_read(&counters, values), 0);
            assert_int_equal(values[CRAY_FRESHNESS].number, 1000 + 10 * changes);
            assert_int_equal(values[CRAY_ENERGY].number, 1360621494 + 873 * changes);
            assert_int_equal(values[CRAY_ENERGY].t_us, MACHINE_START_US + changes * SECOND);
        } else {
            assert_int_equal(cray_counters_read(&counters, values), -EAGAIN);
            assert_false(values[CRAY_ENERGY].valid); /* not written */
        }
        cray_counters_close(&counters);
    }
}

static int answer_that_it_is_gone(int fd, char *buffer, size_t size_bytes, size_t *ret_len)
{
    (void)fd;
    (void)buffer;
    (void)size_bytes;
    (void)ret_len;
    return -ENODEV;
}

static void a_file_that_is_gone_is_closed_and_opened_again(void **state)
{
    struct machine *machine = *state;
    struct cray_counters counters;
    struct cray_value values[CRAY_FILES];

    write_second(machine, 0);
    assert_int_equal(cray_counters_open(machine->fd, &counters), 0);
    counters.read_kept = answer_that_it_is_gone;
    assert_int_equal(cray_counters_read(&counters, values), 0);
    for (size_t i = 0; i < CRAY_FILES; i++) {
        assert_false(values[i].valid);
        assert_int_equal(counters.fds[i], -1);
    }
    counters.read_kept = fs_reread;
    cray_counters_reopen(&counters);
    assert_int_equal(cray_counters_read(&counters, values), 0);
    for (size_t i = 0; i < CRAY_FILES; i++)
        assert_true(values[i].valid);
    cray_counters_close(&counters);
}

static void what_rapl_measures_is_left_to_it(void **state)
{
    struct machine *machine = *state;

    machine_write(machine, "class/powercap/intel-rapl:0/name", "package-0\n"); /* AMD: no dram */
    machine_write(machine, "class/powercap/intel-rapl:0/energy_uj", "1\n");
    open_cray(machine);
    assert_int_equal(machine->batch.count, 3);
    assert_null(machine_find(machine, METER_PACKAGE, "cray"));
    assert_non_null(machine_find(machine, METER_DRAM, "cray"));
}

static void a_machine_that_is_no_cray_is_no_error(void **state)
{
    struct machine *machine = *state;

    assert_int_equal(machine_open(machine, &cray_source), -ENODEV);
    machine_write(machine, COUNTERS "power", "1 W 1 us\n");
    machine_write(machine, COUNTERS "freshness", "1\n");
    assert_int_equal(machine_open(machine, &cray_source), -ENODEV); /* it counts nothing */
    assert_string_equal(machine->err.text, "");
    write_second(machine, 0);
    machine->context.replay_path = "some.trace";
    assert_int_equal(machine_open(machine, &cray_source), -ENODEV);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_a_number_with_its_unit_and_time),
        machine_test(node_cpus_and_memory_are_counted_and_accelerators_are_not),
        machine_test(how_much_is_plausible_goes_by_the_controllers_time),
        machine_test(a_controller_whose_clock_is_not_set_gets_the_nodes_time),
        machine_test(a_controller_that_started_again_is_a_break),
        machine_test(a_counter_that_goes_back_is_a_break_of_its_own),
        machine_test(a_file_that_is_missing_costs_its_own_series),
        machine_test(what_answers_nonsense_loses_its_own_series_only),
        machine_test(a_controller_that_hangs_is_down_after_two_seconds),
        machine_test(without_freshness_the_counters_are_read_all_the_same),
        machine_test(nothing_that_answers_is_an_error),
        machine_test(counters_are_read_again_when_they_changed_meanwhile),
        machine_test(a_file_that_is_gone_is_closed_and_opened_again),
        machine_test(what_rapl_measures_is_left_to_it),
        machine_test(a_machine_that_is_no_cray_is_no_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
