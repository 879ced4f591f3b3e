#include "metrics/page_cache.h"

#include <errno.h>
#include <string.h>

#include "core/fs.h"
#include "core/macros.h"
#include "metrics/node_json.h"

/* Scrapers come at least once a minute. Gauges must age, so usage is rendered anew after 15 s. */
static const uint64_t REQUESTED_US = 60 * USEC_PER_SEC, OLD_US = 15 * USEC_PER_SEC;

void page_cache_init(struct page_cache *cache, const struct exposition_options *exposition)
{
    *cache = (struct page_cache){.exposition = *exposition};
    snapshot_init(&cache->snapshot);
    for (int format = 0; format < PAGE_FORMATS; format++)
        for (int encoding = 0; encoding < PAGE_ENCODINGS; encoding++)
            cache->pages[format][encoding].fd = -1;
}

static void drop_pages(struct page_cache *cache, int first, int end)
{
    for (int format = first; format < end; format++)
        for (int encoding = 0; encoding < PAGE_ENCODINGS; encoding++) {
            cleanup_close(&cache->pages[format][encoding].fd);
            cache->pages[format][encoding].fd = -1;
        }
}

void page_cache_renew(struct page_cache *cache)
{
    snapshot_done(&cache->snapshot);
    drop_pages(cache, 0, PAGE_NODE);
    cache->generation++;
}

void page_cache_done(struct page_cache *cache)
{
    page_cache_renew(cache);
    drop_pages(cache, PAGE_NODE, PAGE_FORMATS);
    gzip_part_done(&cache->usage.part);
    buffer_done(&cache->check);
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

/* The metrics page. */
static int render_metrics(struct page_cache *cache, enum page_format format,
                          enum page_encoding encoding, uint64_t usage_version, uint64_t now_us,
                          struct buffer *out)
{
    struct exposition_options options = cache->exposition;
    struct usage_page *usage = &cache->usage;
    bool is_prepared;

    options.format = format;
    if (encoding == PAGE_IDENTITY) {
        exposition_render(&cache->snapshot, &options, EXPOSITION_ALL, out);
        return buffer_failed(out) ? -ENOMEM : 0;
    }
    is_prepared = has_usage(usage, format, usage_version, now_us);
    usage->requested_us = now_us;
    usage->requested_format = format;
    return render_gzip(cache, &options, is_prepared ? &usage->part : NULL, out);
}

static void render_document(const struct page_cache *cache, enum page_format format,
                            struct buffer *out)
{
    if (format == PAGE_CHECK)
        buffer_bytes(out, cache->check.data, cache->check.len);
    else if (format == PAGE_HISTORY)
        history_json(cache->history, &cache->history_options, out);
    else
        node_json(&cache->snapshot,
                  &(struct node_json_options){.version = cache->exposition.version,
                                              .expose = cache->exposition.expose,
                                              .generation = cache->generation},
                  out);
}

static int render_api(const struct page_cache *cache, enum page_format format,
                      enum page_encoding encoding, struct buffer *out)
{
    struct gzip_part part = {0};
    const struct gzip_part *const parts[] = {&part};
    struct buffer text;
    int r;

    if (encoding == PAGE_IDENTITY) {
        render_document(cache, format, out);
        return buffer_failed(out) ? -ENOMEM : 0;
    }
    buffer_init(&text, SEALED_MAX_BYTES);
    render_document(cache, format, &text);
    r = buffer_failed(&text) ? -ENOMEM
                             : gzip_part_make(&part, text.data, text.len, SEALED_MAX_BYTES);
    buffer_done(&text);
    if (r == 0)
        r = gzip_join(parts, 1, out);
    gzip_part_done(&part);
    return r;
}

const struct page *page_cache_find(const struct page_cache *cache, enum page_format format,
                                   enum page_encoding encoding, uint64_t now_us)
{
    const struct page *page = &cache->pages[format][encoding];

    return page_is_of_api(format) && page->fd >= 0 && now_us < page->made_us + PAGE_API_INTERVAL_US
               ? page
               : NULL;
}

int page_cache_get(struct page_cache *cache, enum page_format format, enum page_encoding encoding,
                   uint64_t usage_version, uint64_t now_us, const struct page **ret_page)
{
    struct page *page = &cache->pages[format][encoding];
    uint64_t generation = format == PAGE_CHECK ? cache->check_generation : cache->generation;
    _cleanup_close_ int fd = -1;
    struct buffer bytes;
    int r;

    *ret_page = page;
    if (page->fd >= 0 && page->generation == generation)
        return 0;
    buffer_init(&bytes, SEALED_MAX_BYTES);
    r = page_is_of_api(format)
            ? render_api(cache, format, encoding, &bytes)
            : render_metrics(cache, format, encoding, usage_version, now_us, &bytes);
    if (r == 0)
        r = fs_create_sealed(bytes.data, bytes.len, &fd);
    if (r == 0) {
        cleanup_close(&page->fd);
        *page = (struct page){TAKE_FD(fd), bytes.len, generation, now_us};
    }
    buffer_done(&bytes);
    return r;
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
