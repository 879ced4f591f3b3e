/*
 * The part of the page that tells what workloads use, made and compressed when it changes and not
 * when it is asked for: with a thousand workloads it is nearly all of the page, and changes only
 * with the reading of the cgroups, every 5 s. Nobody asks, nothing is made.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/gzip.h"
#include "metrics/exposition.h"

struct usage_page {
    uint64_t asked_us; /* when the page was last asked for with gzip; 0: never */
    enum text_format asked_format;

    bool is_made;
    enum text_format format;
    uint64_t version; /* of the usage that it tells: see pipeline_usage_version */
    uint64_t made_us;
    struct gzip_part part;
};

/* Zeroed, it is empty. */
void usage_page_done(struct usage_page *page);

/* Notes that somebody asks. Returns the part if it is there for this version and not old, or NULL.
 */
const struct gzip_part *usage_page_ask(struct usage_page *page, enum text_format format,
                                       uint64_t version, uint64_t now_us);

/* Is it worth to make it? The page was asked for in the last minute, and it is not there. */
bool usage_page_is_wanted(const struct usage_page *page, uint64_t version, uint64_t now_us);

/* Makes it from a snapshot that has the usage. 0 or -ENOMEM; then it is not there. */
int usage_page_make(struct usage_page *page, const struct snapshot *snapshot,
                    const struct exposition_options *options, uint64_t version, uint64_t now_us);
