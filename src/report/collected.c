/* What a collection says of its gaps. */
#include <errno.h>
#include <stdlib.h>

#include "core/array.h"
#include "core/macros.h"
#include "report/collect.h"

enum { TOLD_S = 300 }; /* shorter ones may be of the scrapes */

void collected_done(struct collected *collected)
{
    pages_done(&collected->pages);
    names_done(&collected->names);
    totals_done(&collected->totals);
    free(collected->missing);
    *collected = (struct collected){0};
}

int64_t collected_window_end(const struct collected *collected, int32_t window)
{
    return collected->period.from_s + window * collected->step_s;
}

static bool add_missing(struct collected *collected, const struct page *page,
                        enum missing_kind kind, int32_t from, int32_t to)
{
    struct missing missing = {
        .page = page,
        .kind = kind,
        .from_s = collected_window_end(collected, MAX(from, 0)),
        .to_s = collected_window_end(collected, to),
        .has_restarted = kind == MISSING_GAP && page_restarted(page, from, to + 1),
        .is_fresh = kind == MISSING_LATE && page_is_fresh(&collected->pages, page),
        .is_older = kind == MISSING_GAP && from == 0 && !page_is_seen_at(page, 0),
        .has_new_start = kind == MISSING_GAP && page_has_new_start(page, from, to + 1),
    };

    if (missing.to_s - missing.from_s <= TOLD_S)
        return true;
    if (!array_reserve(&collected->missing, &collected->missing_capacity, collected->missing_count,
                       sizeof(missing)))
        return false;
    collected->missing[collected->missing_count++] = missing;
    return true;
}

/* Windows after `from` up to `to` are missing. */
static bool find_missing_of(struct collected *collected, const struct page *page)
{
    int32_t last = WINDOW_NEVER;
    bool is_added = true;

    for (size_t i = 0; i < page->seen.count && is_added; i++) {
        const struct page_run *run = &page->seen.items[i];

        if (run->from > 0)
            is_added =
                add_missing(collected, page, last == WINDOW_NEVER ? MISSING_LATE : MISSING_GAP,
                            MAX(last, 0), run->from - 1);
        last = run->to;
    }
    return is_added && (last == WINDOW_NEVER || add_missing(collected, page, MISSING_LOST,
                                                            MAX(last, 0), collected->windows));
}

static int by_start(const void *a, const void *b)
{
    const struct page *x = *(struct page *const *)a, *y = *(struct page *const *)b;

    return (x->start_s > y->start_s) - (x->start_s < y->start_s);
}

/* One process has one start, one instance, and GPUs of its own. */
static int find_twice(struct collected *collected)
{
    size_t count = collected->pages.table.count;
    const struct page **sorted = calloc(MAX(count, (size_t)1), sizeof(void *));

    if (!sorted)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        sorted[i] = collected->pages.table.items[i];
    qsort(sorted, count, sizeof(void *), by_start);
    for (size_t i = 1; i < count; i++) {
        bool is_twice = false;

        for (size_t j = i; j > 0 && !is_twice && sorted[j - 1]->start_s == sorted[i]->start_s; j--)
            is_twice = page_is_the_same(sorted[j - 1], sorted[i]);
        if (is_twice && collected->twice++ == 0)
            collected->twice_page = sorted[i];
    }
    free(sorted);
    return 0;
}

int collected_find_missing(struct collected *collected)
{
    for (size_t i = 0; i < collected->pages.table.count; i++) {
        const struct page *page = collected->pages.table.items[i];

        if (!find_missing_of(collected, page))
            return -ENOMEM;
        collected->late_joules += page->late_joules;
        for (size_t j = 0; j < page->restarts.count; j++)
            if (page->restarts.items[j].to > 0)
                collected->restarts +=
                    (size_t)(page->restarts.items[j].to - MAX(page->restarts.items[j].from, 1) + 1);
    }
    return find_twice(collected);
}

int64_t collected_missing_s(const struct collected *collected)
{
    int64_t sum_s = 0;

    for (size_t i = 0; i < collected->missing_count; i++)
        sum_s += collected->missing[i].to_s - collected->missing[i].from_s;
    return sum_s;
}

int64_t collected_whole_s(const struct collected *collected)
{
    return (int64_t)collected->pages.table.count *
           (collected->period.to_s - collected->period.from_s);
}
