/*
 * A recorded trace as a stream of samples: decompresses, splits lines, checks their order, and says
 * at which line a file is wrong.
 *
 * Checked beyond the form of each line: the header; that a GPU is described once and before it is
 * used; that time does not go back within one GPU and kind of record (between kinds it may, by what
 * the calls of one poll took); that the last line is whole.
 */
#pragma once

#include "core/error.h"
#include "model/batch.h"

struct trace_reader;

/* Opens the file and checks its header. Errors are for people and name the file. */
int trace_reader_open(const char *path, struct trace_reader **ret_reader, struct error *err);
void trace_reader_close(struct trace_reader *reader);

/* Starts over, behind the header. */
int trace_reader_rewind(struct trace_reader *reader, struct error *err);

/* Adds the next record's sample to the batch. 1, or 0 at the end of the trace, or -errno: -EBADMSG,
 * -EFBIG and the like with the line number in `err`. */
int trace_reader_next(struct trace_reader *reader, struct batch *batch, struct error *err);

/* Puts the record that trace_reader_next has just returned back, once: it comes again. */
void trace_reader_unread(struct trace_reader *reader, struct batch *batch);
