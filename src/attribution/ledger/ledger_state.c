/* The ledger in a state file: every row, with its index, so that what refers to it stays valid. */
#include "attribution/ledger/ledger_private.h"

#include <errno.h>

#include "attribution/grow.h"
#include "core/macros.h"

/* As many rows as the options allow, and more: those of a run with higher limits are kept. */
enum { METERS_MAX = 4096, ROWS_MAX = 1 << 21, NAME_BYTES_MAX = 4096 };

static uint64_t code_number(struct coder *coder, uint64_t value)
{
    return code_u64(coder, value, UINT64_MAX);
}

static bool code_flag(struct coder *coder, bool value)
{
    return code_u64(coder, value, 1);
}

static void code_bill(struct coder *coder, struct bill *bill)
{
    bill->emission = code_u128(coder, bill->emission);
    bill->cost = code_u128(coder, bill->cost);
    bill->embodied = code_u128(coder, bill->embodied);
}

static void code_account(struct coder *coder, struct account *account)
{
    for (int tier = 0; tier < TIER_COUNT; tier++)
        for (int method = 0; method < METHOD_COUNT; method++)
            account->energy_uj[tier][method] = code_number(coder, account->energy_uj[tier][method]);
    account->known_uj = code_number(coder, account->known_uj);
    account->uncertain_uj = code_number(coder, account->uncertain_uj);
    code_bill(coder, &account->bill);
}

static void code_meter(struct coder *coder, struct ledger_meter *meter)
{
    struct ledger_device *device = &meter->device;

    meter->kind = (enum meter_kind)code_u64(coder, meter->kind, METER_KINDS - 1);
    code_allocated_text(coder, &meter->meter_id, NAME_BYTES_MAX);
    meter->gpu = (uint32_t)code_u64(coder, meter->gpu, SAMPLE_GPU_MAX - 1);
    meter->energy_uj = code_number(coder, meter->energy_uj);
    meter->settled_until_us = code_number(coder, meter->settled_until_us);
    if (coder_is_unpacking(coder))
        meter->seen_from_us = meter->settled_until_us > 0;
    meter->swept_uj = code_number(coder, meter->swept_uj);
    meter->unknown_gaps = code_number(coder, meter->unknown_gaps);
    meter->overflow = (uint32_t)code_u64(coder, meter->overflow, UINT32_MAX);
    code_account(coder, &meter->retired);
    code_bill(coder, &meter->bill);
    device->undivided_us = code_number(coder, device->undivided_us);
    device->until_us = code_number(coder, device->until_us);
    for (size_t i = 0; i < UNOWNED_COUNT; i++) {
        meter->unowned_uj[i] = code_number(coder, meter->unowned_uj[i]);
        code_bill(coder, &meter->unowned_bill[i]);
    }
    if (!meter->meter_id)
        coder_reject(coder);
}

static void code_identity(struct coder *coder, struct ledger_identity *identity)
{
    struct workload_names names = identity->names;

    code_allocated_text(coder, &identity->container_id, WORKLOAD_CONTAINER_BYTES);
    code_allocated_text(coder, &identity->pod_uid, WORKLOAD_POD_UID_BYTES);
    identity->container_is_claim = code_flag(coder, identity->container_is_claim);
    identity->opened_us = code_number(coder, identity->opened_us);
    identity->is_named = code_flag(coder, identity->is_named);
    if (!identity->is_named)
        return;
    names.name = code_text(coder, names.name);
    names.namespace = code_text(coder, names.namespace);
    names.pod = code_text(coder, names.pod);
    names.container = code_text(coder, names.container);
    names.image = code_text(coder, names.image);
    if (coder_is_unpacking(coder) && ledger_names_set(identity, &names) < 0)
        coder_reject(coder);
}

static void code_process(struct coder *coder, struct ledger_process *process)
{
    process->superseded = code_flag(coder, process->superseded);
    process->unseen = code_flag(coder, process->unseen);
    process->identified = code_flag(coder, process->identified);
    process->serial = code_number(coder, process->serial);
    process->pid = (uint32_t)code_u64(coder, process->pid, UINT32_MAX);
    process->meter = (uint32_t)code_u64(coder, process->meter, UINT32_MAX);
    process->workload = (uint32_t)code_u64(coder, process->workload, UINT32_MAX);
    process->uid = (uint32_t)code_u64(coder, process->uid, UINT32_MAX);
    process->start_us = code_number(coder, process->start_us);
    process->seen_us = code_number(coder, process->seen_us);
    code_allocated_text(coder, &process->name, NAME_BYTES_MAX);
    process->program.exact = code_number(coder, process->program.exact);
    process->program.coarse = code_number(coder, process->program.coarse);
    process->cgroup_hash = code_number(coder, process->cgroup_hash);
    code_identity(coder, &process->identity);
    process->active_uj = code_number(coder, process->active_uj);
    process->idle_uj = code_number(coder, process->idle_uj);
    process->measured_uj = code_number(coder, process->measured_uj);
    process->known_uj = code_number(coder, process->known_uj);
    process->uncertain_uj = code_number(coder, process->uncertain_uj);
    process->last_booked_us = code_number(coder, process->last_booked_us);
}

static size_t count_accounts(const struct ledger *ledger, const struct ledger_workload *workload)
{
    const struct ledger_account *at = NULL;
    size_t count = 0;

    while ((at = ledger_next_account(ledger, workload, at)))
        count++;
    return count;
}

static void code_accounts(struct coder *coder, struct ledger *ledger, uint32_t workload)
{
    uint32_t next = ledger->workloads[workload].first_account;
    size_t count = code_count(coder, count_accounts(ledger, &ledger->workloads[workload]),
                              ledger->meter_count);

    for (size_t i = 0; i < count; i++) {
        uint64_t meter = coder_is_unpacking(coder) ? 0 : ledger->accounts[next].meter;
        struct ledger_account *account;

        meter = code_u64(coder, meter, ledger->meter_count - 1);
        if (coder_is_unpacking(coder) &&
            (coder->in.is_broken ||
             ledger_open_account(ledger, workload, (uint32_t)meter, &next) < 0)) {
            coder_reject(coder);
            return;
        }
        account = &ledger->accounts[next];
        code_account(coder, &account->account);
        account->power.power_mw = code_double(coder, account->power.power_mw);
        account->power.until_us = code_number(coder, account->power.until_us);
        next = account->next;
    }
}

static void code_workload(struct coder *coder, struct ledger *ledger, uint32_t index)
{
    struct ledger_workload *workload = &ledger->workloads[index];

    if (coder_is_unpacking(coder))
        workload->first_account = LEDGER_NONE;
    workload->serial = code_number(coder, workload->serial);
    workload->kind = (enum workload_kind)code_u64(coder, workload->kind, WORKLOAD_KINDS - 1);
    code_allocated_text(coder, &workload->id, WORKLOAD_ID_BYTES);
    code_identity(coder, &workload->identity);
    code_accounts(coder, ledger, index);
    if (!workload->id)
        coder_reject(coder);
}

static void code_meters(struct coder *coder, struct ledger *ledger)
{
    size_t count = code_count(coder, ledger->meter_count, METERS_MAX);

    if (grow_zeroed(&ledger->meters, &ledger->meter_slots, count, sizeof(*ledger->meters)) < 0)
        coder_reject(coder);
    for (size_t i = 0; i < count && !coder->in.is_broken; i++) {
        ledger->meter_count = MAX(ledger->meter_count, i + 1);
        code_meter(coder, &ledger->meters[i]);
    }
}

static void code_workloads(struct coder *coder, struct ledger *ledger)
{
    struct ledger_counts *counts = &ledger->counts;
    size_t slots = code_count(coder, counts->workload_slots, ROWS_MAX);

    if (grow_zeroed(&ledger->workloads, &counts->workload_slots, slots,
                    sizeof(*ledger->workloads)) < 0)
        coder_reject(coder);
    for (uint32_t i = 0; i < slots && !coder->in.is_broken; i++) {
        bool *used = &ledger->workloads[i].used;

        *used = code_flag(coder, *used);
        if (*used)
            code_workload(coder, ledger, i);
    }
}

static void code_processes(struct coder *coder, struct ledger *ledger)
{
    struct ledger_counts *counts = &ledger->counts;
    size_t slots = code_count(coder, counts->process_slots, ROWS_MAX);

    if (grow_zeroed(&ledger->processes, &counts->process_slots, slots, sizeof(*ledger->processes)) <
        0)
        coder_reject(coder);
    for (size_t i = 0; i < slots && !coder->in.is_broken; i++) {
        bool *used = &ledger->processes[i].used;

        *used = code_flag(coder, *used);
        if (*used)
            code_process(coder, &ledger->processes[i]);
    }
}

static void code_counts(struct coder *coder, struct ledger *ledger)
{
    struct ledger_counts *counts = &ledger->counts;

    ledger->last_serial = code_number(coder, ledger->last_serial);
    ledger->latest_us = code_number(coder, ledger->latest_us);
    counts->processes_dropped = code_number(coder, counts->processes_dropped);
    counts->workloads_dropped = code_number(coder, counts->workloads_dropped);
    counts->names_fixed = code_number(coder, counts->names_fixed);
    counts->retired_at_us = code_number(coder, counts->retired_at_us);
}

/* Counts and indexes rows that were unpacked. False: they contradict each other. */
static bool adopt_workloads(struct ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->counts.workload_slots; i++) {
        ledger->counts.workloads += ledger->workloads[i].used;
        ledger->workloads[i].left_us =
            ledger->latest_us; /* of those without members, at the latest */
        if (ledger->workloads[i].used && ledger_index_workload(ledger, i) < 0)
            return false;
    }
    return true;
}

static bool adopt_processes(struct ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->counts.process_slots; i++) {
        const struct ledger_process *process = &ledger->processes[i];

        if (!process->used)
            continue;
        if (process->meter >= ledger->meter_count ||
            process->workload >= ledger->counts.workload_slots ||
            !ledger->workloads[process->workload].used ||
            (process->pid > 0 && !process->superseded && ledger_index_process(ledger, i) < 0))
            return false;
        ledger->counts.processes++;
        ledger_join_workload(ledger, process->workload);
    }
    return true;
}

static bool are_meters_right(const struct ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->meter_count; i++) {
        uint32_t overflow = ledger->meters[i].overflow;

        if (!ledger_is_balanced(ledger, i) ||
            (overflow != LEDGER_NONE &&
             (overflow >= ledger->counts.process_slots || !ledger->processes[overflow].used ||
              ledger->processes[overflow].meter != i)))
            return false;
    }
    return true;
}

void ledger_code_state(struct ledger *ledger, struct coder *coder)
{
    code_counts(coder, ledger);
    code_meters(coder, ledger);
    code_workloads(coder, ledger);
    code_processes(coder, ledger);
    if (coder_is_unpacking(coder) && (coder->in.is_broken || !adopt_workloads(ledger) ||
                                      !adopt_processes(ledger) || !are_meters_right(ledger)))
        coder_reject(coder);
}
