/* The parts of the page, one file each; exposition.c puts them in order. */
#pragma once

#include "metrics/exposition.h"

/* Decimal places between what the model counts in and the base unit. */
enum { NANO = 9, MICRO = 6, MILLI = 3, PERCENT = 2, WHOLE = 0 };

extern const char *const exposition_owner_words[UNOWNED_COUNT];

void exposition_meter_labels(struct text *text, const struct snapshot_meter *meter);

/* A row of a meter that has no other labels. */
void exposition_meter_row(struct text *text, const struct snapshot_meter *meter, int64_t value,
                          unsigned digits);

/* A part of a bill, in grams or in the currency, rounded to billionths. */
void exposition_bill_value(struct text *text, unsigned __int128 value);

/* Is this kind shown with --expose? */
bool exposition_shows(enum expose expose, enum workload_kind kind);
void exposition_workload_labels(struct text *text, enum workload_kind kind, const char *id,
                                const struct workload_names *names);

void exposition_processes(struct text *text, const struct snapshot *snapshot,
                          const struct exposition_options *options);
void exposition_meters(struct text *text, const struct snapshot *snapshot);
void exposition_factors(struct text *text, const struct snapshot *snapshot);
void exposition_bills(struct text *text, const struct snapshot *snapshot);
void exposition_workloads(struct text *text, const struct snapshot *snapshot, enum expose expose);
void exposition_usage(struct text *text, const struct snapshot *snapshot, enum expose expose);
void exposition_gpus(struct text *text, const struct snapshot *snapshot);
void exposition_self(struct text *text, const struct snapshot *snapshot,
                     const struct exposition_options *options);
