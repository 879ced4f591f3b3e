/* sources/estimate/estimate, model_power and cpu_power: power that is modelled, not measured. */
#include "sysfs_fixture.h"

#include <errno.h>

#include "sources/estimate/cpu_power.h"
#include "sources/source.h"

#define SECOND USEC_PER_SEC
#define WATT   ((uint64_t)1000000)
#define JOULE  ((uint64_t)1000000)

static void energy_is_idle_and_a_straight_line_to_full(void **state)
{
    struct cpu_energy model = {.idle_uw = 20 * WATT, .full_uw = 100 * WATT};

    (void)state;
    cpu_energy_add(&model, 5 * SECOND, 0, 0); /* where it starts, nothing is known of */
    assert_int_equal(model.idle_uj + model.active_uj, 0);
    cpu_energy_add(&model, 6 * SECOND, 0, 4 * SECOND); /* four CPUs, all idle: 20 W x 1 s */
    assert_int_equal(model.idle_uj, 20 * JOULE);
    assert_int_equal(model.active_uj, 0);
    cpu_energy_add(&model, 8 * SECOND, 2 * SECOND, 12 * SECOND); /* a quarter of 80 W, for 2 s */
    assert_int_equal(model.idle_uj, 60 * JOULE);
    assert_int_equal(model.active_uj, 40 * JOULE);
    cpu_energy_add(&model, 9 * SECOND, 6 * SECOND, 16 * SECOND); /* all busy */
    assert_int_equal(model.idle_uj, 80 * JOULE);
    assert_int_equal(model.active_uj, 120 * JOULE);
    assert_int_equal(model.breaks, 0);
}

static void what_is_less_than_a_microjoule_is_carried_on(void **state)
{
    struct cpu_energy model = {.idle_uw = 1, .full_uw = 4};

    (void)state;
    /* 1 uW for 1 ms is 1 nJ, and 3 uW of a third of the CPUs are as much again. */
    for (uint64_t i = 0; i <= 3000; i++)
        cpu_energy_add(&model, i * 1000, i * 1000, i * 3000);
    assert_int_equal(model.idle_uj, 3);
    assert_int_equal(model.active_uj, 3);
    assert_int_equal(model.idle_carry_pj, 0);
    assert_int_equal(model.active_carry_pj, 0);
}

static void a_reading_without_a_tick_waits_for_the_next(void **state)
{
    struct cpu_energy model = {.idle_uw = 10 * WATT, .full_uw = 30 * WATT};

    (void)state;
    cpu_energy_add(&model, 0, 0, 0);
    cpu_energy_add(&model, SECOND, 0, 0);
    assert_int_equal(model.idle_uj, 0);
    cpu_energy_add(&model, 2 * SECOND, SECOND, 2 * SECOND);
    assert_int_equal(model.idle_uj, 20 * JOULE);
    assert_int_equal(model.active_uj, 20 * JOULE);
}

static void time_that_goes_back_is_a_break_and_not_counted(void **state)
{
    struct cpu_energy model = {.idle_uw = 10 * WATT, .full_uw = 20 * WATT};

    (void)state;
    cpu_energy_add(&model, SECOND, 9 * SECOND, 20 * SECOND);
    cpu_energy_add(&model, 2 * SECOND, 8 * SECOND, 21 * SECOND);
    assert_int_equal(model.breaks, 1);
    cpu_energy_add(&model, 3 * SECOND, 8 * SECOND, 20 * SECOND);
    assert_int_equal(model.breaks, 2);
    cpu_energy_add(&model, SECOND, 8 * SECOND, 20 * SECOND);
    assert_int_equal(model.breaks, 3);
    assert_int_equal(model.idle_uj + model.active_uj, 0);
    cpu_energy_add(&model, 2 * SECOND, 8 * SECOND, 21 * SECOND);
    assert_int_equal(model.idle_uj, 10 * JOULE);
    /* More work than time, as with counters read one after the other: counts as all of it. */
    cpu_energy_add(&model, 3 * SECOND, 10 * SECOND, 22 * SECOND);
    assert_int_equal(model.active_uj, 10 * JOULE);
}

static void the_largest_numbers_do_not_overflow(void **state)
{
    struct cpu_energy model = {.idle_uw = 0, .full_uw = 100000 * WATT};
    const uint64_t year_us = 365 * 86400 * SECOND;

    (void)state;
    cpu_energy_add(&model, 0, 0, 0);
    cpu_energy_add(&model, year_us, 65536 * year_us, 65536 * year_us);
    assert_true(model.active_uj == 100000 * (year_us / SECOND) * JOULE);
}

#define CPU(n, vendor, family, model_number, stepping)                                             \
    "processor\t: " #n "\nvendor_id\t: " vendor "\ncpu family\t: " family                          \
    "\nmodel\t\t: " model_number "\nmodel name\t: A Name: 1\nstepping\t: " stepping                \
    "\nflags\t\t: fpu vme\n\n"

static void a_processor_is_told_by_its_numbers(void **state)
{
    static const char two[] =
        CPU(0, "GenuineIntel", "6", "85", "4") CPU(1, "GenuineIntel", "6", "86", "9");
    struct cpu_identity cpu;

    (void)state;
    assert_int_equal(cpu_power_parse_cpuinfo(span_of(two), &cpu), 0);
    assert_string_equal(cpu.vendor, "GenuineIntel");
    assert_string_equal(cpu.name, "A Name: 1");
    assert_int_equal(cpu.family, 6);
    assert_int_equal(cpu.model, 85);
    assert_int_equal(cpu.stepping, 4);
    assert_int_equal(cpu.cpus, 2);
    assert_int_equal(
        cpu_power_parse_cpuinfo(span_of(CPU(0, "AuthenticAMD", "25", "1", "unknown")), &cpu), 0);
    assert_int_equal(cpu.stepping, 0);
}

static void a_cpuinfo_without_numbers_is_no_processor(void **state)
{
    static const char *const texts[] = {
        "",
        "\n\n",
        "processor\t: 0\nBogoMIPS\t: 50.00\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n",
        "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n", /* not one CPU */
        CPU(0, "GenuineIntel", "six", "85", "4"),
        CPU(0, "GenuineIntel", "6", "", "4"),
        CPU(0, "ANameThatIsLongerThanAnyVendor", "6", "85", "4"),
    };
    struct cpu_identity cpu;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        assert_int_equal(cpu_power_parse_cpuinfo(span_of(texts[i]), &cpu), -ENODATA);
}

static void the_table_gives_watts_per_hardware_thread(void **state)
{
    static const char table[] = "# a comment\n\nGenuineIntel\t6\t85\t5\t7\t500\t4000\tLater\n"
                                "GenuineIntel\t6\t85\t0\t4\t600\t4500\tEarlier\n"
                                "GenuineIntel\t6\t99\t0\t15\t5000\t4000\tUpside down\n"
                                "GenuineIntel\t6\t98\t0\t15\tmany\t4000\tNo number\n"
                                "GenuineIntel\t6\t97\t0\t15\t1";
    struct cpu_identity cpu = {.vendor = "GenuineIntel", .family = 6, .model = 85, .cpus = 8};
    struct cpu_power power;

    (void)state;
    assert_int_equal(cpu_power_find(span_of(table), &cpu, &power), 0);
    assert_int_equal(power.idle_uw, 4800000);
    assert_int_equal(power.full_uw, 36000000);
    assert_string_equal(power.generation, "Earlier");
    cpu.stepping = 7;
    assert_int_equal(cpu_power_find(span_of(table), &cpu, &power), 0);
    assert_string_equal(power.generation, "Later");
    cpu.stepping = 8;
    assert_int_equal(cpu_power_find(span_of(table), &cpu, &power), -ENOENT);
    for (cpu.model = 97; cpu.model <= 100; cpu.model++)
        assert_int_equal(cpu_power_find(span_of(table), &cpu, &power), -ENOENT);
    assert_int_equal(cpu_power_find(span_of(""), &cpu, &power), -ENOENT);
}

static void write_times(const struct machine *machine, unsigned user, unsigned idle, unsigned steal)
{
    char text[128];

    snprintf(text, sizeof(text), "cpu  %u 0 0 %u 0 0 0 %u 0 0\n", user, idle, steal);
    machine_write(machine, "stat", text);
    machine_write(machine, "meminfo", "MemTotal: 100 kB\nMemAvailable: 50 kB\n");
}

/* A machine whose /proc is its tree, too. */
static struct machine *with_model(void **state, struct source_estimate *model)
{
    struct machine *machine = *state;

    machine->host.procfs_fd = machine->fd;
    machine->context.model = model;
    return machine;
}

static void the_source_books_what_the_machine_did_and_nothing_stolen(void **state)
{
    struct source_estimate model = {.is_on = true, .idle_uw = 20 * WATT, .full_uw = 100 * WATT};
    struct machine *machine = with_model(state, &model);
    const struct sample *sample;

    write_times(machine, 0, 0, 0);
    assert_int_equal(machine_open(machine, &estimate_source), 0);
    assert_int_equal(machine_read(machine), 0);
    machine_expect(machine, METER_PACKAGE, "model", 0, 0);
    write_times(machine, 100, 200, 100); /* a second of 4 CPUs, in ticks of 10 ms */
    assert_int_equal(machine_read_after(machine, SECOND), 0);
    machine_expect(machine, METER_PACKAGE, "model", 40 * JOULE, 0);
    sample = machine_find(machine, METER_PACKAGE, "model");
    assert_int_equal(sample->meter.idle_uj, 20 * JOULE);
    assert_true(sample->meter.modelled && sample->meter.integrated);
    assert_string_equal(sample->meter.source, "model");
}

static void it_is_off_unless_it_is_asked_for_and_gives_way(void **state)
{
    struct source_estimate model = {.idle_uw = WATT, .full_uw = WATT};
    struct machine *machine = with_model(state, &model);
    atomic_bool package_is_metered = false;

    write_times(machine, 0, 0, 0);
    machine->context.package_is_metered = &package_is_metered;
    assert_int_equal(machine_open(machine, &estimate_source), -ENODEV);
    machine->context.model = NULL;
    assert_int_equal(machine_open(machine, &estimate_source), -ENODEV);
    machine->context.model = &model;
    model.is_on = true;
    machine->context.replay_path = "x";
    assert_int_equal(machine_open(machine, &estimate_source), -ENODEV);
    machine->context.replay_path = NULL;
    assert_int_equal(machine_open(machine, &estimate_source), 0);
    assert_int_equal(machine_read(machine), 0);
    package_is_metered = true;
    assert_int_equal(machine_read(machine), -ENODEV);
    assert_non_null(strstr(machine->err.text, "the estimate ends"));
    assert_int_equal(machine->batch.count, 0);
    machine->ops->close(machine->source);
    machine->source = NULL;
    assert_int_equal(machine_open(machine, &estimate_source), -ENODEV);
}

static void a_processor_of_the_table_needs_no_watts_and_another_one_says_what_to_do(void **state)
{
    struct source_estimate model = {.is_on = true, .by_table = true};
    struct machine *machine = with_model(state, &model);

    write_times(machine, 0, 0, 0);
    machine_write(machine, "cpuinfo", CPU(0, "GenuineIntel", "6", "1", "0"));
    assert_int_equal(machine_open(machine, &estimate_source), -ENOTSUP);
    assert_non_null(strstr(machine->err.text, "GenuineIntel family 6 model 1, 'A Name: 1'"));
    assert_non_null(strstr(machine->err.text, "set --model.idle-watts"));
    machine_write(machine, "cpuinfo",
                  CPU(0, "AuthenticAMD", "25", "1", "1") CPU(1, "AuthenticAMD", "25", "1", "1"));
    assert_int_equal(machine_open(machine, &estimate_source), 0);
    assert_int_equal(machine_read(machine), 0);
    write_times(machine, 200, 0, 0); /* both CPUs of an EPYC 7003 busy, for a second */
    assert_int_equal(machine_read_after(machine, SECOND), 0);
    machine_expect(machine, METER_PACKAGE, "model", 2 * 2019000, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(energy_is_idle_and_a_straight_line_to_full),
        cmocka_unit_test(what_is_less_than_a_microjoule_is_carried_on),
        cmocka_unit_test(a_reading_without_a_tick_waits_for_the_next),
        cmocka_unit_test(time_that_goes_back_is_a_break_and_not_counted),
        cmocka_unit_test(the_largest_numbers_do_not_overflow),
        cmocka_unit_test(a_processor_is_told_by_its_numbers),
        cmocka_unit_test(a_cpuinfo_without_numbers_is_no_processor),
        cmocka_unit_test(the_table_gives_watts_per_hardware_thread),
        machine_test(the_source_books_what_the_machine_did_and_nothing_stolen),
        machine_test(it_is_off_unless_it_is_asked_for_and_gives_way),
        machine_test(a_processor_of_the_table_needs_no_watts_and_another_one_says_what_to_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
