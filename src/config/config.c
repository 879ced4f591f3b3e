#include "config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "core/fs.h"
#include "core/macros.h"
#include "core/yaml_reader.h"

enum { FILE_CAP_BYTES = 1 << 20 };

/* Flags about the command line itself make no sense in a file. */
enum {
    KEY_GROUPS = ((1 << OPTIONS_GROUP_COUNT) - 1) &
                 ~(1 << OPTIONS_GENERAL | 1 << OPTIONS_RECORDING | 1 << OPTIONS_CHECKING),
};

struct reader {
    struct yaml_reader *yaml;
    struct options *options;
    struct error *err;
};

/* A key that is being read: its flag, and the name under which the file has it. */
struct key {
    struct options_flag flag;
    char name[64];
};

/* `what` is what stands there, "the key" or the key's name. */
static int check_text(const struct reader *reader, const struct yaml_reader_node *node,
                      const char *what)
{
    switch (node->kind) {
    case YAML_READER_TEXT:
        return 0;
    case YAML_READER_MAPPING:
        return yaml_reader_fail(reader->yaml, node,
                                "%s is a mapping; the file is flat, one 'flag-name: value' a line",
                                what);
    default:
        return yaml_reader_fail(reader->yaml, node, "%s is a list; give one value", what);
    }
}

static int unknown_key(const struct reader *reader, const struct yaml_reader_node *node)
{
    const char *near = options_suggest(span_of(node->text), KEY_GROUPS, false);

    return yaml_reader_fail(
        reader->yaml, node,
        "unknown key '%.80s'%s%s%s; keys are the flags of 'wattribute --help' without dashes",
        node->text, near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

static int read_key(struct reader *reader, const struct yaml_reader_node *node, struct key *ret_key)
{
    struct options_flag flag;
    int r = check_text(reader, node, "the key");

    if (r < 0)
        return r;
    if (!options_find(span_of(node->text), &flag))
        return unknown_key(reader, node);
    if (!(KEY_GROUPS & 1U << flag.group))
        return yaml_reader_fail(reader->yaml, node,
                                "'%s' can be given on the command line only; remove it",
                                node->text);
    if (options_source_of(reader->options, &flag) == OPTIONS_CONFIG)
        return yaml_reader_fail(reader->yaml, node, "%s is given twice, here as '%s'; keep one",
                                flag.names[0], node->text);
    ret_key->flag = flag;
    snprintf(ret_key->name, sizeof(ret_key->name), "%s", node->text);
    return 0;
}

static int set_text(struct reader *reader, const struct key *key,
                    const struct yaml_reader_node *node)
{
    char place[400], where[480];
    int r = check_text(reader, node, key->name);

    if (r < 0)
        return r;
    yaml_reader_place(reader->yaml, node, place, sizeof(place));
    snprintf(where, sizeof(where), "%s: %s", place, key->name);
    return options_set(reader->options, &key->flag, node->text, OPTIONS_CONFIG, where, reader->err);
}

static int set_list(struct reader *reader, const struct key *key,
                    const struct yaml_reader_node *start)
{
    int r = 0;

    for (size_t count = 0; r >= 0; count++) {
        struct yaml_reader_node node;

        r = yaml_reader_next(reader->yaml, key->name, &node);
        if (r < 0)
            break;
        if (node.kind == YAML_READER_END) {
            if (count > 0)
                return 0;
            return yaml_reader_fail(reader->yaml, start,
                                    "%s is an empty list; give a value or leave the key out",
                                    key->name);
        }
        r = set_text(reader, key, &node);
    }
    return r;
}

static int read_pair(struct reader *reader, const struct yaml_reader_node *key_node)
{
    struct yaml_reader_node value;
    struct key key;
    int r = read_key(reader, key_node, &key);

    if (r < 0)
        return r;
    r = yaml_reader_next(reader->yaml, key.name, &value);
    if (r < 0)
        return r;
    if (value.kind == YAML_READER_LIST && key.flag.repeatable)
        return set_list(reader, &key, &value);
    return set_text(reader, &key, &value);
}

static int read_mapping(struct reader *reader)
{
    int r = 0;

    while (r >= 0) {
        struct yaml_reader_node node;

        r = yaml_reader_next(reader->yaml, "the key", &node);
        if (r < 0)
            break;
        if (node.kind == YAML_READER_END)
            return 0;
        r = read_pair(reader, &node);
    }
    return r;
}

static int read_document(struct reader *reader)
{
    struct yaml_reader_node root;
    int r = yaml_reader_root(reader->yaml, &root);

    if (r < 0 || root.kind == YAML_READER_END)
        return r;
    if (root.kind != YAML_READER_MAPPING)
        return yaml_reader_fail(reader->yaml, &root,
                                "the file is not a mapping; write one 'flag-name: value' a line");
    return read_mapping(reader);
}

int config_parse(struct span text, const char *file_name, struct options *options,
                 struct error *err)
{
    struct reader reader = {.options = options, .err = err};
    int r = yaml_reader_open(text, file_name, err, &reader.yaml);

    if (r == 0)
        r = read_document(&reader);
    if (r == 0)
        r = yaml_reader_finish(reader.yaml);
    yaml_reader_close(reader.yaml);
    return r;
}

int config_load(const char *path, struct options *options, struct error *err)
{
    _cleanup_free_ char *data = NULL;
    size_t len = 0;
    int r = fs_read_regular(path, FILE_CAP_BYTES, &data, &len);

    if (r == -EFBIG)
        return error_set(err, r, "config file %.300s: larger than 1 MiB; is it the right file?",
                         path);
    if (r < 0)
        return error_set(err, r,
                         "config file %.300s: cannot be read: %s; check --config.file and the "
                         "file's permissions",
                         path, fs_strerror(r));
    return config_parse((struct span){data, len}, path, options, err);
}
