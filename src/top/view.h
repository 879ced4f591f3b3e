/* Draws what top.h holds: header, table or details, and keys. Pure: the same state gives the same
 * cells. */
#pragma once

#include "top/screen.h"
#include "top/top.h"

/* The whole screen. Moves what is scrolled so that the cursor is in it. */
void view_draw(struct top *top, struct screen *screen);

/* Header and table as text, for `--once`: every row. 0 columns: as wide as it needs. -ENOMEM. */
int view_print(const struct top *top, size_t columns, bool is_utf8, struct buffer *out);
