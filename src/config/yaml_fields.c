#include "config/yaml_fields.h"

#include <stdint.h>
#include <string.h>

#include "config/options.h"
#include "core/fs.h"
#include "core/parse.h"

int yaml_fields_load(const char *what, const char *path, size_t cap_bytes, char **ret_data,
                     struct span *ret_text, struct error *err)
{
    size_t len = 0, cap_kib = cap_bytes >> 10;
    int r = fs_read_regular(path, cap_bytes, ret_data, &len);

    if (r == -EFBIG)
        return error_set(err, r, "%s %.300s: larger than %zu %s; is it the right file?", what, path,
                         cap_kib < 1024 ? cap_kib : cap_kib / 1024, cap_kib < 1024 ? "KiB" : "MiB");
    if (r < 0)
        return error_set(err, r,
                         "%s %.300s: cannot be read: %s; check the path and the file's permissions",
                         what, path, fs_strerror(r));
    *ret_text = (struct span){*ret_data, len};
    return 0;
}

static int read_root(const struct yaml_fields *yaml)
{
    struct yaml_reader_node root;
    int r = yaml_reader_root(yaml->reader, &root);

    if (r < 0 || (root.kind == YAML_READER_END && yaml->may_be_empty))
        return r;
    if (root.kind != YAML_READER_MAPPING)
        return yaml_fields_fail(yaml, &root, "%s", yaml->no_mapping);
    return yaml->take_key ? yaml_fields_each(yaml, NULL, "the key", yaml->take_key)
                          : yaml_fields_read(yaml, &root, yaml->fields, yaml->field_count);
}

int yaml_fields_parse(struct yaml_fields *yaml, struct span text, const char *file_name,
                      struct error *err)
{
    int r = yaml_reader_open(text, file_name, err, &yaml->reader);

    if (r < 0)
        return r;
    r = read_root(yaml);
    if (r >= 0)
        r = yaml_reader_finish(yaml->reader);
    if (r == 0 && yaml->check)
        r = yaml->check(yaml);
    yaml_reader_close(yaml->reader);
    return r;
}

int yaml_fields_check_text(const struct yaml_fields *yaml, const char *name,
                           const struct yaml_reader_node *node)
{
    return node->kind == YAML_READER_TEXT
               ? 0
               : yaml_fields_fail(yaml, node, "%.80s is a %s; write one value", name,
                                  node->kind == YAML_READER_LIST ? "list" : "mapping");
}

static int find_field(const struct yaml_fields *yaml, const struct yaml_reader_node *key,
                      const struct yaml_field *fields, size_t count, size_t *ret_index)
{
    struct suggestion near = {0};
    int r = yaml_fields_check_text(yaml, "the key", key);

    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(key->text, fields[i].name) == 0) {
            *ret_index = i;
            return 0;
        }
        suggest_consider(&near, span_of(key->text), fields[i].name);
    }
    return yaml_fields_fail(yaml, key, "unknown key '%.80s'%s%s%s; %s lists them", key->text,
                            near.name ? " (did you mean '" : "", near.name ? near.name : "",
                            near.name ? "'?)" : "", yaml->manual);
}

int yaml_fields_read(const struct yaml_fields *yaml, const struct yaml_reader_node *start,
                     const struct yaml_field *fields, size_t count)
{
    uint32_t seen = 0;

    for (;;) {
        struct yaml_reader_node key, value;
        size_t index;
        int r = yaml_reader_next(yaml->reader, "the key", &key);

        if (r < 0)
            return r;
        if (key.kind == YAML_READER_END)
            break;
        r = find_field(yaml, &key, fields, count, &index);
        if (r < 0)
            return r;
        if (seen & 1U << index)
            return yaml_fields_fail(yaml, &key, "%s is given twice; keep one", fields[index].name);
        seen |= 1U << index;
        r = yaml_reader_next(yaml->reader, fields[index].name, &value);
        if (r == 0 && !fields[index].takes_any)
            r = yaml_fields_check_text(yaml, fields[index].name, &value);
        if (r == 0)
            r = fields[index].set(yaml, &fields[index], &value);
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < count; i++)
        if (fields[i].is_needed && !(seen & 1U << i))
            return yaml_fields_fail(yaml, start, "%s is missing; add it", fields[i].name);
    return __builtin_popcount(seen);
}

int yaml_fields_begin(const struct yaml_fields *yaml, const struct yaml_field *field,
                      const struct yaml_reader_node *value)
{
    if (yaml_reader_is_null(value))
        return 0;
    if (value->kind != YAML_READER_MAPPING)
        return yaml_fields_fail(
            yaml, value, "%s is not a mapping; write 'key: value' below it, indented", field->name);
    return 1;
}

int yaml_fields_each(const struct yaml_fields *yaml, const struct yaml_field *field,
                     const char *what, yaml_fields_setter *visit)
{
    for (;;) {
        struct yaml_reader_node node;
        int r = yaml_reader_next(yaml->reader, what, &node);

        if (r < 0 || node.kind == YAML_READER_END)
            return r;
        r = visit(yaml, field, &node);
        if (r < 0)
            return r;
    }
}

void *yaml_fields_member(const struct yaml_fields *yaml, const struct yaml_field *field)
{
    return (char *)yaml->target + field->offset;
}

int yaml_fields_set_switch(const struct yaml_fields *yaml, const struct yaml_field *field,
                           const struct yaml_reader_node *value)
{
    bool *is_on = yaml_fields_member(yaml, field);

    if (yaml_reader_is_null(value) || parse_bool(span_of(value->text), is_on) == 0)
        return 0;
    return yaml_fields_wrong(yaml, field, value, "is neither true nor false");
}

int yaml_fields_set_section(const struct yaml_fields *yaml, const struct yaml_field *field,
                            const struct yaml_reader_node *value)
{
    int r = yaml_fields_begin(yaml, field, value);

    return r > 0 ? yaml_fields_read(yaml, value, field->details, field->detail_count) : r;
}

int yaml_fields_refuse(const struct yaml_fields *yaml, const struct yaml_field *field,
                       const struct yaml_reader_node *value)
{
    return yaml_fields_fail(yaml, value, "%s is not supported: %s", field->name,
                            (const char *)field->details);
}
