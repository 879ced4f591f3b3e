/*
 * A screen of character cells, to draw on and to print: what a terminal will show, without one.
 *
 * Whatever text is drawn, no cell holds anything that would control a terminal, and every row is as
 * wide as it says: control characters, invisible ones and what is not UTF-8 become '?'. A wide
 * character takes two cells, combining ones join the cell before them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/buffer.h"

enum { SCREEN_ROWS_MAX = 1000, SCREEN_COLUMNS_MAX = 1000 };

enum screen_style {
    STYLE_PLAIN,
    STYLE_DIM,
    STYLE_BOLD,
    STYLE_TITLE,    /* the first line, and the names of keys */
    STYLE_HEADING,  /* of a table */
    STYLE_SORTED,   /* the heading of the column that orders it */
    STYLE_SELECTED, /* row */
    STYLE_BAR,
    STYLE_NAME, /* the first word of a line */
    STYLE_WARNING,
    STYLE_BAND, /* across the screen: something is wrong */
    STYLE_COUNT,
};

struct screen_cell {
    char bytes[12]; /* UTF-8 of a character and what combines with it */
    uint8_t len;    /* 0: the right half of a wide character */
    uint8_t style;
};

struct screen {
    struct screen_cell *cells;
    size_t rows, columns;
    bool is_utf8; /* else ASCII; with it, LC_CTYPE must be of UTF-8 */
};

/* Blank, of this size within the limits above. -ENOMEM: it is as it was. Zeroed, a screen is
 * empty. */
int screen_resize(struct screen *screen, size_t rows, size_t columns);
void screen_done(struct screen *screen);
void screen_clear(struct screen *screen);

/* Draws up to `width` columns of it, with an ellipsis where there is more, and not beyond the
 * screen. Returns how many columns it took. */
size_t screen_put(struct screen *screen, size_t row, size_t column, size_t width,
                  enum screen_style style, const char *text);

/* The same at the right end of a field of this width. */
void screen_put_right(struct screen *screen, size_t row, size_t column, size_t width,
                      enum screen_style style, const char *text);

/* Changes the style only. */
void screen_fill_style(struct screen *screen, size_t row, size_t column, size_t width,
                       enum screen_style style);

/* A bar of up to `width` columns for a part of 0 to 1. */
void screen_put_bar(struct screen *screen, size_t row, size_t column, size_t width, double part);

/* How many columns a text would take, without a limit. */
size_t screen_text_width(const struct screen *screen, const char *text);

/* Its lines, without blanks at their ends. */
void screen_print(const struct screen *screen, struct buffer *out);
