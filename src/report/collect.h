/* Asks a server for everything that a report needs, and adds it up. */
#pragma once

#include "report/fetch.h"
#include "report/names.h"
#include "report/period.h"
#include "report/totals.h"

struct collect_options {
    const struct server *server;
    const char *select; /* matchers of targets; "" for all */
    bool is_recorded;   /* the names of recording rules, with "report:" before them */
    enum names_by by;
    const char *job, *pod; /* the life of one; NULL: none */
    struct period period;
    int64_t step_s; /* 0: chosen by the number of rows */
    unsigned parallel;
    const struct fetch_consumer *display; /* its `show` */
};

/* A time in which a page was not seen. */
enum missing_kind { MISSING_LATE, MISSING_GAP, MISSING_LOST };

struct missing {
    const struct page *page;
    enum missing_kind kind;
    int64_t from_s, to_s;
    bool has_restarted; /* after a gap; else its counters went on, and nothing is lost */
    bool is_fresh;      /* late, because its exporter began then */
    bool is_older;      /* a gap that began before the period, in the day before it */
    bool has_new_start; /* after a gap, with a state file: a boot in it would be unseen */
};

struct collected {
    struct period period;
    int64_t step_s;
    int32_t windows;
    enum names_by by;
    const char *job, *pod;
    struct pages pages;
    struct names names;
    struct totals totals;
    struct missing *missing;
    size_t missing_count, missing_capacity;
    size_t restarts; /* of books, in the period */
    size_t twice;    /* pages of a process that another page has, too */
    const struct page *twice_page;
    double late_joules;    /* booked before their nodes were seen, and not counted */
    size_t strange_series; /* of no page */
    size_t warning_count;
    char warning[256];
    struct fetch_progress progress;
};

/* Blocks, for hours if it must. 0, or -errno with a text; -ENODATA: there is nothing in that
 * period. collected_done frees it in both cases. */
int collect(const struct collect_options *options, struct collected *ret, struct error *err);

/* Accepts a zeroed one. */
void collected_done(struct collected *collected);

/* The end of a window. */
int64_t collected_window_end(const struct collected *collected, int32_t window);

/* Seconds of all nodes that are missing, and of all nodes. */
int64_t collected_missing_s(const struct collected *collected);
int64_t collected_whole_s(const struct collected *collected);

/* Pure: lists what is missing and what is there twice, and counts restarts. 0 or -ENOMEM. */
int collected_find_missing(struct collected *collected);

/* Pure: the step for a period: what gives at most some million samples. */
int64_t collect_choose_step(const struct period *period, double rows);
