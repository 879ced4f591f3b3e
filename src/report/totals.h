/* What a report adds up: energy, uncertainty, grams and cost by group, by nobody's account, and as
 * the meters say. Pure. */
#pragma once

#include <stdbool.h>

#include "core/table.h"
#include "report/period.h"

enum totals_account {
    TOTALS_WORKLOAD, /* by group */
    TOTALS_UNOWNED,  /* by reason */
    TOTALS_METER,    /* by node */
    TOTALS_DEVICE,   /* by GPU, of a job's life */
    TOTALS_ACCOUNTS,
};
enum totals_quantity { TOTALS_ENERGY, TOTALS_UNCERTAINTY, TOTALS_GRAMS, TOTALS_COST };

enum { TOTALS_METERS = 5, TOTALS_CURRENCIES = 4 };

/* "gpu", "package", "dram", "rest"; the last is of any other. */
extern const char *const totals_meter_words[TOTALS_METERS];
extern const char *const totals_meter_titles[TOTALS_METERS];

struct total {
    struct table_entry entry;
    char *name, *about; /* owned; "" for none */
    double joules, meter_joules[TOTALS_METERS];
    double uncertainty_joules, grams, cost[TOTALS_CURRENCIES];
    double *part_joules;               /* of each part of the period; owned */
    int32_t first_window, last_window; /* in which it grew; 0: in none */
};

struct totals {
    struct table accounts[TOTALS_ACCOUNTS];
    struct total all;    /* of the nodes' meters */
    struct total unseen; /* of them, what no row has */
    char currencies[TOTALS_CURRENCIES][8];
    size_t currency_count;
    struct period_parts parts;
    bool has_uncertainty, has_grams, has_cost;
    double unknown_currency; /* cost in a fifth currency, which is in no sum */
};

int totals_init(struct totals *totals, const struct period *period);
void totals_done(struct totals *totals);

/* Finds or adds. `about` is what was told first. NULL: out of memory. */
struct total *totals_find(struct totals *totals, enum totals_account account, const char *name,
                          const char *about);

struct totals_increase {
    enum totals_quantity quantity;
    double amount;
    const char *meter, *currency;
    int64_t t_s;
    int32_t window;
};

void totals_add(struct totals *totals, struct total *total, const struct totals_increase *increase);

/* At the end: sums the nodes, and what no row has; or, without meters, the groups. */
void totals_finish(struct totals *totals, bool has_meters);

/* The rows of an account by energy, the largest first; free() it. NULL: out of memory. */
struct total **totals_sorted(const struct totals *totals, enum totals_account account);
