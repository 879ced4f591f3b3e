#include "top/terminal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/macros.h"
#include "top/ncurses.h"
#include "top/top.h"

/* How long an Escape waits for the rest of a key's sequence, over a slow ssh. */
enum { ESCAPE_DELAY_MS = 50 };

/* Where nothing is known of it. */
enum { ROWS_USUAL = 24, COLUMNS_USUAL = 80 };

struct terminal {
    struct ncurses library;
    struct ncurses_terminal *handle;
    struct ncurses_window *window;
    size_t rows, columns;
    bool is_in_colour;
};

static const struct {
    uint32_t attributes;          /* with colours */
    short foreground, background; /* both NCURSES_DEFAULT: no colours of its own */
    uint32_t monochrome;
} styles[STYLE_COUNT] = {
    [STYLE_PLAIN] = {0, NCURSES_DEFAULT, NCURSES_DEFAULT, 0},
    [STYLE_DIM] = {NCURSES_DIM, NCURSES_DEFAULT, NCURSES_DEFAULT, NCURSES_DIM},
    [STYLE_BOLD] = {NCURSES_BOLD, NCURSES_DEFAULT, NCURSES_DEFAULT, NCURSES_BOLD},
    [STYLE_TITLE] = {NCURSES_BOLD, NCURSES_WHITE, NCURSES_BLUE, NCURSES_REVERSE},
    [STYLE_HEADING] = {NCURSES_UNDERLINE, NCURSES_CYAN, NCURSES_DEFAULT, NCURSES_UNDERLINE},
    [STYLE_SORTED] = {NCURSES_UNDERLINE | NCURSES_BOLD, NCURSES_YELLOW, NCURSES_DEFAULT,
                      NCURSES_UNDERLINE | NCURSES_BOLD},
    [STYLE_SELECTED] = {NCURSES_REVERSE, NCURSES_DEFAULT, NCURSES_DEFAULT, NCURSES_REVERSE},
    [STYLE_BAR] = {0, NCURSES_GREEN, NCURSES_DEFAULT, 0},
    [STYLE_NAME] = {NCURSES_BOLD, NCURSES_CYAN, NCURSES_DEFAULT, NCURSES_BOLD},
    [STYLE_WARNING] = {NCURSES_BOLD, NCURSES_YELLOW, NCURSES_DEFAULT, NCURSES_BOLD},
    [STYLE_BAND] = {NCURSES_BOLD, NCURSES_WHITE, NCURSES_RED, NCURSES_REVERSE | NCURSES_BOLD},
};

static void set_up_colours(struct terminal *terminal)
{
    const struct ncurses *library = &terminal->library;

    terminal->is_in_colour = library->has_colors() && library->start_color() != NCURSES_ERR &&
                             library->use_default_colors() != NCURSES_ERR;
    for (size_t i = 0; terminal->is_in_colour && i < STYLE_COUNT; i++)
        (void)library->init_pair((short)(i + 1), styles[i].foreground, styles[i].background);
}

static int open_window(struct terminal *terminal)
{
    const struct ncurses *library = &terminal->library;

    if (terminal->window)
        library->delwin(terminal->window);
    terminal->window = library->newwin((int)terminal->rows, (int)terminal->columns, 0, 0);
    if (!terminal->window)
        return -ENOMEM;
    library->keypad(terminal->window, true);
    library->nodelay(terminal->window, true);
    library->clearok(terminal->window, true);
    return 0;
}

int terminal_open(const char *library_file, bool is_in_colour, struct terminal **ret_terminal,
                  struct error *err)
{
    struct terminal *terminal = calloc(1, sizeof(*terminal));
    const char *type = getenv("TERM");
    const struct ncurses *library;
    const char *move;
    int r;

    if (!terminal)
        return error_set(err, -ENOMEM, "out of memory");
    library = &terminal->library;
    r = ncurses_load(library_file, &terminal->library, err);
    if (r < 0) {
        free(terminal);
        return r;
    }
    terminal->handle = type && type[0] ? library->newterm(NULL, stdout, stdin) : NULL;
    move = terminal->handle ? library->tigetstr("cup") : NULL;
    if (!move || move == (const char *)-1) {
        r = error_set(err, -ENOTTY,
                      "this terminal (TERM=%.40s) cannot show a screen: set TERM to its type, or "
                      "print a table with --once",
                      type ? type : "");
        terminal_close(terminal);
        return r;
    }
    (void)library->cbreak(); /* keys at once; Ctrl-C and Ctrl-Z stay signals */
    (void)library->noecho();
    (void)library->nonl();
    (void)library->curs_set(0);
    (void)library->set_escdelay(ESCAPE_DELAY_MS);
    if (is_in_colour)
        set_up_colours(terminal);
    *ret_terminal = terminal;
    return 0;
}

void terminal_close(struct terminal *terminal)
{
    if (!terminal)
        return;
    if (terminal->window)
        terminal->library.delwin(terminal->window);
    if (terminal->handle) {
        terminal->library.endwin();
        terminal->library.delscreen(terminal->handle);
    }
    free(terminal);
}

int terminal_measure(struct terminal *terminal, struct screen *screen)
{
    struct winsize size = {0};
    int r;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_row == 0 || size.ws_col == 0)
        size = (struct winsize){.ws_row = ROWS_USUAL, .ws_col = COLUMNS_USUAL};
    r = screen_resize(screen, size.ws_row, size.ws_col);
    if (r < 0 || (terminal->rows == screen->rows && terminal->columns == screen->columns))
        return r;
    terminal->rows = screen->rows;
    terminal->columns = screen->columns;
    (void)terminal->library.resizeterm((int)terminal->rows, (int)terminal->columns);
    return open_window(terminal);
}

static void set_style(const struct terminal *terminal, uint8_t style)
{
    if (terminal->is_in_colour)
        terminal->library.wattr_set(terminal->window, styles[style].attributes, (short)(style + 1),
                                    NULL);
    else
        terminal->library.wattr_set(terminal->window, styles[style].monochrome, 0, NULL);
}

/* Runs of one style. In the last cell of all, ncurses reports an error, but draws it. */
static void show_row(const struct terminal *terminal, const struct screen *screen, size_t row)
{
    const struct screen_cell *cells = screen->cells + row * screen->columns;
    char bytes[256];
    size_t len = 0;

    terminal->library.wmove(terminal->window, (int)row, 0);
    for (size_t i = 0; i < screen->columns; i++) {
        memcpy(bytes + len, cells[i].bytes, cells[i].len);
        len += cells[i].len;
        if (i + 1 < screen->columns && cells[i + 1].style == cells[i].style &&
            len + 2 * sizeof(cells[i].bytes) <= sizeof(bytes))
            continue;
        set_style(terminal, cells[i].style);
        terminal->library.waddnstr(terminal->window, bytes, (int)len);
        len = 0;
    }
}

void terminal_show(struct terminal *terminal, const struct screen *screen)
{
    if (!terminal->window || screen->rows != terminal->rows || screen->columns != terminal->columns)
        return;
    for (size_t row = 0; row < screen->rows; row++)
        show_row(terminal, screen, row);
    terminal->library.wrefresh(terminal->window);
}

unsigned terminal_read_key(struct terminal *terminal)
{
    static const struct {
        enum ncurses_key from;
        enum top_key to;
    } keys[] = {
        {NCURSES_KEY_UP, TOP_KEY_UP},           {NCURSES_KEY_DOWN, TOP_KEY_DOWN},
        {NCURSES_KEY_LEFT, TOP_KEY_LEFT},       {NCURSES_KEY_RIGHT, TOP_KEY_RIGHT},
        {NCURSES_KEY_HOME, TOP_KEY_HOME},       {NCURSES_KEY_END, TOP_KEY_END},
        {NCURSES_KEY_PAGE_UP, TOP_KEY_PAGE_UP}, {NCURSES_KEY_PAGE_DOWN, TOP_KEY_PAGE_DOWN},
        {NCURSES_KEY_ENTER, TOP_KEY_ENTER},     {NCURSES_KEY_BACKSPACE, TOP_KEY_ERASE},
        {NCURSES_KEY_DELETE, TOP_KEY_ERASE},
    };
    wint_t code = 0;
    int r;

    do {
        if (!terminal->window)
            return 0;
        r = terminal->library.wget_wch(terminal->window, &code);
        if (r == NCURSES_ERR)
            return 0;
        for (size_t i = 0; r == NCURSES_KEY_CODE_YES && i < ARRAY_SIZE(keys); i++)
            if (code == (wint_t)keys[i].from)
                return keys[i].to;
    } while (r == NCURSES_KEY_CODE_YES || code == 0); /* a key that means nothing here */
    return code == '\n' ? TOP_KEY_ENTER : code == '\b' ? TOP_KEY_ERASE : code;
}

void terminal_leave(struct terminal *terminal)
{
    terminal->library.endwin();
    if (terminal->window)
        terminal->library.clearok(terminal->window, true);
}
