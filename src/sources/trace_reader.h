/*
 * A recorded trace as a stream of samples: decompresses, splits lines, checks their order, and says
 * at which line a file is wrong.
 *
 * Checked beyond the form of each line: the header; that a GPU is described once and before it is
 * used; that time does not go back within one GPU and kind of record (between kinds it may, by what
 * the calls of one poll took), nor within reports of usage; that these are whole; that the last
 * line is.
 */
#pragma once

#include "core/error.h"
#include "model/sample.h"

struct trace_reader;

/* Opens the file and checks its header. Errors are for people and name the file. */
int trace_reader_open(const char *path, struct trace_reader **ret_reader, struct error *err);
void trace_reader_close(struct trace_reader *reader);

/* Starts over, behind the header. */
int trace_reader_rewind(struct trace_reader *reader, struct error *err);

/* Adds the next record's sample to the batch. 1, or 0 at the end of the trace, or -errno: -EBADMSG,
 * -EFBIG and the like with the line number in `err`. */
int trace_reader_next(struct trace_reader *reader, struct batch *batch, struct error *err);

/* The same, but -EAGAIN if the next record is not before `before_us`: it comes again. */
int trace_reader_next_before(struct trace_reader *reader, uint64_t before_us, struct batch *batch,
                             struct error *err);
