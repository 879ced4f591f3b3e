/* What the ledger itself does not recompute: the bills of a meter minus those of all its owners. 0,
 * or a bug. */
#pragma once

#include "attribution/ledger/ledger.h"

static inline struct bill bill_imbalance(const struct ledger *ledger, uint32_t meter)
{
    const struct ledger_meter *m = ledger_meter(ledger, meter);
    const struct account owned = ledger_owned(ledger, meter);
    struct bill left = m->bill;

    bill_subtract(&left, &owned.bill);
    for (size_t i = 0; i < UNOWNED_COUNT; i++)
        bill_subtract(&left, &m->unowned_bill[i]);
    return left;
}

/* The time that embodied carbon stands for at this rate. */
static inline uint64_t embodied_us(const struct bill *bill, struct embodied_rate rate)
{
    return (uint64_t)(bill->embodied / embodied_bill(rate, 1));
}
