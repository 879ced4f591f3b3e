/* Between exposition.c, which puts the page together, and exposition_workloads.c. */
#pragma once

#include "metrics/exposition.h"

/* Decimal places between the unit of the model and the base unit. */
enum { NANO = 9, MICRO = 6, MILLI = 3, PERCENT = 2, WHOLE = 0 };

/* What energy and devices amount to, each with families of meters, unowned and workloads. */
enum bill_kind { BILL_EMISSIONS, BILL_EMBODIED, BILL_COST, BILL_KINDS };

void exposition_meter_labels(struct text *text, const struct snapshot_meter *meter);

bool exposition_bill_is_known(const struct snapshot *snapshot, enum bill_kind kind,
                              const struct snapshot_meter *meter);
/* A part of a bill, in billionths of a gram or of the currency. */
static inline unsigned __int128 exposition_billionths(unsigned __int128 bill)
{
    const unsigned __int128 unit = BILL_ONE / 1000000000;

    return bill / unit + (bill % unit >= unit / 2);
}

/* Ends a sample: in grams, or in the currency with its label, rounded to billionths. */
void exposition_bill_value(struct text *text, const struct snapshot *snapshot, enum bill_kind kind,
                           const struct bill *bill);

void exposition_processes(struct text *text, const struct snapshot *snapshot,
                          const struct exposition_options *options);
void exposition_workloads(struct text *text, const struct snapshot *snapshot, enum expose expose);
void exposition_usage(struct text *text, const struct snapshot *snapshot, enum expose expose);
