/* What a daemon says of its node: any bytes are an error, or a document that can be shown. The
 * first byte chooses keys and the size of the screen, on which nothing controls the terminal. */
#include <errno.h>
#include <locale.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "core/utf8.h"
#include "top/node_document.h"
#include "top/view.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_cells(const struct screen *screen)
{
    for (size_t i = 0; i < screen->rows * screen->columns; i++) {
        struct span rest = {screen->cells[i].bytes, screen->cells[i].len};

        check(rest.len <= sizeof(screen->cells[i].bytes));
        check(rest.len > 0 || (i % screen->columns > 0 && screen->cells[i - 1].len > 0));
        check(screen->cells[i].style < STYLE_COUNT);
        while (rest.len > 0) {
            size_t len = utf8_char_len(rest);
            unsigned char first = (unsigned char)rest.data[0];

            check(len > 0 && first >= ' ' && first != 0x7f);
            check(first != 0xc2 || (unsigned char)rest.data[1] >= 0xa0); /* C1 */
            check(screen->is_utf8 || len == 1);
            rest = (struct span){rest.data + len, rest.len - len};
        }
    }
}

static void check_screens(struct top *top, unsigned choice)
{
    static const char keys[] = "j\r jG\x1bs<r/a\r\x1bh";
    struct screen screen = {.is_utf8 = choice & 1};

    check(screen_resize(&screen, 1 + choice % 37, 1 + choice * 3 % 150) == 0);
    for (size_t i = 0; i + 1 < sizeof(keys); i++) {
        top_press(top, (unsigned char)keys[(i + choice) % (sizeof(keys) - 1)]);
        view_draw(top, &screen);
        check_cells(&screen);
    }
    screen_done(&screen);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct node_document *document = NULL, *again = NULL;
    struct error err = {""};
    struct buffer text;
    struct span json;
    struct top top;
    int r;

    if (size == 0)
        return 0;
    (void)setlocale(LC_CTYPE, "C.UTF-8");
    json = (struct span){(const char *)data + 1, size - 1};
    r = node_document_parse(json, &document, &err);
    check(r == (document ? 0 : -EBADMSG) && (err.text[0] != '\0') == (r < 0));
    if (r < 0)
        return 0;
    check(node_document_parse(json, &again, NULL) == 0);
    top_init(&top, 2);
    check(top_show(&top, document) == 0 && top_show(&top, again) == 0);
    check_screens(&top, data[0]);
    buffer_init(&text, 16 << 20);
    r = view_print(&top, data[0] % 2 * 90, data[0] % 3 == 0, &text);
    check(r == 0 || text.is_full);
    buffer_done(&text);
    top_done(&top);
    return 0;
}
