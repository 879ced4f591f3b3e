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

/* The key that is being read, and its flag. */
struct target {
    struct options *options;
    struct error *err;
    struct options_flag flag;
    char name[64]; /* as written */
};

static int read_key(const struct yaml_fields *yaml, const struct yaml_reader_node *node)
{
    struct target *target = yaml->target;
    const char *near;
    int r = yaml_fields_check_text(yaml, "the key", node);

    if (r < 0)
        return r;
    if (!options_find(span_of(node->text), &target->flag)) {
        near = options_suggest(span_of(node->text), KEY_GROUPS, false);
        return yaml_fields_fail(
            yaml, node,
            "unknown key '%.80s'%s%s%s; keys are the flags of 'wattribute --help' without dashes",
            node->text, near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
    }
    if (!(KEY_GROUPS & 1U << target->flag.group))
        return yaml_fields_fail(yaml, node, "'%s' works on the command line only; remove it",
                                node->text);
    if (options_source_of(target->options, &target->flag) == OPTIONS_CONFIG)
        return yaml_fields_fail(yaml, node, "%s is given twice, here as '%s'; keep one",
                                target->flag.name, node->text);
    snprintf(target->name, sizeof(target->name), "%s", node->text);
    return 0;
}

static int take_value(const struct yaml_fields *yaml, const struct yaml_field *field,
                      const struct yaml_reader_node *node)
{
    struct target *target = yaml->target;
    char place[400], where[480];
    int r = yaml_fields_check_text(yaml, target->name, node);

    (void)field;
    if (r < 0)
        return r;
    yaml_reader_place(yaml->reader, node, place, sizeof(place));
    snprintf(where, sizeof(where), "%s: %s", place, target->name);
    return options_set(target->options, &target->flag, node->text, OPTIONS_CONFIG, where,
                       target->err);
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
    if (value.kind != YAML_READER_LIST || !target->flag.repeatable)
        return take_value(yaml, field, &value);
    r = yaml_fields_each(yaml, NULL, target->name, take_value);
    if (r == 0 && options_source_of(target->options, &target->flag) != OPTIONS_CONFIG)
        r = yaml_fields_fail(yaml, &value, "%s is an empty list; add a value or remove the key",
                             target->name);
    return r;
}

int config_parse(struct span text, const char *file_name, struct options *options,
                 struct error *err)
{
    struct target target = {.options = options, .err = err};
    struct yaml_fields yaml = {
        .target = &target,
        .take_key = take_pair,
        .may_be_empty = true,
        .no_mapping = "the file is not a mapping; write one 'flag-name: value' a line",
    };

    return yaml_fields_parse(&yaml, text, file_name, err);
}

int config_load(const char *path, struct options *options, struct error *err)
{
    _cleanup_free_ char *data = NULL;
    struct span text;
    int r =
        yaml_fields_load("config file", path, FILE_CAP_BYTES, "--config.file", &data, &text, err);

    return r < 0 ? r : config_parse(text, path, options, err);
}
