/*
 * The pages that a server scraped, one for each exporter: when each was there, and when its books
 * began anew. By them a new series is a new workload, or a node that is seen for the first time.
 *
 * Time is cut into windows of one step: window w is (from + (w - 1) steps, from + w steps]. Those
 * up to 0 are before the period; what they hold is where the counters stood. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/table.h"
#include "report/answer.h"

enum {
    WINDOW_NEVER = INT32_MIN,
    WINDOW_EARLIER = -1, /* stands for the day before the period */
    PAGES_MAX = 1 << 17,
};

struct page_run {
    int32_t from, to; /* both belong to it */
};

struct page_runs {
    struct page_run *items;
    size_t count, capacity;
};

struct page_meter {
    char *name, *id; /* owned */
    double last;
    int32_t window;
};

/* The first look at a process. */
struct page_start {
    int32_t window;
    double start_s;
};

struct page {
    struct table_entry entry;
    char *key;          /* its labels without those of rows; owned */
    char *title;        /* the node, for people; owned */
    char *instance;     /* owned */
    bool has_namespace; /* its target has a label of this name, which rows may have from it */
    struct page_runs seen, with_state, restarts;
    double start_s; /* of the process, as last seen; 0: unknown */
    int32_t start_window, first_start_window;
    double first_start_s;
    struct page_start *starts; /* those after the first */
    size_t start_count, start_capacity;
    struct page_meter *meters;
    size_t meter_count, meter_capacity;
    double late_joules; /* booked before it was first seen, and not counted */
};

struct pages {
    struct table table;
    int64_t from_s, step_s;
};

int32_t pages_window_of(const struct pages *pages, double t_s);

/* The page of a series, by the labels of its target. NULL: none that is known. */
struct page *pages_find(const struct pages *pages, const struct answer_series *series);

/* What was asked in order of time: wattribute_build_info, process_start_time_seconds,
 * wattribute_state_up and the meters' energy. 0 or -ENOMEM, -EFBIG beyond PAGES_MAX. */
int pages_take_seen(struct pages *pages, const struct answer *answer);
int pages_take_states(struct pages *pages, const struct answer *answer);
int pages_take_starts(struct pages *pages, const struct answer *answer); /* after all states */
int pages_take_meters(struct pages *pages, const struct answer *answer);

/* Once all are known: gives titles that differ to those of the same instance. 0 or -ENOMEM. */
int pages_make_titles(struct pages *pages);

void pages_done(struct pages *pages);

/* By more than the rounding of a sum, whose order a server may change. */
static inline bool counter_fell(double last, double value)
{
    return value < last * (1 - 1e-9);
}

/* Its first window, or WINDOW_NEVER. */
int32_t page_first(const struct page *page);
int32_t page_last(const struct page *page);
bool page_is_seen_at(const struct page *page, int32_t window);
/* How many windows pass between the first and the last look at the page that are after one window
 * and before the other; 0: it was not seen. */
int32_t page_windows_between(const struct page *page, int32_t after, int32_t before);
/* Did the books begin anew after one window, up to the other? */
bool page_restarted(const struct page *page, int32_t after, int32_t until);
/* Did the books begin anew inside of this window, so that it may hold values from before? When: */
bool page_restarted_within(const struct pages *pages, const struct page *page, int32_t window,
                           double *ret_start_s);
/* Did another process begin after one window, up to the other? */
bool page_has_new_start(const struct page *page, int32_t after, int32_t until);
/* Are both of one process, at the same time: of one start, and one instance or a GPU of both? */
bool page_is_the_same(const struct page *page, const struct page *other);
/* Did its books begin within the period: it started then, and has no state file? */
bool page_is_fresh(const struct pages *pages, const struct page *page);

/* Is it a label of rows, and not of the target? */
bool pages_is_row_label(const char *name);
