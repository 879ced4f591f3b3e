/*
 * One line of a recorded trace, `wattribute-trace 1` (docs/trace-format.md). Pure.
 */
#pragma once

#include "core/error.h"
#include "core/span.h"
#include "model/batch.h"

#define TRACE_HEADER "wattribute-trace 1"

/*
 * Parses a line without its newline and adds its sample to the batch. Returns 1 if it did, 0 for
 * what this reader does not know, -EBADMSG with what is wrong, -ENOMEM or -EFBIG. Of a report of
 * usage this is only the head: trace_node.h.
 */
int trace_parse_line(struct span line, struct batch *batch, struct error *err);
