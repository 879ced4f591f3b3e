#include "top/top.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"

enum { NAME_BYTES = 512 };

void top_init(struct top *top, double interval_s)
{
    *top = (struct top){.interval_s = interval_s, .page = 1};
}

void top_done(struct top *top)
{
    node_document_free(top->document);
    free(top->rows);
    *top = (struct top){0};
}

const struct document_workload *top_selected(const struct top *top)
{
    return top->selected < top->row_count ? top->rows[top->selected] : NULL;
}

double top_value(const struct document_workload *workload, enum top_column column)
{
    switch (column) {
    case TOP_WATTS:
        return workload->watts;
    case TOP_ENERGY:
        return workload->energy_joules;
    case TOP_UNCERTAINTY:
        return workload->energy_joules > 0 ? workload->uncertainty_joules / workload->energy_joules
                                           : NAN;
    case TOP_GPU_MEMORY:
        return workload->gpu_memory_bytes;
    case TOP_CPU:
        return workload->cpu_cores;
    case TOP_MEMORY:
        return workload->memory_bytes;
    case TOP_GRAMS:
        return workload->emissions_grams;
    case TOP_COST:
        return workload->cost;
    default:
        return NAN;
    }
}

bool top_has_column(const struct top *top, enum top_column column)
{
    if (column == TOP_WATTS || column == TOP_NAME)
        return true;
    for (size_t i = 0; top->document && i < top->document->workload_count; i++) {
        const struct document_workload *workload = &top->document->workloads[i];

        /* How busy it is shows with the second document: a column that comes later is a nuisance.
         */
        if (!isnan(column == TOP_CPU ? workload->cpu_seconds : top_value(workload, column)))
            return true;
    }
    return false;
}

void top_name(const struct document_workload *workload, char *text, size_t size_bytes)
{
    const char *name = workload->name[0] ? workload->name : workload->id;

    snprintf(text, size_bytes, "%s%s%s%s%s%s", workload->namespace,
             workload->namespace[0] ? "/" : "", name, workload->job_name[0] ? " (" : "",
             workload->job_name, workload->job_name[0] ? ")" : "");
}

/* --- rows --- */

static bool passes(const struct document_workload *workload, const char *filter)
{
    const char *const texts[] = {workload->kind,    workload->id,        workload->pod,
                                 workload->image,   workload->container, workload->user,
                                 workload->account, workload->job_id};
    char name[NAME_BYTES];

    top_name(workload, name, sizeof(name));
    if (strcasestr(name, filter))
        return true;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        if (strcasestr(texts[i], filter))
            return true;
    return false;
}

static int compare_names(const struct document_workload *a, const struct document_workload *b)
{
    char names[2][NAME_BYTES];

    top_name(a, names[0], sizeof(names[0]));
    top_name(b, names[1], sizeof(names[1]));
    return strcmp(names[0], names[1]);
}

/* The largest first, names from the start of the alphabet; what is unknown comes last either way.
 */
static int compare_rows(const void *a, const void *b, void *context)
{
    const struct document_workload *left = *(struct document_workload *const *)a;
    const struct document_workload *right = *(struct document_workload *const *)b;
    const struct top *top = context;
    bool is_name = top->order == TOP_NAME;
    double x = is_name ? 0 : top_value(left, top->order);
    double y = is_name ? 0 : top_value(right, top->order);
    int order;

    if (is_name)
        order = compare_names(left, right);
    else if (isnan(x) || isnan(y))
        order = isnan(x) - isnan(y);
    else
        order = (x < y) - (x > y);
    if (order == 0) /* those of one document are in one array, in a stable order */
        return (left > right) - (left < right);
    return top->is_reversed && !isnan(x + y) ? -order : order;
}

/* With the cursor on the workload that it follows, which may be NULL, or on the row that it was. */
static void top_arrange(struct top *top, const struct document_workload *followed)
{
    const struct node_document *document = top->document;
    bool is_found = false;

    top->row_count = 0;
    for (size_t i = 0; document && i < document->workload_count; i++)
        if (passes(&document->workloads[i], top->filter))
            top->rows[top->row_count++] = &document->workloads[i];
    if (top->row_count > 0)
        qsort_r(top->rows, top->row_count, sizeof(struct document_workload *), compare_rows, top);
    for (size_t i = 0; followed && i < top->row_count && !is_found; i++)
        if (top->rows[i] == followed) {
            top->selected = i;
            is_found = true;
        }
    if (top->selected >= top->row_count)
        top->selected = top->row_count > 0 ? top->row_count - 1 : 0;
    if (is_found)
        return;
    top->is_following = false;
    top->is_open = false;
}

static void history_add(struct top *top, double watts)
{
    if (top->history_count == TOP_HISTORY_MAX) {
        memmove(top->history, top->history + 1, sizeof(top->history) - sizeof(double));
        top->history_count--;
    }
    top->history[top->history_count++] = watts;
}

int top_show(struct top *top, struct node_document *document)
{
    struct node_document *before = top->document;
    const struct document_workload *followed = top->is_following ? top_selected(top) : NULL;
    struct document_workload **rows;

    if (top->is_frozen) {
        node_document_free(document);
        return 0;
    }
    rows = calloc(MAX(document->workload_count, (size_t)1), sizeof(struct document_workload *));
    if (!rows) {
        node_document_free(document);
        return -ENOMEM;
    }
    node_document_compare(document, before);
    if (!before || document->time > before->time)
        history_add(top, document->watts);
    free(top->rows);
    top->rows = rows;
    top->document = document;
    top_arrange(top, followed ? node_document_find(document, followed) : NULL);
    node_document_free(before);
    return 0;
}

/* --- keys --- */

static void top_arrange_again(struct top *top)
{
    top_arrange(top, top->is_following ? top_selected(top) : NULL);
}

static void move_to(struct top *top, size_t row)
{
    top->selected = top->row_count > 0 ? MIN(row, top->row_count - 1) : 0;
    top->is_following = top->row_count > 0;
}

static size_t back_by(size_t from, size_t rows)
{
    return from > rows ? from - rows : 0;
}

/* To the next column that has values, around the ends. */
static void choose_column(struct top *top, int step)
{
    int column = (int)top->order;

    do
        column = (column + step + TOP_COLUMN_COUNT) % TOP_COLUMN_COUNT;
    while (!top_has_column(top, (enum top_column)column));
    top->order = (enum top_column)column;
    top->is_reversed = false;
    top_arrange_again(top);
}

static void filter_append(struct top *top, unsigned code)
{
    size_t len = strlen(top->filter);
    char bytes[5] = {0};

    if (code < 0x80) {
        bytes[0] = (char)code;
    } else if (code < 0x800) {
        bytes[0] = (char)(0xc0 | code >> 6);
        bytes[1] = (char)(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        bytes[0] = (char)(0xe0 | code >> 12);
        bytes[1] = (char)(0x80 | (code >> 6 & 0x3f));
        bytes[2] = (char)(0x80 | (code & 0x3f));
    } else {
        bytes[0] = (char)(0xf0 | code >> 18);
        bytes[1] = (char)(0x80 | (code >> 12 & 0x3f));
        bytes[2] = (char)(0x80 | (code >> 6 & 0x3f));
        bytes[3] = (char)(0x80 | (code & 0x3f));
    }
    if (len + strlen(bytes) < sizeof(top->filter))
        memcpy(top->filter + len, bytes, strlen(bytes) + 1);
}

static void filter_erase(struct top *top)
{
    size_t len = strlen(top->filter);

    while (len > 0 && ((unsigned char)top->filter[--len] & 0xc0) == 0x80)
        ;
    top->filter[len] = '\0';
}

static void press_while_typing(struct top *top, unsigned key)
{
    if (key == TOP_KEY_ENTER || key == TOP_KEY_ESCAPE)
        top->is_typing = false;
    if (key == TOP_KEY_ESCAPE || key == ('U' & 0x1f))
        top->filter[0] = '\0';
    else if (key == TOP_KEY_ERASE)
        filter_erase(top);
    else if (key >= ' ' && key < TOP_KEY_UP && (key < 0xd800 || key > 0xdfff))
        filter_append(top, key);
    top_arrange_again(top);
}

static void press_in_table(struct top *top, unsigned key)
{
    switch (key) {
    case TOP_KEY_UP:
    case 'k':
        move_to(top, back_by(top->selected, 1));
        break;
    case TOP_KEY_DOWN:
    case 'j':
        move_to(top, top->selected + 1);
        break;
    case TOP_KEY_PAGE_UP:
        move_to(top, back_by(top->selected, top->page));
        break;
    case TOP_KEY_PAGE_DOWN:
        move_to(top, top->selected + top->page);
        break;
    case TOP_KEY_HOME:
    case 'g':
        move_to(top, 0);
        top->is_following = false; /* on whoever is first */
        break;
    case TOP_KEY_END:
    case 'G':
        move_to(top, SIZE_MAX);
        break;
    case 's':
    case '>':
    case TOP_KEY_RIGHT:
        choose_column(top, 1);
        break;
    case '<':
    case TOP_KEY_LEFT:
        choose_column(top, -1);
        break;
    case 'r':
        top->is_reversed = !top->is_reversed;
        top_arrange_again(top);
        break;
    case '/':
        top->is_typing = true;
        break;
    case TOP_KEY_ESCAPE:
        top->filter[0] = '\0';
        top_arrange_again(top);
        break;
    case TOP_KEY_ENTER:
        if (top->row_count == 0)
            break;
        top->is_open = true;
        top->detail_first = 0;
        top->is_following = true;
        break;
    default:
        break;
    }
}

static void press_in_details(struct top *top, unsigned key)
{
    size_t last = back_by(top->detail_count, top->page);

    switch (key) {
    case TOP_KEY_ENTER:
    case TOP_KEY_ESCAPE:
    case TOP_KEY_ERASE:
    case TOP_KEY_LEFT:
        top->is_open = false;
        break;
    case TOP_KEY_UP:
    case 'k':
        top->detail_first = back_by(top->detail_first, 1);
        break;
    case TOP_KEY_DOWN:
    case 'j':
        top->detail_first = MIN(top->detail_first + 1, last);
        break;
    case TOP_KEY_PAGE_UP:
        top->detail_first = back_by(top->detail_first, top->page);
        break;
    case TOP_KEY_PAGE_DOWN:
        top->detail_first = MIN(top->detail_first + top->page, last);
        break;
    case TOP_KEY_HOME:
    case 'g':
        top->detail_first = 0;
        break;
    case TOP_KEY_END:
    case 'G':
        top->detail_first = last;
        break;
    default:
        break;
    }
}

void top_press(struct top *top, unsigned key)
{
    if (top->is_typing)
        press_while_typing(top, key);
    else if (top->is_helping)
        top->is_helping = false;
    else if (key == 'q' || key == 'Q')
        top->is_done = true;
    else if (key == 'h' || key == '?')
        top->is_helping = true;
    else if (key == ' ')
        top->is_frozen = !top->is_frozen;
    else if (top->is_open)
        press_in_details(top, key);
    else
        press_in_table(top, key);
}
