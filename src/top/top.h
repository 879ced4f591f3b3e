/*
 * What `wattribute top` shows, and what keys do to it: a state machine without a terminal.
 *
 * The view (view.h) draws it; whoever reads keys and documents calls top_press and top_show.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "top/node_document.h"

/* Keys that are no characters; characters are their code points. */
enum top_key {
    TOP_KEY_ENTER = '\r',
    TOP_KEY_ESCAPE = 0x1b,
    TOP_KEY_ERASE = 0x7f,
    TOP_KEY_UP = 0x110000,
    TOP_KEY_DOWN,
    TOP_KEY_LEFT,
    TOP_KEY_RIGHT,
    TOP_KEY_PAGE_UP,
    TOP_KEY_PAGE_DOWN,
    TOP_KEY_HOME,
    TOP_KEY_END,
};

/* By which the table can be ordered, in the order of the screen. */
enum top_column {
    TOP_WATTS,
    TOP_ENERGY,
    TOP_UNCERTAINTY,
    TOP_GPU_MEMORY,
    TOP_CPU,
    TOP_MEMORY,
    TOP_GRAMS,
    TOP_COST,
    TOP_NAME,
    TOP_COLUMN_COUNT,
};

enum { TOP_FILTER_BYTES = 128, TOP_HISTORY_MAX = 240 };

struct top {
    struct node_document *document; /* NULL: none yet */
    char trouble[1024];             /* why there is no newer one; "": there is */
    double interval_s;              /* between two documents */
    bool is_own;                    /* no daemon: this program measures */

    enum top_column order;
    bool is_reversed;
    bool is_open;    /* the selected workload, with its details, in place of the table */
    bool is_helping; /* in place of either */
    bool is_frozen, is_done;
    bool is_typing; /* the filter */
    char filter[TOP_FILTER_BYTES];

    /* The workloads that the filter lets through, in order. */
    struct document_workload **rows;
    size_t row_count;
    size_t selected;   /* index of a row; 0 if there is none */
    bool is_following; /* it stays on its workload, wherever that moves */
    size_t first;      /* row on the screen */
    size_t page;       /* rows on the screen; set by the view, as are the next */
    size_t detail_first, detail_count;

    double history[TOP_HISTORY_MAX]; /* watts of the node, the newest last */
    size_t history_count;
};

void top_init(struct top *top, double interval_s);
void top_done(struct top *top);

/* Takes a newer document and owns it. -ENOMEM: it was freed, and all is as before. */
int top_show(struct top *top, struct node_document *document);

/* Does what the key stands for. */
void top_press(struct top *top, unsigned key);

/* The selected workload; NULL: there is none. */
const struct document_workload *top_selected(const struct top *top);

/* What the column orders by; NAN: unknown. Not of TOP_NAME. */
double top_value(const struct document_workload *workload, enum top_column column);

/* Whether any workload has a value in it. */
bool top_has_column(const struct top *top, enum top_column column);

/* "ml/training-job", "4711", ...; the kind is not in it. */
void top_name(const struct document_workload *workload, char *text, size_t size_bytes);
