#include "net/assets.h"

#include <string.h>

const struct http_asset *assets_find(const struct http_asset *assets, size_t count,
                                     const char *path)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(assets[i].path, path) == 0)
            return &assets[i];
    return NULL;
}

bool assets_match_etag(const char *if_none_match, const char *etag)
{
    struct span rest = span_of(if_none_match ? if_none_match : "");

    while (rest.len > 0) {
        struct span tag = span_cut(&rest, ',');

        while (span_strip_prefix(&tag, " ") || span_strip_prefix(&tag, "\t"))
            ;
        while (span_strip_suffix(&tag, " ") || span_strip_suffix(&tag, "\t"))
            ;
        span_strip_prefix(&tag, "W/"); /* as a proxy marks what it compressed anew */
        if (span_equals(tag, etag) || span_equals(tag, "*"))
            return true;
    }
    return false;
}
