#include "core/yaml_reader.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct yaml_reader {
    yaml_parser_t yaml;
    yaml_event_t event; /* the newest, which owns the node's text */
    struct span text;
    const char *file_name;
    struct error *err;
};

/* The core schema of YAML 1.2.2, chapter 10.3.2. */
bool yaml_reader_is_null(const struct yaml_reader_node *node)
{
    static const char *const names[] = {"", "~", "null", "Null", "NULL"};

    for (size_t i = 0; node->kind == YAML_READER_TEXT && node->is_plain && i < ARRAY_SIZE(names);
         i++)
        if (strcmp(node->text, names[i]) == 0)
            return true;
    return false;
}

void yaml_reader_place(const struct yaml_reader *reader, const struct yaml_reader_node *node,
                       char *place, size_t size_bytes)
{
    snprintf(place, size_bytes, "%.300s:%zu:%zu", reader->file_name, node->line, node->column);
}

void yaml_reader_format_error(const struct yaml_reader *reader, const struct yaml_reader_node *node,
                              const char *format, ...)
{
    char place[400], message[512];
    va_list args;

    yaml_reader_place(reader, node, place, sizeof(place));
    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    error_format(reader->err, "%s: %s", place, message);
}

/* libyaml counts from 0, editors from 1. */
static struct yaml_reader_node node_at(yaml_mark_t mark)
{
    return (struct yaml_reader_node){.line = mark.line + 1, .column = mark.column + 1};
}

/* libyaml locates bytes that it cannot decode by their offset, not by a mark. */
static struct yaml_reader_node node_at_offset(struct span text, size_t offset)
{
    yaml_mark_t mark = {0};

    for (size_t i = 0; i < MIN(offset, text.len); i++) {
        mark.column = text.data[i] == '\n' ? 0 : mark.column + 1;
        mark.line += text.data[i] == '\n';
    }
    return node_at(mark);
}

static int explain_failure(struct yaml_reader *reader)
{
    const yaml_parser_t *yaml = &reader->yaml;
    const char *problem = yaml->problem ? yaml->problem : "cannot be parsed";
    /* libyaml shows neither the character nor what it is. */
    bool is_tab = strcmp(problem, "found character that cannot start any token") == 0;
    struct yaml_reader_node node;

    switch (yaml->error) {
    case YAML_MEMORY_ERROR:
        return error_set(reader->err, -ENOMEM, "%.300s: out of memory", reader->file_name);
    case YAML_READER_ERROR:
        node = node_at_offset(reader->text, yaml->problem_offset);
        return yaml_reader_fail(reader, &node,
                                "not UTF-8 text: %s; remove such bytes or save the file as UTF-8",
                                problem);
    default:
        node = node_at(yaml->problem_mark);
        return yaml_reader_fail(reader, &node, "not YAML: %s%s%s%s", problem,
                                yaml->context ? " " : "", yaml->context ? yaml->context : "",
                                is_tab ? "; a tab? indent with spaces" : "");
    }
}

static int next_event(struct yaml_reader *reader)
{
    yaml_event_delete(&reader->event);
    return yaml_parser_parse(&reader->yaml, &reader->event) ? 0 : explain_failure(reader);
}

int yaml_reader_next(struct yaml_reader *reader, const char *what,
                     struct yaml_reader_node *ret_node)
{
    const yaml_event_t *event = &reader->event;
    const yaml_char_t *anchor = NULL, *tag = NULL;
    struct yaml_reader_node node;
    int r = next_event(reader);

    if (r < 0)
        return r;
    node = node_at(event->start_mark);
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        node.kind = YAML_READER_TEXT;
        node.text = (const char *)event->data.scalar.value;
        node.is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
        /* "\0" in a quoted scalar would cut the value short. */
        if (memchr(node.text, '\0', event->data.scalar.length))
            return yaml_reader_fail(reader, &node, "%s holds a NUL character; remove it", what);
        break;
    case YAML_MAPPING_START_EVENT:
        node.kind = YAML_READER_MAPPING;
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
        break;
    case YAML_SEQUENCE_START_EVENT:
        node.kind = YAML_READER_LIST;
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
        break;
    case YAML_ALIAS_EVENT:
        return yaml_reader_fail(reader, &node,
                                "aliases (*%.40s) are not supported; write the value out",
                                (const char *)event->data.alias.anchor);
    default:
        node.kind = YAML_READER_END;
        break;
    }
    if (anchor)
        return yaml_reader_fail(
            reader, &node, "anchors (&%.40s) are not supported; write the value where it is used",
            (const char *)anchor);
    if (tag)
        return yaml_reader_fail(reader, &node, "tags (%.80s) are not supported; leave the tag out",
                                (const char *)tag);
    *ret_node = node;
    return 0;
}

int yaml_reader_root(struct yaml_reader *reader, struct yaml_reader_node *ret_node)
{
    struct yaml_reader_node node = {.kind = YAML_READER_END, .line = 1, .column = 1};
    int r;

    do {
        r = next_event(reader);
        if (r < 0)
            return r;
    } while (reader->event.type == YAML_STREAM_START_EVENT);
    if (reader->event.type == YAML_DOCUMENT_START_EVENT) {
        r = yaml_reader_next(reader, "the file", &node);
        if (r < 0)
            return r;
        /* libyaml returns an empty document as an empty scalar. */
        if (node.kind == YAML_READER_TEXT && node.text[0] == '\0')
            node.kind = YAML_READER_END;
    }
    *ret_node = node;
    return 0;
}

int yaml_reader_finish(struct yaml_reader *reader)
{
    while (reader->event.type != YAML_STREAM_END_EVENT) {
        struct yaml_reader_node node;
        int r = next_event(reader);

        if (r < 0)
            return r;
        node = node_at(reader->event.start_mark);
        if (reader->event.type == YAML_DOCUMENT_START_EVENT)
            return yaml_reader_fail(
                reader, &node, "a second document begins here; keep one, without '---' in between");
    }
    return 0;
}

int yaml_reader_open(struct span text, const char *file_name, struct error *err,
                     struct yaml_reader **ret_reader)
{
    struct yaml_reader *reader = calloc(1, sizeof(*reader));

    if (!reader || !yaml_parser_initialize(&reader->yaml)) {
        free(reader);
        return error_set(err, -ENOMEM, "%.300s: out of memory", file_name);
    }
    reader->text = text;
    reader->file_name = file_name;
    reader->err = err;
    yaml_parser_set_input_string(&reader->yaml,
                                 (const unsigned char *)(text.len > 0 ? text.data : ""), text.len);
    *ret_reader = reader;
    return 0;
}

void yaml_reader_close(struct yaml_reader *reader)
{
    if (!reader)
        return;
    yaml_event_delete(&reader->event);
    yaml_parser_delete(&reader->yaml);
    free(reader);
}
