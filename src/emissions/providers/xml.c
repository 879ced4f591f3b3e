#include "emissions/providers/xml.h"

#include <errno.h>
#include <string.h>

#define BLANKS "\t\r\n "

void xml_init(struct xml_scanner *scanner, struct span document)
{
    *scanner = (struct xml_scanner){.rest = document};
    span_strip_prefix(&scanner->rest, "\xef\xbb\xbf"); /* a byte order mark */
}

static bool is_blank(char c)
{
    return c != '\0' && strchr(BLANKS, c);
}

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("_-.:", c));
}

static struct span cut_front(struct span *text, size_t len)
{
    struct span front = {text->data, len};

    *text = (struct span){text->data + len, text->len - len};
    return front;
}

static struct span cut_while(struct span *text, bool (*is_wanted)(char))
{
    size_t len = 0;

    while (len < text->len && is_wanted(text->data[len]))
        len++;
    return cut_front(text, len);
}

static bool skip_past(struct span *text, const char *mark)
{
    const char *at = text->len ? memmem(text->data, text->len, mark, strlen(mark)) : NULL;

    if (at)
        cut_front(text, (size_t)(at - text->data) + strlen(mark));
    return at;
}

/* Skips past the ">" of an opening tag; a quoted value may contain one as well. */
static bool skip_attributes(struct span *text, bool *ret_is_empty)
{
    char quote = '\0', last = '\0';

    for (size_t i = 0; i < text->len && text->data[i] != '<'; i++) {
        char c = text->data[i];

        if (!quote && c == '>') {
            *ret_is_empty = last == '/';
            cut_front(text, i + 1);
            return true;
        }
        if (c == quote)
            quote = '\0';
        else if (!quote && (c == '"' || c == '\''))
            quote = c;
        last = c;
    }
    return false;
}

/* An event of the innermost element. */
static int xml_emit(const struct xml_scanner *scanner, enum xml_kind kind, struct span text,
                    struct xml_event *ret_event)
{
    struct span name, local, prefix;

    if (scanner->depth == 0)
        return -EBADMSG;
    name = local = scanner->open[scanner->depth - 1];
    prefix = span_cut(&local, ':');
    *ret_event = (struct xml_event){
        .kind = kind, .name = prefix.len < name.len ? local : name, .text = text};
    return 0;
}

static int close_element(struct xml_scanner *scanner, struct xml_event *ret_event)
{
    int r = xml_emit(scanner, XML_CLOSE, (struct span){NULL, 0}, ret_event);

    scanner->is_empty = false;
    scanner->depth -= r == 0;
    return r;
}

static int read_tag(struct xml_scanner *scanner, struct xml_event *ret_event)
{
    struct span *rest = &scanner->rest, name;
    bool is_end = span_strip_prefix(rest, "</");

    if (!is_end)
        span_strip_prefix(rest, "<");
    name = cut_while(rest, is_name_char);
    if (is_end) {
        const struct span *top = &scanner->open[scanner->depth - (scanner->depth > 0)];

        cut_while(rest, is_blank);
        if (scanner->depth == 0 || name.len != top->len ||
            memcmp(name.data, top->data, name.len) != 0 || !span_strip_prefix(rest, ">"))
            return -EBADMSG;
        return close_element(scanner, ret_event);
    }
    if (name.len == 0 || scanner->depth == XML_DEPTH_MAX ||
        (scanner->depth == 0 && scanner->has_root) || !skip_attributes(rest, &scanner->is_empty))
        return -EBADMSG;
    scanner->open[scanner->depth++] = name;
    scanner->has_root = true;
    return xml_emit(scanner, XML_OPEN, (struct span){NULL, 0}, ret_event);
}

int xml_next(struct xml_scanner *scanner, struct xml_event *ret_event)
{
    struct span *rest = &scanner->rest;

    if (scanner->is_empty)
        return close_element(scanner, ret_event);
    while (rest->len > 0) {
        const char *tag = memchr(rest->data, '<', rest->len), *end;
        struct span text = cut_front(rest, tag ? (size_t)(tag - rest->data) : rest->len);

        cut_while(&text, is_blank);
        while (text.len > 0 && is_blank(text.data[text.len - 1]))
            text.len--;
        if (text.len > 0)
            return xml_emit(scanner, XML_TEXT, text, ret_event);
        if (rest->len == 0)
            break;
        end = span_strip_prefix(rest, "<?") ? "?>" : span_strip_prefix(rest, "<!--") ? "-->" : NULL;
        if (!end)
            return read_tag(scanner, ret_event);
        if (!skip_past(rest, end))
            return -EBADMSG;
    }
    if (scanner->depth > 0 || !scanner->has_root)
        return -EBADMSG;
    *ret_event = (struct xml_event){.kind = XML_END};
    return 0;
}
