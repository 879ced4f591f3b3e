#include "top/screen.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "core/macros.h"
#include "core/utf8.h"

/* A character of a text, as it may be shown. */
struct glyph {
    char bytes[4];
    uint8_t len;
    uint8_t width; /* 0: it combines with the one before */
};

/* Unicode's format characters (Cf), line separators and variation selectors: they have no width of
 * their own, change what is around them, or hide. */
static bool is_invisible(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0xad, 0xad},       {0x600, 0x605},     {0x61c, 0x61c},     {0x6dd, 0x6dd},
        {0x70f, 0x70f},     {0x890, 0x891},     {0x8e2, 0x8e2},     {0x180b, 0x180f},
        {0x200b, 0x200f},   {0x2028, 0x202e},   {0x2060, 0x206f},   {0xfe00, 0xfe0f},
        {0xfeff, 0xfeff},   {0xfff9, 0xfffb},   {0x110bd, 0x110bd}, {0x110cd, 0x110cd},
        {0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
    };

    for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return true;
    return false;
}

static uint32_t decode(const char *bytes, size_t len)
{
    uint32_t code = (uint8_t)bytes[0] & (len == 1 ? 0x7fU : 0xffU >> (len + 1));

    for (size_t i = 1; i < len; i++)
        code = code << 6 | ((uint8_t)bytes[i] & 0x3fU);
    return code;
}

/* Takes the first character off the text. One that combines has a cell before it, unless it
 * `is_first`. */
static struct glyph next_glyph(const struct screen *screen, struct span *text, bool is_first)
{
    static const struct glyph unknown = {.bytes = "?", .len = 1, .width = 1};
    size_t len = utf8_char_len(*text);
    struct glyph glyph = {.len = (uint8_t)len};
    uint32_t code = len > 0 ? decode(text->data, len) : 0;
    int width = len > 1 && screen->is_utf8 && !is_invisible(code) ? wcwidth((wchar_t)code)
                : len == 1 && code >= ' ' && code < 0x7f          ? 1
                                                                  : -1;

    if (len > 0)
        memcpy(glyph.bytes, text->data, len);
    glyph.width = (uint8_t)MAX(width, 0);
    *text = (struct span){text->data + MAX(len, (size_t)1), text->len - MAX(len, (size_t)1)};
    return width < 0 || width > 2 || (width == 0 && is_first) ? unknown : glyph;
}

static struct screen_cell *cell_at(const struct screen *screen, size_t row, size_t column)
{
    return &screen->cells[row * screen->columns + column];
}

static void cell_blank(struct screen_cell *cell, uint8_t style)
{
    *cell = (struct screen_cell){.bytes = " ", .len = 1, .style = style};
}

void screen_clear(struct screen *screen)
{
    for (size_t i = 0; i < screen->rows * screen->columns; i++)
        cell_blank(&screen->cells[i], STYLE_PLAIN);
}

int screen_resize(struct screen *screen, size_t rows, size_t columns)
{
    struct screen_cell *cells;

    rows = MAX(MIN(rows, (size_t)SCREEN_ROWS_MAX), (size_t)1);
    columns = MAX(MIN(columns, (size_t)SCREEN_COLUMNS_MAX), (size_t)1);
    cells = reallocarray(screen->cells, rows * columns, sizeof(*cells));
    if (!cells)
        return -ENOMEM;
    screen->cells = cells;
    screen->rows = rows;
    screen->columns = columns;
    screen_clear(screen);
    return 0;
}

void screen_done(struct screen *screen)
{
    free(screen->cells);
    *screen = (struct screen){.is_utf8 = screen->is_utf8};
}

/* What is drawn over half of a wide character blanks the other half. */
static void cell_prepare(const struct screen *screen, size_t row, size_t column)
{
    struct screen_cell *cell = cell_at(screen, row, column);

    if (cell->len == 0 && column > 0)
        cell_blank(cell - 1, cell[-1].style);
    if (column + 1 < screen->columns && cell[1].len == 0)
        cell_blank(cell + 1, cell[1].style);
}

static void glyph_put(const struct screen *screen, size_t row, size_t column,
                      enum screen_style style, const struct glyph *glyph)
{
    struct screen_cell *cell = cell_at(screen, row, column);

    for (size_t i = 0; i < glyph->width; i++)
        cell_prepare(screen, row, column + i);
    memcpy(cell->bytes, glyph->bytes, sizeof(glyph->bytes));
    cell->len = glyph->len;
    cell->style = (uint8_t)style;
    if (glyph->width == 2)
        cell[1] = (struct screen_cell){.style = (uint8_t)style};
}

/* Those beyond the room of a cell are left out. */
static void glyph_join(const struct screen *screen, size_t row, size_t column,
                       const struct glyph *glyph)
{
    struct screen_cell *cell = cell_at(screen, row, column);

    if (cell->len == 0)
        cell--;
    if ((size_t)cell->len + glyph->len > sizeof(cell->bytes))
        return;
    memcpy(cell->bytes + cell->len, glyph->bytes, glyph->len);
    cell->len += glyph->len;
}

size_t screen_text_width(const struct screen *screen, const char *text)
{
    struct span rest = span_of(text);
    size_t width = 0;

    while (rest.len > 0)
        width += next_glyph(screen, &rest, width == 0).width;
    return width;
}

static bool fits(const struct screen *screen, const char *text, size_t width)
{
    struct span rest = span_of(text);

    for (size_t used = 0; rest.len > 0;) {
        used += next_glyph(screen, &rest, used == 0).width;
        if (used > width)
            return false;
    }
    return true;
}

size_t screen_put(struct screen *screen, size_t row, size_t column, size_t width,
                  enum screen_style style, const char *text)
{
    struct span rest = span_of(text);
    size_t used = 0, room;
    bool is_whole;

    if (row >= screen->rows || column >= screen->columns || width == 0)
        return 0;
    width = MIN(width, screen->columns - column);
    is_whole = fits(screen, text, width);
    room = is_whole ? width : width - 1;
    while (rest.len > 0) {
        struct glyph glyph = next_glyph(screen, &rest, used == 0);

        if (used + glyph.width > room)
            break;
        if (glyph.width == 0)
            glyph_join(screen, row, column + used - 1, &glyph);
        else
            glyph_put(screen, row, column + used, style, &glyph);
        used += glyph.width;
    }
    if (is_whole)
        return used;
    glyph_put(screen, row, column + used, style,
              screen->is_utf8 ? &(struct glyph){{'\xe2', '\x80', '\xa6'}, 3, 1}
                              : &(struct glyph){{'~'}, 1, 1});
    return used + 1;
}

void screen_put_right(struct screen *screen, size_t row, size_t column, size_t width,
                      enum screen_style style, const char *text)
{
    size_t needed = MIN(screen_text_width(screen, text), width);

    screen_put(screen, row, column + width - needed, needed, style, text);
}

void screen_fill_style(struct screen *screen, size_t row, size_t column, size_t width,
                       enum screen_style style)
{
    for (size_t i = column; row < screen->rows && i < screen->columns && i - column < width; i++)
        cell_at(screen, row, i)->style = (uint8_t)style;
}

void screen_put_bar(struct screen *screen, size_t row, size_t column, size_t width, double part)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};
    size_t count, steps = screen->is_utf8 ? 8 : 1;

    if (!(part > 0))
        return;
    count = (size_t)lround(MIN(part, 1.0) * (double)(width * steps));
    for (size_t i = 0; count > 0 && i < width; i++) {
        size_t here = MIN(count, steps);

        screen_put(screen, row, column + i, 1, STYLE_BAR, steps == 1 ? "#" : eighths[here]);
        count -= here;
    }
}

void screen_print(const struct screen *screen, struct buffer *out)
{
    for (size_t row = 0; row < screen->rows; row++) {
        const struct screen_cell *cells = cell_at(screen, row, 0);
        size_t end = screen->columns;

        while (end > 0 && cells[end - 1].len == 1 && cells[end - 1].bytes[0] == ' ')
            end--;
        for (size_t i = 0; i < end; i++)
            buffer_bytes(out, cells[i].bytes, cells[i].len);
        buffer_char(out, '\n');
    }
}
