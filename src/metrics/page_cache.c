#include "metrics/page_cache.h"

#include <errno.h>
#include <string.h>

#include "core/fs.h"
#include "core/macros.h"

/* Scrapers come at least once a minute. Gauges must age, so usage is rendered anew after 15 s. */
static const uint64_t REQUESTED_US = 60 * USEC_PER_SEC, OLD_US = 15 * USEC_PER_SEC;

void page_cache_init(struct page_cache *cache, const struct exposition_options *exposition)
{
    *cache = (struct page_cache){.exposition = *exposition};
    snapshot_init(&cache->snapshot);
    memset(cache->fds, -1, sizeof(cache->fds));
}

void page_cache_renew(struct page_cache *cache)
{
    snapshot_done(&cache->snapshot);
    for (int format = 0; format < PAGE_FORMATS; format++)
        for (int encoding = 0; encoding < PAGE_ENCODINGS; encoding++)
            cleanup_close(&cache->fds[format][encoding]);
    memset(cache->fds, -1, sizeof(cache->fds));
    cache->generation++;
}

void page_cache_done(struct page_cache *cache)
{
    page_cache_renew(cache);
    gzip_part_done(&cache->usage.part);
}

/* Frees the text at once: on a node with a thousand workloads it takes megabytes. */
static int render_part(const struct snapshot *snapshot, const struct exposition_options *options,
                       unsigned parts, struct gzip_part *part)
{
    struct buffer text;
    int r;

    buffer_init(&text, SEALED_MAX_BYTES);
    exposition_render(snapshot, options, parts, &text);
    r = buffer_failed(&text) ? -ENOMEM
                             : gzip_part_make(part, text.data, text.len, SEALED_MAX_BYTES);
    buffer_done(&text);
    return r;
}

/* `usage` may be NULL: not prepared. */
static int render_gzip(const struct page_cache *cache, const struct exposition_options *options,
                       const struct gzip_part *usage, struct buffer *out)
{
    struct gzip_part first = {0}, last = {0};
    const struct gzip_part *const parts[] = {&first, usage, &last};
    int r =
        render_part(&cache->snapshot, options, usage ? EXPOSITION_BOOKS : EXPOSITION_ALL, &first);

    if (r == 0 && usage)
        r = render_part(&cache->snapshot, options, EXPOSITION_END, &last);
    if (r == 0)
        r = gzip_join(parts, usage ? 3 : 1, out);
    gzip_part_done(&first);
    gzip_part_done(&last);
    return r;
}

static bool has_usage(const struct usage_page *page, enum page_format format, uint64_t version,
                      uint64_t now_us)
{
    return page->made_us > 0 && page->format == format && page->version == version &&
           now_us < page->made_us + OLD_US;
}

int page_cache_get(struct page_cache *cache, enum page_format format, enum page_encoding encoding,
                   uint64_t usage_version, uint64_t now_us, int *ret_fd, size_t *ret_size)
{
    struct exposition_options options = cache->exposition;
    int *fd = &cache->fds[format][encoding], r = 0;
    struct usage_page *usage = &cache->usage;
    struct buffer page;

    if (*fd < 0) {
        options.format = format;
        buffer_init(&page, SEALED_MAX_BYTES);
        if (encoding == PAGE_GZIP) {
            bool is_prepared = has_usage(usage, format, usage_version, now_us);

            usage->requested_us = now_us;
            usage->requested_format = format;
            r = render_gzip(cache, &options, is_prepared ? &usage->part : NULL, &page);
        } else {
            exposition_render(&cache->snapshot, &options, EXPOSITION_ALL, &page);
            r = buffer_failed(&page) ? -ENOMEM : 0;
        }
        if (r == 0)
            r = fs_create_sealed(page.data, page.len, fd);
        cache->sizes[format][encoding] = page.len;
        buffer_done(&page);
    }
    if (r < 0)
        return r;
    *ret_fd = *fd;
    *ret_size = cache->sizes[format][encoding];
    return 0;
}

bool usage_page_is_wanted(const struct usage_page *page, uint64_t version, uint64_t now_us)
{
    return page->requested_us > 0 && now_us < page->requested_us + REQUESTED_US &&
           !has_usage(page, page->requested_format, version, now_us);
}

int usage_page_make(struct usage_page *page, const struct snapshot *snapshot,
                    const struct exposition_options *options, uint64_t version, uint64_t now_us)
{
    struct exposition_options requested = *options;
    int r;

    requested.format = page->format = page->requested_format;
    gzip_part_done(&page->part);
    r = render_part(snapshot, &requested, EXPOSITION_USAGE, &page->part);
    page->made_us = r == 0 ? now_us : 0;
    page->version = version;
    return r;
}
