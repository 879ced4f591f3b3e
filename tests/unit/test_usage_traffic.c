/* Memory traffic, from the groups of resctrl to the report of the cgroups. */
#include "unit.h"

#include "cgroup_fixture.h"
#include "sources/cgroup/cgroups.h"

#define SECOND USEC_PER_SEC
#define V2     MOUNT("", "cgroup2", "")
#define A      "a3f0c1d2e4b5968778695a4b3c2d1e0f00112233445566778899aabbccddeeff"
#define B      "b00112233445566778899aabbccddeeffa3f0c1d2e4b5968778695a4b3c2d1e0"

enum { ITEMS_MAX = 4 };

static void say(const struct fixture *fixture, const char *group, const char *text)
{
    char path[256];

    snprintf(path, sizeof(path), "sys/fs/resctrl/%smon_data/mon_L3_00/mbm_total_bytes", group);
    put(fixture, path, text);
}

/* A machine on which A has moved 30 bytes, B 20 and the others 50 since the last reading. */
static struct resctrl *moved(struct fixture *fixture)
{
    struct resctrl *resctrl;

    open_host(fixture, V2);
    assert_int_equal(resctrl_new(&fixture->host, &resctrl), 0);
    say(fixture, "", "0\n");
    say(fixture, A "/", "0\n");
    say(fixture, "mon_groups/" B "/", "0\n");
    assert_false(resctrl_read(resctrl, SECOND));
    say(fixture, "", "70\n");
    say(fixture, A "/", "30\n");
    say(fixture, "mon_groups/" B "/", "20\n");
    assert_true(resctrl_read(resctrl, 2 * SECOND));
    return resctrl;
}

static struct usage_owner item(enum workload_kind kind, const char *container_id)
{
    struct usage_owner made = {.owner = {.kind = kind}, .around = USAGE_AROUND_NONE};

    snprintf(made.owner.container_id, sizeof(made.owner.container_id), "%s", container_id);
    return made;
}

static struct sample_usage match(struct fixture *fixture, const struct usage_owner *items,
                                 size_t count, struct sample_workload workloads[static ITEMS_MAX])
{
    struct sample_usage usage = {.count = count, .workloads = workloads};
    struct resctrl *resctrl = moved(fixture);

    for (size_t i = 0; i < count; i++)
        workloads[i] = (struct sample_workload){.container_id = items[i].owner.container_id};
    usage_traffic_assign(resctrl, items, workloads, &usage);
    resctrl_free(resctrl);
    return usage;
}

static void assert_traffic(const struct sample_workload *workload, uint64_t bytes)
{
    assert_true(workload->has_traffic);
    assert_int_equal(workload->traffic_bytes, bytes);
}

static void containers_have_their_groups_traffic_and_others_the_rest(void **state)
{
    const struct usage_owner items[] = {item(WORKLOAD_UNIT, ""), item(WORKLOAD_POD, A),
                                        item(WORKLOAD_CONTAINER, B)};
    struct sample_workload workloads[ITEMS_MAX];
    struct sample_usage usage = match(*state, items, 3, workloads);

    assert_true(usage.has_traffic);
    assert_int_equal(usage.other_traffic_bytes, 50);
    assert_false(workloads[0].has_traffic);
    assert_traffic(&workloads[1], 30);
    assert_traffic(&workloads[2], 20);
}

static void a_group_without_a_workload_belongs_to_the_others(void **state)
{
    const struct usage_owner items[] = {item(WORKLOAD_CONTAINER, B)};
    struct sample_workload workloads[ITEMS_MAX];
    struct sample_usage usage = match(*state, items, 1, workloads);

    assert_true(usage.has_traffic);
    assert_int_equal(usage.other_traffic_bytes, 80);
}

static void where_no_workload_has_a_group_there_is_no_traffic(void **state)
{
    const struct usage_owner items[] = {item(WORKLOAD_UNIT, "")};
    struct sample_workload workloads[ITEMS_MAX];
    struct sample_usage usage = match(*state, items, 1, workloads);

    assert_false(usage.has_traffic);
    assert_int_equal(usage.other_traffic_bytes, 0);
    assert_false(workloads[0].has_traffic);
}

static void a_container_of_two_cgroups_is_counted_once(void **state)
{
    const struct usage_owner items[] = {item(WORKLOAD_POD, A), item(WORKLOAD_POD, A)};
    struct sample_workload workloads[ITEMS_MAX];
    struct sample_usage usage = match(*state, items, 2, workloads);

    assert_traffic(&workloads[0], 30);
    assert_traffic(&workloads[1], 0);
    assert_int_equal(usage.other_traffic_bytes, 70);
}

static void a_job_that_claims_a_container_gets_nothing_of_it(void **state)
{
    struct usage_owner items[] = {item(WORKLOAD_SLURM, A), item(WORKLOAD_POD, A)};
    struct sample_workload workloads[ITEMS_MAX];

    items[0].owner.container_is_claim = true;
    (void)match(*state, items, 2, workloads);
    assert_false(workloads[0].has_traffic);
    assert_traffic(&workloads[1], 30);
}

static void what_is_inside_of_a_container_is_counted_with_it(void **state)
{
    struct usage_owner items[] = {item(WORKLOAD_UNIT, ""), item(WORKLOAD_CONTAINER, ""),
                                  item(WORKLOAD_CONTAINER, A), item(WORKLOAD_USER, "")};
    struct sample_workload workloads[ITEMS_MAX];
    struct sample_usage usage;

    items[0].around = 1; /* a unit in a container in a container of a user */
    items[1].around = 2;
    items[2].around = 3;
    usage = match(*state, items, 4, workloads);
    assert_traffic(&workloads[0], 0);
    assert_traffic(&workloads[1], 0);
    assert_traffic(&workloads[2], 30);
    assert_false(workloads[3].has_traffic);
    assert_int_equal(usage.other_traffic_bytes, 70);
}

static const struct sample_usage *read_report(const struct source_ops *ops, void *source,
                                              struct clock_manual *clock, struct batch *batch)
{
    struct error err;

    clock->now_us += 5 * SECOND;
    batch_reset(batch);
    assert_int_equal(ops->read(source, batch, &err), 0);
    assert_int_equal(batch->count, 1);
    assert_int_equal(batch->samples[0].kind, SAMPLE_USAGE);
    return &batch->samples[0].usage;
}

static void the_sample_of_cgroups_has_the_traffic_of_each_workload(void **state)
{
    struct fixture *fixture = *state;
    struct clock_manual clock;
    struct source_context context = {.host = &fixture->host,
                                     .clock = &clock.clock,
                                     .classify_cgroup = source_set_classify_cgroup};
    const struct sample_usage *usage;
    struct batch batch;
    struct error err;
    void *source;

    clock_manual_init(&clock, SECOND);
    batch_init(&batch);
    put(fixture, "proc/stat", "cpu  1 0 1 10 0 0 0 0 0 0\n");
    put(fixture, "proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 400 kB\n");
    put_cgroup(fixture, "system.slice/docker-" A ".scope/cpu.stat", "usage_usec 10\n");
    open_host(fixture, V2);
    say(fixture, "", "1000\n");
    say(fixture, A "/", "100\n");
    assert_int_equal(cgroups_source.open(&context, &source, &err), 0);
    usage = read_report(&cgroups_source, source, &clock, &batch);
    assert_false(usage->has_traffic);
    say(fixture, "", "1200\n");
    say(fixture, A "/", "150\n");
    usage = read_report(&cgroups_source, source, &clock, &batch);
    assert_true(usage->has_traffic);
    assert_int_equal(usage->other_traffic_bytes, 200);
    assert_int_equal(usage->count, 1);
    assert_traffic(&usage->workloads[0], 50);
    say(fixture, A "/", "Unavailable\n");
    usage = read_report(&cgroups_source, source, &clock, &batch);
    assert_false(usage->has_traffic);
    assert_false(usage->workloads[0].has_traffic);
    cgroups_source.close(source);
    batch_done(&batch);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(containers_have_their_groups_traffic_and_others_the_rest),
        TEST(a_group_without_a_workload_belongs_to_the_others),
        TEST(where_no_workload_has_a_group_there_is_no_traffic),
        TEST(a_container_of_two_cgroups_is_counted_once),
        TEST(a_job_that_claims_a_container_gets_nothing_of_it),
        TEST(what_is_inside_of_a_container_is_counted_with_it),
        TEST(the_sample_of_cgroups_has_the_traffic_of_each_workload),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
