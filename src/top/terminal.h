/* The terminal that shows a screen and has keys. It uses no signal; whoever has it open closes it
 * before the program ends, however that comes. */
#pragma once

#include "core/error.h"
#include "top/screen.h"

struct terminal;

/* Takes standard input and output, which must be a terminal. `library` is NULL for the usual
 * ncurses. 0, -ELIBACC without ncurses, -ENOTTY for a terminal that it does not know, -ENOMEM; with
 * a text. */
int terminal_open(const char *library, bool is_in_colour, struct terminal **ret_terminal,
                  struct error *err);

/* Gives it back as it was. Accepts NULL. */
void terminal_close(struct terminal *terminal);

/* Resizes the screen to what the terminal has now. 0 or -ENOMEM. */
int terminal_measure(struct terminal *terminal, struct screen *screen);

void terminal_show(struct terminal *terminal, const struct screen *screen);

/* A key that was pressed, as top_press takes it; 0: none. Does not block. */
unsigned terminal_read_key(struct terminal *terminal);

/* Gives it back for a while. The next terminal_show() takes it again, and draws all anew. */
void terminal_leave(struct terminal *terminal);
