/*
 * YAML, read strictly: one document of mappings, lists and plain texts, as a stream of nodes.
 * Anchors, aliases, tags and a second document are refused. The only user of libyaml.
 *
 * Errors are for people and begin with FILE:LINE:COLUMN, as editors understand it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "core/span.h"

struct yaml_reader;

enum yaml_reader_kind {
    YAML_READER_TEXT,
    YAML_READER_MAPPING, /* its keys and values follow in turn, up to an END */
    YAML_READER_LIST,    /* its items follow, up to an END */
    YAML_READER_END,
};

struct yaml_reader_node {
    enum yaml_reader_kind kind;
    const char *text; /* of a TEXT: without NUL, valid until the next node is read */
    bool is_plain;    /* a TEXT without quotes: an empty one is null */
    size_t line, column;
};

bool yaml_reader_is_null(const struct yaml_reader_node *node);

/* The text, the name and `err` must outlive the reader. */
int yaml_reader_open(struct span text, const char *file_name, struct error *err,
                     struct yaml_reader **ret_reader);

/* Accepts NULL. */
void yaml_reader_close(struct yaml_reader *reader);

/* The document's root; END for an empty file. */
int yaml_reader_root(struct yaml_reader *reader, struct yaml_reader_node *ret_node);

/* `what` names the node in messages: "the key", or the key's name. */
int yaml_reader_next(struct yaml_reader *reader, const char *what,
                     struct yaml_reader_node *ret_node);

/* After the root: fails if there is more. */
int yaml_reader_finish(struct yaml_reader *reader);

/* "FILE:LINE:COLUMN". */
void yaml_reader_place(const struct yaml_reader *reader, const struct yaml_reader_node *node,
                       char *place, size_t size_bytes);

void yaml_reader_format_error(const struct yaml_reader *reader, const struct yaml_reader_node *node,
                              const char *format, ...) PRINTF(3, 4);

/* Reports an error at a node; its value is -EINVAL. A macro, so that analysers, which do not look
 * into variadic functions, know that it fails. */
#define yaml_reader_fail(...) (yaml_reader_format_error(__VA_ARGS__), -EINVAL)
