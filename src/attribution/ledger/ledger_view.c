/* What others may read of the ledger. */
#include "attribution/ledger/ledger_private.h"

size_t ledger_meter_count(const struct ledger *ledger)
{
    return ledger->meter_count;
}

const struct ledger_meter *ledger_meter(const struct ledger *ledger, uint32_t meter)
{
    return &ledger->meters[meter];
}

size_t ledger_process_slots(const struct ledger *ledger)
{
    return ledger->process_slots;
}

const struct ledger_process *ledger_process(const struct ledger *ledger, uint32_t process)
{
    return ledger->processes[process].used ? &ledger->processes[process] : NULL;
}

size_t ledger_workload_slots(const struct ledger *ledger)
{
    return ledger->workload_slots;
}

const struct ledger_workload *ledger_workload(const struct ledger *ledger, uint32_t workload)
{
    return ledger->workloads[workload].used ? &ledger->workloads[workload] : NULL;
}

const struct ledger_account *ledger_next_account(const struct ledger *ledger,
                                                 const struct ledger_workload *workload,
                                                 const struct ledger_account *before)
{
    uint32_t next = before ? before->next : workload->first_account;

    return next != LEDGER_NONE ? &ledger->accounts[next] : NULL;
}

size_t ledger_account_slots(const struct ledger *ledger)
{
    return ledger->account_slots;
}

struct ledger_counts ledger_counts(const struct ledger *ledger)
{
    return ledger->counts;
}

uint64_t ledger_retention_us(const struct ledger *ledger)
{
    return ledger->options.retention_us;
}
