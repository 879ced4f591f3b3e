/* What the booked joules emitted and cost. */
#include "attribution/ledger.h"

#include <string.h>

#include "core/macros.h"

void ledger_set_price(struct ledger *ledger, const struct price *price, uint64_t from_us)
{
    struct ledger_price *prices = ledger->prices;

    /* Only a clock that was set back finds prices of later. */
    while (ledger->price_count > 0 && prices[ledger->price_count - 1].from_us >= from_us)
        ledger->price_count--;
    if (ledger->price_count == ARRAY_SIZE(ledger->prices))
        memmove(prices, prices + 1, --ledger->price_count * sizeof(*prices));
    prices[ledger->price_count++] = (struct ledger_price){from_us, price_rate_of(price)};
}

struct price_rate ledger_rate_at(const struct ledger *ledger, uint64_t t_us)
{
    size_t i = ledger->price_count;

    if (i == 0)
        return (struct price_rate){0};
    while (i > 1 && ledger->prices[i - 1].from_us > t_us)
        i--;
    return ledger->prices[i - 1].rate;
}

struct bill ledger_bill_imbalance(const struct ledger *ledger, uint32_t meter)
{
    const struct ledger_meter *m = &ledger->meters[meter];
    const struct account owned = ledger_owned(ledger, meter);
    struct bill rest = m->bill;

    bill_subtract(&rest, &owned.bill);
    for (size_t i = 0; i < UNOWNED_COUNT; i++)
        bill_subtract(&rest, &m->unowned_bill[i]);
    return rest;
}
