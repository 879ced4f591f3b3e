/* What the records of a trace hold, each described once for the reader and the writer. Pure. */
#pragma once

#include "sources/trace/fields.h"

/* Bounds of what hardware can say; beyond them a number is corruption, and sums could overflow. */
#define TRACE_TIME_MAX_US    ((uint64_t)1 << 60)
#define TRACE_COUNTER_MAX_MJ ((uint64_t)1 << 50)   /* 700 W for 51 years */
#define TRACE_POWER_MAX_MW   ((uint64_t)100000000) /* 100 kW */

/* Its fields, or else its parser and its writer. */
struct trace_record {
    char letter;
    enum sample_kind kind;
    const struct trace_field *fields;
    size_t count;
    int (*parse)(struct span *rest, struct batch *batch, struct sample *sample, struct error *err);
    void (*put)(struct buffer *out, const struct sample *sample);
};

/* NULL: there is none. */
const struct trace_record *trace_record_by_letter(struct span word);
const struct trace_record *trace_record_of(enum sample_kind kind);

/* A line of a report, in struct sample_workload. */
enum { TRACE_WORKLOAD_FIELDS = 6 };
extern const struct trace_field trace_workload_fields[TRACE_WORKLOAD_FIELDS];
