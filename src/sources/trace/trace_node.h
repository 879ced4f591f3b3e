/*
 * The records of a trace that are of no GPU: meters of the node, its power, what its workloads did,
 * and how they are called. Pure.
 *
 * What is passed is the rest of a line behind the record's kind. 0, -EBADMSG with what is wrong,
 * -ENOMEM, or -ENOTSUP: of a source, or a kind of meter or workload, that this reader does not
 * know.
 */
#pragma once

#include "core/error.h"
#include "core/span.h"
#include "model/batch.h"

int trace_parse_meter(struct span *rest, struct batch *batch, struct sample *sample,
                      struct error *err);
int trace_parse_power(struct span *rest, struct batch *batch, struct sample *sample,
                      struct error *err);

int trace_parse_names(struct span *rest, struct batch *batch, struct sample *sample,
                      struct error *err);

/* The head of a report. Its workloads are on the lines that follow: so many as `count` says, and as
 * yet they are not there. */
int trace_parse_usage(struct span *rest, struct batch *batch, struct sample *sample,
                      struct error *err);

/* One of those lines, as a whole; `t_us` is the time of the report. */
int trace_parse_workload(struct span line, uint64_t t_us, struct batch *batch,
                         struct sample_workload *ret_workload, struct error *err);
