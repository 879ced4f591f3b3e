/* The answer of a Prometheus to /api/v1/query_range: series with samples. Pure; nothing in it is
 * trusted. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/error.h"
#include "core/span.h"

enum {
    ANSWER_LABELS_MAX = 64, /* of a series */
    ANSWER_SERIES_MAX = 1 << 20,
    ANSWER_SAMPLES_MAX = 1 << 23,
    ANSWER_DEPTH_MAX = 32, /* of what is skipped */
    ANSWER_STRINGS_BYTES = 512 << 20,
};

struct answer_label {
    const char *name, *value; /* without NUL in them; any other bytes */
};

struct answer_sample {
    double t_s, value; /* finite */
};

struct answer_series {
    struct answer_label *labels;
    size_t label_count;
    size_t first_sample, sample_count;
};

struct answer {
    struct answer_series *series;
    size_t series_count, series_capacity;
    struct answer_sample *samples;
    size_t sample_count, sample_capacity;
    size_t warning_count;
    char warning[256]; /* the first; for people */
    struct arena strings;
};

/* 0, or -EBADMSG: no answer of a Prometheus, or one with an error, which the text has; -EFBIG: more
 * than the caps; -ENOMEM. On failure there is nothing to free. */
int answer_parse(struct span text, struct answer **ret_answer, struct error *err);

/* Drops samples that are not of this time, not later than the one before or beyond 1e18, and puts
 * the series in order of their first samples: where a label changes, with a rollout, one series
 * goes on in another. */
void answer_settle(struct answer *answer, double from_s, double to_s);

/* Accepts NULL. */
void answer_free(struct answer *answer);

/* "" if there is none. */
const char *answer_label(const struct answer_series *series, const char *name);
