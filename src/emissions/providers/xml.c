#include "emissions/providers/xml.h"

#include <errno.h>
#include <string.h>

void xml_init(struct xml_scanner *scanner, struct span document)
{
    *scanner = (struct xml_scanner){.rest = document};
    span_strip_prefix(&scanner->rest, "\xef\xbb\xbf"); /* a byte order mark */
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_of_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.' || c == ':';
}

static void skip(struct span *text, size_t count)
{
    *text = (struct span){text->data + count, text->len - count};
}

static bool skip_past(struct span *text, const char *mark)
{
    const char *at = text->len ? memmem(text->data, text->len, mark, strlen(mark)) : NULL;

    if (!at)
        return false;
    skip(text, (size_t)(at - text->data) + strlen(mark));
    return true;
}

static struct span trim(struct span text)
{
    while (text.len > 0 && is_blank(text.data[0]))
        skip(&text, 1);
    while (text.len > 0 && is_blank(text.data[text.len - 1]))
        text.len--;
    return text;
}

static struct span local_name(struct span name)
{
    struct span rest = name, prefix = span_cut(&rest, ':');

    return prefix.len < name.len ? rest : name;
}

static struct span cut_name(struct span *text)
{
    struct span name = {text->data, 0};

    while (name.len < text->len && is_of_name(text->data[name.len]))
        name.len++;
    skip(text, name.len);
    return name;
}

/* Up to and over the ">" of a tag that begins an element; a quoted value may have one, too. */
static bool skip_attributes(struct span *text, bool *ret_is_empty)
{
    char quote = '\0', last = '\0';

    for (size_t i = 0; i < text->len; i++) {
        char c = text->data[i];

        if (c == '<')
            return false;
        if (quote) {
            if (c == quote)
                quote = '\0';
        } else if (c == '"' || c == '\'') {
            quote = c;
        } else if (c == '>') {
            *ret_is_empty = last == '/';
            skip(text, i + 1);
            return true;
        }
        last = c;
    }
    return false;
}

static int open_element(struct xml_scanner *scanner, struct xml_event *ret_event)
{
    struct span name = cut_name(&scanner->rest);

    if (name.len == 0 || scanner->depth == XML_DEPTH_MAX ||
        (scanner->depth == 0 && scanner->has_root) ||
        !skip_attributes(&scanner->rest, &scanner->is_empty))
        return -EBADMSG;
    scanner->open[scanner->depth++] = name;
    scanner->has_root = true;
    *ret_event = (struct xml_event){.kind = XML_OPEN, .name = local_name(name)};
    return 0;
}

static int close_element(struct xml_scanner *scanner, struct xml_event *ret_event)
{
    if (scanner->depth == 0)
        return -EBADMSG;
    scanner->is_empty = false;
    *ret_event = (struct xml_event){
        .kind = XML_CLOSE,
        .name = local_name(scanner->open[--scanner->depth]),
    };
    return 0;
}

static int close_tag(struct xml_scanner *scanner, struct xml_event *ret_event)
{
    struct span name = cut_name(&scanner->rest), opened;

    if (scanner->depth == 0)
        return -EBADMSG;
    opened = scanner->open[scanner->depth - 1];
    while (scanner->rest.len > 0 && is_blank(scanner->rest.data[0]))
        skip(&scanner->rest, 1);
    if (name.len != opened.len || memcmp(name.data, opened.data, name.len) != 0 ||
        !span_strip_prefix(&scanner->rest, ">"))
        return -EBADMSG;
    return close_element(scanner, ret_event);
}

static int take_text(struct xml_scanner *scanner, struct span text, struct xml_event *ret_event)
{
    if (scanner->depth == 0)
        return -EBADMSG;
    *ret_event = (struct xml_event){
        .kind = XML_TEXT,
        .name = local_name(scanner->open[scanner->depth - 1]),
        .text = text,
    };
    return 0;
}

/* A comment or a processing instruction off the front: whether there was one, or -EBADMSG. */
static int skip_remark(struct span *rest)
{
    const char *end = NULL;

    if (span_strip_prefix(rest, "<?"))
        end = "?>";
    else if (span_strip_prefix(rest, "<!--"))
        end = "-->";
    if (!end)
        return false;
    return skip_past(rest, end) ? true : -EBADMSG;
}

static int take_tag(struct xml_scanner *scanner, struct xml_event *ret_event)
{
    if (span_strip_prefix(&scanner->rest, "</"))
        return close_tag(scanner, ret_event);
    span_strip_prefix(&scanner->rest, "<");
    return open_element(scanner, ret_event);
}

int xml_next(struct xml_scanner *scanner, struct xml_event *ret_event)
{
    struct span *rest = &scanner->rest;

    if (scanner->is_empty)
        return close_element(scanner, ret_event);
    while (rest->len > 0) {
        const char *tag = memchr(rest->data, '<', rest->len);
        size_t len = tag ? (size_t)(tag - rest->data) : rest->len;
        struct span text = trim((struct span){rest->data, len});
        int r;

        skip(rest, len);
        if (text.len > 0)
            return take_text(scanner, text, ret_event);
        if (rest->len == 0)
            break;
        r = skip_remark(rest);
        if (r < 0)
            return r;
        if (r == 0)
            return take_tag(scanner, ret_event);
    }
    if (scanner->depth > 0 || !scanner->has_root)
        return -EBADMSG;
    *ret_event = (struct xml_event){.kind = XML_END};
    return 0;
}
