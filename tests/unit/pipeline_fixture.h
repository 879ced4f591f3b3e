/* A pipeline that is fed sample by sample, and its books as a test wants to ask for them. */
#pragma once

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attribution/pipeline.h"
#include "core/macros.h"
#include "imbalance.h"

#define T0     ((uint64_t)1794725358000000) /* when every scenario begins */
#define SECOND USEC_PER_SEC
#define TICK   ((uint64_t)100000)
#define JOULE  ((uint64_t)1000000)

/* Each cgroup is a unit of this name; what has none is known by its pid. */
static void own_by_cgroup(const struct sample_process *who, struct workload_owner *ret_owner)
{
    *ret_owner = (struct workload_owner){.kind = who->cgroup[0] ? WORKLOAD_UNIT : WORKLOAD_PROCESS};
    snprintf(ret_owner->id, sizeof(ret_owner->id), "%s", who->cgroup);
}

static struct pipeline_options default_options(void)
{
    return (struct pipeline_options){
        .gpu = {.interval_us = SECOND, .idle_policy = IDLE_POLICY_PROPORTIONAL},
        .max_processes = 4096,
        .max_workloads = 16384,
        .retention_us = 300 * SECOND,
        .has_history = true,
        .price = {.factor = {.known = true, .ug_per_kwh = 473007000},
                  .cost = {.known = true, .micro_per_kwh = 250000, .currency = "EUR"},
                  .pue_millionths = 1200000},
        .embodied = {{[METER_GPU] = {true, 28500000}}},
        .find_owner = own_by_cgroup,
    };
}

static void feed(struct pipeline *pipeline, struct sample sample)
{
    assert_int_equal(pipeline_ingest(pipeline, &sample, 1), 0);
}

static void add_gpu(struct pipeline *pipeline, uint32_t gpu)
{
    static const char *const uuids[] = {"GPU-0", "GPU-1", "GPU-2", "GPU-3"};

    feed(pipeline, (struct sample){.kind = SAMPLE_DEVICE,
                                   .gpu = gpu,
                                   .device = {.uuid = uuids[gpu],
                                              .name = "NVIDIA H200",
                                              .driver = "580",
                                              .power_limit_mw = 700000}});
}

static struct pipeline *pipeline_with(struct pipeline_options options)
{
    struct pipeline *pipeline;

    assert_int_equal(pipeline_new(&options, &pipeline), 0);
    add_gpu(pipeline, 0);
    return pipeline;
}

static void energy(struct pipeline *pipeline, uint32_t gpu, uint64_t t_us, uint64_t counter_uj)
{
    feed(pipeline, (struct sample){
                       .kind = SAMPLE_ENERGY, .gpu = gpu, .t_us = t_us, .counter_uj = counter_uj});
}

static void label(struct pipeline *pipeline, uint32_t gpu, uint64_t t_us, uint32_t pid,
                  uint64_t at_us, uint16_t sm_percent)
{
    feed(pipeline,
         (struct sample){.kind = SAMPLE_LABEL,
                         .gpu = gpu,
                         .t_us = t_us,
                         .label = {.pid = pid, .at_us = at_us, .sm_percent = sm_percent}});
}

/* A list of up to four pids, ended by 0. */
static void list(struct pipeline *pipeline, uint32_t gpu, uint64_t t_us, enum sample_list_kind kind,
                 const uint32_t pids[4])
{
    struct sample_listed entries[4];
    size_t count = 0;

    for (; count < 4 && pids[count] > 0; count++)
        entries[count] =
            (struct sample_listed){pids[count], 1 << 20, SAMPLE_NO_INSTANCE, SAMPLE_NO_INSTANCE};
    feed(pipeline, (struct sample){.kind = SAMPLE_LIST,
                                   .gpu = gpu,
                                   .t_us = t_us,
                                   .list = {.kind = kind, .count = count, .entries = entries}});
}

#define LIST(pipeline, t_us, ...)                                                                  \
    list(pipeline, 0, t_us, SAMPLE_LIST_COMPUTE, (const uint32_t[4]){__VA_ARGS__})

static void utilisation(struct pipeline *pipeline, uint32_t gpu, uint64_t t_us, uint8_t percent)
{
    feed(pipeline, (struct sample){.kind = SAMPLE_UTILISATION,
                                   .gpu = gpu,
                                   .t_us = t_us,
                                   .utilisation = {.gpu_percent = percent}});
}

static void identify(struct pipeline *pipeline, uint32_t gpu, uint64_t t_us, uint32_t pid,
                     uint64_t start_us, const char *cgroup, const char *name)
{
    feed(pipeline, (struct sample){.kind = SAMPLE_PROCESS,
                                   .gpu = gpu,
                                   .t_us = t_us,
                                   .process = {.pid = pid,
                                               .uid = SAMPLE_UID_UNKNOWN,
                                               .start_us = start_us,
                                               .cgroup = cgroup,
                                               .name = name}});
}

/* Ticks from just after `from_us` to `until_us` at constant power; returns the counter at the end.
 */
static uint64_t ticks(struct pipeline *pipeline, uint32_t gpu, uint64_t from_us, uint64_t until_us,
                      uint64_t counter_uj, uint64_t watts)
{
    for (uint64_t t = from_us + TICK; t <= until_us; t += TICK)
        energy(pipeline, gpu, t, counter_uj += watts * TICK);
    return counter_uj;
}

/* The books, checked: whatever happened, they balance. */
/* In every step; returns what was booked in all of them. */
static uint64_t check_history(const struct history *history)
{
    uint64_t booked_uj = 0;

    for (size_t s = 0; s < HISTORY_STEPS; s++) {
        uint64_t parts_uj = history->others[s];

        for (size_t owner = 0; owner < UNOWNED_COUNT; owner++)
            parts_uj += history->unowned[owner][s];
        for (size_t i = 0; i < history->row_count; i++)
            parts_uj += history->ranks[i].row->steps[s];
        assert_int_equal(parts_uj, history->booked[s]);
        booked_uj += parts_uj;
    }
    return booked_uj;
}

static struct snapshot *books(const struct pipeline *pipeline)
{
    struct snapshot *snapshot = malloc(sizeof(*snapshot));

    assert_non_null(snapshot);
    snapshot_init(snapshot);
    assert_int_equal(pipeline_snapshot(pipeline, T0, SECOND, snapshot), 0);
    if (pipeline->history)
        (void)check_history(pipeline->history);
    for (uint32_t m = 0; m < snapshot->meter_count; m++) {
        const struct snapshot_meter *meter = &snapshot->meters[m];
        uint64_t unowned = 0, workloads = 0;
        double power_mw = meter->power_mw;
        struct bill bill = meter->bill, imbalance = bill_imbalance(pipeline->ledger, m);

        for (int i = 0; i < UNOWNED_COUNT; i++) {
            unowned += meter->unowned_uj[i];
            power_mw -= meter->unowned_mw[i];
            bill_subtract(&bill, &meter->unowned_bill[i]);
        }
        for (size_t i = 0; i < snapshot->workload_count; i++)
            if (snapshot->workloads[i].meter == m) {
                workloads += account_total_uj(&snapshot->workloads[i].account);
                power_mw -= MAX(snapshot->workloads[i].power_mw, 0.0);
                bill_subtract(&bill, &snapshot->workloads[i].account.bill);
            }
        assert_int_equal(meter->imbalance_uj, 0);
        assert_true(meter->power_mw < 0 || (power_mw < 1e-3 && power_mw > -1e-3));
        assert_true(bill.emission == 0 && bill.cost == 0 && bill.embodied == 0);
        assert_true(imbalance.emission == 0 && imbalance.cost == 0 && imbalance.embodied == 0);
        assert_int_equal(meter->energy_uj, unowned + workloads);
    }
    return snapshot;
}

static void close_books(struct snapshot *snapshot)
{
    snapshot_done(snapshot);
    free(snapshot);
}

static uint64_t meter_uj(const struct pipeline *pipeline, uint32_t meter)
{
    struct snapshot *snapshot = books(pipeline);
    uint64_t energy_uj = snapshot->meters[meter].energy_uj;

    close_books(snapshot);
    return energy_uj;
}

static uint64_t unowned_uj(const struct pipeline *pipeline, enum unowned owner)
{
    struct snapshot *snapshot = books(pipeline);
    uint64_t energy_uj = snapshot->meters[0].unowned_uj[owner];

    close_books(snapshot);
    return energy_uj;
}

/* The one process with this pid on this GPU that is not superseded; fails if there is none. */
static struct snapshot_process process_on(const struct pipeline *pipeline, uint32_t gpu,
                                          uint32_t pid)
{
    struct snapshot *snapshot = books(pipeline);
    struct snapshot_process found = {0};
    size_t count = 0;

    for (size_t i = 0; i < snapshot->process_count; i++)
        if (snapshot->processes[i].gpu == gpu && snapshot->processes[i].pid == pid &&
            !snapshot->processes[i].superseded) {
            found = snapshot->processes[i];
            found.name = NULL; /* dies with the snapshot */
            count++;
        }
    close_books(snapshot);
    assert_int_equal(count, 1);
    return found;
}

static uint64_t process_uj(const struct pipeline *pipeline, uint32_t pid)
{
    struct snapshot_process process = process_on(pipeline, 0, pid);

    return process.active_uj + process.idle_uj;
}

/* Of all rows of this kind and id (NULL: any), at meter 0. */
static uint64_t workload_uj(const struct pipeline *pipeline, enum workload_kind kind,
                            const char *id)
{
    struct snapshot *snapshot = books(pipeline);
    uint64_t energy_uj = 0;

    for (size_t i = 0; i < snapshot->workload_count; i++)
        if (snapshot->workloads[i].meter == 0 && snapshot->workloads[i].kind == kind &&
            (!id || strcmp(snapshot->workloads[i].id, id) == 0))
            energy_uj += account_total_uj(&snapshot->workloads[i].account);
    close_books(snapshot);
    return energy_uj;
}
