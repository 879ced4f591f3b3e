/*
 * Writing the exposition: text 0.0.4 or OpenMetrics 1.0, from the same calls.
 *
 *   text_family(&text, METRIC_GPU_POWER);
 *   text_sample(&text); text_label(&text, "gpu", "0"); text_value(&text, 123162, 3);
 *
 * A family's HELP and TYPE appear with its first sample. Values are integers with a decimal point
 * put in: nothing goes through a double.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/buffer.h"
#include "metrics/names.h"

enum text_format { TEXT_PROMETHEUS, TEXT_OPENMETRICS };

struct text {
    struct buffer *out;
    enum text_format format;
    const char *process_prefix;
    const struct metric_name *family;
    bool header_written;
    bool has_labels;
    size_t labels_offset; /* of the sample's labels */
};

/* Where labels are in the output, to be repeated; nowhere, if all is 0. */
struct text_labels {
    size_t offset, len;
};

void text_begin(struct text *text, struct buffer *out, enum text_format format,
                const char *process_prefix);
void text_family(struct text *text, enum metric metric);
void text_sample(struct text *text);

/*
 * Any bytes. What is not UTF-8 and control characters become U+FFFD and the two hexadecimal digits
 * of the byte, so that different values never become the same series; quotes and newlines are
 * escaped.
 */
void text_label(struct text *text, const char *name, const char *value);
void text_label_u64(struct text *text, const char *name, uint64_t value);

/* Those that the sample has so far, and the same for another one, before it has any: a workload has
 * some twenty samples with the same labels, of which only the first is escaped. */
struct text_labels text_labels_so_far(const struct text *text);
void text_repeat_labels(struct text *text, struct text_labels labels);

/* value / 10^digits, and the end of the sample. */
void text_value(struct text *text, int64_t value, unsigned digits);
/* whole + fraction / 10^digits, likewise. */
void text_decimal(struct text *text, uint64_t whole, uint64_t fraction, unsigned digits);
void text_end(struct text *text);
