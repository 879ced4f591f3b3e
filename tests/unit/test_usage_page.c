/* metrics/page_cache: the prepared part of the page is what would have been rendered, or is not
 * used.
 */
#include "unit.h"

#include <string.h>
#include <unistd.h>

#include "core/macros.h"
#include "metrics/page_cache.h"

enum { CAP_BYTES = 1 << 20, VERSION = 7 };
#define NOW (1000 * USEC_PER_SEC)

static const struct snapshot_usage rows[] = {
    {.kind = WORKLOAD_UNIT,
     .id = "cron.service",
     .names = {"cron.service", "", "", "", ""},
     .container_id = "",
     .pod_uid = "",
     .usage = {.valid = USAGE_BIT(USAGE_PIDS), .values = {[USAGE_PIDS] = 42}}},
};
static const struct exposition_options options = {.process_prefix = "p", .version = "1"};

static void set_usage(struct snapshot *snapshot)
{
    snapshot->usages = rows;
    snapshot->usage_count = ARRAY_SIZE(rows);
}

static struct buffer get(struct page_cache *cache, enum page_format format,
                         enum page_encoding encoding, uint64_t version, uint64_t now_us)
{
    struct gzip_reader *reader;
    char block[4096];
    struct buffer page;
    struct error err;
    const struct page *got;
    size_t len;
    int fd;

    buffer_init(&page, CAP_BYTES);
    assert_int_equal(page_cache_get(cache, format, encoding, version, now_us, &got), 0);
    fd = dup(got->fd);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_int_equal(gzip_reader_open(fd, &reader), 0);
    do {
        assert_int_equal(gzip_reader_read(reader, block, sizeof(block), &len, &err), 0);
        buffer_bytes(&page, block, len);
    } while (len > 0);
    buffer_char(&page, '\0');
    gzip_reader_close(reader);
    return page;
}

/* A node that is scraped with OpenMetrics and gzip, and whose usage was read again since. */
static void set_up_cache(struct page_cache *cache)
{
    struct snapshot snapshot;
    struct buffer page;

    page_cache_init(cache, &options);
    page_cache_renew(cache);
    page = get(cache, PAGE_OPENMETRICS, PAGE_GZIP, VERSION - 1, NOW);
    buffer_done(&page);
    assert_true(usage_page_is_wanted(&cache->usage, VERSION, NOW));
    snapshot_init(&snapshot);
    set_usage(&snapshot);
    assert_int_equal(usage_page_make(&cache->usage, &snapshot, &options, VERSION, NOW), 0);
    assert_false(usage_page_is_wanted(&cache->usage, VERSION, NOW));
    snapshot_done(&snapshot);
    page_cache_renew(cache);
}

static void the_prepared_part_stands_where_it_would_be_rendered(void **state)
{
    struct page_cache cache;
    struct buffer packed, plain;

    (void)state;
    set_up_cache(&cache);
    packed = get(&cache, PAGE_OPENMETRICS, PAGE_GZIP, VERSION, NOW + 1);
    assert_non_null(strstr(packed.data, "} 42\n")); /* though the snapshot has no usage */
    set_usage(&cache.snapshot);
    plain = get(&cache, PAGE_OPENMETRICS, PAGE_IDENTITY, VERSION, NOW + 1);
    assert_string_equal(packed.data, plain.data);
    assert_non_null(strstr(plain.data, "} 42\n"));
    buffer_done(&packed);
    buffer_done(&plain);
    page_cache_done(&cache);
}

static void what_is_of_another_format_or_version_or_old_is_not_used(void **state)
{
    static const struct {
        enum page_format format;
        uint64_t version, now_us;
    } requests[] = {
        {PAGE_TEXT, VERSION, NOW + 1},
        {PAGE_OPENMETRICS, VERSION + 1, NOW + 1},
        {PAGE_OPENMETRICS, VERSION, NOW + 15 * USEC_PER_SEC},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
        struct page_cache cache;
        struct buffer page;

        set_up_cache(&cache);
        page = get(&cache, requests[i].format, PAGE_GZIP, requests[i].version, requests[i].now_us);
        assert_null(strstr(page.data, "} 42\n"));
        buffer_done(&page);
        page_cache_done(&cache);
    }
}

static void nothing_is_prepared_for_nobody(void **state)
{
    struct page_cache cache;
    struct buffer page;

    (void)state;
    page_cache_init(&cache, &options);
    page_cache_renew(&cache);
    assert_false(usage_page_is_wanted(&cache.usage, VERSION, NOW));
    page = get(&cache, PAGE_TEXT, PAGE_IDENTITY, VERSION, NOW);
    buffer_done(&page);
    assert_false(usage_page_is_wanted(&cache.usage, VERSION, NOW));
    page = get(&cache, PAGE_TEXT, PAGE_GZIP, VERSION, NOW);
    buffer_done(&page);
    assert_true(usage_page_is_wanted(&cache.usage, VERSION, NOW + 59 * USEC_PER_SEC));
    assert_false(usage_page_is_wanted(&cache.usage, VERSION, NOW + 60 * USEC_PER_SEC));
    page_cache_done(&cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_prepared_part_stands_where_it_would_be_rendered),
        cmocka_unit_test(what_is_of_another_format_or_version_or_old_is_not_used),
        cmocka_unit_test(nothing_is_prepared_for_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
