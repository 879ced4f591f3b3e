/* sources/cgroup/reader: the values of workloads, whichever layout the cgroups have. */
#include "unit.h"

#include "cgroup_fixture.h"
#include "host/cgroup_hierarchy.h"

#define A         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B         "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define V1(path)  MOUNT("/" path, "cgroup", "," path)
#define V2        MOUNT("", "cgroup2", "")
#define IN_HYBRID MOUNT("/unified", "cgroup2", ",nsdelegate")

static void read_once(struct fixture *fixture)
{
    read_next(fixture, false);
}

static void put_v1_memory(const struct fixture *fixture)
{
    put_cgroup(fixture, "memory/docker/" A "/memory.stat",
               "cache 0\nrss 0\nhierarchical_memory_limit 4096000\ntotal_cache 10\ntotal_rss 20\n"
               "total_swap 30\ntotal_inactive_file 5\n");
    put_cgroup(fixture, "memory/docker/" A "/memory.usage_in_bytes", "35\n");
    put_cgroup(fixture, "memory/docker/" A "/memory.failcnt", "3\n");
    put_cgroup(fixture, "memory/docker/" A "/memory.oom_control", "under_oom 0\noom_kill 1\n");
}

static void assert_v1_memory(const struct fixture *fixture)
{
    assert_value(fixture, A, USAGE_MEMORY_RSS_BYTES, 20);
    assert_value(fixture, A, USAGE_MEMORY_CACHE_BYTES, 10);
    assert_value(fixture, A, USAGE_MEMORY_USED_BYTES, 35);
    assert_value(fixture, A, USAGE_MEMORY_LIMIT_BYTES, 4096000);
    assert_value(fixture, A, USAGE_MEMORY_SWAP_BYTES, 30);
    assert_value(fixture, A, USAGE_MEMORY_FAILURES, 3);
    assert_value(fixture, A, USAGE_MEMORY_OOM_KILLS, 1);
}

static void put_v1_cpu(const struct fixture *fixture, const char *cpu, const char *cpuacct)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/docker/" A "/cpu.stat", cpu);
    put_cgroup(fixture, path, "nr_periods 9\nnr_throttled 2\nthrottled_time 7000\n");
    snprintf(path, sizeof(path), "%s/docker/" A "/cpuacct.usage", cpuacct);
    put_cgroup(fixture, path, "1000000\n");
    snprintf(path, sizeof(path), "%s/docker/" A "/cpuacct.stat", cpuacct);
    put_cgroup(fixture, path, "user 3\nsystem 1\n");
}

static void assert_v1_cpu(const struct fixture *fixture)
{
    assert_value(fixture, A, USAGE_CPU_US, 1000);
    assert_value(fixture, A, USAGE_CPU_USER_US, 750);
    assert_value(fixture, A, USAGE_CPU_SYSTEM_US, 250);
    assert_value(fixture, A, USAGE_CPU_THROTTLED_US, 7);
}

static void v1_with_every_controller_by_itself(void **state)
{
    struct fixture *fixture = *state;
    const struct usage *usage;

    put_v1_cpu(fixture, "cpu", "cpuacct");
    put_v1_memory(fixture);
    put_cgroup(fixture, "blkio/docker/" A "/blkio.throttle.io_service_bytes_recursive",
               "8:0 Read 1\n8:0 Write 2\nTotal 3\n");
    put_cgroup(fixture, "blkio/docker/" A "/blkio.bfq.io_service_bytes_recursive",
               "8:0 Read 100\nTotal 100\n");
    put_cgroup(fixture, "blkio/docker/" A "/blkio.bfq.io_serviced_recursive",
               "8:0 Read 4\nTotal 4\n");
    put_cgroup(fixture, "pids/docker/" A "/pids.current", "12\n");
    put_cgroup(fixture, "rdma/docker/" A "/rdma.current", "mlx5_0 hca_handle=1 hca_object=2\n");
    put(fixture, "sys/kernel/mm/hugepages/hugepages-2048kB/x", "");
    put_cgroup(fixture, "hugetlb/docker/" A "/hugetlb.2MB.usage_in_bytes", "2097152\n");
    start_reader(fixture, V1("cpu") V1("cpuacct") V1("memory") V1("blkio") V1("pids") V1("rdma")
                              V1("hugetlb") V1("freezer"));
    read_once(fixture);
    assert_int_equal(count_items(fixture), 1);
    assert_v1_cpu(fixture);
    assert_v1_memory(fixture);
    assert_value(fixture, A, USAGE_PIDS, 12);
    usage = &get_item(fixture, A)->usage;
    assert_int_equal(usage->io_count, 1);
    assert_int_equal(usage->io[0].values[USAGE_IO_READ_BYTES], 1);
    assert_int_equal(usage->io[0].values[USAGE_IO_WRITTEN_BYTES], 2);
    assert_int_equal(usage->io[0].values[USAGE_IO_READS], 4);
    assert_int_equal(usage->rdma_count, 1);
    assert_int_equal(usage->rdma[0].objects, 2);
    assert_int_equal(usage->hugetlb_count, 1);
    assert_int_equal(usage->hugetlb[0].page_bytes, 2097152);
    assert_absent(fixture, A, USAGE_CPU_SOME_US);
}

static void v1_with_cpu_and_cpuacct_together(void **state)
{
    struct fixture *fixture = *state;

    put_v1_cpu(fixture, "cpu,cpuacct", "cpu,cpuacct");
    put_v1_memory(fixture);
    start_reader(fixture, V1("cpu,cpuacct") V1("memory"));
    read_once(fixture);
    assert_v1_cpu(fixture);
    assert_v1_memory(fixture);
}

static void hybrid_with_pressure_and_what_v1_does_not_have_on_v2(void **state)
{
    struct fixture *fixture = *state;

    put_v1_cpu(fixture, "cpu,cpuacct", "cpu,cpuacct");
    put_v1_memory(fixture);
    put(fixture, "sys/kernel/mm/hugepages/hugepages-1048576kB/x", "");
    put_cgroup(fixture, "unified/docker/" A "/hugetlb.1GB.current", "1073741824\n");
    put_cgroup(fixture, "unified/docker/" A "/cpu.stat", "usage_usec 77\n");
    put_cgroup(fixture, "unified/docker/" A "/memory.pressure", "some total=5\nfull total=4\n");
    put_cgroup(fixture, "unified/docker/" B "/cpu.stat",
               "usage_usec 88\nuser_usec 80\nsystem_usec 8\n");
    put_cgroup(fixture, "memory/docker/" B "/memory.usage_in_bytes", "9\n");
    start_reader(fixture, V1("cpu,cpuacct") V1("memory") IN_HYBRID);
    read_once(fixture);
    assert_int_equal(count_items(fixture), 2);
    assert_v1_cpu(fixture);
    assert_v1_memory(fixture);
    assert_value(fixture, A, USAGE_MEMORY_SOME_US, 5);
    assert_int_equal(get_item(fixture, A)->usage.hugetlb[0].used_bytes, 1073741824);
    /* What is in no cpuacct has v2's CPU time, which needs no controller. */
    assert_value(fixture, B, USAGE_CPU_US, 88);
    assert_value(fixture, B, USAGE_CPU_SYSTEM_US, 8);
    assert_value(fixture, B, USAGE_MEMORY_USED_BYTES, 9);
    assert_absent(fixture, B, USAGE_CPU_PERIODS);
}

static void put_v2(const struct fixture *fixture)
{
    put_cgroup(fixture, "docker/" A "/cpu.stat",
               "usage_usec 100\nuser_usec 60\nsystem_usec 40\nnr_periods 1\n");
    put_cgroup(fixture, "docker/" A "/memory.stat", "anon 1\nfile 2\ninactive_file 1\n");
    put_cgroup(fixture, "docker/" A "/memory.current", "5\n");
    put_cgroup(fixture, "docker/" A "/memory.swap.current", "6\n");
    put_cgroup(fixture, "docker/" A "/memory.max", "1000\n");
    put_cgroup(fixture, "docker/" A "/memory.events", "max 7\noom_kill 8\n");
    put_cgroup(fixture, "docker/" A "/io.stat", "8:0 rbytes=1 wbytes=2 rios=3 wios=4\n");
    put_cgroup(fixture, "docker/" A "/cpu.pressure", "some total=1\nfull total=0\n");
    put_cgroup(fixture, "docker/" A "/io.pressure", "some total=3\nfull total=2\n");
    put_cgroup(fixture, "docker/" A "/pids.current", "4\n");
}

static void assert_v2(const struct fixture *fixture)
{
    assert_value(fixture, A, USAGE_CPU_US, 100);
    assert_value(fixture, A, USAGE_CPU_USER_US, 60);
    assert_value(fixture, A, USAGE_CPU_SYSTEM_US, 40);
    assert_value(fixture, A, USAGE_CPU_PERIODS, 1);
    assert_value(fixture, A, USAGE_MEMORY_RSS_BYTES, 1);
    assert_value(fixture, A, USAGE_MEMORY_USED_BYTES, 5);
    assert_value(fixture, A, USAGE_MEMORY_SWAP_BYTES, 6);
    assert_value(fixture, A, USAGE_MEMORY_LIMIT_BYTES, 1000);
    assert_value(fixture, A, USAGE_MEMORY_FAILURES, 7);
    assert_value(fixture, A, USAGE_MEMORY_OOM_KILLS, 8);
    assert_value(fixture, A, USAGE_CPU_SOME_US, 1);
    assert_value(fixture, A, USAGE_IO_FULL_US, 2);
    assert_value(fixture, A, USAGE_PIDS, 4);
    assert_int_equal(get_item(fixture, A)->usage.io[0].values[USAGE_IO_WRITES], 4);
    assert_absent(fixture, A, USAGE_MEMORY_SOME_US);
}

static void v2_has_everything_in_one_place(void **state)
{
    struct fixture *fixture = *state;

    put_v2(fixture);
    start_reader(fixture, V2);
    read_once(fixture);
    assert_v2(fixture);
}

static void without_descriptors_to_keep_the_values_are_the_same(void **state)
{
    struct fixture *fixture = *state;

    put_v2(fixture);
    start_reader(fixture, V2);
    fixture->reader->kept_files_max = 0;
    for (int i = 0; i < 3; i++) {
        read_once(fixture);
        assert_v2(fixture);
    }
    assert_int_equal(fixture->reader->unkept, 1);
    remove_cgroup(fixture, "docker/" A);
    read_once(fixture);
    assert_true(get_item(fixture, A)->ended);
    assert_v2(fixture);
}

static void the_limit_is_the_tightest_on_the_way_up(void **state)
{
    struct fixture *fixture = *state;

    put_v2(fixture);
    put_cgroup(fixture, "docker/memory.max", "600\n");
    put_cgroup(fixture, "docker/" B "/memory.current", "1\n");
    put_cgroup(fixture, "docker/" B "/memory.max", "500\n");
    put_cgroup(fixture, "system.slice/cron.service/memory.max", "max\n");
    put_cgroup(fixture, "system.slice/cron.service/memory.current", "1\n");
    start_reader(fixture, V2);
    read_once(fixture);
    assert_value(fixture, A, USAGE_MEMORY_LIMIT_BYTES, 600);
    assert_value(fixture, B, USAGE_MEMORY_LIMIT_BYTES, 500);
    assert_absent(fixture, "cron.service", USAGE_MEMORY_LIMIT_BYTES);
    /* It is a setting, and read only by rescans. */
    put_cgroup(fixture, "docker/memory.max", "400\n");
    read_next(fixture, true);
    assert_value(fixture, A, USAGE_MEMORY_LIMIT_BYTES, 400);
    assert_value(fixture, B, USAGE_MEMORY_LIMIT_BYTES, 400);
}

static void of_v2_the_cpus_are_those_of_the_cpuset_or_the_quota(void **state)
{
    struct fixture *fixture = *state;

    put_v2(fixture);
    put_cgroup(fixture, "cpuset.cpus.effective", "0-15\n");
    put_cgroup(fixture, "docker/" A "/cpu.max", "max 100000\n");
    put_cgroup(fixture, "docker/" B "/memory.current", "1\n");
    put_cgroup(fixture, "docker/" B "/cpuset.cpus.effective", "0-3\n");
    put_cgroup(fixture, "docker/" B "/cpu.max", "250000 100000\n");
    start_reader(fixture, V2);
    read_once(fixture);
    /* Without a controller of its own it has what is around it: here the machine. */
    assert_value(fixture, A, USAGE_CPUS_THOUSANDTHS, 16000);
    assert_value(fixture, B, USAGE_CPUS_THOUSANDTHS, 2500);
    put_cgroup(fixture, "docker/" B "/cpu.max", "max 100000\n");
    put_cgroup(fixture, "docker/cpu.max", "600000 100000\n"); /* of both */
    read_next(fixture, true);
    assert_value(fixture, A, USAGE_CPUS_THOUSANDTHS, 6000);
    assert_value(fixture, B, USAGE_CPUS_THOUSANDTHS, 4000);
}

static void of_v1_the_cpus_are_those_of_the_cpuset_or_the_quota(void **state)
{
    struct fixture *fixture = *state;

    put_v1_cpu(fixture, "cpu", "cpu");
    put_cgroup(fixture, "cpu/docker/" B "/cpu.stat", "nr_periods 0\n");
    put_cgroup(fixture, "cpu/docker/" B "/cpu.cfs_quota_us", "150000\n");
    put_cgroup(fixture, "cpu/docker/" B "/cpu.cfs_period_us", "100000\n");
    put_cgroup(fixture, "cpu/docker/" A "/cpu.cfs_quota_us", "-1\n");
    put_cgroup(fixture, "cpu/docker/" A "/cpu.cfs_period_us", "100000\n");
    put_cgroup(fixture, "cpuset/cpuset.effective_cpus", "0-7\n");
    put_cgroup(fixture, "cpuset/docker/" A "/cpuset.cpus", "2-4,6\n");
    start_reader(fixture, V1("cpu") V1("cpuset"));
    read_once(fixture);
    assert_int_equal(count_items(fixture), 2);
    assert_value(fixture, A, USAGE_CPUS_THOUSANDTHS, 4000);
    assert_value(fixture, B, USAGE_CPUS_THOUSANDTHS, 1500);
    /* What is online counts. */
    put_cgroup(fixture, "cpuset/docker/" A "/cpuset.effective_cpus", "2-3\n");
    read_next(fixture, true);
    assert_value(fixture, A, USAGE_CPUS_THOUSANDTHS, 2000);
}

static void without_cpuset_and_quota_the_cpus_are_unknown(void **state)
{
    struct fixture *fixture = *state;

    put_v2(fixture);
    start_reader(fixture, V2);
    read_once(fixture);
    assert_absent(fixture, A, USAGE_CPUS_THOUSANDTHS);
}

static void hierarchies_that_were_never_opened_close_nothing(void **state)
{
    struct hierarchies hierarchies = {0};
    int fd = fcntl(STDIN_FILENO, F_GETFD) < 0 ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;

    (void)state;
    hierarchies_close(&hierarchies);
    assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0);
    if (fd >= 0)
        close(fd);
}

static void a_directory_that_joins_in_another_hierarchy_adds_its_values(void **state)
{
    struct fixture *fixture = *state;
    uint64_t id;

    put_v1_memory(fixture);
    put_cgroup(fixture, "cpu,cpuacct/x", "");
    start_reader(fixture, V1("cpu,cpuacct") V1("memory"));
    read_once(fixture);
    assert_v1_memory(fixture);
    assert_absent(fixture, A, USAGE_CPU_US);
    id = get_item(fixture, A)->id;
    put_v1_cpu(fixture, "cpu,cpuacct", "cpu,cpuacct");
    read_once(fixture);
    assert_v1_memory(fixture);
    assert_v1_cpu(fixture);
    assert_int_equal(get_item(fixture, A)->id, id);
    /* Runtimes remove one after the other. */
    remove_cgroup(fixture, "memory/docker/" A);
    read_once(fixture);
    assert_false(get_item(fixture, A)->ended);
    remove_cgroup(fixture, "cpu,cpuacct/docker/" A);
    read_once(fixture);
    assert_true(get_item(fixture, A)->ended);
    assert_v1_memory(fixture);
    assert_v1_cpu(fixture);
}

static void a_file_that_comes_later_is_found_by_a_rescan(void **state)
{
    struct fixture *fixture = *state;

    put_cgroup(fixture, "docker/" A "/cpu.stat", "usage_usec 1\n");
    start_reader(fixture, V2);
    read_once(fixture);
    assert_absent(fixture, A, USAGE_PIDS);
    put_cgroup(fixture, "docker/" A "/pids.current", "4\n");
    read_next(fixture, true);
    assert_value(fixture, A, USAGE_PIDS, 4);
}

static void garbage_costs_the_values_of_its_file_and_only_as_long_as_it_is_there(void **state)
{
    static const char *const garbage[] = {"",       "\n",     "-1\n", "99999999999999999999\n",
                                          "<html>", "1 2 3\n"};
    struct fixture *fixture = *state;
    char *huge = malloc(100001);

    put_v2(fixture);
    start_reader(fixture, V2);
    read_once(fixture);
    for (size_t i = 0; i < ARRAY_SIZE(garbage); i++) {
        put_cgroup(fixture, "docker/" A "/memory.current", garbage[i]);
        put_cgroup(fixture, "docker/" A "/cpu.stat", garbage[i]);
        read_once(fixture);
        assert_absent(fixture, A, USAGE_MEMORY_USED_BYTES);
        assert_absent(fixture, A, USAGE_CPU_US);
        assert_value(fixture, A, USAGE_PIDS, 4);
    }
    memset(huge, '1', 100000);
    huge[100000] = '\0';
    put_cgroup(fixture, "docker/" A "/memory.current", huge);
    free(huge);
    read_once(fixture);
    assert_absent(fixture, A, USAGE_MEMORY_USED_BYTES);
    put_v2(fixture);
    read_once(fixture);
    assert_v2(fixture);
}

static void a_directory_in_place_of_a_file_has_no_values(void **state)
{
    struct fixture *fixture = *state;

    put_v2(fixture);
    remove_cgroup(fixture, "docker/" A "/cpu.stat");
    put_cgroup(fixture, "docker/" A "/cpu.stat/x", "");
    start_reader(fixture, V2);
    read_once(fixture);
    assert_absent(fixture, A, USAGE_CPU_US);
    assert_value(fixture, A, USAGE_PIDS, 4);
}

static void without_cgroups_there_is_no_reader(void **state)
{
    struct fixture *fixture = *state;

    open_host(fixture, "31 23 0:28 / /sys/fs/cgroup ro - tmpfs tmpfs ro\n"
                       "33 31 0:30 / /sys/fs/cgroup/systemd rw - cgroup x rw,name=systemd\n");
    assert_int_equal(
        cgroup_reader_new(&fixture->host, source_set_classify_cgroup, &fixture->reader), -ENOENT);
}

static void lines_of_mountinfo(void **state)
{
    static const struct {
        const char *line;
        bool is_ours, unified;
        uint32_t controllers;
        const char *point;
    } cases[] = {
        {"32 31 0:29 / /sys/fs/cgroup/unified rw,nosuid shared:10 - cgroup2 cgroup2 rw,nsdelegate",
         true, true, 0, "/sys/fs/cgroup/unified"},
        {"36 31 0:33 / /sys/fs/cgroup/cpu,cpuacct rw shared:15 master:2 - cgroup c rw,cpu,cpuacct",
         true, false, 1U << CONTROLLER_CPU | 1U << CONTROLLER_CPUACCT,
         "/sys/fs/cgroup/cpu,cpuacct"},
        {"36 31 0:33 / /mnt/a\\040b rw - cgroup cgroup rw,blkio", true, false, 1U << CONTROLLER_IO,
         "/mnt/a b"},
        {"36 31 0:33 /../.. /host/sys/fs/cgroup rw - cgroup2 x rw", true, true, 0,
         "/host/sys/fs/cgroup"},
        {.line = "36 31 0:33 /docker/ab /sys/fs/cgroup/memory rw - cgroup x rw,memory"},
        {"33 31 0:30 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd", true,
         false, 0, "/sys/fs/cgroup/systemd"},
        {.line = "31 23 0:28 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro,mode=755"},
        {.line = "36 31 0:33 / /sys/fs/cgroup rw cgroup2 x rw"},
        {.line = "36 31 0:33 /"},
        {.line = "- - - - - - - cgroup2"},
        {.line = ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct hierarchy_mount mount;

        assert_int_equal(hierarchy_parse_mount(span_of(cases[i].line), &mount), cases[i].is_ours);
        if (!cases[i].is_ours)
            continue;
        assert_int_equal(mount.unified, cases[i].unified);
        assert_int_equal(mount.controllers, cases[i].controllers);
        assert_string_equal(mount.point, cases[i].point);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(v1_with_every_controller_by_itself),
        TEST(v1_with_cpu_and_cpuacct_together),
        TEST(hybrid_with_pressure_and_what_v1_does_not_have_on_v2),
        TEST(v2_has_everything_in_one_place),
        TEST(without_descriptors_to_keep_the_values_are_the_same),
        TEST(the_limit_is_the_tightest_on_the_way_up),
        TEST(of_v2_the_cpus_are_those_of_the_cpuset_or_the_quota),
        TEST(of_v1_the_cpus_are_those_of_the_cpuset_or_the_quota),
        TEST(without_cpuset_and_quota_the_cpus_are_unknown),
        cmocka_unit_test(hierarchies_that_were_never_opened_close_nothing),
        TEST(a_directory_that_joins_in_another_hierarchy_adds_its_values),
        TEST(a_file_that_comes_later_is_found_by_a_rescan),
        TEST(garbage_costs_the_values_of_its_file_and_only_as_long_as_it_is_there),
        TEST(a_directory_in_place_of_a_file_has_no_values),
        TEST(without_cgroups_there_is_no_reader),
        cmocka_unit_test(lines_of_mountinfo),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
