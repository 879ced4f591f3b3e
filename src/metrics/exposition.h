/* A snapshot as the page that Prometheus scrapes. Pure: the same snapshot gives the same bytes. */
#pragma once

#include "metrics/text.h"
#include "model/policy.h"
#include "model/snapshot.h"

struct exposition_options {
    enum page_format format;
    const char *process_prefix; /* --metric-prefix */
    unsigned compat;            /* bits of enum compat */
    enum expose expose;
    uint64_t pue_millionths; /* 0: not given */
    const char *version;
};

/* The parts of the page, in this order. */
enum exposition_part {
    EXPOSITION_BOOKS = 1 << 0,
    EXPOSITION_USAGE = 1 << 1,
    EXPOSITION_END = 1 << 2,
    EXPOSITION_ALL = EXPOSITION_BOOKS | EXPOSITION_USAGE | EXPOSITION_END,
};

/* Appends some parts of the page; check buffer_failed. */
void exposition_render(const struct snapshot *snapshot, const struct exposition_options *options,
                       unsigned parts, struct buffer *out);
