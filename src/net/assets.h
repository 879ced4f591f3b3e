/*
 * Assets: the files of the page, which are in the program. Each has a strong ETag per encoding, so
 * that browsers keep them, ask each time whether they still hold, and never mix two versions. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/span.h"
#include "metrics/page_format.h"

/* Made by tools/embed. */
struct http_asset {
    const char *path, *content_type;
    struct {
        struct span body;
        const char *etag; /* with its quotes */
    } variants[PAGE_ENCODINGS];
};

/* NULL: no asset is there. */
const struct http_asset *assets_find(const struct http_asset *assets, size_t count,
                                     const char *path);

/* Whether If-None-Match (NULL: no such header) names this ETag (RFC 9110, 13.1.2). */
bool assets_match_etag(const char *if_none_match, const char *etag);
