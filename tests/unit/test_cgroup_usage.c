/* sources/cgroup: what the texts of cgroup files say, v1 and v2. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/macros.h"
#include "sources/cgroup/parse.h"

/* "cpu 12 user 3": the values that are there, in the order of the enum. */
static const char *const names[USAGE_FIELDS] = {
    [USAGE_CPU_US] = "cpu",
    [USAGE_CPU_USER_US] = "user",
    [USAGE_CPU_SYSTEM_US] = "system",
    [USAGE_CPU_PERIODS] = "periods",
    [USAGE_CPU_THROTTLED_PERIODS] = "throttled",
    [USAGE_CPU_THROTTLED_US] = "throttled_us",
    [USAGE_MEMORY_FAILURES] = "failures",
    [USAGE_MEMORY_OOM_KILLS] = "kills",
    [USAGE_CPU_SOME_US] = "cpu_some",
    [USAGE_CPU_FULL_US] = "cpu_full",
    [USAGE_MEMORY_SOME_US] = "memory_some",
    [USAGE_MEMORY_FULL_US] = "memory_full",
    [USAGE_IO_SOME_US] = "io_some",
    [USAGE_IO_FULL_US] = "io_full",
    [USAGE_MEMORY_RSS_BYTES] = "rss",
    [USAGE_MEMORY_CACHE_BYTES] = "cache",
    [USAGE_MEMORY_INACTIVE_FILE_BYTES] = "inactive",
    [USAGE_MEMORY_USED_BYTES] = "used",
    [USAGE_MEMORY_LIMIT_BYTES] = "limit",
    [USAGE_MEMORY_SWAP_BYTES] = "swap",
    [USAGE_PIDS] = "pids",
    [USAGE_CPUS_THOUSANDTHS] = "cpus",
};

static size_t print(char *text, size_t size, size_t len, const char *name, uint64_t value)
{
    int n = snprintf(text + len, size - len, "%s%s %llu", len ? " " : "", name,
                     (unsigned long long)value);

    assert_true(n > 0 && len + (size_t)n < size);
    return len + (size_t)n;
}

static void describe(const struct usage *usage, char *text, size_t size)
{
    static const char *const io_names[] = {"read", "written", "reads", "writes"};
    size_t len = 0;

    text[0] = '\0';
    for (size_t i = 0; i < USAGE_FIELDS; i++)
        if (usage_has(usage, (enum usage_field)i))
            len = print(text, size, len, names[i], usage->values[i]);
    for (size_t i = 0; i < usage->io_count; i++) {
        char name[64];

        snprintf(name, sizeof(name), "%u:%u/", usage->io[i].major, usage->io[i].minor);
        for (size_t f = 0; f < USAGE_IO_FIELDS; f++) {
            snprintf(name, sizeof(name), "%u:%u/%s", usage->io[i].major, usage->io[i].minor,
                     io_names[f]);
            if (usage->io[i].valid & 1U << f)
                len = print(text, size, len, name, usage->io[i].values[f]);
        }
    }
    for (size_t i = 0; i < usage->rdma_count; i++) {
        char name[64];

        snprintf(name, sizeof(name), "%s/handles", usage->rdma[i].device);
        if (usage->rdma[i].has_handles)
            len = print(text, size, len, name, usage->rdma[i].handles);
        snprintf(name, sizeof(name), "%s/objects", usage->rdma[i].device);
        if (usage->rdma[i].has_objects)
            len = print(text, size, len, name, usage->rdma[i].objects);
    }
}

struct row {
    const char *text, *expected;
};

static void parse(bool is_v2, const char *file, const char *text, struct usage *usage)
{
    const struct cgroup_format *format = cgroup_formats;

    while (format->is_v2 != is_v2 || strcmp(format->name, file) != 0)
        format++;
    format->parse(format, span_of(text), usage);
}

static void assert_rows(bool is_v2, const char *file, const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct usage_storage room;
        struct usage usage = usage_in(&room);
        char found[1024];

        parse(is_v2, file, rows[i].text, &usage);
        describe(&usage, found, sizeof(found));
        assert_string_equal(found, rows[i].expected);
    }
}

static void cpu_time_and_throttling_are_read_in_any_order(void **state)
{
    static const struct row rows[] = {
        {"usage_usec 100\nuser_usec 60\nsystem_usec 40\n", "cpu 100 user 60 system 40"},
        {"nice_usec 3\nthrottled_usec 9\nsystem_usec 40\nnew.key 7\nnr_periods 2\nnr_throttled 1\n"
         "usage_usec 100\nuser_usec 60\n",
         "cpu 100 user 60 system 40 periods 2 throttled 1 throttled_us 9"},
        {"usage_usec 0\n", "cpu 0"},
        {"", ""},
    };

    (void)state;
    assert_rows(true, "cpu.stat", rows, ARRAY_SIZE(rows));
}

static void what_is_malformed_costs_its_own_value_only(void **state)
{
    static const struct row rows[] = {
        {"usage_usec -1\nuser_usec 60\n", "user 60"},
        {"usage_usec 1x\nuser_usec 60\n", "user 60"},
        {"usage_usec\nuser_usec 60\n", "user 60"},
        {"usage_usec \nuser_usec 60\n", "user 60"},
        {"usage_usec  5\nuser_usec 60\n", "user 60"},
        {"usage_usec 18446744073709551615\nuser_usec 60\n", "user 60"},
        {"usage_usec 4611686018427387904\nuser_usec 4611686018427387903\n",
         "user 4611686018427387903"},
        {"usage_usec 99999999999999999999999999\nuser_usec 60\n", "user 60"},
        {"usage_usec 100\r\nuser_usec 60\n", "user 60"},
        {"user_usec 60\nusage_usec 12", "user 60"}, /* torn in a number */
        {"user_usec 60\nuser_usec 70\n", "user 60"},
        {"\n\n \nuser_usec 60\n", "user 60"},
        {"<html>\n", ""},
    };

    (void)state;
    assert_rows(true, "cpu.stat", rows, ARRAY_SIZE(rows));
}

static void v1_has_nanoseconds_and_ticks(void **state)
{
    static const struct row throttling[] = {
        {"nr_periods 7\nnr_throttled 3\nthrottled_time 5999\nnr_bursts 0\nburst_time 0\n",
         "periods 7 throttled 3 throttled_us 5"},
    };
    static const struct row ticks[] = {
        {"user 12\nsystem 3\n", "user 120000 system 30000"},
        {"user 12\nsystem 461168601842739\n", "user 120000"},
        {"user 12\n", "user 120000"},
    };
    static const struct row total[] = {
        {"81324567123\n", "cpu 81324567"},
        {"12 13\n", ""},
        {"12\n13\n", ""},
        {"-5\n", ""},
        {"12", ""},
        {"max\n", ""},
    };

    (void)state;
    assert_rows(false, "cpu.stat", throttling, ARRAY_SIZE(throttling));
    assert_rows(false, "cpuacct.stat", ticks, ARRAY_SIZE(ticks));
    assert_rows(false, "cpuacct.usage", total, ARRAY_SIZE(total));
}

static struct usage cpu(uint64_t total, uint64_t user, uint64_t system)
{
    struct usage usage = {0};

    usage_set(&usage, USAGE_CPU_US, total);
    usage_set(&usage, USAGE_CPU_USER_US, user);
    usage_set(&usage, USAGE_CPU_SYSTEM_US, system);
    return usage;
}

static void the_exact_cpu_time_is_divided_as_the_sampled_one_and_no_half_goes_back(void **state)
{
    static const struct {
        struct {
            uint64_t total, user, system;
        } now, last;
        uint64_t user;
    } cases[] = {
        {{1000, 30, 10}, {0, 0, 0}, 750},
        {{1000, 0, 0}, {0, 0, 0}, 1000}, /* no tick has hit yet */
        {{1000, 0, 5}, {0, 0, 0}, 0},
        {{1100, 10, 10}, {1000, 750, 250}, 750}, /* 550 by the ratio */
        {{1100, 100, 0}, {1000, 500, 500}, 600}, /* 1100 by the ratio */
        {{100, 30, 10}, {1000, 750, 250}, 75},   /* started anew */
        {{USAGE_VALUE_MAX, USAGE_VALUE_MAX, 0}, {0, 0, 0}, USAGE_VALUE_MAX},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct usage now = cpu(cases[i].now.total, cases[i].now.user, cases[i].now.system);
        struct usage last = cpu(cases[i].last.total, cases[i].last.user, cases[i].last.system);

        cgroup_divide_cpu(&now, &last);
        assert_int_equal(now.values[USAGE_CPU_USER_US], cases[i].user);
        assert_int_equal(now.values[USAGE_CPU_USER_US] + now.values[USAGE_CPU_SYSTEM_US],
                         cases[i].now.total);
    }
}

static void a_half_that_is_absent_stays_so(void **state)
{
    struct usage usage = {0}, last = {0};

    (void)state;
    usage_set(&usage, USAGE_CPU_US, 100);
    usage_set(&usage, USAGE_CPU_USER_US, 7);
    cgroup_divide_cpu(&usage, &last);
    assert_int_equal(usage.values[USAGE_CPU_USER_US], 7);
    assert_false(usage_has(&usage, USAGE_CPU_SYSTEM_US));
}

static void memory_is_what_is_held_with_all_below(void **state)
{
    static const struct row v2[] = {
        {"anon 10\nfile 20\nkernel 5\nshmem 1\ninactive_file 7\nactive_file 13\n",
         "rss 10 cache 20 inactive 7"},
        {"anon_thp 4\nfile_mapped 5\n", ""},
    };
    static const struct row v1[] = {
        {"cache 1\nrss 2\nswap 3\ninactive_file 4\nhierarchical_memory_limit 1073741824\n"
         "hierarchical_memsw_limit 9223372036854771712\ntotal_cache 10\ntotal_rss 20\n"
         "total_rss_huge 0\ntotal_swap 30\ntotal_inactive_file 40\n",
         "rss 20 cache 10 inactive 40 limit 1073741824 swap 30"},
        {"hierarchical_memory_limit 9223372036854771712\n", ""},
        {"hierarchical_memory_limit 9223372036854710272\n", ""}, /* 64 KiB pages */
        {"hierarchical_memory_limit 0\n", "limit 0"},
    };
    static const struct row events[] = {
        {"low 0\nhigh 1\nmax 2\noom 3\noom_kill 4\noom_group_kill 5\n", "failures 2 kills 4"},
    };
    static const struct row oom_control[] = {
        {"oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", "kills 3"},
        {"oom_kill_disable 0\nunder_oom 0\n", ""}, /* before 4.13 */
    };

    (void)state;
    assert_rows(true, "memory.stat", v2, ARRAY_SIZE(v2));
    assert_rows(false, "memory.stat", v1, ARRAY_SIZE(v1));
    assert_rows(true, "memory.events", events, ARRAY_SIZE(events));
    assert_rows(false, "memory.oom_control", oom_control, ARRAY_SIZE(oom_control));
}

static void io_is_counted_by_device(void **state)
{
    static const struct row v2[] = {
        {"8:16 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0\n259:0 wios=9 rbytes=8\n",
         "8:16/read 1 8:16/written 2 8:16/reads 3 8:16/writes 4 259:0/read 8 259:0/writes 9"},
        {"8:0 rbytes=0 wbytes=0 rios=0 wios=0\n",
         "8:0/read 0 8:0/written 0 8:0/reads 0 8:0/writes 0"},
        {"8:0\n8:0 \n253:0 8:1 rbytes=5\n", "8:1/read 5"},
        {"8:0 rbytes=5 cost.usage=9 cost.wait=1 use_delay=3\n", "8:0/read 5"},
        {"8:0 rbytes=5\n8:0 rbytes=6 wbytes=7\n", "8:0/read 5 8:0/written 7"},
        {"8:0 rbytes=5\n8:1 rbytes=6", "8:0/read 5"},
        {"8:0 rbytes=-5 wbytes=x rios= wios=18446744073709551615 =7\n", ""},
        {"rbytes=5\nx:y rbytes=5\n4096:0 rbytes=5\n0:1048576 rbytes=5\n8: rbytes=5\n", ""},
        {"8:0 rbytes=5 junk wbytes=6\n", "8:0/read 5"},
    };
    static const struct row bytes[] = {
        {"8:0 Read 4096\n8:0 Write 8192\n8:0 Sync 12288\n8:0 Async 0\n8:0 Total 12288\n"
         "8:16 Read 1\nTotal 12289\n",
         "8:0/read 4096 8:0/written 8192 8:16/read 1"},
        {"Total 0\n", ""},
        {"8:0 Read\n8:0 Write -1\n8:0 Read 5 6\n", ""},
    };
    static const struct row counts[] = {
        {"8:0 Read 4\n8:0 Write 8\nTotal 12\n", "8:0/reads 4 8:0/writes 8"},
    };

    (void)state;
    assert_rows(true, "io.stat", v2, ARRAY_SIZE(v2));
    assert_rows(false, "blkio.throttle.io_service_bytes_recursive", bytes, ARRAY_SIZE(bytes));
    assert_rows(false, "blkio.throttle.io_serviced_recursive", counts, ARRAY_SIZE(counts));
}

static void bytes_and_operations_of_v1_meet_at_the_device(void **state)
{
    struct usage_storage room;
    struct usage usage = usage_in(&room);
    char found[256];

    (void)state;
    parse(false, "blkio.throttle.io_service_bytes_recursive", "8:0 Read 1\n8:0 Write 2\n", &usage);
    parse(false, "blkio.throttle.io_serviced_recursive", "8:1 Read 5\n8:0 Read 3\n8:0 Write 4\n",
          &usage);
    describe(&usage, found, sizeof(found));
    assert_string_equal(found, "8:0/read 1 8:0/written 2 8:0/reads 3 8:0/writes 4 8:1/reads 5");
}

static void devices_beyond_the_cap_are_counted_not_stored(void **state)
{
    char text[4096] = "";
    struct usage_storage room;
    struct usage usage = usage_in(&room);

    (void)state;
    for (int i = 0; i < USAGE_IO_MAX + 3; i++)
        sprintf(text + strlen(text), "8:%d rbytes=1\n", i);
    parse(true, "io.stat", text, &usage);
    assert_int_equal(usage.io_count, USAGE_IO_MAX);
    assert_int_equal(usage.left_out, 3);
    text[0] = '\0';
    for (int i = 0; i < USAGE_RDMA_MAX + 2; i++)
        sprintf(text + strlen(text), "mlx5_%d hca_handle=1\n", i);
    parse(true, "rdma.current", text, &usage);
    assert_int_equal(usage.rdma_count, USAGE_RDMA_MAX);
    assert_int_equal(usage.left_out, 5);
}

static void the_totals_of_pressure_count(void **state)
{
    static const struct row cpu_rows[] = {
        {"some avg10=0.11 avg60=0.06 avg300=0.24 total=78765576\n"
         "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
         "cpu_some 78765576 cpu_full 0"},
        {"some avg10=0.11 avg60=0.06 avg300=0.24 total=5\n", "cpu_some 5"}, /* before 5.13 */
        {"some total=-1\nfull total=\nother total=5\nsome\nsometotal=5\n", ""},
        {"some total=5\nfull total=5", "cpu_some 5"},
    };
    static const struct row memory_rows[] = {{"full total=2\n", "memory_full 2"}};
    static const struct row io_rows[] = {{"some total=2\n", "io_some 2"}};

    (void)state;
    assert_rows(true, "cpu.pressure", cpu_rows, ARRAY_SIZE(cpu_rows));
    assert_rows(true, "memory.pressure", memory_rows, ARRAY_SIZE(memory_rows));
    assert_rows(true, "io.pressure", io_rows, ARRAY_SIZE(io_rows));
}

static void rdma_objects_are_counted_by_device(void **state)
{
    static const struct row rows[] = {
        {"mlx5_0 hca_handle=2 hca_object=20\nocrdma1 hca_handle=1 hca_object=3\n",
         "mlx5_0/handles 2 mlx5_0/objects 20 ocrdma1/handles 1 ocrdma1/objects 3"},
        {"mlx5_0 hca_handle=max hca_object=20\n", "mlx5_0/objects 20"},
        {"mlx5_0 hca_handle=max\nmlx5_1\n hca_handle=1\n", ""},
        {"mlx5_0 hca_handle=1\nmlx5_0 hca_handle=2\n", "mlx5_0/handles 1"},
        {"a_device_of_a_name_that_is_far_too_long hca_handle=1\nb hca_handle=2\n", "b/handles 2"},
    };

    (void)state;
    assert_rows(true, "rdma.current", rows, ARRAY_SIZE(rows));
}

static void no_limit_is_no_number(void **state)
{
    static const struct {
        const char *text;
        int r;
    } cases[] = {
        {"0\n", 0},
        {"1073741824\n", 0},
        {"max\n", -ERANGE},
        {"9223372036854771712\n", -ERANGE},
        {"9223372036854710272\n", -ERANGE},
        {"-1\n", -EINVAL},
        {"\n", -EINVAL},
        {"", -EINVAL},
        {"1", -EINVAL},
    };
    uint64_t value;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(cgroup_parse_number(span_of(cases[i].text), &value), cases[i].r);
}

static void a_quota_is_a_part_of_each_period(void **state)
{
    static const struct {
        const char *text;
        int r;
        uint64_t thousandths;
    } cases[] = {
        {"200000 100000\n", 0, 2000},
        {"150000 100000\n", 0, 1500},
        {"1000 1000000\n", 0, 1},
        {"0 100000\n", 0, 0},
        {"max 100000\n", -ERANGE, 0},
        {"-1 100000\n", -ERANGE, 0}, /* of v1 */
        {"-2 100000\n", -EINVAL, 0},
        {"200000 0\n", -EINVAL, 0},
        {"200000\n", -EINVAL, 0},
        {"200000 100000", -EINVAL, 0},
        {"200000 100000\n\n", -EINVAL, 0},
        {"99999999999999999999 1\n", -EINVAL, 0},
        {"", -EINVAL, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t thousandths = 0;

        assert_int_equal(cgroup_parse_quota(span_of(cases[i].text), &thousandths), cases[i].r);
        assert_int_equal(thousandths, cases[i].thousandths);
    }
}

static void the_cpus_of_a_list_are_counted(void **state)
{
    static const struct {
        const char *text;
        int r;
        uint64_t cpus;
    } cases[] = {
        {"0\n", 0, 1},
        {"0-3,8\n", 0, 5},
        {"2,4-5,63-127\n", 0, 68},
        {"0-65535\n", 0, 65536},
        {"\n", -EINVAL, 0}, /* of v1, until it is set */
        {"", -EINVAL, 0},
        {"0-3", -EINVAL, 0},
        {"3-0\n", -EINVAL, 0},
        {"0,0\n", -EINVAL, 0},
        {"0-3,2\n", -EINVAL, 0},
        {"0-\n", -EINVAL, 0},
        {"-3\n", -EINVAL, 0},
        {"0-65536\n", -EINVAL, 0},
        {"0 1\n", -EINVAL, 0},
        {"0-3\n4\n", -EINVAL, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t cpus = 0;

        assert_int_equal(cgroup_parse_cpuset(span_of(cases[i].text), &cpus), cases[i].r);
        assert_int_equal(cpus, cases[i].cpus);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpu_time_and_throttling_are_read_in_any_order),
        cmocka_unit_test(what_is_malformed_costs_its_own_value_only),
        cmocka_unit_test(v1_has_nanoseconds_and_ticks),
        cmocka_unit_test(the_exact_cpu_time_is_divided_as_the_sampled_one_and_no_half_goes_back),
        cmocka_unit_test(a_half_that_is_absent_stays_so),
        cmocka_unit_test(memory_is_what_is_held_with_all_below),
        cmocka_unit_test(io_is_counted_by_device),
        cmocka_unit_test(bytes_and_operations_of_v1_meet_at_the_device),
        cmocka_unit_test(devices_beyond_the_cap_are_counted_not_stored),
        cmocka_unit_test(the_totals_of_pressure_count),
        cmocka_unit_test(rdma_objects_are_counted_by_device),
        cmocka_unit_test(no_limit_is_no_number),
        cmocka_unit_test(a_quota_is_a_part_of_each_period),
        cmocka_unit_test(the_cpus_of_a_list_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
