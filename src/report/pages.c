#include "report/pages.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/buffer.h"
#include "core/macros.h"

enum { KEY_BYTES = 16 << 10 };

/* Those of docs/metrics.md, and as they are renamed where a server prefers its own. */
static const char *const row_labels[] = {
    "__name__", "kind",     "id",         "name",     "namespace", "pod",     "container",
    "meter",    "meter_id", "tier",       "method",   "currency",  "owner",   "image",
    "user",     "account",  "job_id",     "job_name", "uuid",      "pod_uid", "container_id",
    "node",     "version",  "unverified", "gpu",      "driver",
};

bool pages_is_row_label(const char *name)
{
    if (strncmp(name, "exported_", strlen("exported_")) == 0)
        return true;
    for (size_t i = 0; i < ARRAY_SIZE(row_labels); i++)
        if (strcmp(row_labels[i], name) == 0)
            return true;
    return false;
}

static int by_name(const void *a, const void *b)
{
    const struct answer_label *x = a, *y = b;

    return strcmp(x->name, y->name);
}

/* The same for a page and its rows, in whatever order the server writes labels. */
static bool put_key(const struct answer_series *series, struct buffer *key)
{
    struct answer_label labels[ANSWER_LABELS_MAX] = {{0}};
    size_t count = 0;

    for (size_t i = 0; i < series->label_count; i++)
        if (series->labels[i].value[0] != '\0' && !pages_is_row_label(series->labels[i].name))
            labels[count++] = series->labels[i];
    qsort(labels, count, sizeof(*labels), by_name);
    for (size_t i = 0; i < count; i++) {
        buffer_str(key, labels[i].name);
        buffer_char(key, '\x1f');
        buffer_str(key, labels[i].value);
        buffer_char(key, '\x1e');
    }
    return !buffer_failed(key);
}

static bool has_key(const void *entry, const void *key)
{
    const struct page *page = entry;
    const struct span *wanted = key;

    return span_equals(*wanted, page->key);
}

struct page *pages_find(const struct pages *pages, const struct answer_series *series)
{
    struct page *page = NULL;
    struct buffer key;
    struct span span;

    buffer_init(&key, KEY_BYTES);
    if (put_key(series, &key)) {
        span = (struct span){key.data ? key.data : "", key.len};
        page = table_find(&pages->table, map_hash_bytes(span), has_key, &span);
    }
    buffer_done(&key);
    return page;
}

static struct page *add_page(struct pages *pages, const struct answer_series *series)
{
    const char *instance = answer_label(series, "instance");
    struct page *page;
    struct buffer key;
    struct span span;

    buffer_init(&key, KEY_BYTES);
    if (pages->table.count >= PAGES_MAX || !put_key(series, &key)) {
        buffer_done(&key);
        return NULL;
    }
    buffer_char(&key, '\0');
    if (buffer_failed(&key))
        return NULL;
    span = (struct span){key.data, key.len - 1};
    page = table_add(&pages->table, map_hash_bytes(span), sizeof(*page));
    if (!page) {
        buffer_done(&key);
        return NULL;
    }
    page->key = strdup(key.data);
    page->title = strdup(instance[0] ? instance : "the only node");
    page->instance = strdup(instance);
    page->has_namespace = answer_label(series, "namespace")[0] != '\0';
    page->start_window = page->first_start_window = WINDOW_NEVER;
    buffer_done(&key);
    return page->key && page->title && page->instance ? page : NULL;
}

int32_t pages_window_of(const struct pages *pages, double t_s)
{
    double window = (t_s - (double)pages->from_s) / (double)pages->step_s;

    if (!(window > -1.5))
        return WINDOW_EARLIER;
    return window > INT32_MAX - 1 ? INT32_MAX - 1 : (int32_t)lround(window);
}

/* In any order; usually it is the next one. */
static bool add_window(struct page_runs *runs, int32_t window)
{
    size_t at = runs->count;

    while (at > 0 && runs->items[at - 1].from > window)
        at--;
    if (at > 0 && window <= runs->items[at - 1].to)
        return true;
    if (at > 0 && window == runs->items[at - 1].to + 1) {
        runs->items[at - 1].to = window;
        if (at < runs->count && runs->items[at].from == window + 1) {
            runs->items[at - 1].to = runs->items[at].to;
            memmove(&runs->items[at], &runs->items[at + 1],
                    (runs->count - at - 1) * sizeof(*runs->items));
            runs->count--;
        }
        return true;
    }
    if (at < runs->count && runs->items[at].from == window + 1) {
        runs->items[at].from = window;
        return true;
    }
    if (!array_reserve(&runs->items, &runs->capacity, runs->count, sizeof(*runs->items)))
        return false;
    memmove(&runs->items[at + 1], &runs->items[at], (runs->count - at) * sizeof(*runs->items));
    runs->items[at] = (struct page_run){window, window};
    runs->count++;
    return true;
}

static bool is_in(const struct page_runs *runs, int32_t window)
{
    size_t low = 0, high = runs->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (runs->items[middle].to < window)
            low = middle + 1;
        else
            high = middle;
    }
    return low < runs->count && runs->items[low].from <= window;
}

int pages_take_seen(struct pages *pages, const struct answer *answer)
{
    for (size_t i = 0; i < answer->series_count; i++) {
        const struct answer_series *series = &answer->series[i];
        struct page *page = pages_find(pages, series);

        if (!page)
            page = add_page(pages, series);
        if (!page)
            return pages->table.count >= PAGES_MAX ? -EFBIG : -ENOMEM;
        for (size_t j = 0; j < series->sample_count; j++)
            if (!add_window(&page->seen,
                            pages_window_of(pages, answer->samples[series->first_sample + j].t_s)))
                return -ENOMEM;
    }
    return 0;
}

int pages_take_states(struct pages *pages, const struct answer *answer)
{
    for (size_t i = 0; i < answer->series_count; i++) {
        const struct answer_series *series = &answer->series[i];
        struct page *page = pages_find(pages, series);

        for (size_t j = 0; page && j < series->sample_count; j++)
            if (!add_window(&page->with_state,
                            pages_window_of(pages, answer->samples[series->first_sample + j].t_s)))
                return -ENOMEM;
    }
    return 0;
}

static bool add_start(struct page *page, int32_t window, double start_s)
{
    if (!array_reserve(&page->starts, &page->start_capacity, page->start_count,
                       sizeof(*page->starts)))
        return false;
    page->starts[page->start_count++] = (struct page_start){window, start_s};
    return true;
}

/* A process that starts without a state file has no books. */
static int take_start(struct page *page, int32_t window, double start_s)
{
    int r = 0;

    if (page->first_start_window == WINDOW_NEVER) {
        page->first_start_window = window;
        page->first_start_s = start_s;
    } else if ((start_s != page->start_s && window > page->start_window) ||
               (start_s > page->start_s && window == page->start_window)) {
        if (!add_start(page, window, start_s))
            return -ENOMEM;
        if (!is_in(&page->with_state, window))
            r = add_window(&page->restarts, window) ? 0 : -ENOMEM;
    }
    if (window >= page->start_window) {
        page->start_window = window;
        page->start_s = start_s;
    }
    return r;
}

int pages_take_starts(struct pages *pages, const struct answer *answer)
{
    int r = 0;

    for (size_t i = 0; i < answer->series_count && r == 0; i++) {
        const struct answer_series *series = &answer->series[i];
        struct page *page = pages_find(pages, series);

        for (size_t j = 0; page && j < series->sample_count && r == 0; j++) {
            const struct answer_sample *sample = &answer->samples[series->first_sample + j];

            r = take_start(page, pages_window_of(pages, sample->t_s), sample->value);
        }
    }
    return r;
}

static struct page_meter *meter_of(struct page *page, const char *name, const char *id)
{
    struct page_meter *meter;

    for (size_t i = 0; i < page->meter_count; i++)
        if (strcmp(page->meters[i].name, name) == 0 && strcmp(page->meters[i].id, id) == 0)
            return &page->meters[i];
    if (!array_reserve(&page->meters, &page->meter_capacity, page->meter_count,
                       sizeof(*page->meters)))
        return NULL;
    page->meters[page->meter_count] =
        (struct page_meter){strdup(name), strdup(id), 0, WINDOW_NEVER};
    meter = &page->meters[page->meter_count++];
    return meter->name && meter->id ? meter : NULL;
}

/* All counters of a page begin anew together, so what falls at one holds for all. Those of a device
 * that comes late fall late: its last value may still be from before a start that is known. */
static bool add_fall(struct page *page, int32_t from, int32_t to)
{
    for (size_t i = page->start_count; i > 0 && page->starts[i - 1].window >= from; i--)
        if (page->starts[i - 1].window <= to)
            return add_window(&page->restarts, page->starts[i - 1].window);
    return page_restarted(page, from - 1, to) || add_window(&page->restarts, to);
}

int pages_take_meters(struct pages *pages, const struct answer *answer)
{
    for (size_t i = 0; i < answer->series_count; i++) {
        const struct answer_series *series = &answer->series[i];
        struct page *page = pages_find(pages, series);
        struct page_meter *meter;

        if (!page)
            continue;
        meter = meter_of(page, answer_label(series, "meter"), answer_label(series, "meter_id"));
        if (!meter)
            return -ENOMEM;
        for (size_t j = 0; j < series->sample_count; j++) {
            const struct answer_sample *sample = &answer->samples[series->first_sample + j];
            int32_t window = pages_window_of(pages, sample->t_s);

            if (window < meter->window)
                continue;
            if (meter->window != WINDOW_NEVER && counter_fell(meter->last, sample->value) &&
                !add_fall(page, meter->window, window))
                return -ENOMEM;
            meter->last = sample->value;
            meter->window = window;
        }
    }
    return 0;
}

void pages_done(struct pages *pages)
{
    for (size_t i = 0; i < pages->table.count; i++) {
        struct page *page = pages->table.items[i];

        free(page->key);
        free(page->title);
        free(page->instance);
        free(page->seen.items);
        free(page->with_state.items);
        free(page->restarts.items);
        free(page->starts);
        for (size_t j = 0; j < page->meter_count; j++)
            free(page->meters[j].name), free(page->meters[j].id);
        free(page->meters);
    }
    table_done(&pages->table);
}

int32_t page_first(const struct page *page)
{
    return page->seen.count > 0 ? page->seen.items[0].from : WINDOW_NEVER;
}

int32_t page_last(const struct page *page)
{
    return page->seen.count > 0 ? page->seen.items[page->seen.count - 1].to : WINDOW_NEVER;
}

bool page_is_seen_at(const struct page *page, int32_t window)
{
    return is_in(&page->seen, window);
}

int32_t page_windows_between(const struct page *page, int32_t after, int32_t before)
{
    int32_t first = 0, last = WINDOW_NEVER;

    for (size_t i = page->seen.count; i > 0 && page->seen.items[i - 1].to > after; i--) {
        int32_t from = MAX(page->seen.items[i - 1].from, after + 1);
        int32_t to = MIN(page->seen.items[i - 1].to, before - 1);

        if (to < from)
            continue;
        first = from;
        last = last == WINDOW_NEVER ? to : last;
    }
    return last == WINDOW_NEVER ? 0 : last - first + 1;
}

bool page_restarted(const struct page *page, int32_t after, int32_t until)
{
    for (size_t i = page->restarts.count; i > 0 && page->restarts.items[i - 1].to > after; i--)
        if (page->restarts.items[i - 1].from <= until)
            return true;
    return false;
}

bool page_restarted_within(const struct pages *pages, const struct page *page, int32_t window,
                           double *ret_start_s)
{
    double begin_s;

    if (window < 0 || !is_in(&page->restarts, window))
        return false;
    begin_s = (double)(pages->from_s + (window - 1) * pages->step_s);
    for (size_t i = page->start_count; i > 0 && page->starts[i - 1].window >= window; i--)
        if (page->starts[i - 1].window == window && page->starts[i - 1].start_s > begin_s &&
            page->starts[i - 1].start_s < begin_s + (double)pages->step_s) {
            *ret_start_s = page->starts[i - 1].start_s;
            return true;
        }
    return false;
}

bool page_is_fresh(const struct pages *pages, const struct page *page)
{
    int32_t first = page_first(page);

    return first > 0 && page->first_start_window == first && !is_in(&page->with_state, first) &&
           page->first_start_s >= (double)pages->from_s;
}
