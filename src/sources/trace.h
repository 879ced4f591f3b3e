/*
 * Traces, `wattribute-trace 3` (docs/trace-format.md): what `record` writes and `replay` reads.
 */
#pragma once

#include "core/buffer.h"
#include "core/error.h"
#include "core/span.h"
#include "model/sample.h"

#define TRACE_MAGIC    "wattribute-trace "
#define TRACE_HEADER   TRACE_MAGIC "3"
#define TRACE_HEADER_2 TRACE_MAGIC "2" /* without instances in lists and GPM */
#define TRACE_HEADER_1 TRACE_MAGIC "1" /* without keys of programs, too */

/*
 * Reads a file as a stream of samples. Checked beyond the form of each line: the header; that a GPU
 * is described once and before it is used; that time does not go back within one GPU and kind of
 * record (between kinds it may, by the duration of one poll), nor within reports of usage; that
 * these and the last line are complete.
 */
struct trace_reader;

/* Opens the file and checks its header. Errors name the file. */
int trace_reader_open(const char *path, struct trace_reader **ret_reader, struct error *err);
void trace_reader_close(struct trace_reader *reader);

/* Starts over, behind the header. */
int trace_reader_rewind(struct trace_reader *reader, struct error *err);

/* Adds the next record's sample to the batch. 1, or 0 at the end of the trace, or -errno: -EBADMSG,
 * -EFBIG and the like with the line number in `err`. */
int trace_reader_next(struct trace_reader *reader, struct batch *batch, struct error *err);

/* The same, but -EAGAIN if the next record is not before `before_us`; it is read again later. */
int trace_reader_next_before(struct trace_reader *reader, uint64_t before_us, struct batch *batch,
                             struct error *err);

/*
 * Parses a line without its newline and adds its sample to the batch; pure. Returns 1 if it did, 0
 * for an unknown kind of record, -EBADMSG with what is wrong, -ENOMEM or -EFBIG. Of a report of
 * usage this is only the head: its workloads are on the next `count` lines.
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

/* Appends the sample's lines. False, without any, for kinds that a trace does not hold.
 * `ret_written` (or NULL) is what a reader will find in them: no workloads until there is a meter
 * of the node, and times in order even if the wall clock is set back. */
bool trace_write_sample(struct trace_writer *writer, const struct sample *sample,
                        struct buffer *out, struct sample *ret_written);
