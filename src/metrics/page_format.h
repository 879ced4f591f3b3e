/* The documents that the collector renders for the server: the metrics page in two formats, and
 * those of the API. */
#pragma once

#include <stdbool.h>

enum page_format {
    PAGE_TEXT,
    PAGE_OPENMETRICS,
    PAGE_NODE, /* of the API from here on: JSON */
    PAGE_HISTORY,
    PAGE_CHECK,
    PAGE_FORMATS,
};

enum page_encoding { PAGE_IDENTITY, PAGE_GZIP, PAGE_ENCODINGS };

static inline bool page_is_of_api(enum page_format format)
{
    return format >= PAGE_NODE;
}
