/* The node's meters: how package and DRAM energy is charged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attribution/pipeline.h"
#include "core/macros.h"
#include "random.h"

#define T0     ((uint64_t)1785000000000000)
#define SECOND USEC_PER_SEC
#define JOULE  ((uint64_t)1000000)
#define GIB    ((uint64_t)1 << 30)

static const struct workload_owner alice = {.kind = WORKLOAD_USER, .id = "1000"};
static const struct workload_owner job = {.kind = WORKLOAD_SLURM, .id = "31"};

#define WORKLOAD(k, i, cpu, memory)                                                                \
    {                                                                                              \
        .kind = (k), .id = (i), .container_id = "", .pod_uid = "", .cpu_us = (cpu),                \
        .memory_bytes = (memory)                                                                   \
    }
/* The same for a workload with a group whose traffic is counted. */
#define COUNTED(k, i, memory, traffic)                                                             \
    {                                                                                              \
        .kind = (k), .id = (i), .container_id = "", .pod_uid = "", .memory_bytes = (memory),       \
        .has_traffic = true, .traffic_bytes = (traffic)                                            \
    }
#define ALICE(cpu, memory) WORKLOAD(WORKLOAD_USER, "1000", cpu, memory)
#define JOB(cpu, memory)   WORKLOAD(WORKLOAD_SLURM, "31", cpu, memory)

static struct pipeline *new_pipeline(void)
{
    struct pipeline *pipeline;
    struct pipeline_options options = {.gpu = {.interval_us = SECOND},
                                       .max_processes = 16,
                                       .max_workloads = 64,
                                       .retention_us = UINT64_MAX};

    assert_int_equal(pipeline_new(&options, &pipeline), 0);
    return pipeline;
}

static void take(struct pipeline *pipeline, struct sample sample)
{
    assert_int_equal(pipeline_ingest(pipeline, &sample, 1), 0);
}

static void meter(struct pipeline *pipeline, uint64_t t_us, enum meter_kind kind, const char *id,
                  uint64_t counter_uj, uint32_t breaks)
{
    take(pipeline, (struct sample){.kind = SAMPLE_METER,
                                   .t_us = t_us,
                                   .meter = {.source = "rapl",
                                             .kind = kind,
                                             .id = id,
                                             .counter_uj = counter_uj,
                                             .breaks = breaks}});
}

static void usage(struct pipeline *pipeline, uint64_t t_us, struct sample_usage usage)
{
    take(pipeline, (struct sample){.kind = SAMPLE_USAGE, .t_us = t_us, .usage = usage});
}

static uint64_t booked_uj(const struct pipeline *pipeline, const struct workload_owner *owner,
                          enum meter_kind kind)
{
    const struct ledger *ledger = pipeline->ledger;
    const struct ledger_account *at = NULL;
    uint32_t workload;
    uint64_t sum = 0;

    if (!ledger_find_workload(ledger, owner, &workload))
        return 0;
    while ((at = ledger_next_account(ledger, ledger_workload(ledger, workload), at)))
        if (ledger_meter(ledger, at->meter)->kind == kind)
            sum += account_total_uj(&at->account);
    return sum;
}

static uint64_t system_uj(const struct pipeline *pipeline, enum meter_kind kind)
{
    return booked_uj(pipeline, &(struct workload_owner){.kind = WORKLOAD_SYSTEM, .id = "system"},
                     kind);
}

static uint64_t unowned_uj(const struct pipeline *pipeline, enum meter_kind kind,
                           enum unowned unowned)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < ledger_meter_count(pipeline->ledger); i++)
        if (ledger_meter(pipeline->ledger, i)->kind == kind)
            sum += ledger_meter(pipeline->ledger, i)->unowned_uj[unowned];
    return sum;
}

static void assert_balanced(const struct pipeline *pipeline)
{
    for (uint32_t i = 0; i < ledger_meter_count(pipeline->ledger); i++)
        assert_int_equal(ledger_imbalance_uj(pipeline->ledger, i), 0);
}

/* A machine of four CPUs and 100 GiB, with a first report at T0. */
static struct pipeline *started(void)
{
    struct pipeline *pipeline = new_pipeline();

    meter(pipeline, T0, METER_PACKAGE, "0", 0, 0);
    meter(pipeline, T0, METER_DRAM, "0", 0, 0);
    usage(pipeline, T0, (struct sample_usage){.is_first = true});
    return pipeline;
}

static struct sample_usage report(const struct sample_workload *workloads, size_t count,
                                  uint64_t busy_us)
{
    return (struct sample_usage){
        .busy_us = busy_us,
        .capacity_us = 4 * SECOND,
        .memory_used_bytes = 50 * GIB,
        .memory_bytes = 100 * GIB,
        .count = count,
        .workloads = workloads,
    };
}

static void package_energy_goes_by_cpu_time_and_the_rest_of_it_is_the_system(void **state)
{
    const struct sample_workload workloads[] = {ALICE(600000, 0), JOB(200000, 0)};
    struct pipeline *pipeline = started();

    (void)state;
    meter(pipeline, T0 + SECOND, METER_PACKAGE, "0", 100 * JOULE, 0);
    usage(pipeline, T0 + SECOND, report(workloads, 2, SECOND));
    assert_int_equal(booked_uj(pipeline, &alice, METER_PACKAGE), 60 * JOULE);
    assert_int_equal(booked_uj(pipeline, &job, METER_PACKAGE), 20 * JOULE);
    assert_int_equal(system_uj(pipeline, METER_PACKAGE), 20 * JOULE);
    assert_balanced(pipeline);
    pipeline_free(pipeline);
}

static void what_a_quiet_machine_draws_is_idle(void **state)
{
    const struct sample_workload workloads[] = {ALICE(2 * SECOND, 0)};
    struct pipeline *pipeline = started();

    (void)state;
    for (uint64_t i = 1; i <= 5; i++) {
        meter(pipeline, T0 + i * SECOND, METER_PACKAGE, "0", i * 40 * JOULE, 0);
        usage(pipeline, T0 + i * SECOND, report(NULL, 0, 0));
    }
    assert_int_equal(unowned_uj(pipeline, METER_PACKAGE, UNOWNED_IDLE), 200 * JOULE);
    meter(pipeline, T0 + 6 * SECOND, METER_PACKAGE, "0", 340 * JOULE, 0);
    usage(pipeline, T0 + 6 * SECOND, report(workloads, 1, 2 * SECOND));
    assert_int_equal(unowned_uj(pipeline, METER_PACKAGE, UNOWNED_IDLE), 240 * JOULE);
    assert_int_equal(booked_uj(pipeline, &alice, METER_PACKAGE), 100 * JOULE);
    assert_balanced(pipeline);
    pipeline_free(pipeline);
}

static void dram_energy_goes_by_memory_held_and_free_memory_is_idle(void **state)
{
    const struct sample_workload workloads[] = {ALICE(0, 30 * GIB), JOB(0, 10 * GIB)};
    struct pipeline *pipeline = started();

    (void)state;
    meter(pipeline, T0 + SECOND, METER_DRAM, "0", 10 * JOULE, 0);
    usage(pipeline, T0 + SECOND, report(workloads, 2, 0));
    assert_int_equal(booked_uj(pipeline, &alice, METER_DRAM), 3 * JOULE);
    assert_int_equal(booked_uj(pipeline, &job, METER_DRAM), JOULE);
    assert_int_equal(system_uj(pipeline, METER_DRAM), JOULE);
    assert_int_equal(unowned_uj(pipeline, METER_DRAM, UNOWNED_IDLE), 5 * JOULE);
    assert_balanced(pipeline);
    pipeline_free(pipeline);
}

/* A report of a busy machine, in which others than the counted moved so much. */
static struct sample_usage traffic(const struct sample_workload *workloads, size_t count,
                                   uint64_t other_bytes)
{
    struct sample_usage usage = report(workloads, count, SECOND);

    usage.has_traffic = true;
    usage.other_traffic_bytes = other_bytes;
    return usage;
}

static void dram_energy_goes_by_traffic_and_what_others_moved_by_the_memory_they_hold(void **state)
{
    /* 12 J: Alice moved a third, others two thirds. These hold 15 GiB: the job 10, the system
     * what is left of 50. Alice's own memory and free memory are not charged. */
    const struct sample_workload workloads[] = {COUNTED(WORKLOAD_USER, "1000", 35 * GIB, 2 * GIB),
                                                JOB(0, 10 * GIB)};
    struct pipeline *pipeline = started();

    (void)state;
    meter(pipeline, T0 + SECOND, METER_DRAM, "0", 12 * JOULE, 0);
    usage(pipeline, T0 + SECOND, traffic(workloads, 2, 4 * GIB));
    assert_int_equal(booked_uj(pipeline, &alice, METER_DRAM), 4 * JOULE);
    assert_int_equal(booked_uj(pipeline, &job, METER_DRAM), 5333333);
    assert_int_equal(system_uj(pipeline, METER_DRAM), 2666667);
    assert_int_equal(unowned_uj(pipeline, METER_DRAM, UNOWNED_IDLE), 0);
    assert_balanced(pipeline);
    pipeline_free(pipeline);
}

static void a_workload_with_a_partly_counted_traffic_is_charged_for_both_parts(void **state)
{
    /* 10 J: 6 for what its container moved, and of the others' 4 a quarter: 10 of 40 GiB. */
    const struct sample_workload workloads[] = {COUNTED(WORKLOAD_SLURM, "31", 10 * GIB, 6 * GIB),
                                                JOB(0, 10 * GIB)};
    struct pipeline *pipeline = started();

    (void)state;
    meter(pipeline, T0 + SECOND, METER_DRAM, "0", 10 * JOULE, 0);
    usage(pipeline, T0 + SECOND, traffic(workloads, 2, 4 * GIB));
    assert_int_equal(booked_uj(pipeline, &job, METER_DRAM), 7 * JOULE);
    assert_int_equal(system_uj(pipeline, METER_DRAM), 3 * JOULE);
    assert_balanced(pipeline);
    pipeline_free(pipeline);
}

static void memory_that_refreshes_itself_on_a_quiet_machine_is_idle_where_traffic_counts(
    void **state)
{
    const struct sample_workload quiet[] = {COUNTED(WORKLOAD_USER, "1000", 0, 0)};
    const struct sample_workload busy[] = {COUNTED(WORKLOAD_USER, "1000", 0, 3 * GIB)};
    struct pipeline *pipeline = started();
    struct sample_usage nothing = traffic(quiet, 1, 0);

    (void)state;
    nothing.busy_us = 0;
    meter(pipeline, T0 + SECOND, METER_DRAM, "0", 6 * JOULE, 0);
    usage(pipeline, T0 + SECOND, nothing);
    assert_int_equal(unowned_uj(pipeline, METER_DRAM, UNOWNED_IDLE), 6 * JOULE);
    meter(pipeline, T0 + 2 * SECOND, METER_DRAM, "0", 20 * JOULE, 0);
    usage(pipeline, T0 + 2 * SECOND, traffic(busy, 1, GIB)); /* 14 J, 8 of them moved something */
    assert_int_equal(unowned_uj(pipeline, METER_DRAM, UNOWNED_IDLE), 12 * JOULE);
    assert_int_equal(booked_uj(pipeline, &alice, METER_DRAM), 6 * JOULE);
    assert_int_equal(system_uj(pipeline, METER_DRAM), 2 * JOULE);
    assert_balanced(pipeline);
    pipeline_free(pipeline);
}

static void without_traffic_or_memory_no_energy_is_lost(void **state)
{
    const struct sample_workload still[] = {COUNTED(WORKLOAD_USER, "1000", 20 * GIB, 0),
                                            JOB(0, 30 * GIB)};
    const struct sample_workload all[] = {COUNTED(WORKLOAD_USER, "1000", 50 * GIB, GIB)};
    struct pipeline *pipeline = started();

    (void)state;
    meter(pipeline, T0 + SECOND, METER_DRAM, "0", 3 * JOULE, 0);
    usage(pipeline, T0 + SECOND, traffic(still, 2, 0));
    assert_int_equal(booked_uj(pipeline, &job, METER_DRAM), 3 * JOULE);
    meter(pipeline, T0 + 2 * SECOND, METER_DRAM, "0", 7 * JOULE, 0);
    usage(pipeline, T0 + 2 * SECOND, traffic(all, 1, GIB));
    assert_int_equal(booked_uj(pipeline, &alice, METER_DRAM), 2 * JOULE);
    assert_int_equal(unowned_uj(pipeline, METER_DRAM, UNOWNED_UNATTRIBUTED), 2 * JOULE);
    assert_balanced(pipeline);
    pipeline_free(pipeline);
}

static void traffic_is_of_one_window_and_without_it_memory_counts_again(void **state)
{
    const struct sample_workload counted[] = {COUNTED(WORKLOAD_USER, "1000", 30 * GIB, GIB)};
    const struct sample_workload plain[] = {ALICE(0, 30 * GIB)};
    struct pipeline *pipeline = started();

    (void)state;
    meter(pipeline, T0 + SECOND, METER_DRAM, "0", 10 * JOULE, 0);
    usage(pipeline, T0 + SECOND, traffic(counted, 1, 0));
    assert_int_equal(booked_uj(pipeline, &alice, METER_DRAM), 10 * JOULE);
    meter(pipeline, T0 + 2 * SECOND, METER_DRAM, "0", 20 * JOULE, 0);
    usage(pipeline, T0 + 2 * SECOND, report(plain, 1, SECOND));
    assert_int_equal(booked_uj(pipeline, &alice, METER_DRAM), 13 * JOULE);
    assert_int_equal(system_uj(pipeline, METER_DRAM), 2 * JOULE);
    assert_int_equal(unowned_uj(pipeline, METER_DRAM, UNOWNED_IDLE), 5 * JOULE);
    assert_balanced(pipeline);
    pipeline_free(pipeline);
}

static void a_group_that_comes_later_changes_who_is_counted_from_then_on(void **state)
{
    const struct sample_workload before[] = {COUNTED(WORKLOAD_USER, "1000", 50 * GIB, GIB),
                                             JOB(0, 0)};
    const struct sample_workload after[] = {ALICE(0, 50 * GIB),
                                            COUNTED(WORKLOAD_SLURM, "31", 0, 3 * GIB)};
    const struct sample_workload again[] = {COUNTED(WORKLOAD_USER, "1000", 40 * GIB, GIB),
                                            JOB(0, 10 * GIB)};
    struct pipeline *pipeline = started();

    (void)state;
    meter(pipeline, T0 + SECOND, METER_DRAM, "0", 4 * JOULE, 0);
    usage(pipeline, T0 + SECOND, traffic(before, 2, 0));
    assert_int_equal(booked_uj(pipeline, &alice, METER_DRAM), 4 * JOULE);
    meter(pipeline, T0 + 2 * SECOND, METER_DRAM, "0", 8 * JOULE, 0);
    usage(pipeline, T0 + 2 * SECOND, traffic(after, 2, GIB));
    assert_int_equal(booked_uj(pipeline, &alice, METER_DRAM), 5 * JOULE);
    assert_int_equal(booked_uj(pipeline, &job, METER_DRAM), 3 * JOULE);
    meter(pipeline, T0 + 3 * SECOND, METER_DRAM, "0", 12 * JOULE, 0);
    usage(pipeline, T0 + 3 * SECOND, traffic(again, 2, 3 * GIB));
    assert_int_equal(booked_uj(pipeline, &alice, METER_DRAM), 6 * JOULE);
    assert_int_equal(booked_uj(pipeline, &job, METER_DRAM), 6 * JOULE);
    assert_balanced(pipeline);
    pipeline_free(pipeline);
}

static void package_energy_does_not_care_for_traffic(void **state)
{
    const struct sample_workload workloads[] = {COUNTED(WORKLOAD_USER, "1000", 0, 9 * GIB),
                                                JOB(SECOND, 0)};
    struct pipeline *pipeline = started();

    (void)state;
    meter(pipeline, T0 + SECOND, METER_PACKAGE, "0", 5 * JOULE, 0);
    usage(pipeline, T0 + SECOND, traffic(workloads, 2, GIB));
    assert_int_equal(booked_uj(pipeline, &job, METER_PACKAGE), 5 * JOULE);
    assert_balanced(pipeline);
    pipeline_free(pipeline);
}

static void cgroups_of_one_workload_are_charged_together(void **state)
{
    const struct sample_workload workloads[] = {JOB(300000, 0), JOB(700000, 0)};
    struct pipeline *pipeline = started();

    (void)state;
    meter(pipeline, T0 + SECOND, METER_PACKAGE, "0", 100 * JOULE, 0);
    usage(pipeline, T0 + SECOND, report(workloads, 2, SECOND));
    assert_int_equal(booked_uj(pipeline, &job, METER_PACKAGE), 100 * JOULE);
    pipeline_free(pipeline);
}

static void a_meter_has_no_books_before_the_first_usage_report(void **state)
{
    struct pipeline *pipeline = new_pipeline();

    (void)state;
    meter(pipeline, T0, METER_PACKAGE, "0", 0, 0);
    meter(pipeline, T0 + SECOND, METER_PACKAGE, "0", 7 * JOULE, 0);
    usage(pipeline, T0 + SECOND, (struct sample_usage){.is_first = true});
    assert_int_equal(ledger_meter_count(pipeline->ledger), 0);
    meter(pipeline, T0 + 2 * SECOND, METER_PACKAGE, "0", 9 * JOULE, 0);
    usage(pipeline, T0 + 2 * SECOND, report(NULL, 0, SECOND));
    assert_int_equal(ledger_meter_count(pipeline->ledger), 1);
    assert_int_equal(ledger_meter(pipeline->ledger, 0)->energy_uj, 2 * JOULE);
    assert_balanced(pipeline);
    pipeline_free(pipeline);
}

static void a_package_that_two_sources_know_of_is_booked_once(void **state)
{
    struct pipeline *pipeline = started();
    struct sample other = {.kind = SAMPLE_METER,
                           .t_us = T0,
                           .meter = {.source = "hwmon", .kind = METER_PACKAGE, .id = "0"}};

    (void)state;
    take(pipeline, other);
    meter(pipeline, T0 + SECOND, METER_PACKAGE, "0", 40 * JOULE, 0);
    other.meter.counter_uj = 41 * JOULE;
    take(pipeline, other);
    usage(pipeline, T0 + SECOND, report(NULL, 0, SECOND));
    assert_int_equal(system_uj(pipeline, METER_PACKAGE), 40 * JOULE);
    other.meter.source = "cray"; /* comes late, and is better than none */
    take(pipeline, other);
    other.meter.counter_uj = 99 * JOULE;
    take(pipeline, other);
    usage(pipeline, T0 + 2 * SECOND, report(NULL, 0, SECOND));
    assert_int_equal(system_uj(pipeline, METER_PACKAGE), 40 * JOULE);
    assert_balanced(pipeline);
    pipeline_free(pipeline);
}

static void model(struct pipeline *pipeline, uint64_t t_us, uint64_t counter_uj, uint64_t idle_uj)
{
    take(pipeline, (struct sample){.kind = SAMPLE_METER,
                                   .t_us = t_us,
                                   .meter = {.source = "model",
                                             .kind = METER_PACKAGE,
                                             .id = "model",
                                             .counter_uj = counter_uj,
                                             .integrated = true,
                                             .modelled = true,
                                             .idle_uj = idle_uj}});
}

static struct pipeline *started_with_model(void)
{
    struct pipeline *pipeline = new_pipeline();

    model(pipeline, T0, 0, 0);
    usage(pipeline, T0, (struct sample_usage){.is_first = true});
    return pipeline;
}

static void a_model_is_booked_as_such_and_knows_its_idle_part(void **state)
{
    const struct sample_workload workloads[] = {ALICE(600000, 0), JOB(200000, 0)};
    struct pipeline *pipeline = started_with_model();
    struct snapshot snapshot;
    const struct ledger *ledger = pipeline->ledger;
    const struct ledger_account *account;
    uint32_t workload;

    (void)state;
    model(pipeline, T0 + SECOND / 2, 30 * JOULE, 10 * JOULE);
    model(pipeline, T0 + SECOND, 120 * JOULE, 20 * JOULE);
    usage(pipeline, T0 + SECOND, report(workloads, 2, SECOND));
    assert_int_equal(unowned_uj(pipeline, METER_PACKAGE, UNOWNED_IDLE), 20 * JOULE);
    assert_int_equal(booked_uj(pipeline, &alice, METER_PACKAGE), 60 * JOULE);
    assert_int_equal(booked_uj(pipeline, &job, METER_PACKAGE), 20 * JOULE);
    assert_int_equal(system_uj(pipeline, METER_PACKAGE), 20 * JOULE);
    assert_true(ledger_find_workload(ledger, &alice, &workload));
    account = ledger_next_account(ledger, ledger_workload(ledger, workload), NULL);
    assert_int_equal(account->account.energy_uj[TIER_ACTIVE][METHOD_MODELLED], 60 * JOULE);
    assert_balanced(pipeline);
    snapshot_init(&snapshot);
    assert_int_equal(pipeline_snapshot(pipeline, T0 + SECOND, 10 * SECOND, &snapshot), 0);
    assert_int_equal(snapshot.meter_count, 1);
    assert_false(snapshot.meters[0].has_counter); /* it is no hardware */
    snapshot_done(&snapshot);
    pipeline_free(pipeline);
}

static void a_model_is_never_booked_beside_a_meter(void **state)
{
    struct pipeline *pipeline = started_with_model(); /* and the meter comes a moment later */
    struct snapshot snapshot;

    (void)state;
    meter(pipeline, T0, METER_PACKAGE, "0", 0, 0);
    model(pipeline, T0 + SECOND, 80 * JOULE, 20 * JOULE);
    meter(pipeline, T0 + SECOND, METER_PACKAGE, "0", 50 * JOULE, 0);
    usage(pipeline, T0 + SECOND, report(NULL, 0, SECOND));
    assert_int_equal(ledger_meter_count(pipeline->ledger), 1);
    assert_int_equal(system_uj(pipeline, METER_PACKAGE), 50 * JOULE);
    snapshot_init(&snapshot);
    assert_int_equal(pipeline_snapshot(pipeline, T0 + SECOND, 10 * SECOND, &snapshot), 0);
    assert_int_equal(snapshot.observed_count, 0);
    snapshot_done(&snapshot);
    pipeline_free(pipeline);
}

static void a_model_is_replaced_by_a_later_meter(void **state)
{
    struct pipeline *pipeline = started_with_model();

    (void)state;
    model(pipeline, T0 + SECOND, 80 * JOULE, 20 * JOULE);
    usage(pipeline, T0 + SECOND, report(NULL, 0, SECOND));
    assert_int_equal(system_uj(pipeline, METER_PACKAGE), 60 * JOULE);
    model(pipeline, T0 + SECOND + SECOND / 4, 100 * JOULE, 25 * JOULE);
    meter(pipeline, T0 + SECOND + SECOND / 2, METER_PACKAGE, "0", 1000 * JOULE, 0);
    model(pipeline, T0 + 2 * SECOND, 160 * JOULE, 40 * JOULE); /* is not polled any more */
    meter(pipeline, T0 + 2 * SECOND, METER_PACKAGE, "0", 1025 * JOULE, 0);
    usage(pipeline, T0 + 2 * SECOND, report(NULL, 0, SECOND));
    assert_int_equal(ledger_meter_count(pipeline->ledger), 2);
    assert_int_equal(ledger_meter(pipeline->ledger, 0)->energy_uj,
                     100 * JOULE); /* until the meter came */
    assert_int_equal(ledger_meter(pipeline->ledger, 1)->energy_uj, 25 * JOULE);
    for (uint64_t i = 3; i < 6; i++) {
        model(pipeline, T0 + i * SECOND, i * 80 * JOULE, i * 20 * JOULE);
        meter(pipeline, T0 + i * SECOND, METER_PACKAGE, "0", (1000 + i * 25) * JOULE, 0);
        usage(pipeline, T0 + i * SECOND, report(NULL, 0, SECOND));
    }
    assert_int_equal(ledger_meter(pipeline->ledger, 0)->energy_uj, 100 * JOULE);
    assert_int_equal(ledger_meter(pipeline->ledger, 1)->energy_uj, 125 * JOULE);
    assert_balanced(pipeline);
    pipeline_free(pipeline);
}

static void energy_before_a_first_report_that_came_late_is_a_gap(void **state)
{
    struct pipeline *pipeline = started();

    (void)state;
    usage(pipeline, T0 + SECOND, report(NULL, 0, SECOND));
    meter(pipeline, T0 + 2 * SECOND, METER_PACKAGE, "0", 7 * JOULE, 0);
    usage(pipeline, T0 + 2 * SECOND, (struct sample_usage){.is_first = true}); /* begins anew */
    assert_int_equal(unowned_uj(pipeline, METER_PACKAGE, UNOWNED_GAP), 7 * JOULE);
    assert_balanced(pipeline);
    pipeline_free(pipeline);
}

static void a_break_in_the_count_invents_no_joule(void **state)
{
    struct pipeline *pipeline = started();

    (void)state;
    meter(pipeline, T0 + SECOND, METER_PACKAGE, "0", 5 * JOULE, 0);
    meter(pipeline, T0 + 2 * SECOND, METER_PACKAGE, "0", 500 * JOULE, 1);
    meter(pipeline, T0 + 3 * SECOND, METER_PACKAGE, "0", 504 * JOULE, 1);
    meter(pipeline, T0 + 4 * SECOND, METER_PACKAGE, "0", 1, 1); /* a source that lies */
    usage(pipeline, T0 + 4 * SECOND, report(NULL, 0, SECOND));
    assert_int_equal(system_uj(pipeline, METER_PACKAGE), 9 * JOULE);
    assert_balanced(pipeline);
    pipeline_free(pipeline);
}

static void meters_that_contain_others_are_observed_and_not_booked(void **state)
{
    struct pipeline *pipeline = started();
    struct snapshot snapshot;

    (void)state;
    meter(pipeline, T0 + SECOND, METER_PSYS, "0", 900 * JOULE, 0);
    meter(pipeline, T0 + SECOND, METER_CORE, "0", 30 * JOULE, 0);
    usage(pipeline, T0 + SECOND, report(NULL, 0, SECOND));
    snapshot_init(&snapshot);
    assert_int_equal(pipeline_snapshot(pipeline, T0 + SECOND, 10 * SECOND, &snapshot), 0);
    assert_int_equal(snapshot.meter_count, 2);
    assert_int_equal(snapshot.observed_count, 2);
    assert_int_equal(snapshot.observed[0].counter_uj, 900 * JOULE);
    snapshot_done(&snapshot);
    snapshot_init(&snapshot); /* what is not read any more is not shown */
    assert_int_equal(pipeline_snapshot(pipeline, T0 + 70 * SECOND, 10 * SECOND, &snapshot), 0);
    assert_int_equal(snapshot.observed_count, 0);
    assert_false(snapshot.meters[0].has_counter);
    snapshot_done(&snapshot);
    pipeline_free(pipeline);
}

static void a_workload_that_ended_keeps_what_it_used(void **state)
{
    const struct sample_workload workloads[] = {JOB(SECOND, 0)};
    struct pipeline *pipeline = started();

    (void)state;
    meter(pipeline, T0 + SECOND, METER_PACKAGE, "0", 50 * JOULE, 0);
    usage(pipeline, T0 + SECOND, report(workloads, 1, SECOND));
    for (uint64_t i = 2; i < 5; i++) {
        meter(pipeline, T0 + i * SECOND, METER_PACKAGE, "0", i * 50 * JOULE, 0);
        usage(pipeline, T0 + i * SECOND, report(NULL, 0, SECOND));
    }
    assert_int_equal(booked_uj(pipeline, &job, METER_PACKAGE), 50 * JOULE);
    pipeline_sweep(pipeline, T0 + 3600 * SECOND);
    assert_balanced(pipeline);
    pipeline_free(pipeline);
}

static void an_hour_of_workloads_that_come_and_go_balances_at_every_step(void **state)
{
    struct pipeline *pipeline = started();
    struct random_source random = {.state = 7};
    uint64_t package_uj = 0, dram_uj = 0, breaks = 0;

    (void)state;
    for (uint64_t i = 1; i <= 3600; i++) {
        char ids[8][8];
        struct sample_workload workloads[8];
        struct sample_usage did;
        size_t count = random_u64(&random) % 8;

        for (size_t w = 0; w < count; w++) {
            snprintf(ids[w], sizeof(ids[w]), "%u", (unsigned)(random_u64(&random) % 100));
            workloads[w] = (struct sample_workload)WORKLOAD(WORKLOAD_SLURM, ids[w],
                                                            random_u64(&random) % SECOND,
                                                            random_u64(&random) % (20 * GIB));
            workloads[w].has_traffic = random_u64(&random) % 2 == 0;
            workloads[w].traffic_bytes = random_u64(&random) % (50 * GIB);
        }
        breaks += random_u64(&random) % 200 == 0;
        package_uj += random_u64(&random) % (300 * JOULE);
        dram_uj += random_u64(&random) % (20 * JOULE);
        meter(pipeline, T0 + i * SECOND, METER_PACKAGE, "0", package_uj, (uint32_t)breaks);
        meter(pipeline, T0 + i * SECOND, METER_DRAM, "0", dram_uj, 0);
        did = report(workloads, count, random_u64(&random) % (4 * SECOND));
        did.has_traffic = random_u64(&random) % 4 > 0;
        did.other_traffic_bytes = random_u64(&random) % (50 * GIB);
        usage(pipeline, T0 + i * SECOND, did);
        assert_balanced(pipeline);
    }
    assert_int_equal(ledger_meter(pipeline->ledger, 1)->energy_uj, dram_uj);
    assert_true(ledger_meter(pipeline->ledger, 0)->energy_uj < package_uj);
    pipeline_free(pipeline);
}

static void energy_of_workloads_that_cannot_be_seen_is_unattributed(void **state)
{
    struct pipeline *pipeline = started();
    struct sample_usage blind = report(NULL, 0, 2 * SECOND);

    (void)state;
    blind.is_blind = true;
    meter(pipeline, T0 + SECOND, METER_PACKAGE, "0", 10 * JOULE, 0);
    meter(pipeline, T0 + SECOND, METER_DRAM, "0", 3 * JOULE, 0);
    usage(pipeline, T0 + SECOND, blind);
    for (int i = 0; i < 2; i++) {
        enum meter_kind kind = i == 0 ? METER_PACKAGE : METER_DRAM;

        assert_int_equal(system_uj(pipeline, kind), 0);
        assert_int_equal(unowned_uj(pipeline, kind, UNOWNED_UNATTRIBUTED) +
                             unowned_uj(pipeline, kind, UNOWNED_IDLE),
                         i == 0 ? 10 * JOULE : 3 * JOULE);
        assert_true(unowned_uj(pipeline, kind, UNOWNED_UNATTRIBUTED) > 0);
    }
    assert_balanced(pipeline);
    pipeline_free(pipeline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(energy_of_workloads_that_cannot_be_seen_is_unattributed),
        cmocka_unit_test(package_energy_goes_by_cpu_time_and_the_rest_of_it_is_the_system),
        cmocka_unit_test(what_a_quiet_machine_draws_is_idle),
        cmocka_unit_test(dram_energy_goes_by_memory_held_and_free_memory_is_idle),
        cmocka_unit_test(dram_energy_goes_by_traffic_and_what_others_moved_by_the_memory_they_hold),
        cmocka_unit_test(a_workload_with_a_partly_counted_traffic_is_charged_for_both_parts),
        cmocka_unit_test(
            memory_that_refreshes_itself_on_a_quiet_machine_is_idle_where_traffic_counts),
        cmocka_unit_test(without_traffic_or_memory_no_energy_is_lost),
        cmocka_unit_test(traffic_is_of_one_window_and_without_it_memory_counts_again),
        cmocka_unit_test(a_group_that_comes_later_changes_who_is_counted_from_then_on),
        cmocka_unit_test(package_energy_does_not_care_for_traffic),
        cmocka_unit_test(cgroups_of_one_workload_are_charged_together),
        cmocka_unit_test(a_meter_has_no_books_before_the_first_usage_report),
        cmocka_unit_test(a_package_that_two_sources_know_of_is_booked_once),
        cmocka_unit_test(a_model_is_booked_as_such_and_knows_its_idle_part),
        cmocka_unit_test(a_model_is_never_booked_beside_a_meter),
        cmocka_unit_test(a_model_is_replaced_by_a_later_meter),
        cmocka_unit_test(energy_before_a_first_report_that_came_late_is_a_gap),
        cmocka_unit_test(a_break_in_the_count_invents_no_joule),
        cmocka_unit_test(meters_that_contain_others_are_observed_and_not_booked),
        cmocka_unit_test(a_workload_that_ended_keeps_what_it_used),
        cmocka_unit_test(an_hour_of_workloads_that_come_and_go_balances_at_every_step),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
