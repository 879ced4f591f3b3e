#include "config/options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "config/options_private.h"
#include "config/suggest.h"
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

bool options_next(struct options_walk *walk)
{
    for (; walk->row < options_row_count; walk->row++, walk->index = 0) {
        const struct options_flag *row = &options_rows[walk->row];

        if (!row->expand && walk->index == 0)
            walk->flag = *row;
        else if (!row->expand || !row->expand(walk->index, &walk->flag))
            continue;
        walk->index++;
        walk->flag.number = walk->count++;
        return true;
    }
    return false;
}

int options_init(struct options *options, struct error *err)
{
    *options = (struct options){0};
    arena_init(&options->strings, STRINGS_CAP_BYTES);
    for (struct options_walk walk = {0}; options_next(&walk);) {
        const struct options_flag *flag = &walk.flag;
        int r;

        if (!flag->fallback)
            continue;
        /* Through the setter, so that the default is what --help says it is. */
        r = options_set(options, flag, flag->fallback, OPTIONS_DEFAULT, flag->names[0], err);
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

bool options_find(struct span name, struct options_flag *ret_flag)
{
    for (struct options_walk walk = {0}; options_next(&walk);)
        for (const char *const *known = walk.flag.names; *known; known++)
            if (span_equals(name, *known)) {
                *ret_flag = walk.flag;
                return true;
            }
    return false;
}

const char *options_suggest(struct span name, unsigned groups, bool only_switches)
{
    struct suggestion best = {0};

    for (struct options_walk walk = {0}; options_next(&walk);) {
        if (!(groups & 1U << walk.flag.group) || (only_switches && walk.flag.placeholder))
            continue;
        for (const char *const *known = walk.flag.names; *known; known++)
            suggest_consider(&best, name, *known);
    }
    return best.name;
}

int options_set(struct options *options, const struct options_flag *flag, const char *text,
                enum options_source source, const char *where, struct error *err)
{
    enum options_source *last = &options->sources[flag->number];
    /* The defaults are the first of all and find nothing to start over from. */
    struct options_value value = {text, where, source != *last};
    int r = flag->set(options, flag, &value, err);

    if (r < 0)
        return r;
    *last = source;
    return 0;
}

enum options_source options_source_of(const struct options *options,
                                      const struct options_flag *flag)
{
    return options->sources[flag->number];
}

int options_check(const struct options *options, struct error *err)
{
    bool has_idle = options_is_given(options, "model.idle-watts");
    bool has_full = options_is_given(options, "model.full-watts");
    bool has_price = options_is_given(options, "cost.price");
    bool has_currency = options_is_given(options, "cost.currency");

    if (has_idle != has_full)
        return error_set(err, -EINVAL,
                         "--model.%s-watts is missing: give both of --model.idle-watts "
                         "and --model.full-watts, or neither",
                         has_idle ? "full" : "idle");
    if (has_idle && options->model_idle_uw > options->model_full_uw)
        return error_set(err, -EINVAL,
                         "--model.idle-watts is more than --model.full-watts: a busy "
                         "machine draws more than one that does nothing");
    if (options->cost_tariff_path && (has_price || has_currency))
        return error_set(err, -EINVAL,
                         "--cost.tariff-file has its own prices and currency: leave out "
                         "--cost.%s, or the file",
                         has_price ? "price" : "currency");
    if (has_price != has_currency)
        return error_set(err, -EINVAL,
                         "--cost.%s is missing: give both of --cost.price and --cost.currency, or "
                         "neither",
                         has_price ? "currency" : "price");
    if (options->emissions_interval_us > 0 && options->emissions_interval_us < USEC_PER_SEC)
        return error_set(err, -EINVAL, "--emissions.interval: less than 1s is too often");
    return 0;
}

bool options_is_given(const struct options *options, const char *name)
{
    struct options_flag flag;

    return options_find(span_of(name), &flag) &&
           options_source_of(options, &flag) != OPTIONS_DEFAULT;
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

void options_describe(const struct options_flag *flag, char *text, size_t size_bytes)
{
    text[0] = '\0';
    if (flag->describe)
        flag->describe(flag, text, size_bytes);
}
