/*
 * The lines of a trace, `wattribute-trace 1` (docs/trace-format.md), as samples and back: what
 * `record` writes and `replay` reads. Pure.
 */
#pragma once

#include "core/buffer.h"
#include "core/error.h"
#include "core/span.h"
#include "model/sample.h"

#define TRACE_HEADER "wattribute-trace 1"

/*
 * Parses a line without its newline and adds its sample to the batch. Returns 1 if it did, 0 for
 * what this reader does not know, -EBADMSG with what is wrong, -ENOMEM or -EFBIG. Of a report of
 * usage this is only the head: its workloads are on the lines that follow, so many as `count` says.
 */
int trace_parse_line(struct span line, struct batch *batch, struct error *err);

/* One of those lines; `t_us` is the time of the report. 0, -EBADMSG or -ENOMEM. */
int trace_parse_workload(struct span line, uint64_t t_us, struct batch *batch,
                         struct sample_workload *ret_workload, struct error *err);

struct trace_writer {
    bool described[SAMPLE_GPU_MAX];
    uint64_t last_us[SAMPLE_GPU_MAX];
    uint64_t last_usage_us;
    bool has_meter; /* of the node */
};

/* The first line. */
void trace_write_header(struct buffer *out);

/* Appends the sample's lines; nothing for kinds that a trace does not hold, and no workloads as
 * long as there is no meter of the node to be divided among them. Times are kept in order even if
 * the wall clock was set back. */
void trace_write_sample(struct trace_writer *writer, const struct sample *sample,
                        struct buffer *out);
