/* Workloads of the node's cgroups, and what they use, over many reports. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
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

/* Containers that run side by side, 100 ms of CPU time each, on a machine that is busy for 1 s; and
 * 10 J of its package. */
static void run_containers(struct node_of_one *node, size_t count, bool is_first)
{
    const struct usage did = {.valid = USAGE_BIT(USAGE_CPU_US), .values[USAGE_CPU_US] = 100000};
    char ids[8][32];
    struct sample_workload workloads[8];
    const struct sample samples[] = {
        {.kind = SAMPLE_METER,
         .t_us = node->now_us,
         .meter = {.source = "rapl",
                   .kind = METER_PACKAGE,
                   .id = "0",
                   .counter_uj = (node->now_us - T0) * 2}},
        {.kind = SAMPLE_USAGE,
         .t_us = node->now_us,
         .usage = {.is_first = is_first,
                   .busy_us = SECOND,
                   .capacity_us = SECOND,
                   .count = count,
                   .workloads = workloads}},
    };

    for (size_t i = 0; i < count; i++) {
        snprintf(ids[i], sizeof(ids[i]), "container-%zu", i);
        workloads[i] = (struct sample_workload){.kind = WORKLOAD_CONTAINER,
                                                .id = ids[i],
                                                .container_id = "",
                                                .pod_uid = "",
                                                .cpu_us = is_first ? 0 : 100000,
                                                .did = &did};
    }
    assert_int_equal(pipeline_ingest(node->pipeline, samples, ARRAY_SIZE(samples)), 0);
    for (uint32_t m = 0; m < ledger_meter_count(node->pipeline->ledger); m++)
        assert_true(ledger_is_balanced(node->pipeline->ledger, m));
    node->now_us += 5 * SECOND;
}

static uint64_t energy_of(const struct node_of_one *node, enum workload_kind kind, const char *id)
{
    const struct ledger *ledger = node->pipeline->ledger;
    struct workload_owner owner = {.kind = kind};
    const struct ledger_account *at;
    uint32_t workload;

    snprintf(owner.id, sizeof(owner.id), "%s", id);
    if (!ledger_find_workload(ledger, &owner, &workload))
        return 0;
    at = ledger_next_account(ledger, ledger_workload(ledger, workload), NULL);
    return at ? account_total_uj(&at->account) : 0;
}

static void workloads_beyond_the_limit_are_other_and_not_the_system(void **state)
{
    struct node_of_one *node = *state; /* which has room for two */

    run_containers(node, 6, true);
    run_containers(node, 6, false);
    assert_int_equal(energy_of(node, WORKLOAD_CONTAINER, "container-0"), 1000000);
    assert_int_equal(energy_of(node, WORKLOAD_CONTAINER, "container-1"), 1000000);
    assert_int_equal(energy_of(node, WORKLOAD_OTHER, "other"), 4000000);
    assert_int_equal(energy_of(node, WORKLOAD_SYSTEM, "system"), 4000000);
    assert_int_equal(ledger_counts(node->pipeline->ledger)->workloads_dropped, 2 * 4);
    /* What ended makes room, after the retention. */
    for (int i = 0; i < 14; i++)
        run_containers(node, 1, false);
    pipeline_sweep(node->pipeline, node->now_us);
    assert_int_equal(energy_of(node, WORKLOAD_CONTAINER, "container-1"), 0);
    run_containers(node, 3, false);
    assert_int_equal(energy_of(node, WORKLOAD_CONTAINER, "container-1"), 1000000);
    assert_int_equal(energy_of(node, WORKLOAD_OTHER, "other"), 5000000);
}

static void restart_with_limit(struct node_of_one *node, size_t max_workloads)
{
    struct pipeline_options options = node->pipeline->options;
    struct buffer state;

    options.max_workloads = max_workloads;
    buffer_init(&state, 1 << 20);
    pipeline_pack_state(node->pipeline, &state);
    pipeline_free(node->pipeline);
    assert_int_equal(pipeline_new(&options, &node->pipeline), 0);
    assert_int_equal(pipeline_unpack_state(node->pipeline,
                                           &(struct unpack){.rest = {state.data, state.len}},
                                           &(struct pipeline_resumption){.is_same_boot = true,
                                                                         .now_us = node->now_us}),
                     0);
    buffer_done(&state);
}

static void a_smaller_limit_cuts_no_workload_that_runs(void **state)
{
    struct node_of_one *node = *state;

    restart_with_limit(node, 16);
    run_containers(node, 6, true);
    run_containers(node, 6, false);
    restart_with_limit(node, 2);
    run_containers(node, 7, true);
    for (int i = 0; i < 20; i++) { /* longer than the retention */
        run_containers(node, 7, false);
        pipeline_sweep(node->pipeline, node->now_us);
    }
    for (int i = 0; i < 6; i++) {
        char id[32];

        snprintf(id, sizeof(id), "container-%d", i);
        assert_int_equal(energy_of(node, WORKLOAD_CONTAINER, id), 21 * 1000000);
    }
    assert_int_equal(energy_of(node, WORKLOAD_OTHER, "other"), 20 * 1000000);
    restart_with_limit(node, 16);
    run_containers(node, 6, true);
    run_containers(node, 6, false);
    assert_int_equal(energy_of(node, WORKLOAD_CONTAINER, "container-5"), 22 * 1000000);
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
        TEST(workloads_beyond_the_limit_are_other_and_not_the_system),
        TEST(a_smaller_limit_cuts_no_workload_that_runs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
