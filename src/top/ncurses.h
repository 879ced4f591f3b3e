/*
 * ncurses, loaded when a screen is opened: no other verb needs it, and a node may not have it. What
 * it declares here is its ABI 6, wide (libncursesw.so.6), from its curses.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <wchar.h>

#include "core/error.h"

struct ncurses_window;
struct ncurses_terminal;

enum { NCURSES_ERR = -1, NCURSES_KEY_CODE_YES = 0400 };

enum ncurses_key {
    NCURSES_KEY_DOWN = 0402,
    NCURSES_KEY_UP = 0403,
    NCURSES_KEY_LEFT = 0404,
    NCURSES_KEY_RIGHT = 0405,
    NCURSES_KEY_HOME = 0406,
    NCURSES_KEY_BACKSPACE = 0407,
    NCURSES_KEY_DELETE = 0512,
    NCURSES_KEY_PAGE_DOWN = 0522,
    NCURSES_KEY_PAGE_UP = 0523,
    NCURSES_KEY_ENTER = 0527,
    NCURSES_KEY_END = 0550,
};

enum ncurses_attribute {
    NCURSES_UNDERLINE = 1 << 17,
    NCURSES_REVERSE = 1 << 18,
    NCURSES_DIM = 1 << 20,
    NCURSES_BOLD = 1 << 21,
};

enum ncurses_colour {
    NCURSES_DEFAULT = -1,
    NCURSES_RED = 1,
    NCURSES_GREEN,
    NCURSES_YELLOW,
    NCURSES_BLUE,
    NCURSES_MAGENTA,
    NCURSES_CYAN,
    NCURSES_WHITE,
};

/* clang-format off */
#define NCURSES_FUNCTIONS(F)                                                                       \
    F(newterm, struct ncurses_terminal *, (const char *type, FILE *out, FILE *in))                 \
    F(delscreen, void, (struct ncurses_terminal *))                                                \
    F(endwin, int, (void))                                                                         \
    F(cbreak, int, (void))                                                                         \
    F(noecho, int, (void))                                                                         \
    F(nonl, int, (void))                                                                           \
    F(curs_set, int, (int visibility))                                                             \
    F(set_escdelay, int, (int ms))                                                                 \
    F(tigetstr, char *, (const char *name))                                                        \
    F(has_colors, bool, (void))                                                                    \
    F(start_color, int, (void))                                                                    \
    F(use_default_colors, int, (void))                                                             \
    F(init_pair, int, (short pair, short foreground, short background))                            \
    F(resizeterm, int, (int rows, int columns))                                                    \
    F(newwin, struct ncurses_window *, (int rows, int columns, int row, int column))               \
    F(delwin, int, (struct ncurses_window *))                                                      \
    F(keypad, int, (struct ncurses_window *, bool))                                                \
    F(nodelay, int, (struct ncurses_window *, bool))                                               \
    F(clearok, int, (struct ncurses_window *, bool))                                               \
    F(wmove, int, (struct ncurses_window *, int row, int column))                                  \
    F(wattr_set, int, (struct ncurses_window *, uint32_t attributes, short pair, void *))          \
    F(waddnstr, int, (struct ncurses_window *, const char *text, int bytes))                       \
    F(wrefresh, int, (struct ncurses_window *))                                                    \
    F(wget_wch, int, (struct ncurses_window *, wint_t *ret_code))
/* clang-format on */

struct ncurses {
#define NCURSES_POINTER(name, type, parameters)                                                    \
    type(*name) parameters; // NOLINT(bugprone-macro-parentheses)
    NCURSES_FUNCTIONS(NCURSES_POINTER)
#undef NCURSES_POINTER
};

/* Loads it; it is never unloaded. `file` is NULL for the usual one. 0, or -ELIBACC with a text that
 * names the package. */
int ncurses_load(const char *file, struct ncurses *ret_library, struct error *err);
