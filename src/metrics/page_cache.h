/* The page: the newest snapshot, rendered at most once per format and encoding, when it is first
 * requested. All scrapers of a snapshot get the same bytes; without scrapers nothing is rendered.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/gzip.h"
#include "metrics/exposition.h"

/* The usage of workloads, rendered and compressed when it changes and not when it is requested:
 * with a thousand workloads it is nearly all of the page, and changes only when the cgroups are
 * read, every 5 s. Zeroed, it is empty. */
struct usage_page {
    uint64_t requested_us; /* when the page was last requested with gzip; 0: never */
    enum page_format requested_format;

    uint64_t made_us; /* 0: there is none */
    enum page_format format;
    uint64_t version; /* of the usage: see pipeline_usage_version */
    struct gzip_part part;
};

/* Is it worth making? The page was requested in the last minute, and there is none. */
bool usage_page_is_wanted(const struct usage_page *page, uint64_t version, uint64_t now_us);

/* Makes it from a snapshot that has the usage. 0 or -errno; then there is none. */
int usage_page_make(struct usage_page *page, const struct snapshot *snapshot,
                    const struct exposition_options *options, uint64_t version, uint64_t now_us);

struct page_cache {
    struct exposition_options exposition;
    struct usage_page usage;
    uint64_t generation; /* 0: no snapshot yet */
    struct snapshot snapshot;
    int fds[PAGE_FORMATS][PAGE_ENCODINGS]; /* sealed memfds, or -1 */
    size_t sizes[PAGE_FORMATS][PAGE_ENCODINGS];
};

/* The strings of the options must outlive it. */
void page_cache_init(struct page_cache *cache, const struct exposition_options *exposition);
void page_cache_done(struct page_cache *cache);

/* Drops the snapshot and its pages; the caller fills cache->snapshot anew. */
void page_cache_renew(struct page_cache *cache);

/* A page in sealed memory, which the cache owns, until page_cache_renew. With gzip, usage that was
 * prepared for this version is used. 0 or -errno. */
int page_cache_get(struct page_cache *cache, enum page_format format, enum page_encoding encoding,
                   uint64_t usage_version, uint64_t now_us, int *ret_fd, size_t *ret_size);
