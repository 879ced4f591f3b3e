/* Pages that are alike: of one instance, or of one process that is scraped twice. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"
#include "core/macros.h"
#include "report/pages.h"

enum { TITLE_BYTES = 4096, GPU_ID_MIN = 8 };

bool page_has_new_start(const struct page *page, int32_t after, int32_t until)
{
    for (size_t i = 0; i < page->start_count; i++)
        if (page->starts[i].window > after && page->starts[i].window <= until)
            return true;
    return false;
}

static bool are_seen_together(const struct page *page, const struct page *other)
{
    for (size_t i = 0, j = 0; i < page->seen.count && j < other->seen.count;) {
        const struct page_run *x = &page->seen.items[i], *y = &other->seen.items[j];

        if (x->from <= y->to && y->from <= x->to)
            return true;
        if (x->to < y->to)
            i++;
        else
            j++;
    }
    return false;
}

/* Not of those that only have a number, as packages do. */
static bool have_one_gpu(const struct page *page, const struct page *other)
{
    for (size_t i = 0; i < page->meter_count; i++)
        for (size_t j = 0; j < other->meter_count; j++)
            if (strlen(page->meters[i].id) >= GPU_ID_MIN &&
                strcmp(page->meters[i].name, "gpu") == 0 &&
                strcmp(page->meters[i].id, other->meters[j].id) == 0)
                return true;
    return false;
}

bool page_is_the_same(const struct page *page, const struct page *other)
{
    return page->start_s > 0 && page->start_s == other->start_s &&
           (strcmp(page->instance, other->instance) == 0 || have_one_gpu(page, other)) &&
           are_seen_together(page, other);
}

static int by_instance(const void *a, const void *b)
{
    const struct page *x = *(struct page *const *)a, *y = *(struct page *const *)b;

    return strcmp(x->instance, y->instance);
}

/* "n1:9400 (cluster a, job w)" */
static int give_title(struct page *page)
{
    struct buffer title;
    bool is_first = true;
    char *text;

    buffer_init(&title, TITLE_BYTES);
    buffer_str(&title, page->title);
    for (const char *at = page->key, *middle, *end; *at; at = end + 1) {
        middle = strchr(at, '\x1f');
        end = middle ? strchr(middle, '\x1e') : NULL;
        if (!end)
            break;
        if (strncmp(at, "instance\x1f", strlen("instance\x1f")) == 0)
            continue;
        buffer_str(&title, is_first ? " (" : ", ");
        buffer_bytes(&title, at, (size_t)(middle - at));
        buffer_char(&title, ' ');
        buffer_bytes(&title, middle + 1, (size_t)(end - middle - 1));
        is_first = false;
    }
    buffer_str(&title, is_first ? "" : ")");
    buffer_char(&title, '\0');
    text = buffer_failed(&title) ? NULL : strdup(title.data);
    buffer_done(&title);
    if (!text)
        return -ENOMEM;
    free(page->title);
    page->title = text;
    return 0;
}

int pages_make_titles(struct pages *pages)
{
    size_t count = pages->table.count;
    struct page **sorted = calloc(MAX(count, (size_t)1), sizeof(void *));
    int r = sorted ? 0 : -ENOMEM;

    for (size_t i = 0; i < count && sorted; i++)
        sorted[i] = pages->table.items[i];
    if (sorted)
        qsort(sorted, count, sizeof(void *), by_instance);
    for (size_t i = 0; i < count && r == 0; i++)
        if ((i > 0 && by_instance(&sorted[i - 1], &sorted[i]) == 0) ||
            (i + 1 < count && by_instance(&sorted[i], &sorted[i + 1]) == 0))
            r = give_title(sorted[i]);
    free(sorted);
    return r;
}
