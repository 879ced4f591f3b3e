/*
 * Mappings of a YAML file, read by a table of their keys. A key that the table does not have is
 * refused with the nearest that it has; so is one that is given twice, or needed and missing.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/yaml_reader.h"

enum { YAML_FIELDS_MAX = 32 }; /* of a table */

/* What is being read. */
struct yaml_fields {
    struct yaml_reader *reader;
    const char *manual; /* the document that lists the keys, for messages */
    void *target;       /* what the setters write to */
    /* After the whole file, whose own faults come first: do its keys go together? May be NULL. */
    int (*check)(const struct yaml_fields *yaml);
};

/* Reads the file that a user named, as fs_read_regular does. `what` is how messages call it, and
 * `to_check` what may be wrong: "the path", or a flag. */
int yaml_fields_load(const char *what, const char *path, size_t cap_bytes, const char *to_check,
                     char **ret_data, struct span *ret_text, struct error *err);

/* Reads the one document of a text: `read_root` gets its root, END if the text says nothing. Not
 * negative is a success. Messages begin with FILE:LINE:COLUMN. */
typedef int yaml_fields_root(const struct yaml_fields *yaml, const struct yaml_reader_node *root);
int yaml_fields_parse(struct yaml_fields *yaml, struct span text, const char *file_name,
                      yaml_fields_root *read_root, struct error *err);

struct yaml_field;

/* Anything that is not negative is a success. */
typedef int yaml_fields_setter(const struct yaml_fields *yaml, const struct yaml_field *field,
                               const struct yaml_reader_node *value);

/* A key of a mapping, and what takes its value. */
struct yaml_field {
    const char *name;
    yaml_fields_setter *set;
    bool takes_any; /* else `set` sees texts only: the others are refused before */
    bool is_needed;
    size_t offset;       /* in the target, of what `set` writes */
    const void *details; /* what else `set` needs: words, fields, why it is refused */
    size_t detail_count;
};

/* Reads the mapping that has begun at `start` to its end. Gives how many keys it has. */
int yaml_fields_read(const struct yaml_fields *yaml, const struct yaml_reader_node *start,
                     const struct yaml_field *fields, size_t count);

/* For a value that is a mapping or nothing: 1, it begins there; 0, it is nothing. */
int yaml_fields_begin(const struct yaml_fields *yaml, const struct yaml_field *field,
                      const struct yaml_reader_node *value);

/* Hands all nodes up to the END to `take`: a list's items, or the keys of a mapping whose values it
 * reads itself. `what` is as for yaml_reader_next. */
int yaml_fields_each(const struct yaml_fields *yaml, const struct yaml_field *field,
                     const char *what, yaml_fields_setter *take);

/* `name` is how messages call the node. */
int yaml_fields_check_text(const struct yaml_fields *yaml, const char *name,
                           const struct yaml_reader_node *node);

/* What the field's offset leads to. */
void *yaml_fields_member(const struct yaml_fields *yaml, const struct yaml_field *field);

/* For tables. Where nothing is given, they leave things as they are. */
yaml_fields_setter yaml_fields_set_switch;  /* a bool */
yaml_fields_setter yaml_fields_set_section; /* a mapping; its fields are the details */
yaml_fields_setter yaml_fields_refuse;      /* whatever it is; the details say why */

/* As yaml_reader_fail. */
#define yaml_fields_fail(yaml, ...) yaml_reader_fail((yaml)->reader, __VA_ARGS__)

/* The same for a text that cannot be the field's: "NAME: 'TEXT' is ..., use ...". */
#define yaml_fields_wrong(yaml, field, value, format, ...)                                         \
    yaml_fields_fail(yaml, value, "%s: '%.80s' " format, (field)->name, (value)->text,             \
                     ##__VA_ARGS__)
