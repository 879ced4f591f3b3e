#include "report/counters.h"

#include <string.h>

#include "core/buffer.h"
#include "core/macros.h"

enum { KEY_BYTES = 64 << 10, ABSENT_S = 600 };

double counter_increase(const struct pages *pages, const struct counter_row *row, int32_t window,
                        double value, bool *ret_is_late)
{
    const struct page *page = row->page;

    *ret_is_late = false;
    if (row->window == WINDOW_NEVER) {
        if (page_first(page) < window || page_is_fresh(pages, page))
            return value;
        *ret_is_late = true;
        return 0;
    }
    if (page_restarted(page, row->window, window))
        return value;
    if (page_windows_between(page, row->window, window) >=
        MAX((int64_t)1, ABSENT_S / pages->step_s))
        return value;
    return value >= row->last ? value - row->last : value;
}

/* What tells the rows of a page from each other, in a fixed order. */
static void put_key(const struct page *page, const struct answer_series *series, struct buffer *key)
{
    static const char *const labels[] = {
        "kind",     "id",           "name",      "namespace",          "exported_namespace",
        "pod",      "exported_pod", "container", "exported_container", "meter",
        "meter_id", "currency",     "owner"};

    buffer_u64(key, page->entry.index);
    for (size_t i = 0; i < ARRAY_SIZE(labels); i++) {
        buffer_char(key, '\x1f');
        buffer_str(key, answer_label(series, labels[i]));
    }
    buffer_char(key, '\0');
}

static bool has_key(const void *entry, const void *key)
{
    const struct counter_row *row = entry;

    return strcmp(row->key, key) == 0;
}

struct counter_row *counters_row(struct counters *counters, const struct page *page,
                                 const struct answer_series *series, bool *ret_is_new)
{
    struct counter_row *row = NULL;
    struct buffer key;

    buffer_init(&key, KEY_BYTES);
    put_key(page, series, &key);
    if (!buffer_failed(&key)) {
        uint64_t hash = map_hash_bytes((struct span){key.data, key.len});

        row = table_find(&counters->table, hash, has_key, key.data);
        *ret_is_new = !row;
        if (!row) {
            row = table_add(&counters->table, hash, sizeof(*row) + key.len);
            if (row) {
                memcpy(row->key, key.data, key.len);
                row->page = page;
                row->window = WINDOW_NEVER;
            }
        }
    }
    buffer_done(&key);
    return row;
}

void counters_done(struct counters *counters)
{
    table_done(&counters->table);
}
