/*
 * The fields of a trace's records: blank-separated words, each described once for the reader and
 * the writer. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/buffer.h"
#include "core/error.h"
#include "core/span.h"
#include "model/sample.h"

enum {
    TRACE_LISTED_MAX = 65536,  /* processes, workloads */
    TRACE_PERCENT_MAX = 65535, /* some drivers return garbage above 100 %; attribution drops it */
};

enum trace_field_type {
    TRACE_NUMBER,
    TRACE_SPARE_NUMBER, /* written from the member, but not read into it */
    TRACE_UID,          /* a number that may be missing at the end: SAMPLE_UID_UNKNOWN */
    TRACE_TEXT,
    TRACE_SOURCE, /* of a meter: one of the known sources */
    TRACE_METER,  /* a kind of meter, not METER_GPU */
    TRACE_NAMED,  /* "NAME=NUMBER", or missing */
    TRACE_KEY,    /* the same, missing if 0 */
    TRACE_FLAG,   /* a letter, or missing */
};

struct trace_field {
    enum trace_field_type type;
    const char *what;          /* for messages */
    const char *name;          /* of TRACE_NAMED with its "=", and of TRACE_FLAG */
    size_t offset, size_bytes; /* of the member */
    uint64_t max;              /* of a number; of a text, the bytes with the NUL; 0: any */
    uint32_t unit;             /* the member's units in one of the line's; 0: 1 */
    size_t has_offset;         /* of TRACE_NAMED: the bool that is set if it is there */
};

/*
 * Cuts the fields off the rest of a line and sets the members of what is at `base`. 0, -EBADMSG
 * with what was expected, -ENOMEM, or -ENOTSUP: an unknown source or kind of meter.
 */
int trace_take_fields(struct span *rest, const struct trace_field *fields, size_t count,
                      struct batch *batch, void *base, struct error *err);
void trace_put_fields(struct buffer *out, const struct trace_field *fields, size_t count,
                      const void *base);

/* A number of at most `max`. */
int trace_take_u64(struct span *rest, uint64_t max, const char *what, uint64_t *ret_value,
                   struct error *err);
/* With a blank before it. */
void trace_put_number(struct buffer *out, uint64_t value);

/* A word in which blanks, % and control bytes are written %XX; "-" is the empty text. -EBADMSG also
 * if it has `size_bytes` or more. In an entry, whose fields are separated by colons, so are colons.
 */
int trace_take_text(struct span *rest, struct batch *batch, size_t size_bytes, const char *what,
                    const char **ret_text, struct error *err);
void trace_put_text(struct buffer *out, const char *text);
/* With a colon before it. */
void trace_put_entry_text(struct buffer *out, const char *text);

/* The index of the next word among `count`; `count` if it is none of them. */
size_t trace_take_word(struct span *rest, const char *const *words, size_t count);

/* Records that are no row of fields. */
int trace_parse_list(struct span *rest, struct batch *batch, struct sample *sample,
                     struct error *err);
int trace_parse_busy(struct span *rest, struct batch *batch, struct sample *sample,
                     struct error *err);
int trace_parse_gpm(struct span *rest, struct batch *batch, struct sample *sample,
                    struct error *err);
int trace_parse_names(struct span *rest, struct batch *batch, struct sample *sample,
                      struct error *err);
void trace_put_list(struct buffer *out, const struct sample *sample);
void trace_put_busy(struct buffer *out, const struct sample *sample);
void trace_put_gpm(struct buffer *out, const struct sample *sample);
void trace_put_names(struct buffer *out, const struct sample *sample);

/* Those of partitioned boards. A gauge is recorded only if it is the memory of an instance. */
bool trace_is_instance_memory(const struct sample *sample);
int trace_parse_layout(struct span *rest, struct batch *batch, struct sample *sample,
                       struct error *err);
int trace_parse_vgpus(struct span *rest, struct batch *batch, struct sample *sample,
                      struct error *err);
int trace_parse_instance_memory(struct span *rest, struct batch *batch, struct sample *sample,
                                struct error *err);
void trace_put_layout(struct buffer *out, const struct sample *sample);
void trace_put_vgpus(struct buffer *out, const struct sample *sample);
void trace_put_instance_memory(struct buffer *out, const struct sample *sample);
