/*
 * Bodies: the newest snapshot, rendered at most once per format and encoding, when it is first
 * asked for. Every scraper of a snapshot gets the same bytes; nobody asks, nothing is rendered.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "metrics/exposition.h"
#include "metrics/page_format.h"
#include "metrics/usage_page.h"
#include "model/snapshot.h"

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
