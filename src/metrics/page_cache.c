#include "metrics/page_cache.h"

#include <errno.h>

#include "core/gzip.h"
#include "core/macros.h"
#include "core/sealed.h"

void page_cache_init(struct page_cache *bodies, const struct exposition_options *exposition)
{
    *bodies = (struct page_cache){.exposition = *exposition};
    snapshot_init(&bodies->snapshot);
    for (int format = 0; format < PAGE_FORMATS; format++)
        for (int encoding = 0; encoding < PAGE_ENCODINGS; encoding++)
            bodies->fds[format][encoding] = -1;
}

static void drop(struct page_cache *bodies)
{
    snapshot_done(&bodies->snapshot);
    for (int format = 0; format < PAGE_FORMATS; format++)
        for (int encoding = 0; encoding < PAGE_ENCODINGS; encoding++) {
            cleanup_close(&bodies->fds[format][encoding]);
            bodies->fds[format][encoding] = -1;
        }
}

void page_cache_done(struct page_cache *bodies)
{
    drop(bodies);
    usage_page_done(&bodies->usage);
}

void page_cache_renew(struct page_cache *bodies)
{
    drop(bodies);
    bodies->generation++;
}

static struct exposition_options options_of(const struct page_cache *bodies,
                                            enum page_format format)
{
    struct exposition_options options = bodies->exposition;

    options.format = format == PAGE_OPENMETRICS ? TEXT_OPENMETRICS : TEXT_PROMETHEUS;
    return options;
}

static int make_plain(const struct page_cache *bodies, const struct exposition_options *options,
                      struct buffer *out)
{
    exposition_render(&bodies->snapshot, options, out);
    return buffer_failed(out) ? -ENOMEM : 0;
}

/* Packs the text and frees it: on a node with a thousand workloads it has megabytes. */
static int pack(struct buffer *text, struct gzip_part *part)
{
    int r = buffer_failed(text) ? -ENOMEM
                                : gzip_part_make(part, text->data, text->len, SEALED_MAX_BYTES);

    buffer_done(text);
    return r;
}

/* `usage` may be NULL: not prepared. */
static int make_packed(const struct page_cache *bodies, const struct exposition_options *options,
                       const struct gzip_part *usage, struct buffer *out)
{
    struct gzip_part before = {0}, after = {0};
    const struct gzip_part *parts[3] = {&before};
    size_t count = 1;
    struct buffer text;
    int r;

    buffer_init(&text, SEALED_MAX_BYTES);
    exposition_render_books(&bodies->snapshot, options, &text);
    if (!usage)
        exposition_render_usage(&bodies->snapshot, options, &text);
    r = pack(&text, &before);
    buffer_init(&text, SEALED_MAX_BYTES);
    exposition_render_end(options, &text);
    if (r == 0)
        r = pack(&text, &after);
    if (usage)
        parts[count++] = usage;
    parts[count++] = &after;
    if (r == 0)
        r = gzip_join(parts, count, out);
    buffer_done(&text);
    gzip_part_done(&before);
    gzip_part_done(&after);
    return r;
}

static int make_body(struct page_cache *bodies, enum page_format format,
                     enum page_encoding encoding, uint64_t usage_version, uint64_t now_us,
                     int *ret_fd, size_t *ret_size)
{
    const struct exposition_options options = options_of(bodies, format);
    struct buffer body;
    int r;

    buffer_init(&body, SEALED_MAX_BYTES);
    if (encoding == PAGE_GZIP)
        r = make_packed(bodies, &options,
                        usage_page_ask(&bodies->usage, options.format, usage_version, now_us),
                        &body);
    else
        r = make_plain(bodies, &options, &body);
    if (r == 0)
        r = sealed_create(body.data, body.len, ret_fd);
    if (r == 0)
        *ret_size = body.len;
    buffer_done(&body);
    return r;
}

int page_cache_get(struct page_cache *bodies, enum page_format format, enum page_encoding encoding,
                   uint64_t usage_version, uint64_t now_us, int *ret_fd, size_t *ret_size)
{
    int *fd = &bodies->fds[format][encoding];
    size_t *size = &bodies->sizes[format][encoding];
    int r = *fd < 0 ? make_body(bodies, format, encoding, usage_version, now_us, fd, size) : 0;

    if (r < 0)
        return r;
    *ret_fd = *fd;
    *ret_size = *size;
    return 0;
}

/* From here on: what workloads use. */

/* Whoever scrapes comes once a minute at least; and what is old is left to be made anew, as gauges
 * must age. */
static const uint64_t ASKED_US = 60 * USEC_PER_SEC;
static const uint64_t OLD_US = 15 * USEC_PER_SEC;

void usage_page_done(struct usage_page *page)
{
    gzip_part_done(&page->part);
    *page = (struct usage_page){0};
}

static bool is_there(const struct usage_page *page, enum text_format format, uint64_t version,
                     uint64_t now_us)
{
    return page->is_made && page->format == format && page->version == version &&
           now_us < page->made_us + OLD_US;
}

const struct gzip_part *usage_page_ask(struct usage_page *page, enum text_format format,
                                       uint64_t version, uint64_t now_us)
{
    page->asked_us = now_us;
    page->asked_format = format;
    return is_there(page, format, version, now_us) ? &page->part : NULL;
}

bool usage_page_is_wanted(const struct usage_page *page, uint64_t version, uint64_t now_us)
{
    return page->asked_us > 0 && now_us < page->asked_us + ASKED_US &&
           !is_there(page, page->asked_format, version, now_us);
}

int usage_page_make(struct usage_page *page, const struct snapshot *snapshot,
                    const struct exposition_options *options, uint64_t version, uint64_t now_us)
{
    struct exposition_options asked = *options;
    struct buffer text;
    int r = -ENOMEM;

    asked.format = page->asked_format;
    buffer_init(&text, SEALED_MAX_BYTES);
    exposition_render_usage(snapshot, &asked, &text);
    gzip_part_done(&page->part);
    if (!buffer_failed(&text))
        r = gzip_part_make(&page->part, text.data, text.len, SEALED_MAX_BYTES);
    buffer_done(&text);
    page->is_made = r == 0;
    page->format = page->asked_format;
    page->version = version;
    page->made_us = now_us;
    return r;
}
