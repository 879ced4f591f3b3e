#include "report/totals.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"

const char *const totals_meter_words[TOTALS_METERS] = {"gpu", "package", "dram", "rest", "other"};
const char *const totals_meter_titles[TOTALS_METERS] = {"GPUs", "processors", "memory",
                                                        "rest of the node", "other"};

static bool fill_total(struct totals *totals, struct total *total, const char *name,
                       const char *about)
{
    total->name = strdup(name);
    total->about = strdup(about);
    total->part_joules = calloc(MAX(totals->parts.count, (size_t)1), sizeof(double));
    return total->name && total->about && total->part_joules;
}

static void total_done(struct total *total)
{
    free(total->name);
    free(total->about);
    free(total->part_joules);
}

int totals_init(struct totals *totals, const struct period *period)
{
    *totals = (struct totals){0};
    period_divide(period, &totals->parts);
    if (fill_total(totals, &totals->all, "", "") && fill_total(totals, &totals->unseen, "", ""))
        return 0;
    totals_done(totals);
    return -ENOMEM;
}

void totals_done(struct totals *totals)
{
    for (size_t i = 0; i < TOTALS_ACCOUNTS; i++) {
        for (size_t j = 0; j < totals->accounts[i].count; j++)
            total_done(totals->accounts[i].items[j]);
        table_done(&totals->accounts[i]);
    }
    total_done(&totals->all);
    total_done(&totals->unseen);
    *totals = (struct totals){0};
}

static bool has_name(const void *entry, const void *key)
{
    const struct total *total = entry;

    return strcmp(total->name, key) == 0;
}

struct total *totals_find(struct totals *totals, enum totals_account account, const char *name,
                          const char *about)
{
    struct table *table = &totals->accounts[account];
    uint64_t hash = map_hash_bytes(span_of(name));
    struct total made = {0}, *total = table_find(table, hash, has_name, name);

    if (total)
        return total;
    if (!fill_total(totals, &made, name, about) ||
        !(total = table_add(table, hash, sizeof(*total)))) {
        total_done(&made);
        return NULL;
    }
    made.entry = total->entry;
    *total = made;
    return total;
}

static size_t meter_of(const char *word)
{
    size_t i = 0;

    while (i < TOTALS_METERS - 1 && strcmp(totals_meter_words[i], word) != 0)
        i++;
    return i;
}

/* TOTALS_CURRENCIES: there are too many. */
static size_t currency_of(struct totals *totals, const char *word)
{
    size_t i = 0;

    while (i < totals->currency_count && strcmp(totals->currencies[i], word) != 0)
        i++;
    if (i == totals->currency_count && i < TOTALS_CURRENCIES) {
        strncpy(totals->currencies[i], word, sizeof(totals->currencies[i]) - 1);
        if (strcmp(totals->currencies[i], word) != 0)
            return TOTALS_CURRENCIES;
        totals->currency_count++;
    }
    return i;
}

void totals_add(struct totals *totals, struct total *total, const struct totals_increase *increase)
{
    size_t currency;

    switch (increase->quantity) {
    case TOTALS_ENERGY:
        total->joules += increase->amount;
        total->meter_joules[meter_of(increase->meter)] += increase->amount;
        total->part_joules[period_part_of(&totals->parts, increase->t_s)] += increase->amount;
        if (increase->amount > 0) {
            if (total->first_window == 0 || increase->window < total->first_window)
                total->first_window = increase->window;
            total->last_window = MAX(total->last_window, increase->window);
        }
        break;
    case TOTALS_UNCERTAINTY:
        totals->has_uncertainty = true;
        total->uncertainty_joules += increase->amount;
        break;
    case TOTALS_GRAMS:
        totals->has_grams = true;
        total->grams += increase->amount;
        break;
    default:
        totals->has_cost = true;
        currency = currency_of(totals, increase->currency);
        if (currency < TOTALS_CURRENCIES)
            total->cost[currency] += increase->amount;
        else
            totals->unknown_currency += increase->amount;
        break;
    }
}

static void add_scaled(struct total *sum, const struct total *total, double factor, size_t parts)
{
    sum->joules += factor * total->joules;
    sum->uncertainty_joules += factor * total->uncertainty_joules;
    sum->grams += factor * total->grams;
    for (size_t i = 0; i < TOTALS_METERS; i++)
        sum->meter_joules[i] += factor * total->meter_joules[i];
    for (size_t i = 0; i < TOTALS_CURRENCIES; i++)
        sum->cost[i] += factor * total->cost[i];
    for (size_t i = 0; i < parts; i++)
        sum->part_joules[i] += factor * total->part_joules[i];
}

/* What is left of a difference of sums, and is not their rounding. */
static double rest_of(double rest, double whole)
{
    return fabs(rest) <= 1e-9 * fabs(whole) + 1e-6 ? 0 : rest;
}

void totals_finish(struct totals *totals, bool has_meters)
{
    static const double factors[] = {-1, -1, 1};
    const enum totals_account whole = has_meters ? TOTALS_METER : TOTALS_WORKLOAD;
    struct total *all = &totals->all, *unseen = &totals->unseen;
    size_t parts = totals->parts.count;

    for (size_t i = 0; i < ARRAY_SIZE(factors); i++)
        for (size_t j = 0; j < totals->accounts[i].count; j++) {
            const struct total *total = totals->accounts[i].items[j];

            if (has_meters)
                add_scaled(unseen, total, factors[i], parts);
            if (i == (size_t)whole)
                add_scaled(all, total, 1, parts);
            else
                all->uncertainty_joules += total->uncertainty_joules;
        }
    unseen->uncertainty_joules = 0;
    unseen->joules = rest_of(unseen->joules, all->joules);
    unseen->grams = rest_of(unseen->grams, all->grams);
    for (size_t i = 0; i < TOTALS_METERS; i++)
        unseen->meter_joules[i] = rest_of(unseen->meter_joules[i], all->joules);
    for (size_t i = 0; i < TOTALS_CURRENCIES; i++)
        unseen->cost[i] = rest_of(unseen->cost[i], all->cost[i]);
    for (size_t i = 0; i < parts; i++)
        unseen->part_joules[i] = rest_of(unseen->part_joules[i], all->joules);
}

static int by_energy(const void *a, const void *b)
{
    const struct total *x = *(struct total *const *)a, *y = *(struct total *const *)b;

    if (x->joules != y->joules)
        return x->joules > y->joules ? -1 : 1;
    return strcmp(x->name, y->name);
}

struct total **totals_sorted(const struct totals *totals, enum totals_account account)
{
    const struct table *table = &totals->accounts[account];
    struct total **sorted = calloc(MAX(table->count, (size_t)1), sizeof(void *));

    for (size_t i = 0; i < table->count && sorted; i++)
        sorted[i] = table->items[i];
    if (sorted)
        qsort(sorted, table->count, sizeof(void *), by_energy);
    return sorted;
}
