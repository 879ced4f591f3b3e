/* Counters of rows, and by how much each grew: births, restarts, retirements, gaps. Pure. */
#pragma once

#include "report/pages.h"

struct counter_row {
    struct table_entry entry;
    const struct page *page;
    uint32_t owner; /* the caller's */
    double last;    /* as of `window` */
    int32_t window; /* WINDOW_NEVER: not seen yet */
    bool is_old;    /* `last` is from before a restart of the page in that window */
    char key[];
};

struct counters {
    struct table table;
};

/*
 * By how much the counter grew in what ends with `window`, of a row whose value is `value` then. A
 * row that is new
 *   - on a page that was seen before, was born since: all of it counts
 *   - on a page that is seen for the first time, counts if the page's books began in the period;
 *     else only what is added from now on, and *ret_is_late
 * and one that was there before has begun anew if its page did, if it fell, or if it was missing
 * from its page for ten minutes: it was retired, and its name came back. A window in
 * which the page began anew has two ends: of the old books, and of the new ones.
 */
struct counter_look {
    int32_t window;
    double value;
    bool is_split; /* the page began anew within the window, and both ends are known */
    const struct counter_row *before, *after; /* NULL: the row had no value then */
};

/* Keeps the look in the row. */
double counter_increase(const struct pages *pages, struct counter_row *row,
                        const struct counter_look *look, bool *ret_is_late);

/* Finds or adds the row of a series; *ret_is_new. NULL: out of memory. */
struct counter_row *counters_row(struct counters *counters, const struct page *page,
                                 const struct answer_series *series, bool *ret_is_new);

/* The row of a series at one end of such a window: in `last`. */
struct counter_row *counters_find_end(const struct counters *counters, const struct page *page,
                                      const struct answer_series *series, int32_t window);
struct counter_row *counters_add_end(struct counters *counters, const struct page *page,
                                     const struct answer_series *series, int32_t window);

void counters_done(struct counters *counters);
