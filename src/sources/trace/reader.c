#include "sources/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "core/gzip.h"
#include "core/macros.h"
#include "core/map.h"
#include "core/parse.h"

/* A list of 950 pids, the driver's maximum, has 25 KB. */
enum { LINE_MAX_BYTES = 256 * 1024 };

/* Order is checked within a stream. Lists of different kinds are read at different times. */
enum { STREAMS = SAMPLE_KINDS + SAMPLE_LIST_KINDS };

struct trace_reader {
    char *path;
    struct gzip_reader *gzip;
    uint64_t line_number;
    uint64_t record_count;
    bool ended;
    uint64_t uuid_hashes[SAMPLE_GPU_MAX]; /* of described GPUs; 0: not described */
    uint64_t last_us[SAMPLE_GPU_MAX][STREAMS];
    size_t line_begin; /* of the last line, in `buffer` */
    size_t begin, end; /* what is left in `buffer` */
    char buffer[LINE_MAX_BYTES];
};

static int at_line(const struct trace_reader *reader, struct error *err, int code, const char *why)
{
    return error_set(err, code, "trace '%s', line %llu: %s", reader->path,
                     (unsigned long long)reader->line_number, why);
}

/* Makes room and reads more. *ret_more is false at the end of the file. */
static int fill(struct trace_reader *reader, bool *ret_more, struct error *err)
{
    struct error why;
    size_t len;
    int r;

    if (reader->begin > 0) {
        memmove(reader->buffer, reader->buffer + reader->begin, reader->end - reader->begin);
        reader->end -= reader->begin;
        reader->begin = 0;
    }
    if (reader->end == sizeof(reader->buffer))
        return at_line(reader, err, -EBADMSG, "the line is longer than 256 KiB (not a trace?)");
    r = gzip_reader_read(reader->gzip, reader->buffer + reader->end,
                         sizeof(reader->buffer) - reader->end, &len, &why);
    if (r < 0)
        return at_line(reader, err, r, why.text);
    reader->end += len;
    *ret_more = len > 0;
    return 0;
}

/* 1 with the next line without its newline, valid until the next call; 0 at the end. */
static int next_line(struct trace_reader *reader, struct span *ret_line, struct error *err)
{
    size_t searched = 0;

    reader->line_number++;
    for (;;) {
        const char *start = reader->buffer + reader->begin;
        size_t have = reader->end - reader->begin;
        const char *newline = memchr(start + searched, '\n', have - searched);
        bool more = false;
        int r;

        if (newline) {
            *ret_line = (struct span){start, (size_t)(newline - start)};
            reader->line_begin = reader->begin;
            reader->begin += ret_line->len + 1;
            return 1;
        }
        searched = have;
        r = fill(reader, &more, err);
        if (r < 0)
            return r;
        if (!more && have == 0)
            return 0;
        if (!more)
            return at_line(reader, err, -EBADMSG, "the last line is not whole (file cut short?)");
    }
}

static int read_header(struct trace_reader *reader, struct error *err)
{
    uint64_t version;
    struct span line;
    int r = next_line(reader, &line, err);

    if (r < 0)
        return r;
    if (r == 0)
        return at_line(reader, err, -EBADMSG, "the file is empty");
    if (span_equals(line, TRACE_HEADER) || span_equals(line, TRACE_HEADER_2) ||
        span_equals(line, TRACE_HEADER_1))
        return 0;
    if (span_strip_prefix(&line, TRACE_MAGIC) && parse_u64(line, &version) == 0)
        return at_line(reader, err, -EBADMSG,
                       "a trace of a version that this program does not read (1 to 3); use the "
                       "program that recorded it");
    return at_line(reader, err, -EBADMSG, "not a trace: the first line must be '" TRACE_HEADER "'");
}

int trace_reader_open(const char *path, struct trace_reader **ret_reader, struct error *err)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct trace_reader *reader;
    int r;

    if (fd < 0)
        return error_set(err, -errno, "cannot open trace '%s': %s; specify a recorded trace", path,
                         strerror(errno));
    reader = calloc(1, sizeof(*reader));
    r = reader && (reader->path = strdup(path)) ? gzip_reader_open(fd, &reader->gzip) : -ENOMEM;
    if (r < 0) {
        error_set(err, r, "cannot read trace '%s': %s", path, strerror(-r));
    } else {
        TAKE_FD(fd);
        r = read_header(reader, err);
    }
    if (r < 0)
        trace_reader_close(reader);
    else
        *ret_reader = reader;
    return r;
}

void trace_reader_close(struct trace_reader *reader)
{
    if (!reader)
        return;
    gzip_reader_close(reader->gzip);
    free(reader->path);
    free(reader);
}

int trace_reader_rewind(struct trace_reader *reader, struct error *err)
{
    if (gzip_reader_rewind(reader->gzip) < 0)
        return error_set(err, -ESPIPE, "cannot play trace '%s' again: not a regular file",
                         reader->path);
    reader->begin = reader->end = 0;
    reader->line_number = reader->record_count = 0;
    reader->ended = false;
    memset(reader->uuid_hashes, 0, sizeof(reader->uuid_hashes));
    memset(reader->last_us, 0, sizeof(reader->last_us));
    return read_header(reader, err);
}

static int check_order(struct trace_reader *reader, const struct sample *sample, struct error *err)
{
    bool is_described = reader->uuid_hashes[sample->gpu] != 0;
    uint64_t *last_us;

    switch (sample->kind) {
    case SAMPLE_DEVICE:
        if (is_described)
            return at_line(reader, err, -EBADMSG, "this gpu was described before");
        reader->uuid_hashes[sample->gpu] = map_hash_bytes(span_of(sample->device.uuid));
        for (size_t i = 0; i < SAMPLE_GPU_MAX; i++)
            if (i != sample->gpu && reader->uuid_hashes[i] == reader->uuid_hashes[sample->gpu])
                return at_line(reader, err, -EBADMSG, "another gpu has the same uuid");
        return 0;
    case SAMPLE_METER:
    case SAMPLE_NODE_POWER:
    case SAMPLE_NAMES:
        return 0; /* their sources have clocks of their own, and names no time */
    default:
        break;
    }
    if (sample->kind != SAMPLE_USAGE && !is_described)
        return at_line(reader, err, -EBADMSG, "no 'gpu' line describes this gpu");
    last_us = &reader->last_us[sample->gpu][sample->kind == SAMPLE_LIST
                                                ? SAMPLE_KINDS + (size_t)sample->list.kind
                                                : (size_t)sample->kind];
    if (sample->t_us < *last_us)
        return at_line(reader, err, -EBADMSG, "out of order: earlier than the record before it");
    *last_us = sample->t_us;
    return 0;
}

static int fail_at_line(const struct trace_reader *reader, struct error *err, int code,
                        const struct error *why)
{
    return at_line(reader, err, code, code == -EBADMSG ? why->text : strerror(-code));
}

/* Reads the workloads of a report, whose head is the last sample of the batch. */
static int read_workloads(struct trace_reader *reader, struct batch *batch, struct error *err)
{
    struct sample *sample = &batch->samples[batch->count - 1];
    struct sample_workload *workloads =
        arena_array(&batch->arena, sample->usage.count, sizeof(*workloads));
    struct error why = {""};

    if (!workloads)
        return fail_at_line(reader, err, -ENOMEM, &why);
    for (size_t i = 0; i < sample->usage.count; i++) {
        struct span line;
        int r = next_line(reader, &line, err);

        if (r < 0)
            return r;
        if (r == 0)
            return at_line(reader, err, -EBADMSG, "the report of usage is cut short");
        r = trace_parse_workload(line, sample->t_us, batch, &workloads[i], &why);
        if (r < 0)
            return fail_at_line(reader, err, r, &why);
    }
    sample->usage.workloads = workloads;
    return 0;
}

int trace_reader_next_before(struct trace_reader *reader, uint64_t before_us, struct batch *batch,
                             struct error *err)
{
    while (!reader->ended) {
        const struct sample *sample;
        struct error why;
        struct span line;
        int r = next_line(reader, &line, err);

        if (r < 0)
            return r;
        if (r == 0) {
            reader->ended = true;
            break;
        }
        r = trace_parse_line(line, batch, &why);
        if (r < 0)
            return fail_at_line(reader, err, r, &why);
        if (r == 0) {
            reader->record_count++;
            continue;
        }
        sample = &batch->samples[batch->count - 1];
        if (sample->kind != SAMPLE_NAMES && sample->t_us >= before_us) { /* names have no time */
            batch->count--;
            reader->begin = reader->line_begin;
            reader->line_number--;
            return -EAGAIN;
        }
        reader->record_count++;
        r = check_order(reader, sample, err);
        if (r == 0 && sample->kind == SAMPLE_USAGE)
            r = read_workloads(reader, batch, err);
        if (r < 0)
            batch->count--;
        return r < 0 ? r : 1;
    }
    if (reader->record_count == 0)
        return at_line(reader, err, -EBADMSG, "the trace has no record");
    return 0;
}

int trace_reader_next(struct trace_reader *reader, struct batch *batch, struct error *err)
{
    return trace_reader_next_before(reader, UINT64_MAX, batch, err);
}
