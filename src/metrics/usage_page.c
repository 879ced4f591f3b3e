#include "metrics/usage_page.h"

#include <errno.h>

#include "core/macros.h"
#include "core/sealed.h"

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
