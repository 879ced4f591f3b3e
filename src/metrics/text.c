#include "metrics/text.h"

#include "core/utf8.h"

void text_begin(struct text *text, struct buffer *out, enum text_format format,
                const char *process_prefix)
{
    *text = (struct text){.out = out, .format = format, .process_prefix = process_prefix};
}

void text_family(struct text *text, enum metric metric)
{
    text->family = &metric_names[metric];
    text->header_written = false;
}

static void put_name(struct text *text, bool with_total)
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

static void put_comment(struct text *text, const char *keyword, const char *value)
{
    /* OpenMetrics names a counter's family without _total, the older format with it. */
    buffer_str(text->out, "# ");
    buffer_str(text->out, keyword);
    buffer_char(text->out, ' ');
    put_name(text, text->format == TEXT_PROMETHEUS);
    buffer_char(text->out, ' ');
    buffer_str(text->out, value);
    buffer_char(text->out, '\n');
}

void text_sample(struct text *text)
{
    if (!text->header_written) {
        put_comment(text, "HELP", text->family->help);
        put_comment(text, "TYPE", text->family->type == METRIC_COUNTER ? "counter" : "gauge");
        if (text->format == TEXT_OPENMETRICS && text->family->unit)
            put_comment(text, "UNIT", text->family->unit);
        text->header_written = true;
    }
    put_name(text, true);
    text->has_labels = false;
    text->labels_offset = text->out->len;
}

static void begin_label(struct text *text, const char *name)
{
    buffer_char(text->out, text->has_labels ? ',' : '{');
    text->has_labels = true;
    buffer_str(text->out, name);
    buffer_str(text->out, "=\"");
}

static void put_escaped_byte(struct text *text, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";

    buffer_str(text->out, UTF8_REPLACEMENT);
    buffer_char(text->out, hex[c >> 4]);
    buffer_char(text->out, hex[c & 15]);
}

static bool is_plain(char c)
{
    return c >= ' ' && c < 0x7f && c != '"' && c != '\\';
}

/* Nearly every byte of nearly every page: they are copied at once. */
static size_t plain_len(struct span value)
{
    size_t len = 0;

    while (len < value.len && is_plain(value.data[len]))
        len++;
    return len;
}

/* One that is not plain, or a byte that is none. Returns its length. */
static size_t put_character(struct text *text, struct span rest)
{
    unsigned char c = (unsigned char)rest.data[0];
    size_t len = utf8_char_len(rest);

    /* U+FFFD itself is escaped as bytes: in the output it always announces one. */
    if (len == 3 && memcmp(rest.data, UTF8_REPLACEMENT, len) == 0)
        len = 0;
    if (c == '\n') {
        buffer_str(text->out, "\\n");
    } else if (c == '\\' || c == '"') {
        buffer_char(text->out, '\\');
        buffer_char(text->out, (char)c);
    } else if (len == 0 || c < 0x20 || c == 0x7f) {
        put_escaped_byte(text, c);
        return 1;
    } else {
        buffer_bytes(text->out, rest.data, len);
    }
    return len;
}

void text_label(struct text *text, const char *name, const char *value)
{
    struct span rest = span_of(value);

    begin_label(text, name);
    while (rest.len > 0) {
        size_t len = plain_len(rest);

        if (len > 0)
            buffer_bytes(text->out, rest.data, len);
        else
            len = put_character(text, rest);
        rest.data += len;
        rest.len -= len;
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
    if (text->format == TEXT_OPENMETRICS)
        buffer_str(text->out, "# EOF\n");
}
