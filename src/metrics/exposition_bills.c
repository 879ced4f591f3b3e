/* What the joules emitted and cost, and what it took to make the devices: meters, and what nobody
 * owns of them. */
#include "metrics/exposition_parts.h"

enum { BILLION = 1000000000 };

void exposition_bill_value(struct text *text, unsigned __int128 value)
{
    const unsigned __int128 unit = BILL_ONE / BILLION;
    unsigned __int128 billionths = value / unit + (value % unit >= unit / 2);

    text_decimal(text, (uint64_t)(billionths / BILLION), (uint64_t)(billionths % BILLION), NANO);
}

static void price_now(struct text *text, const struct price_cost *cost)
{
    text_family(text, METRIC_PRICE);
    text_sample(text);
    text_label(text, "currency", cost->currency);
    text_value(text, (int64_t)cost->micro_per_kwh, MICRO);
}

/* Both kinds of bills have the same rows; those of money say which. */
struct bills {
    struct text *text;
    const char *currency; /* NULL: grams */
};

static void put(const struct bills *bills, const struct bill *bill)
{
    if (bills->currency)
        text_label(bills->text, "currency", bills->currency);
    exposition_bill_value(bills->text, bills->currency ? bill->cost : bill->emission);
}

static void of_meters(const struct bills *bills, const struct snapshot *snapshot,
                      enum metric of_meter, enum metric of_unowned)
{
    const struct snapshot_meter *rows = snapshot->meters;

    text_family(bills->text, of_meter);
    for (size_t i = 0; i < snapshot->meter_count; i++) {
        text_sample(bills->text);
        exposition_meter_labels(bills->text, &rows[i]);
        put(bills, &rows[i].bill);
    }
    text_family(bills->text, of_unowned);
    for (size_t i = 0; i < snapshot->meter_count; i++)
        for (int owner = 0; owner < UNOWNED_COUNT; owner++) {
            text_sample(bills->text);
            exposition_meter_labels(bills->text, &rows[i]);
            text_label(bills->text, "owner", exposition_owner_words[owner]);
            put(bills, &rows[i].unowned_bill[owner]);
        }
}

/* Only of devices whose rate was given. */
static void of_devices(struct text *text, const struct snapshot *snapshot)
{
    const struct embodied_rate *rates = snapshot->embodied.of;
    const struct snapshot_meter *rows = snapshot->meters;

    text_family(text, METRIC_METER_EMBODIED);
    for (size_t i = 0; i < snapshot->meter_count; i++) {
        if (!rates[rows[i].kind].known)
            continue;
        text_sample(text);
        exposition_meter_labels(text, &rows[i]);
        exposition_bill_value(text, embodied_bill(rates[rows[i].kind], rows[i].device_us));
    }
    text_family(text, METRIC_UNOWNED_EMBODIED);
    for (size_t i = 0; i < snapshot->meter_count; i++)
        for (int owner = 0; rates[rows[i].kind].known && owner < UNOWNED_COUNT; owner++) {
            text_sample(text);
            exposition_meter_labels(text, &rows[i]);
            text_label(text, "owner", exposition_owner_words[owner]);
            exposition_bill_value(
                text, embodied_bill(rates[rows[i].kind], rows[i].unowned_device_us[owner]));
        }
}

void exposition_bills(struct text *text, const struct snapshot *snapshot)
{
    const struct price *price = &snapshot->price;

    if (snapshot->meter_count == 0)
        return;
    if (price->factor.known)
        of_meters(&(struct bills){text, NULL}, snapshot, METRIC_METER_EMISSIONS,
                  METRIC_UNOWNED_EMISSIONS);
    of_devices(text, snapshot);
    if (price->cost.known) {
        price_now(text, &price->cost);
        of_meters(&(struct bills){text, price->cost.currency}, snapshot, METRIC_METER_COST,
                  METRIC_UNOWNED_COST);
    }
}
