#include "app/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "core/fs.h"
#include "core/macros.h"

enum { FILE_CAP_BYTES = 1 << 20 };

/* Flags about the command line itself make no sense in a file. */
enum {
    KEY_GROUPS = ((1 << OPTIONS_GROUP_COUNT) - 1) &
                 ~(1 << OPTIONS_GENERAL | 1 << OPTIONS_RECORDING | 1 << OPTIONS_CHECKING),
};

struct reader {
    yaml_parser_t yaml;
    struct span text;
    const char *file_name;
    struct options *options;
    struct error *err;
};

/* A key that is being read: its flag, and the name under which the file has it. */
struct key {
    const struct options_flag *flag;
    const char *name;
};

#define _cleanup_event_ __attribute__((cleanup(yaml_event_delete)))

/* "FILE:LINE:COLUMN", as editors understand it; libyaml counts from 0, editors from 1. */
static void format_place(const struct reader *reader, yaml_mark_t mark, char *place, size_t size)
{
    snprintf(place, size, "%.300s:%zu:%zu", reader->file_name, mark.line + 1, mark.column + 1);
}

static void complain_at(const struct reader *reader, yaml_mark_t mark, const char *format, ...)
    PRINTF(3, 4);

static void complain_at(const struct reader *reader, yaml_mark_t mark, const char *format, ...)
{
    char place[400], message[512];
    va_list args;

    format_place(reader, mark, place, sizeof(place));
    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    error_set(reader->err, -EINVAL, "%s: %s", place, message);
}

/* A macro, so that analysers, which do not look into variadic functions, know that it fails. */
#define fail_at(...) (complain_at(__VA_ARGS__), -EINVAL)

/* libyaml gives bytes that it cannot decode by their offset, not by a mark. */
static yaml_mark_t mark_of_offset(struct span text, size_t offset)
{
    yaml_mark_t mark = {.index = offset};

    for (size_t i = 0; i < MIN(offset, text.len); i++) {
        mark.column++;
        if (text.data[i] == '\n') {
            mark.line++;
            mark.column = 0;
        }
    }
    return mark;
}

static int next_event(struct reader *reader, yaml_event_t *event)
{
    const yaml_parser_t *yaml = &reader->yaml;
    const char *problem;

    if (yaml_parser_parse(&reader->yaml, event))
        return 0;
    problem = yaml->problem ? yaml->problem : "cannot be parsed";
    switch (yaml->error) {
    case YAML_MEMORY_ERROR:
        return error_set(reader->err, -ENOMEM, "%.300s: out of memory", reader->file_name);
    case YAML_READER_ERROR:
        return fail_at(reader, mark_of_offset(reader->text, yaml->problem_offset),
                       "not UTF-8 text: %s; remove such bytes or save the file as UTF-8", problem);
    default:
        return fail_at(reader, yaml->problem_mark, "not YAML: %s%s%s", problem,
                       yaml->context ? " " : "", yaml->context ? yaml->context : "");
    }
}

static int refuse_decoration(const struct reader *reader, const yaml_event_t *event,
                             const yaml_char_t *anchor, const yaml_char_t *tag)
{
    if (anchor)
        return fail_at(reader, event->start_mark,
                       "anchors (&%.40s) are not supported; write the value where it is used",
                       (const char *)anchor);
    if (tag)
        return fail_at(reader, event->start_mark,
                       "tags (%.80s) are not supported; leave the tag out", (const char *)tag);
    return 0;
}

/* `what` is what stands there, "a key" or the key's name. */
static int check_scalar(const struct reader *reader, const yaml_event_t *event, const char *what)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        /* "\0" in a quoted scalar would cut the value short. */
        if (memchr(event->data.scalar.value, '\0', event->data.scalar.length))
            return fail_at(reader, event->start_mark, "%s holds a NUL character; remove it", what);
        return refuse_decoration(reader, event, event->data.scalar.anchor, event->data.scalar.tag);
    case YAML_ALIAS_EVENT:
        return fail_at(reader, event->start_mark,
                       "aliases (*%.40s) are not supported; write the value out",
                       (const char *)event->data.alias.anchor);
    case YAML_MAPPING_START_EVENT:
        return fail_at(reader, event->start_mark,
                       "%s is a mapping; the file is flat, one 'flag-name: value' a line", what);
    default:
        return fail_at(reader, event->start_mark, "%s is a list; give one value", what);
    }
}

static int unknown_key(const struct reader *reader, const yaml_event_t *event, const char *name)
{
    const char *near = options_suggest(span_of(name), KEY_GROUPS);

    return fail_at(reader, event->start_mark,
                   "unknown key '%.80s'%s%s%s; keys are the flags of 'wattribute --help' without "
                   "dashes",
                   name, near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

static int read_key(struct reader *reader, const yaml_event_t *event, struct key *ret_key)
{
    const struct options_flag *flag;
    const char *name;
    int r = check_scalar(reader, event, "the key");

    if (r < 0)
        return r;
    name = (const char *)event->data.scalar.value;
    flag = options_find(span_of(name));
    if (!flag)
        return unknown_key(reader, event, name);
    if (!(KEY_GROUPS & 1U << flag->group))
        return fail_at(reader, event->start_mark,
                       "'%s' can be given on the command line only; remove it", name);
    if (options_source_of(reader->options, flag) == OPTIONS_CONFIG)
        return fail_at(reader, event->start_mark, "%s is given twice, here as '%s'; keep one",
                       flag->names[0], name);
    *ret_key = (struct key){flag, name};
    return 0;
}

static int set_scalar(struct reader *reader, const struct key *key, const yaml_event_t *event)
{
    char place[400], where[480];
    int r = check_scalar(reader, event, key->name);

    if (r < 0)
        return r;
    format_place(reader, event->start_mark, place, sizeof(place));
    snprintf(where, sizeof(where), "%s: %s", place, key->name);
    return options_set(reader->options, key->flag, (const char *)event->data.scalar.value,
                       OPTIONS_CONFIG, where, reader->err);
}

static int set_list(struct reader *reader, const struct key *key, const yaml_event_t *start)
{
    int r = refuse_decoration(reader, start, start->data.sequence_start.anchor,
                              start->data.sequence_start.tag);

    for (size_t count = 0; r >= 0; count++) {
        _cleanup_event_ yaml_event_t event = {0};

        r = next_event(reader, &event);
        if (r < 0)
            break;
        if (event.type == YAML_SEQUENCE_END_EVENT) {
            if (count > 0)
                return 0;
            return fail_at(reader, start->start_mark,
                           "%s is an empty list; give a value or leave the key out", key->name);
        }
        r = set_scalar(reader, key, &event);
    }
    return r;
}

static int read_pair(struct reader *reader, const yaml_event_t *key_event)
{
    _cleanup_event_ yaml_event_t value = {0};
    struct key key;
    int r = read_key(reader, key_event, &key);

    if (r < 0)
        return r;
    r = next_event(reader, &value);
    if (r < 0)
        return r;
    if (value.type == YAML_SEQUENCE_START_EVENT && key.flag->repeatable)
        return set_list(reader, &key, &value);
    return set_scalar(reader, &key, &value);
}

static int read_mapping(struct reader *reader, const yaml_event_t *start)
{
    int r = refuse_decoration(reader, start, start->data.mapping_start.anchor,
                              start->data.mapping_start.tag);

    while (r >= 0) {
        _cleanup_event_ yaml_event_t event = {0};

        r = next_event(reader, &event);
        if (r < 0)
            break;
        if (event.type == YAML_MAPPING_END_EVENT)
            return 0;
        r = read_pair(reader, &event);
    }
    return r;
}

/* The root of a document: the mapping, or nothing at all, which libyaml gives as an empty scalar.
 */
static int read_document(struct reader *reader)
{
    _cleanup_event_ yaml_event_t event = {0};
    int r = next_event(reader, &event);

    if (r < 0)
        return r;
    if (event.type == YAML_MAPPING_START_EVENT)
        return read_mapping(reader, &event);
    if (event.type == YAML_SCALAR_EVENT && event.data.scalar.length == 0)
        return refuse_decoration(reader, &event, event.data.scalar.anchor, event.data.scalar.tag);
    return fail_at(reader, event.start_mark,
                   "the file is not a mapping; write one 'flag-name: value' a line");
}

static int read_stream(struct reader *reader)
{
    bool seen = false;
    int r = 0;

    while (r >= 0) {
        _cleanup_event_ yaml_event_t event = {0};

        r = next_event(reader, &event);
        if (r < 0)
            break;
        if (event.type == YAML_STREAM_END_EVENT)
            return 0;
        if (event.type != YAML_DOCUMENT_START_EVENT)
            continue;
        if (seen)
            return fail_at(reader, event.start_mark,
                           "a second document begins here; keep one, without '---' in between");
        seen = true;
        r = read_document(reader);
    }
    return r;
}

int config_parse(struct span text, const char *file_name, struct options *options,
                 struct error *err)
{
    struct reader reader = {.text = text, .file_name = file_name, .options = options, .err = err};
    int r;

    if (text.len == 0)
        return 0;
    if (!yaml_parser_initialize(&reader.yaml))
        return error_set(err, -ENOMEM, "%.300s: out of memory", file_name);
    yaml_parser_set_input_string(&reader.yaml, (const unsigned char *)text.data, text.len);
    r = read_stream(&reader);
    yaml_parser_delete(&reader.yaml);
    return r;
}

int config_load(const char *path, struct options *options, struct error *err)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    _cleanup_free_ char *data = NULL;
    size_t len = 0;
    int r = fd < 0 ? -errno : fs_read_fd(fd, FILE_CAP_BYTES, &data, &len);

    if (r == -EFBIG)
        return error_set(err, r, "config file %.300s: larger than 1 MiB; is it the right file?",
                         path);
    if (r < 0)
        return error_set(err, r,
                         "config file %.300s: cannot be read: %s; check --config.file and the "
                         "file's permissions",
                         path, strerror(-r));
    return config_parse((struct span){data, len}, path, options, err);
}
