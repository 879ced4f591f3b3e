/* What the ledger itself does not recompute: bills and device time of a meter minus those of all
 * its owners. 0, or a bug. */
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

static inline int64_t time_imbalance_us(const struct ledger *ledger, uint32_t meter)
{
    const struct ledger_device *device = &ledger_meter(ledger, meter)->device;
    uint64_t left_us = device->total_us - ledger_owned(ledger, meter).device_us;

    for (size_t i = 0; i < UNOWNED_COUNT; i++)
        left_us -= device->unowned_us[i];
    return (int64_t)left_us;
}
