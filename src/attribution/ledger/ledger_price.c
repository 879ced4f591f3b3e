/* What the booked joules emitted and cost. */
#include "attribution/ledger/ledger_private.h"

#include <string.h>

#include "core/macros.h"

static void put(struct ledger_rates *rates, uint64_t rate, uint64_t from_us)
{
    /* Only a clock that was set back finds rates of later. */
    while (rates->count > 0 && rates->of[rates->count - 1].from_us >= from_us)
        rates->count--;
    if (rates->count == ARRAY_SIZE(rates->of))
        memmove(rates->of, rates->of + 1, --rates->count * sizeof(rates->of[0]));
    rates->of[rates->count++] = (struct ledger_rate){from_us, rate};
}

static uint64_t find(const struct ledger_rates *rates, uint64_t t_us)
{
    size_t i = rates->count;

    if (i == 0)
        return 0;
    while (i > 1 && rates->of[i - 1].from_us > t_us)
        i--;
    return rates->of[i - 1].rate;
}

void ledger_set_price(struct ledger *ledger, const struct price *price, uint64_t from_us)
{
    const struct price_rate rate = price_rate_of(price);

    if (price->factor.known)
        put(&ledger->emission_rates, rate.emission, from_us);
    if (price->cost.known)
        put(&ledger->cost_rates, rate.cost, from_us);
}

struct price_rate ledger_rate_at(const struct ledger *ledger, uint64_t t_us)
{
    return (struct price_rate){
        .emission = find(&ledger->emission_rates, t_us),
        .cost = find(&ledger->cost_rates, t_us),
    };
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
