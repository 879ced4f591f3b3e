/* Workloads of the node's cgroups, and what they use, over many reports. */
#include "unit.h"

#include <string.h>

#include "attribution/node/workload_usage.h"
#include "attribution/pipeline.h"
#include "core/macros.h"

#define T0     ((uint64_t)1785000000000000)
#define SECOND USEC_PER_SEC

static const struct workload_owner cron = {.kind = WORKLOAD_UNIT, .id = "cron.service"};

/* A machine on which all cgroups are cron's. */
struct node_of_one {
    struct pipeline *pipeline;
    uint64_t now_us;
};

static int set_up(void **state)
{
    struct node_of_one *node = calloc(1, sizeof(*node));
    struct pipeline_options options = {.gpu = {.interval_us = SECOND},
                                       .max_processes = 16,
                                       .max_workloads = 2,
                                       .retention_us = 60 * SECOND};

    assert_non_null(node);
    node->now_us = T0;
    assert_int_equal(pipeline_new(&options, &node->pipeline), 0);
    *state = node;
    return 0;
}

static int tear_down(void **state)
{
    struct node_of_one *node = *state;

    pipeline_free(node->pipeline);
    free(node);
    return 0;
}

static void report(struct node_of_one *node, const struct usage *did, size_t count)
{
    struct sample_workload workloads[4];
    struct sample sample = {
        .kind = SAMPLE_USAGE,
        .t_us = node->now_us,
        .usage = {.is_first = node->now_us == T0, .count = count, .workloads = workloads}};

    for (size_t i = 0; i < count; i++)
        workloads[i] = (struct sample_workload){
            .kind = cron.kind, .id = cron.id, .container_id = "", .pod_uid = "", .did = &did[i]};
    assert_int_equal(pipeline_ingest(node->pipeline, &sample, 1), 0);
    node->now_us += 5 * SECOND;
}

static struct usage used(uint64_t kills, uint64_t pids)
{
    struct usage usage = {0};

    usage_set(&usage, USAGE_MEMORY_OOM_KILLS, kills);
    usage_set(&usage, USAGE_PIDS, pids);
    return usage;
}

static const struct usage *usage_of_cron(struct node_of_one *node)
{
    const struct workload_usage *found;
    uint32_t workload;

    if (!ledger_find_workload(node->pipeline->ledger, &cron, &workload))
        return NULL;
    found = workload_usages_find(&node->pipeline->node.usages, workload);
    return found ? &found->usage : NULL;
}

static void counters_add_up_and_gauges_are_those_of_now(void **state)
{
    struct node_of_one *node = *state;
    const struct usage first = used(7, 3), second = used(2, 5);

    report(node, &first, 1);
    report(node, &second, 1);
    assert_int_equal(usage_of_cron(node)->values[USAGE_MEMORY_OOM_KILLS], 9);
    assert_int_equal(usage_of_cron(node)->values[USAGE_PIDS], 5);
}

static void cgroups_of_one_workload_are_one_but_the_tighter_limit_counts(void **state)
{
    struct node_of_one *node = *state;
    struct usage did[] = {used(1, 3), used(2, 4)};

    usage_set(&did[0], USAGE_MEMORY_LIMIT_BYTES, 500);
    usage_set(&did[1], USAGE_MEMORY_LIMIT_BYTES, 400);
    report(node, did, 2);
    assert_int_equal(usage_of_cron(node)->values[USAGE_MEMORY_OOM_KILLS], 3);
    assert_int_equal(usage_of_cron(node)->values[USAGE_PIDS], 7);
    assert_int_equal(usage_of_cron(node)->values[USAGE_MEMORY_LIMIT_BYTES], 400);
}

static void what_ended_keeps_its_counters_for_the_retention_but_holds_nothing(void **state)
{
    struct node_of_one *node = *state;
    const struct usage did = used(1, 3);

    report(node, &did, 1);
    for (int i = 0; i < 12; i++) {
        report(node, NULL, 0);
        assert_int_equal(usage_of_cron(node)->values[USAGE_MEMORY_OOM_KILLS], 1);
        assert_false(usage_has(usage_of_cron(node), USAGE_PIDS));
    }
    report(node, NULL, 0);
    assert_null(usage_of_cron(node));
}

static void what_ended_is_forgotten_also_if_the_clock_was_set_back(void **state)
{
    struct node_of_one *node = *state;
    const struct usage did = used(1, 3);

    report(node, &did, 1);
    node->now_us -= 3600 * SECOND;
    for (int i = 0; i < 14; i++)
        report(node, NULL, 0);
    assert_null(usage_of_cron(node));
}

static void a_unit_that_comes_back_counts_on(void **state)
{
    struct node_of_one *node = *state;
    const struct usage did = used(1, 3), again = used(4, 2);

    report(node, &did, 1);
    report(node, NULL, 0);
    report(node, &again, 1);
    assert_int_equal(usage_of_cron(node)->values[USAGE_MEMORY_OOM_KILLS], 5);
    assert_int_equal(usage_of_cron(node)->values[USAGE_PIDS], 2);
}

static void devices_are_added_up_each_for_itself(void **state)
{
    struct node_of_one *node = *state;
    struct usage_storage rooms[2];
    struct usage did[] = {usage_in(&rooms[0]), usage_in(&rooms[1])};
    const struct usage_io *io;

    for (uint32_t i = 0; i < 2; i++) {
        usage_add_io(&did[i], 8, 0)->values[USAGE_IO_WRITES] = 10;
        usage_add_io(&did[i], 8, 0)->valid = 1U << USAGE_IO_WRITES;
        usage_add_io(&did[i], 259, i)->values[USAGE_IO_WRITES] = 1;
        usage_add_io(&did[i], 259, i)->valid = 1U << USAGE_IO_WRITES;
        strcpy(did[i].io[0].device, "sda");
        did[i].rdma[did[i].rdma_count++] = (struct usage_rdma){"mlx5_0", true, false, 2, 0};
        did[i].hugetlb[did[i].hugetlb_count++] = (struct usage_hugetlb){2 << 20, 7};
    }
    report(node, did, 2);
    report(node, did, 2);
    io = usage_find_io(usage_of_cron(node), 8, 0);
    assert_int_equal(io->values[USAGE_IO_WRITES], 40);
    assert_string_equal(io->device, "sda");
    assert_int_equal(usage_find_io(usage_of_cron(node), 259, 1)->values[USAGE_IO_WRITES], 2);
    assert_int_equal(usage_of_cron(node)->rdma[0].handles, 4);
    assert_false(usage_of_cron(node)->rdma[0].has_objects);
    assert_int_equal(usage_of_cron(node)->hugetlb[0].used_bytes, 14);
}

static void the_devices_of_a_workload_have_a_cap(void **state)
{
    struct node_of_one *node = *state;
    struct usage_storage room;

    for (uint32_t i = 0; i < USAGE_IO_MAX + 5; i++) {
        struct usage did = usage_in(&room);

        usage_add_io(&did, 7, i)->valid = 1U << USAGE_IO_READS;
        report(node, &did, 1);
    }
    assert_int_equal(usage_of_cron(node)->io_count, USAGE_IO_MAX);
    assert_int_equal(usage_of_cron(node)->left_out, 5);
}

static void a_snapshot_shows_usage_and_gauges_only_while_they_are_fresh(void **state)
{
    struct node_of_one *node = *state;
    const struct usage did = used(1, 3);

    report(node, &did, 1);
    for (int minutes = 0; minutes < 3; minutes += 2) {
        struct snapshot snapshot;

        snapshot_init(&snapshot);
        assert_int_equal(pipeline_snapshot(node->pipeline, T0 + (uint64_t)minutes * 60 * SECOND,
                                           5 * SECOND, &snapshot),
                         0);
        assert_int_equal(snapshot.usage_count, 1);
        assert_string_equal(snapshot.usages[0].id, cron.id);
        assert_int_equal(snapshot.usages[0].usage.values[USAGE_MEMORY_OOM_KILLS], 1);
        assert_int_equal(usage_has(&snapshot.usages[0].usage, USAGE_PIDS), minutes == 0);
        snapshot_done(&snapshot);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(counters_add_up_and_gauges_are_those_of_now),
        TEST(cgroups_of_one_workload_are_one_but_the_tighter_limit_counts),
        TEST(what_ended_keeps_its_counters_for_the_retention_but_holds_nothing),
        TEST(what_ended_is_forgotten_also_if_the_clock_was_set_back),
        TEST(a_unit_that_comes_back_counts_on),
        TEST(devices_are_added_up_each_for_itself),
        TEST(the_devices_of_a_workload_have_a_cap),
        TEST(a_snapshot_shows_usage_and_gauges_only_while_they_are_fresh),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
