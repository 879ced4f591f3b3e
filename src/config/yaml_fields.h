/*
 * Mappings of a YAML file, read by a table of their keys. An unknown key is rejected with the
 * nearest known one; so is a key that is given twice, or needed and missing.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/yaml_reader.h"

enum { YAML_FIELDS_MAX = 32 }; /* of a table */

struct yaml_field;
struct yaml_fields;

/* Takes a value. Anything that is not negative is a success. */
typedef int yaml_fields_setter(const struct yaml_fields *yaml, const struct yaml_field *field,
                               const struct yaml_reader_node *value);

/* A key of a mapping, and what takes its value. */
struct yaml_field {
    const char *name;
    yaml_fields_setter *set;
    bool takes_any; /* else `set` sees texts only */
    bool is_needed;
    size_t offset;       /* in the target, of what `set` writes */
    const void *details; /* what else `set` needs: words, fields, why it is refused */
    size_t detail_count;
};

/* A file, and how it is read. */
struct yaml_fields {
    struct yaml_reader *reader; /* set by yaml_fields_parse */
    const char *manual;         /* the document that lists the keys, for messages */
    void *target;               /* what the setters write to */
    const struct yaml_field *fields;
    size_t field_count;
    yaml_fields_setter *take_key; /* instead of fields: takes each key, and reads its value */
    bool may_be_empty;
    const char *no_mapping; /* the message where the root is no mapping */
    /* Called after the whole file, whose own faults come first: do its keys go together? May be
     * NULL. */
    int (*check)(const struct yaml_fields *yaml);
};

/* Reads the file that a user named, as fs_read_regular does. `what` names it in messages. */
int yaml_fields_load(const char *what, const char *path, size_t cap_bytes, char **ret_data,
                     struct span *ret_text, struct error *err);

/* Reads the one document of a text. Messages begin with FILE:LINE:COLUMN. */
int yaml_fields_parse(struct yaml_fields *yaml, struct span text, const char *file_name,
                      struct error *err);

/* Reads the mapping that has begun at `start` to its end. Returns how many keys it has. */
int yaml_fields_read(const struct yaml_fields *yaml, const struct yaml_reader_node *start,
                     const struct yaml_field *fields, size_t count);

/* For a value that is a mapping or null: 1, it begins there; 0, it is null. */
int yaml_fields_begin(const struct yaml_fields *yaml, const struct yaml_field *field,
                      const struct yaml_reader_node *value);

/* Passes all nodes up to the END to `visit`: a list's items, or the keys of a mapping whose values
 * it reads itself. `what` is as for yaml_reader_next. */
int yaml_fields_each(const struct yaml_fields *yaml, const struct yaml_field *field,
                     const char *what, yaml_fields_setter *visit);

/* Fails if the node is not a text. */
int yaml_fields_check_text(const struct yaml_fields *yaml, const char *name,
                           const struct yaml_reader_node *node);

/* The member of the target that the field sets. */
void *yaml_fields_member(const struct yaml_fields *yaml, const struct yaml_field *field);

/* For tables. They ignore a null. */
yaml_fields_setter yaml_fields_set_switch;  /* a bool */
yaml_fields_setter yaml_fields_set_section; /* a mapping; its fields are the details */
yaml_fields_setter yaml_fields_refuse;      /* whatever it is; the details say why */

/* As yaml_reader_fail. */
#define yaml_fields_fail(yaml, ...) yaml_reader_fail((yaml)->reader, __VA_ARGS__)

/* The same for a text that cannot be the field's: "NAME: 'TEXT' is ..., use ...". */
#define yaml_fields_wrong(yaml, field, value, format, ...)                                         \
    yaml_fields_fail(yaml, value, "%s: '%.80s' " format, (field)->name, (value)->text,             \
                     ##__VA_ARGS__)
