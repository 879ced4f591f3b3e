/*
 * How the workloads of a recording are called: identity is asked, as when the node is served, and
 * what it says is written into the trace.
 */
#pragma once

#include "attribution/pipeline.h"
#include "config/options.h"
#include "core/buffer.h"
#include "core/clock.h"
#include "core/error.h"
#include "host/host.h"
#include "identity/identity.h"
#include "identity/recorded_names.h"
#include "sources/trace_record.h"

struct record_names {
    struct identity *identity;      /* NULL: names are not recorded */
    struct recorded_names *written; /* what the trace has by now */
    const struct clock *clock;
    uint64_t due_us; /* when it is asked next */
};

/* Starts to ask, unless the options say not to. What is passed must outlive it. */
int record_names_open(struct record_names *names, const struct options *options,
                      const struct host *host, const struct clock *clock, struct error *err);

/* Accepts a zeroed struct. */
void record_names_close(struct record_names *names);

/* So that the names of who is on a device are asked for at once. */
void record_names_note(struct record_names *names, const struct batch *batch);

/*
 * Appends what became known of the pipeline's workloads since it was last called, if that is some
 * seconds ago or `is_last`: then also names of which more might become known. 0 or -ENOMEM.
 */
int record_names_write(struct record_names *names, const struct pipeline *pipeline, bool is_last,
                       struct trace_writer *lines, struct buffer *out);
