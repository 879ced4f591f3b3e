/*
 * A machine whose meters tick as sources would read them: the BMC every 10 s, everything else every
 * second, a report of usage every 5 s. Powers are whole watts, so what must be booked can be
 * computed by hand.
 */
#pragma once

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attribution/pipeline.h"
#include "core/macros.h"
#include "imbalance.h"

#define T0     ((uint64_t)1785000000000000)
#define SECOND USEC_PER_SEC
#define JOULE  ((uint64_t)1000000)
#define GIB    ((uint64_t)1 << 30)

static const struct workload_owner alice = {.kind = WORKLOAD_USER, .id = "1000"};
static const struct workload_owner job = {.kind = WORKLOAD_SLURM, .id = "31"};
static const struct workload_owner the_system = {.kind = WORKLOAD_SYSTEM, .id = "system"};

#define WORKLOAD(k, i, cpu, memory)                                                                \
    {                                                                                              \
        .kind = (k), .id = (i), .container_id = "", .pod_uid = "", .cpu_us = (cpu),                \
        .memory_bytes = (memory)                                                                   \
    }

/* Of 20 CPU seconds in a report 5 are used: 3 by alice, 1 by the job, 1 by the system. Of 100 GiB
 * they hold 30, 10 and 10. */
static const struct sample_workload two_workloads[] = {
    WORKLOAD(WORKLOAD_USER, "1000", 3 * SECOND, 30 * GIB),
    WORKLOAD(WORKLOAD_SLURM, "31", SECOND, 10 * GIB),
};

enum { MACHINE_METERS = 6, MACHINE_GPUS = 2 };

struct machine_meter {
    const char *source; /* NULL: there is none */
    enum meter_kind kind;
    const char *id;
    uint64_t every_s;
    uint64_t watts;
    uint64_t counter_uj; /* so far; what is read of it may be older */
    uint32_t breaks;
    bool silent; /* counts on, but is not read */
};

struct machine {
    struct pipeline *pipeline;
    uint64_t now_s; /* since T0 */
    struct machine_meter meters[MACHINE_METERS];
    struct {
        bool present, silent;
        uint64_t watts, counter_uj;
    } gpus[MACHINE_GPUS];
    const struct sample_workload *workloads;
    size_t workload_count;
    uint64_t busy_us; /* of a report */
    bool restarted;   /* usage reports start over */
};

#define BMC(w)                                                                                     \
    {                                                                                              \
        .source = "ipmi", .kind = METER_NODE, .id = "ipmi", .every_s = 10, .watts = (w)            \
    }
#define PACKAGE(w)                                                                                 \
    {                                                                                              \
        .source = "rapl", .kind = METER_PACKAGE, .id = "0", .every_s = 1, .watts = (w)             \
    }
#define DRAM(w)                                                                                    \
    {                                                                                              \
        .source = "rapl", .kind = METER_DRAM, .id = "0", .every_s = 1, .watts = (w)                \
    }
#define PSYS(n, w)                                                                                 \
    {                                                                                              \
        .source = "rapl", .kind = METER_PSYS, .id = (n), .every_s = 1, .watts = (w)                \
    }
#define MODULE(n, w)                                                                               \
    {                                                                                              \
        .source = "hwmon", .kind = METER_MODULE, .id = (n), .every_s = 1, .watts = (w)             \
    }
#define BUSY                                                                                       \
    .workloads = two_workloads, .workload_count = ARRAY_SIZE(two_workloads), .busy_us = 5 * SECOND

static void feed(struct machine *machine, struct sample sample)
{
    assert_int_equal(pipeline_ingest(machine->pipeline, &sample, 1), 0);
}

static void read_meter(struct machine *machine, const struct machine_meter *meter)
{
    feed(machine, (struct sample){.kind = SAMPLE_METER,
                                  .t_us = T0 + machine->now_s * SECOND,
                                  .meter = {.source = meter->source,
                                            .kind = meter->kind,
                                            .id = meter->id,
                                            .counter_uj = meter->counter_uj,
                                            .breaks = meter->breaks}});
}

static void report_usage(struct machine *machine)
{
    feed(machine, (struct sample){.kind = SAMPLE_USAGE,
                                  .t_us = T0 + machine->now_s * SECOND,
                                  .usage = {.is_first = machine->now_s == 0 || machine->restarted,
                                            .busy_us = machine->busy_us,
                                            .capacity_us = 20 * SECOND,
                                            .memory_used_bytes = 50 * GIB,
                                            .memory_bytes = 100 * GIB,
                                            .count = machine->workload_count,
                                            .workloads = machine->workloads}});
}

static void describe_gpu(struct machine *machine, uint32_t gpu)
{
    feed(machine, (struct sample){.kind = SAMPLE_DEVICE,
                                  .gpu = gpu,
                                  .device = {.uuid = gpu ? "GPU-1" : "GPU-0",
                                             .name = "NVIDIA H200",
                                             .driver = "580",
                                             .power_limit_mw = 700000}});
}

static void assert_balanced(const struct machine *machine)
{
    for (uint32_t i = 0; i < ledger_meter_count(machine->pipeline->ledger); i++) {
        assert_int_equal(ledger_imbalance_uj(machine->pipeline->ledger, i), 0);
        assert_true(ledger_is_balanced(machine->pipeline->ledger, i));
    }
}

/* Reads everything that is due now. */
static void read_all(struct machine *machine)
{
    for (uint32_t i = 0; i < MACHINE_GPUS; i++)
        if (machine->gpus[i].present && !machine->gpus[i].silent)
            feed(machine, (struct sample){.kind = SAMPLE_ENERGY,
                                          .gpu = i,
                                          .t_us = T0 + machine->now_s * SECOND,
                                          .counter_uj = machine->gpus[i].counter_uj});
    /* The meter of the whole may come before those of its parts, as on a Cray, or after them. */
    for (size_t i = 0; i < MACHINE_METERS; i++)
        if (machine->meters[i].source && !machine->meters[i].silent &&
            machine->now_s % machine->meters[i].every_s == 0)
            read_meter(machine, &machine->meters[i]);
    if (machine->now_s % 5 == 0)
        report_usage(machine);
    assert_balanced(machine);
}

static void run(struct machine *machine, uint64_t seconds)
{
    for (uint64_t end_s = machine->now_s + seconds; machine->now_s < end_s;) {
        machine->now_s++;
        for (size_t i = 0; i < MACHINE_METERS; i++)
            machine->meters[i].counter_uj += machine->meters[i].watts * JOULE;
        for (size_t i = 0; i < MACHINE_GPUS; i++)
            machine->gpus[i].counter_uj += machine->gpus[i].watts * JOULE;
        read_all(machine);
    }
}

static void begin_with(struct machine *machine, struct node_overhead_options rest,
                       size_t max_workloads)
{
    struct pipeline_options options = {.gpu = {.interval_us = SECOND},
                                       .overhead = rest,
                                       .max_processes = 16,
                                       .max_workloads = max_workloads,
                                       .retention_us = 0,
                                       .embodied = {{[METER_GPU] = {true, 28500000},
                                                     [METER_PACKAGE] = {true, 2000000},
                                                     [METER_NODE_OVERHEAD] = {true, 30000000}}}};

    assert_int_equal(pipeline_new(&options, &machine->pipeline), 0);
    for (uint32_t i = 0; i < MACHINE_GPUS; i++)
        if (machine->gpus[i].present)
            describe_gpu(machine, i);
    read_all(machine);
}

/*
 * The meter of the whole is chosen at 30 s. One that is read every 10 s is read next at 40 s, which
 * begins the first window; it ends at 70 s, the next at 100 s, and so on.
 */
static void begin(struct machine *machine)
{
    begin_with(machine, (struct node_overhead_options){0}, 64);
}

static void end(struct machine *machine)
{
    pipeline_free(machine->pipeline);
}

/* The books of the overhead, or NULL. */
static const struct ledger_meter *books_of_rest(const struct machine *machine)
{
    const struct ledger *ledger = machine->pipeline->ledger;
    const struct ledger_meter *found = NULL;

    for (size_t i = 0; i < ledger_meter_count(ledger); i++)
        if (ledger_meter(ledger, i)->kind == METER_NODE_OVERHEAD) {
            assert_null(found); /* one whole, one rest */
            found = ledger_meter(ledger, i);
        }
    return found;
}

static uint64_t rest_uj(const struct machine *machine)
{
    const struct ledger_meter *books = books_of_rest(machine);

    assert_non_null(books);
    return books->energy_uj;
}

static uint64_t unowned_uj(const struct machine *machine, enum unowned owner)
{
    const struct ledger_meter *books = books_of_rest(machine);

    assert_non_null(books);
    return books->unowned_uj[owner];
}

/* What an owner is charged of the overhead, in one tier. */
static uint64_t tier_uj(const struct machine *machine, const struct workload_owner *owner,
                        enum tier tier)
{
    const struct ledger *ledger = machine->pipeline->ledger;
    const struct ledger_account *at = NULL;
    uint32_t workload;
    uint64_t sum = 0;

    if (!ledger_find_workload(ledger, owner, &workload))
        return 0;
    while ((at = ledger_next_account(ledger, ledger_workload(ledger, workload), at)))
        if (ledger_meter(ledger, at->meter)->kind == METER_NODE_OVERHEAD)
            sum += at->account.energy_uj[tier][METHOD_SHARED];
    return sum;
}

static uint64_t paid_uj(const struct machine *machine, const struct workload_owner *owner)
{
    return tier_uj(machine, owner, TIER_ACTIVE) + tier_uj(machine, owner, TIER_IDLE);
}
