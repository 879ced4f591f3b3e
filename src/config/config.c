#include "config/config.h"

#include <stdio.h>

#include "config/yaml_fields.h"
#include "core/macros.h"

enum { FILE_CAP_BYTES = 1 << 20 };

/* Flags about the command line itself make no sense in a file. */
enum {
    KEY_GROUPS = ((1 << OPTIONS_GROUP_COUNT) - 1) &
                 ~(1 << OPTIONS_GENERAL | 1 << OPTIONS_RECORDING | 1 << OPTIONS_CHECKING),
};

/* What is being set, and the key that is being read: its flag, and how the file calls it. */
struct target {
    struct options *options;
    struct error *err;
    struct options_flag flag;
    char name[64];
    size_t item_count; /* of its list */
};

/* `what` is what stands there, "the key" or the key's name. */
static int check_text(const struct yaml_fields *yaml, const struct yaml_reader_node *node,
                      const char *what)
{
    switch (node->kind) {
    case YAML_READER_TEXT:
        return 0;
    case YAML_READER_MAPPING:
        return yaml_fields_fail(
            yaml, node, "%s is a mapping; the file is flat, one 'flag-name: value' a line", what);
    default:
        return yaml_fields_fail(yaml, node, "%s is a list; give one value", what);
    }
}

static int unknown_key(const struct yaml_fields *yaml, const struct yaml_reader_node *node)
{
    const char *near = options_suggest(span_of(node->text), KEY_GROUPS, false);

    return yaml_fields_fail(
        yaml, node,
        "unknown key '%.80s'%s%s%s; keys are the flags of 'wattribute --help' without dashes",
        node->text, near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

static int read_key(const struct yaml_fields *yaml, const struct yaml_reader_node *node)
{
    struct target *target = yaml->target;
    int r = check_text(yaml, node, "the key");

    if (r < 0)
        return r;
    if (!options_find(span_of(node->text), &target->flag))
        return unknown_key(yaml, node);
    if (!(KEY_GROUPS & 1U << target->flag.group))
        return yaml_fields_fail(yaml, node, "'%s' can be given on the command line only; remove it",
                                node->text);
    if (options_source_of(target->options, &target->flag) == OPTIONS_CONFIG)
        return yaml_fields_fail(yaml, node, "%s is given twice, here as '%s'; keep one",
                                target->flag.names[0], node->text);
    snprintf(target->name, sizeof(target->name), "%s", node->text);
    return 0;
}

static int take_value(const struct yaml_fields *yaml, const struct yaml_field *field,
                      const struct yaml_reader_node *node)
{
    struct target *target = yaml->target;
    char place[400], where[480];
    int r = check_text(yaml, node, target->name);

    (void)field;
    if (r < 0)
        return r;
    target->item_count++;
    yaml_reader_place(yaml->reader, node, place, sizeof(place));
    snprintf(where, sizeof(where), "%s: %s", place, target->name);
    return options_set(target->options, &target->flag, node->text, OPTIONS_CONFIG, where,
                       target->err);
}

static int take_list(const struct yaml_fields *yaml, const struct yaml_reader_node *start)
{
    struct target *target = yaml->target;
    int r;

    target->item_count = 0;
    r = yaml_fields_each(yaml, NULL, target->name, take_value);
    return r == 0 && target->item_count == 0
               ? yaml_fields_fail(yaml, start,
                                  "%s is an empty list; give a value or leave the key out",
                                  target->name)
               : r;
}

static int take_pair(const struct yaml_fields *yaml, const struct yaml_field *field,
                     const struct yaml_reader_node *key)
{
    struct target *target = yaml->target;
    struct yaml_reader_node value;
    int r = read_key(yaml, key);

    if (r == 0)
        r = yaml_reader_next(yaml->reader, target->name, &value);
    if (r < 0)
        return r;
    return value.kind == YAML_READER_LIST && target->flag.repeatable
               ? take_list(yaml, &value)
               : take_value(yaml, field, &value);
}

static int read_root(const struct yaml_fields *yaml, const struct yaml_reader_node *root)
{
    if (root->kind == YAML_READER_END)
        return 0;
    if (root->kind != YAML_READER_MAPPING)
        return yaml_fields_fail(yaml, root,
                                "the file is not a mapping; write one 'flag-name: value' a line");
    return yaml_fields_each(yaml, NULL, "the key", take_pair);
}

int config_parse(struct span text, const char *file_name, struct options *options,
                 struct error *err)
{
    struct target target = {.options = options, .err = err};
    struct yaml_fields yaml = {.target = &target};

    return yaml_fields_parse(&yaml, text, file_name, read_root, err);
}

int config_load(const char *path, struct options *options, struct error *err)
{
    _cleanup_free_ char *data = NULL;
    struct span text;
    int r =
        yaml_fields_load("config file", path, FILE_CAP_BYTES, "--config.file", &data, &text, err);

    return r < 0 ? r : config_parse(text, path, options, err);
}
