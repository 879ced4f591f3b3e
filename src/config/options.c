#include "config/options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "config/yaml_fields.h"
#include "core/macros.h"
#include "core/parse.h"

/* More than a command line (ARG_MAX) and a config file can hold together. */
enum { STRINGS_CAP_BYTES = 8 << 20 };

const struct options_variable options_variables[] = {
    {"EXPORTER_PORT", "listen-address", ":", "", 1, UINT16_MAX,
     "port of the default listen address"},
    {"SCRAPE_INTERVAL", "process-scan-interval", "", "s", 1, 3600,
     "--process-scan-interval, in whole seconds"},
};
const size_t options_variable_count = ARRAY_SIZE(options_variables);

int options_init(struct options *options, struct error *err)
{
    struct options_flag flag;

    *options = (struct options){0};
    arena_init(&options->strings, STRINGS_CAP_BYTES);
    for (size_t i = 0; options_flag_at(i, &flag); i++) {
        /* Through the setter, so that the default is what --help shows. */
        int r = flag.fallback
                    ? options_set(options, &flag, flag.fallback, OPTIONS_DEFAULT, flag.name, err)
                    : 0;

        if (r < 0) {
            options_done(options);
            return r;
        }
    }
    return 0;
}

void options_done(struct options *options)
{
    if (!options)
        return;
    arena_done(&options->strings);
    *options = (struct options){0};
}

const char *options_flag_word(const struct options_flag *flag, size_t index)
{
    if (flag->list)
        return flag->list(index);
    for (size_t i = 0; i < flag->word_count; i++)
        if (flag->words[i] && index-- == 0)
            return flag->words[i];
    return NULL;
}

bool options_find(struct span name, struct options_flag *ret_flag)
{
    struct options_flag flag;

    for (size_t i = 0; options_flag_at(i, &flag); i++)
        if (span_equals(name, flag.name) || (flag.alias && span_equals(name, flag.alias))) {
            *ret_flag = flag;
            return true;
        }
    return false;
}

enum { NAME_MAX_LEN = 64 };

/* Levenshtein's distance, one row at a time. Both lengths are at most NAME_MAX_LEN. */
static size_t edit_distance(struct span a, struct span b)
{
    size_t row[NAME_MAX_LEN + 1];

    for (size_t j = 0; j <= b.len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t above = row[j];
            size_t replaced = diagonal + (a.data[i - 1] != b.data[j - 1]);

            row[j] = MIN(replaced, MIN(above, row[j - 1]) + 1);
            diagonal = above;
        }
    }
    return row[b.len];
}

void suggest_consider(struct suggestion *best, struct span wanted, const char *candidate)
{
    struct span name = span_of(candidate);
    size_t limit = MAX(wanted.len / 3, (size_t)2), distance;

    /* A name of one letter is near to everything. */
    if (wanted.len > NAME_MAX_LEN || name.len > NAME_MAX_LEN || name.len < 2)
        return;
    distance = edit_distance(wanted, name);
    if (distance <= limit && distance < name.len && (!best->name || distance < best->distance))
        *best = (struct suggestion){candidate, distance};
}

const char *options_suggest(struct span name, unsigned groups, bool only_switches)
{
    struct suggestion best = {0};
    struct options_flag flag;

    for (size_t i = 0; options_flag_at(i, &flag); i++) {
        if (!(groups & 1U << flag.group) || (only_switches && flag.placeholder))
            continue;
        suggest_consider(&best, name, flag.name);
        if (flag.alias)
            suggest_consider(&best, name, flag.alias);
    }
    return best.name;
}

int options_set(struct options *options, const struct options_flag *flag, const char *text,
                enum options_source source, const char *where, struct error *err)
{
    enum options_source *last = &options->sources[flag->index];
    /* The defaults are the first of all and find nothing to start over from. */
    struct options_value value = {text, where, source != *last};
    int r = flag->set(options, flag, &value, err);

    if (r < 0)
        return r;
    *last = source;
    return 0;
}

int options_check(const struct options *options, struct error *err)
{
    bool has_idle = options_is_given(options, "model.idle-watts");
    bool has_full = options_is_given(options, "model.full-watts");
    bool has_price = options_is_given(options, "cost.price");
    bool has_currency = options_is_given(options, "cost.currency");

    if (has_idle != has_full)
        return error_set(err, -EINVAL,
                         "--model.%s-watts is missing: set both --model.idle-watts and "
                         "--model.full-watts, or neither",
                         has_idle ? "full" : "idle");
    if (has_idle && options->model_idle_uw > options->model_full_uw)
        return error_set(err, -EINVAL,
                         "--model.idle-watts is above --model.full-watts: a busy machine draws "
                         "more than an idle one");
    if (options->cost_tariff_path && (has_price || has_currency))
        return error_set(err, -EINVAL,
                         "--cost.tariff-file has its own prices and currency: leave out "
                         "--cost.%s, or the file",
                         has_price ? "price" : "currency");
    if (has_price != has_currency)
        return error_set(err, -EINVAL,
                         "--cost.%s is missing: set both --cost.price and --cost.currency, or "
                         "neither",
                         has_price ? "currency" : "price");
    if (options->emissions_interval_us > 0 && options->emissions_interval_us < USEC_PER_SEC)
        return error_set(err, -EINVAL, "--emissions.interval: less than 1s is too often");
    return 0;
}

bool options_is_given(const struct options *options, const char *name)
{
    struct options_flag flag;

    return options_find(span_of(name), &flag) && options->sources[flag.index] != OPTIONS_DEFAULT;
}

static const char *find_variable(char *const *env, const char *name)
{
    size_t len = strlen(name);

    for (; env && *env; env++)
        if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
            return *env + len + 1;
    return NULL;
}

int options_read_environment(struct options *options, char *const *env, unsigned groups,
                             struct error *err)
{
    for (size_t i = 0; i < options_variable_count; i++) {
        const struct options_variable *variable = &options_variables[i];
        const char *text = find_variable(env, variable->name);
        struct options_flag flag;
        char value[64];
        uint64_t number;
        int r;

        /* Container templates like to pass empty variables for "not set". */
        if (!text || !*text || !options_find(span_of(variable->flag), &flag) ||
            !(groups & 1U << flag.group))
            continue;
        if (parse_u64_max(span_of(text), variable->max, &number) < 0 || number < variable->min)
            return error_set(err, -EINVAL,
                             "environment variable %s: '%.80s' is not a whole number in range; "
                             "use %" PRIu64 " to %" PRIu64 ", or unset it",
                             variable->name, text, variable->min, variable->max);
        snprintf(value, sizeof(value), "%s%" PRIu64 "%s", variable->prefix, number,
                 variable->suffix);
        r = options_set(options, &flag, value, OPTIONS_ENVIRONMENT, variable->name, err);
        if (r < 0)
            return r;
    }
    return 0;
}

enum { FILE_CAP_BYTES = 1 << 20 };

/* Flags about the command line itself make no sense in a file. */
enum {
    KEY_GROUPS =
        ((1 << OPTIONS_GROUP_COUNT) - 1) &
        ~(1 << OPTIONS_GENERAL | 1 << OPTIONS_RECORDING | 1 << OPTIONS_RUNNING | 1 << OPTIONS_FILE |
          1 << OPTIONS_OUTPUT | 1 << OPTIONS_DAEMON | 1 << OPTIONS_SCREEN | 1 << OPTIONS_REPORTING),
};

bool options_flag_is_key(const struct options_flag *flag)
{
    return KEY_GROUPS & 1U << flag->group;
}

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
    if (!options_flag_is_key(&target->flag))
        return yaml_fields_fail(yaml, node, "'%s' works on the command line only; remove it",
                                node->text);
    if (target->options->sources[target->flag.index] == OPTIONS_CONFIG)
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
    if (r == 0 && target->options->sources[target->flag.index] != OPTIONS_CONFIG)
        r = yaml_fields_fail(yaml, &value, "%s is an empty list; add a value or remove the key",
                             target->name);
    return r;
}

int options_parse_file(struct span text, const char *file_name, struct options *options,
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

int options_load_file(const char *path, struct options *options, struct error *err)
{
    _cleanup_free_ char *data = NULL;
    struct span text;
    int r = yaml_fields_load("--config.file", path, FILE_CAP_BYTES, &data, &text, err);

    return r < 0 ? r : options_parse_file(text, path, options, err);
}
