/* What holds for the books of a pipeline after pipeline_finish, whatever it was fed. */
#pragma once

#include <stdlib.h>

#include "attribution/pipeline.h"

static void check_books(const struct pipeline *pipeline)
{
    uint64_t energy_uj = 0, booked_uj = 0;
    struct snapshot snapshot;

    snapshot_init(&snapshot);
    if (pipeline_snapshot(pipeline, 0, 0, &snapshot) < 0)
        abort();
    for (size_t m = 0; m < snapshot.meter_count; m++) {
        const struct snapshot_meter *meter = &snapshot.meters[m];

        if (!ledger_is_balanced(pipeline->ledger, (uint32_t)m))
            abort();
        energy_uj += meter->energy_uj;
        for (int i = 0; i < UNOWNED_COUNT; i++)
            if (i != UNOWNED_SYSTEM || meter->kind != METER_GPU) /* there, it is processes, too */
                booked_uj += meter->unowned_uj[i];
        if (meter->imbalance_uj != 0 || meter->pending_uj != 0)
            abort();
    }
    for (size_t w = 0; w < snapshot.workload_count; w++)
        if (snapshot.meters[snapshot.workloads[w].meter].kind != METER_GPU)
            booked_uj += account_total_uj(&snapshot.workloads[w].account);
    for (size_t p = 0; p < snapshot.process_count; p++)
        booked_uj += snapshot.processes[p].active_uj + snapshot.processes[p].idle_uj;
    if (booked_uj != energy_uj)
        abort();
    snapshot_done(&snapshot);
}
