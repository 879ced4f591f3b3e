/*
 * The page: the newest snapshot, rendered at most once per format and encoding, when it is first
 * asked for. Every scraper of a snapshot gets the same bytes; nobody asks, nothing is rendered.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/gzip.h"
#include "metrics/exposition.h"
#include "metrics/page_format.h"
#include "model/snapshot.h"

/*
 * The part of the page that tells what workloads use, made and compressed when it changes and not
 * when it is asked for: with a thousand workloads it is nearly all of the page, and changes only
 * with the reading of the cgroups, every 5 s. Nobody asks, nothing is made. Zeroed, it is empty.
 */
struct usage_page {
    uint64_t asked_us; /* when the page was last asked for with gzip; 0: never */
    enum text_format asked_format;

    bool is_made;
    enum text_format format;
    uint64_t version; /* of the usage that it tells: see pipeline_usage_version */
    uint64_t made_us;
    struct gzip_part part;
};

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

/* From here on: the whole page. */

struct page_cache {
    struct exposition_options exposition;
    struct usage_page usage;
    uint64_t generation; /* 0: no snapshot yet */
    struct snapshot snapshot;
    int fds[PAGE_FORMATS][PAGE_ENCODINGS]; /* sealed memfds, or -1 */
    size_t sizes[PAGE_FORMATS][PAGE_ENCODINGS];
};

/* The strings of the options must outlive it. */
void page_cache_init(struct page_cache *bodies, const struct exposition_options *exposition);
void page_cache_done(struct page_cache *bodies);

/* Drops the snapshot and its bodies; the caller fills bodies->snapshot anew. */
void page_cache_renew(struct page_cache *bodies);

/*
 * A descriptor that stays the bodies' own, until page_cache_renew. With gzip, what was prepared of
 * this version of the usage is used. 0 or -errno.
 */
int page_cache_get(struct page_cache *bodies, enum page_format format, enum page_encoding encoding,
                   uint64_t usage_version, uint64_t now_us, int *ret_fd, size_t *ret_size);
