#include "metrics/text.h"

#include <stdarg.h>
#include <string.h>

#include "core/macros.h"
#include "core/utf8.h"

const struct metric_name metric_names[METRIC_COUNT] = {
#define METRIC(id, prefix, type, name, help)                                                       \
    [METRIC_##id] = {METRIC_PREFIX_##prefix, METRIC_##type, name, help},
#include "metrics/metric_table.h"
#undef METRIC
};

void text_begin(struct text *text, struct buffer *out, enum page_format format,
                const char *process_prefix)
{
    *text = (struct text){.out = out, .format = format, .process_prefix = process_prefix};
}

void text_family(struct text *text, enum metric metric)
{
    text->family = &metric_names[metric];
    text->header_written = false;
}

static void write_name(struct text *text, bool with_total)
{
    if (text->family->prefix == METRIC_PREFIX_PROCESS) {
        buffer_str(text->out, text->process_prefix);
        buffer_char(text->out, '_');
    } else if (text->family->prefix == METRIC_PREFIX_OWN) {
        buffer_str(text->out, "wattribute_");
    }
    buffer_str(text->out, text->family->name);
    if (with_total && text->family->type == METRIC_COUNTER)
        buffer_str(text->out, "_total");
}

static void write_comment(struct text *text, const char *keyword, const char *value)
{
    /* OpenMetrics names a counter's family without _total, the older format with it. */
    buffer_str(text->out, "# ");
    buffer_str(text->out, keyword);
    buffer_char(text->out, ' ');
    write_name(text, text->format == PAGE_TEXT);
    buffer_char(text->out, ' ');
    buffer_str(text->out, value);
    buffer_char(text->out, '\n');
}

static void write_header(struct text *text)
{
    static const char *const units[] = {"bytes",  "celsius", "grams",   "hertz",
                                        "joules", "ratio",   "seconds", "watts"};
    const char *last_word = strrchr(text->family->name, '_');

    write_comment(text, "HELP", text->family->help);
    write_comment(text, "TYPE", text->family->type == METRIC_GAUGE ? "gauge" : "counter");
    for (size_t i = 0; text->format == PAGE_OPENMETRICS && i < ARRAY_SIZE(units); i++)
        if (last_word && strcmp(last_word + 1, units[i]) == 0)
            write_comment(text, "UNIT", units[i]);
    text->header_written = true;
}

void text_sample_labels(struct text *text, ...)
{
    const char *name;
    va_list labels;

    if (!text->header_written)
        write_header(text);
    write_name(text, true);
    text->has_labels = false;
    text->labels_offset = text->out->len;
    va_start(labels, text);
    while ((name = va_arg(labels, const char *)))
        text_label(text, name, va_arg(labels, const char *));
    va_end(labels);
}

static void begin_label(struct text *text, const char *name)
{
    buffer_char(text->out, text->has_labels ? ',' : '{');
    text->has_labels = true;
    buffer_str(text->out, name);
    buffer_str(text->out, "=\"");
}

/* Writes a character that is not plain, or a byte that is none. Returns its length. */
static size_t write_character(struct buffer *out, struct span rest)
{
    unsigned char c = (unsigned char)rest.data[0];
    size_t len = utf8_char_len(rest);

    /* U+FFFD itself is escaped as bytes: in the output it always announces one. */
    if (len == 3 && memcmp(rest.data, UTF8_REPLACEMENT, len) == 0)
        len = 0;
    if (c == '\n') {
        buffer_str(out, "\\n");
    } else if (c == '\\' || c == '"') {
        buffer_char(out, '\\');
        buffer_char(out, (char)c);
    } else if (len == 0 || c < 0x20 || c == 0x7f) {
        buffer_str(out, UTF8_REPLACEMENT);
        buffer_hex(out, c);
        return 1;
    } else {
        buffer_bytes(out, rest.data, len);
    }
    return len;
}

static bool is_plain(char c)
{
    return c >= ' ' && c < 0x7f && c != '"' && c != '\\';
}

void text_label(struct text *text, const char *name, const char *value)
{
    struct span rest = span_of(value);

    begin_label(text, name);
    while (rest.len > 0) {
        size_t len = 0;

        /* Nearly every byte of a page is plain; they are copied at once. */
        while (len < rest.len && is_plain(rest.data[len]))
            len++;
        if (len > 0)
            buffer_bytes(text->out, rest.data, len);
        else
            len = write_character(text->out, rest);
        rest = (struct span){rest.data + len, rest.len - len};
    }
    buffer_char(text->out, '"');
}

void text_label_u64(struct text *text, const char *name, uint64_t value)
{
    begin_label(text, name);
    buffer_u64(text->out, value);
    buffer_char(text->out, '"');
}

struct text_labels text_labels_so_far(const struct text *text)
{
    return (struct text_labels){text->labels_offset, text->out->len - text->labels_offset};
}

void text_repeat_labels(struct text *text, struct text_labels labels)
{
    buffer_repeat(text->out, labels.offset, labels.len);
    text->has_labels |= labels.len > 0;
}

void text_value(struct text *text, int64_t value, unsigned digits)
{
    buffer_str(text->out, text->has_labels ? "} " : " ");
    buffer_fixed(text->out, value, digits);
    buffer_char(text->out, '\n');
}

void text_decimal(struct text *text, uint64_t whole, uint64_t fraction, unsigned digits)
{
    buffer_str(text->out, text->has_labels ? "} " : " ");
    buffer_decimal(text->out, whole, fraction, digits);
    buffer_char(text->out, '\n');
}

void text_end(struct text *text)
{
    if (text->format == PAGE_OPENMETRICS)
        buffer_str(text->out, "# EOF\n");
}
