/* sources/cgroup/cgroups: the names of block devices in sysfs. */
#include "sysfs_fixture.h"

#include "sources/cgroup/cgroups.h"

#define LONG_NAME "a-name-that-is-longer-than-any-disk-has"

static void link_device(const struct machine *machine, const char *number, const char *target)
{
    char path[64];

    mkdirat(machine->fd, "dev", 0755);
    mkdirat(machine->fd, "dev/block", 0755);
    snprintf(path, sizeof(path), "dev/block/%s", number);
    (void)unlinkat(machine->fd, path, 0);
    assert_int_equal(symlinkat(target, machine->fd, path), 0);
}

static void assert_name(const struct machine *machine, struct block_names *names, uint32_t major,
                        uint32_t minor, const char *expected)
{
    char name[USAGE_DEVICE_BYTES];

    block_names_find(names, &machine->host, major, minor, name);
    assert_string_equal(name, expected);
}

static void a_device_is_called_as_sysfs_links_it_and_else_by_its_number(void **state)
{
    const struct machine *machine = *state;
    struct block_names names = {0};

    link_device(machine, "8:0", "../../devices/pci0000:00/0000:00:17.0/ata1/block/sda");
    link_device(machine, "8:1", "nothing-before-it");
    link_device(machine, "8:2", "../../block/" LONG_NAME);
    link_device(machine, "8:3", "../../block/");
    assert_name(machine, &names, 8, 0, "sda");
    assert_name(machine, &names, 8, 1, "nothing-before-it");
    assert_name(machine, &names, 8, 2, "8:2");
    assert_name(machine, &names, 8, 3, "8:3");
    assert_name(machine, &names, 259, 1048575, "259:1048575");
}

static void names_are_remembered_until_they_are_forgotten(void **state)
{
    const struct machine *machine = *state;
    struct block_names names = {0};

    link_device(machine, "8:0", "../../block/sda");
    assert_name(machine, &names, 8, 0, "sda");
    link_device(machine, "8:0", "../../block/sdb");
    assert_name(machine, &names, 8, 0, "sda");
    names.count = 0;
    assert_name(machine, &names, 8, 0, "sdb");
}

static void more_devices_than_are_remembered_still_have_their_names(void **state)
{
    const struct machine *machine = *state;
    struct block_names names = {0};

    for (int turn = 0; turn < 2; turn++)
        for (uint32_t i = 0; i < BLOCK_NAMES_MAX + 3; i++) {
            char number[32], target[32];

            snprintf(number, sizeof(number), "7:%u", i);
            snprintf(target, sizeof(target), "x/loop%u", i);
            link_device(machine, number, target);
            assert_name(machine, &names, 7, i, target + 2);
        }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, machine_set_up, machine_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_device_is_called_as_sysfs_links_it_and_else_by_its_number),
        TEST(names_are_remembered_until_they_are_forgotten),
        TEST(more_devices_than_are_remembered_still_have_their_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
