/* Comparison of two reports of `wattribute run`: whether two commands differ. Pure. */
#pragma once

#include "core/buffer.h"
#include "core/error.h"
#include "core/span.h"
#include "run/result.h"
#include "run/statistics.h"

enum { RUN_COMMAND_BYTES = 256, RUN_REPORT_CAP_BYTES = 16 << 20 };

struct run_summary {
    char command[RUN_COMMAND_BYTES];
    char currency[4];
    uint64_t time_us;
    size_t runs;                   /* those that succeeded; if none did, all */
    size_t left_out;               /* those that failed, or were interrupted */
    uint32_t meters;               /* a bit for each kind, and for each that is modelled */
    struct summary of[QUANTITIES]; /* count 0: not measured in every run */
};

/* It came to its end. What others used is not comparable: a failure is often early. */
bool compare_is_whole(const struct result *run);

/* Joules of other meters, or of a model, are others. */
bool compare_same_meters(const struct run_summary *a, const struct run_summary *b);

void compare_summarise(const struct result *runs, size_t count, struct run_summary *ret_summary);

/* Reads the JSON of a report. 0, -EBADMSG (it is none) or -ENOMEM. */
int compare_read(struct span text, struct run_summary *ret_summary, struct error *err);

/* The table of `wattribute diff`, with a sentence on whether the energy differs. */
void compare_text(const struct run_summary *a, const struct run_summary *b, struct buffer *out);
void compare_json(const struct run_summary *a, const struct run_summary *b, struct buffer *out);
