/* A snapshot as the page that Prometheus scrapes. Pure: the same snapshot gives the same bytes. */
#pragma once

#include <stdbool.h>

#include "core/buffer.h"
#include "metrics/text.h"
#include "model/policy.h"
#include "model/snapshot.h"

struct exposition_options {
    enum text_format format;
    const char *process_prefix; /* --metric-prefix */
    unsigned compat;            /* bits of enum compat */
    enum expose expose;
    uint64_t pue_millionths; /* 0: not given */
    const char *version;
};

/* Appends the page; check buffer_failed. */
void exposition_render(const struct snapshot *snapshot, const struct exposition_options *options,
                       struct buffer *out);

/* The page in three parts, in this order. */
void exposition_render_books(const struct snapshot *snapshot,
                             const struct exposition_options *options, struct buffer *out);
void exposition_render_usage(const struct snapshot *snapshot,
                             const struct exposition_options *options, struct buffer *out);
void exposition_render_end(const struct exposition_options *options, struct buffer *out);
