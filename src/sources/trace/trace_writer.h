/* Samples as lines of a trace (docs/trace-format.md): what `record` writes and `replay` reads.
 * Pure. */
#pragma once

#include "core/buffer.h"
#include "model/sample.h"

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
