#include "report/counters.h"

#include <string.h>

#include "core/buffer.h"
#include "core/macros.h"

enum { KEY_BYTES = 64 << 10, ABSENT_S = 600 };

static double increase_of(const struct pages *pages, const struct counter_row *row, int32_t window,
                          double value, bool *ret_is_late)
{
    const struct page *page = row->page;

    if (row->window == WINDOW_NEVER) {
        if (page_first(page) < window || page_is_fresh(pages, page))
            return value;
        *ret_is_late = true;
        return 0;
    }
    if (row->is_old || page_restarted(page, row->window, window))
        return value;
    if (page_windows_between(page, row->window, window) >=
        MAX((int64_t)1, ABSENT_S / pages->step_s))
        return value;
    if (counter_fell(row->last, value))
        return value;
    return MAX(value - row->last, 0.0);
}

double counter_increase(const struct pages *pages, struct counter_row *row,
                        const struct counter_look *look, bool *ret_is_late)
{
    double increase = 0, value;

    *ret_is_late = false;
    if (!look->is_split) {
        increase = increase_of(pages, row, look->window, look->value, ret_is_late);
        row->last = look->value;
        row->is_old = false;
    } else {
        if (look->before || !look->after) {
            value = look->before ? look->before->last : look->value;
            increase += increase_of(pages, row, look->window - 1, value, ret_is_late);
            row->last = value;
            row->is_old = true;
        }
        if (look->after) {
            increase += look->after->last;
            row->last = look->after->last;
            row->is_old = false;
        }
    }
    row->window = look->window;
    return increase;
}

/* What tells the rows of a page from each other, in a fixed order. A pod, a namespace or a
 * container may be those of the exporter itself, which change with its rollout. */
static void put_key(const struct page *page, const struct answer_series *series, int32_t window,
                    struct buffer *key)
{
    static const char *const labels[] = {"kind", "id", "meter", "meter_id", "currency", "owner"};

    buffer_u64(key, page->entry.index);
    buffer_char(key, ' ');
    buffer_u64(key, (uint32_t)window);
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

static struct counter_row *find_row(const struct counters *counters, const struct buffer *key)
{
    return table_find(&counters->table, map_hash_bytes((struct span){key->data, key->len}), has_key,
                      key->data);
}

static struct counter_row *add_row(struct counters *counters, const struct page *page,
                                   const struct buffer *key)
{
    struct counter_row *row =
        table_add(&counters->table, map_hash_bytes((struct span){key->data, key->len}),
                  sizeof(*row) + key->len);

    if (row) {
        memcpy(row->key, key->data, key->len);
        row->page = page;
        row->window = WINDOW_NEVER;
    }
    return row;
}

/* Finds or adds. */
static struct counter_row *row_of(struct counters *counters, const struct page *page,
                                  const struct answer_series *series, int32_t window,
                                  bool *ret_is_new)
{
    struct counter_row *row = NULL;
    struct buffer key;

    buffer_init(&key, KEY_BYTES);
    put_key(page, series, window, &key);
    if (!buffer_failed(&key)) {
        row = find_row(counters, &key);
        *ret_is_new = !row;
        if (!row)
            row = add_row(counters, page, &key);
    }
    buffer_done(&key);
    return row;
}

struct counter_row *counters_row(struct counters *counters, const struct page *page,
                                 const struct answer_series *series, bool *ret_is_new)
{
    return row_of(counters, page, series, WINDOW_NEVER, ret_is_new);
}

struct counter_row *counters_add_end(struct counters *counters, const struct page *page,
                                     const struct answer_series *series, int32_t window)
{
    bool is_new;

    return row_of(counters, page, series, window, &is_new);
}

struct counter_row *counters_find_end(const struct counters *counters, const struct page *page,
                                      const struct answer_series *series, int32_t window)
{
    struct counter_row *row = NULL;
    struct buffer key;

    buffer_init(&key, KEY_BYTES);
    put_key(page, series, window, &key);
    if (!buffer_failed(&key))
        row = find_row(counters, &key);
    buffer_done(&key);
    return row;
}

void counters_done(struct counters *counters)
{
    table_done(&counters->table);
}
