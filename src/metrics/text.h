/*
 * Writing the exposition: text 0.0.4 or OpenMetrics 1.0, from the same calls.
 *
 *   text_family(&text, METRIC_SOURCE_AGE);
 *   text_row(&text, 123162, 6, "source", "rapl");
 *
 * A family's HELP and TYPE appear with its first sample. Values are integers with a decimal point
 * put in: nothing goes through a double.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/buffer.h"
#include "metrics/page_format.h"

enum metric {
#define METRIC(id, ...) METRIC_##id,
#include "metrics/metric_table.h"
#undef METRIC
    METRIC_COUNT,
};

struct metric_name {
    enum metric_prefix {
        METRIC_PREFIX_PROCESS, /* --metric-prefix */
        METRIC_PREFIX_OWN,     /* wattribute_ */
        METRIC_PREFIX_NONE,    /* names that other exporters share */
    } prefix;
    /* A bare counter lacks `_total`, as no name of ours does: never in OpenMetrics. */
    enum metric_type { METRIC_GAUGE, METRIC_COUNTER, METRIC_BARE_COUNTER } type;
    const char *name; /* without `_total`, which only counters have */
    const char *help;
};

extern const struct metric_name metric_names[METRIC_COUNT];

struct text {
    struct buffer *out;
    enum page_format format;
    const char *process_prefix;
    const struct metric_name *family;
    bool header_written;
    bool has_labels;
    size_t labels_offset; /* of the sample's labels */
};

/* Where labels are in the output, to be repeated; zeroed: nowhere. */
struct text_labels {
    size_t offset, len;
};

void text_begin(struct text *text, struct buffer *out, enum page_format format,
                const char *process_prefix);
void text_family(struct text *text, enum metric metric);

/* Begins a sample, with pairs of label and value: text_sample(&text, "source", "rapl"). */
#define text_sample(...) text_sample_labels(__VA_ARGS__, (const char *)NULL)
void text_sample_labels(struct text *text, ...) __attribute__((sentinel));
/* A whole sample: text_row(&text, 42, 0, "source", "rapl"). */
#define text_row(text, value, digits, ...)                                                         \
    (text_sample(text, __VA_ARGS__), text_value(text, value, digits))

/* Adds a label with any bytes. Bytes that are not UTF-8 and control characters become U+FFFD and
 * two hexadecimal digits, so that different values never become the same series. */
void text_label(struct text *text, const char *name, const char *value);
void text_label_u64(struct text *text, const char *name, uint64_t value);

/* The labels of the sample so far, to be repeated in another sample that has none yet: a workload
 * has some twenty samples with the same labels, which are escaped only once. */
struct text_labels text_labels_so_far(const struct text *text);
void text_repeat_labels(struct text *text, struct text_labels labels);

/* value / 10^digits, and the end of the sample. */
void text_value(struct text *text, int64_t value, unsigned digits);
/* whole + fraction / 10^digits, likewise. */
void text_decimal(struct text *text, uint64_t whole, uint64_t fraction, unsigned digits);
void text_end(struct text *text);
