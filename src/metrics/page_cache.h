/* The pages: the newest snapshot, rendered at most once per format and encoding, when it is first
 * requested. All readers of a snapshot get the same bytes; without readers nothing is rendered.
 * Documents of the API are rendered at most once a second, however often there is a new snapshot.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/gzip.h"
#include "metrics/exposition.h"
#include "metrics/history_json.h"

/* How long a document of the API is the newest. */
#define PAGE_API_INTERVAL_US USEC_PER_SEC

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

struct page {
    int fd; /* a sealed memfd; -1: not rendered */
    size_t size;
    uint64_t generation; /* of its snapshot */
    uint64_t made_us;
};

struct page_cache {
    struct exposition_options exposition;
    struct usage_page usage;
    uint64_t generation; /* 0: no snapshot yet */
    struct snapshot snapshot;
    const struct history *history; /* NULL: none */
    struct history_json_options history_options;
    struct buffer check; /* the document of PAGE_CHECK, from elsewhere */
    uint64_t check_generation;
    struct page pages[PAGE_FORMATS][PAGE_ENCODINGS];
};

/* The strings of the options must outlive it. */
void page_cache_init(struct page_cache *cache, const struct exposition_options *exposition);
void page_cache_done(struct page_cache *cache);

/* Drops the snapshot and its pages, but for those of the API; the caller fills cache->snapshot
 * anew.
 */
void page_cache_renew(struct page_cache *cache);

/* The page that is the newest without a look at the books, or NULL: one of the API. It is the
 * cache's, like the next one, until another one is rendered. */
const struct page *page_cache_find(const struct page_cache *cache, enum page_format format,
                                   enum page_encoding encoding, uint64_t now_us);

/* The page of the snapshot; for PAGE_HISTORY the caller sets cache->history and its options first.
 * With gzip, usage that was prepared for this version is used. 0 or -errno. */
int page_cache_get(struct page_cache *cache, enum page_format format, enum page_encoding encoding,
                   uint64_t usage_version, uint64_t now_us, const struct page **ret_page);
