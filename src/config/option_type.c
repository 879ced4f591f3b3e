#include "config/option_type.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/macros.h"
#include "core/parse.h"
#include "model/price.h"

/* Values in messages are cut: the advice at the end must survive a value of any length. */
#define VALUE "'%.80s'"

static void *member(struct options *options, const struct options_flag *flag)
{
    return (char *)options + flag->offset;
}

int option_type_duration(struct options *options, const struct options_flag *flag,
                         const struct options_value *value, struct error *err)
{
    uint64_t us;
    int r = parse_duration_us(span_of(value->text), &us);

    if (r == -EINVAL)
        return error_set(err, r,
                         "%s: " VALUE " is not a duration; write a number with a unit, for "
                         "example 250ms, 10s or 1h30m",
                         value->where, value->text);
    if (r == -ERANGE || us < flag->min || us > flag->max) {
        char allowed[64];

        options_describe(flag, allowed, sizeof(allowed));
        return error_set(err, -ERANGE, "%s: " VALUE " is out of range; use %s", value->where,
                         value->text, allowed);
    }
    *(uint64_t *)member(options, flag) = us;
    return 0;
}

static int format_duration(char *text, size_t size_bytes, uint64_t us)
{
    static const struct {
        const char *unit;
        uint64_t us;
    } units[] = {
        {"h", 3600 * USEC_PER_SEC}, {"m", 60 * USEC_PER_SEC}, {"s", USEC_PER_SEC}, {"ms", 1000}};

    if (us == 0)
        return snprintf(text, size_bytes, "0s");
    for (size_t i = 0; i < ARRAY_SIZE(units); i++)
        if (us % units[i].us == 0)
            return snprintf(text, size_bytes, "%" PRIu64 "%s", us / units[i].us, units[i].unit);
    return snprintf(text, size_bytes, "%" PRIu64 "us", us);
}

void option_type_describe_durations(const struct options_flag *flag, char *text, size_t size_bytes)
{
    char min[32], max[32];

    format_duration(min, sizeof(min), flag->min);
    format_duration(max, sizeof(max), flag->max);
    snprintf(text, size_bytes, "%s to %s", min, max);
}

int option_type_count(struct options *options, const struct options_flag *flag,
                      const struct options_value *value, struct error *err)
{
    uint64_t count;

    if (parse_u64_max(span_of(value->text), flag->max, &count) < 0 || count < flag->min) {
        char allowed[64];

        options_describe(flag, allowed, sizeof(allowed));
        return error_set(err, -EINVAL, "%s: " VALUE " is not a whole number in range; use %s",
                         value->where, value->text, allowed);
    }
    *(uint64_t *)member(options, flag) = count;
    return 0;
}

void option_type_describe_counts(const struct options_flag *flag, char *text, size_t size_bytes)
{
    snprintf(text, size_bytes, "%" PRIu64 " to %" PRIu64, flag->min, flag->max);
}

int option_type_decimal(struct options *options, const struct options_flag *flag,
                        const struct options_value *value, struct error *err)
{
    uint64_t millionths;

    if (parse_millionths(span_of(value->text), &millionths) < 0 || millionths < flag->min ||
        millionths > flag->max) {
        char allowed[64];

        options_describe(flag, allowed, sizeof(allowed));
        return error_set(err, -EINVAL,
                         "%s: " VALUE " is not a number in range; use %s, with at most six digits "
                         "behind a point, for example 1.25",
                         value->where, value->text, allowed);
    }
    *(uint64_t *)member(options, flag) = millionths;
    return 0;
}

/* Limits are whole numbers. */
void option_type_describe_decimals(const struct options_flag *flag, char *text, size_t size_bytes)
{
    snprintf(text, size_bytes, "%" PRIu64 " to %" PRIu64, flag->min / 1000000, flag->max / 1000000);
}

static int unknown_word(const struct options_flag *flag, const struct options_value *value,
                        struct error *err)
{
    char allowed[128];

    options_describe(flag, allowed, sizeof(allowed));
    return error_set(err, -EINVAL, "%s: " VALUE " is not known; use %s", value->where, value->text,
                     allowed);
}

int option_type_word(struct options *options, const struct options_flag *flag,
                     const struct options_value *value, struct error *err)
{
    for (const struct option_type_word *word = flag->words; word->text; word++) {
        if (strcmp(word->text, value->text) != 0)
            continue;
        memcpy(member(options, flag), &word->value, sizeof(word->value));
        return 0;
    }
    return unknown_word(flag, value, err);
}

void option_type_describe_words(const struct options_flag *flag, char *text, size_t size_bytes)
{
    const char *names[8];
    size_t count = 0, len = 0;

    for (const struct option_type_word *word = flag->words; word->text; word++)
        if (count < ARRAY_SIZE(names))
            names[count++] = word->text;
    text[0] = '\0';
    for (size_t i = 0; i < count && len < size_bytes; i++) {
        const char *joint = i == 0 ? "" : i + 1 < count ? ", " : " or ";

        len += (size_t)snprintf(text + len, size_bytes - len, "%s%s", joint, names[i]);
    }
}

int option_type_switch(struct options *options, const struct options_flag *flag,
                       const struct options_value *value, struct error *err)
{
    if (parse_bool(span_of(value->text), member(options, flag)) < 0)
        return error_set(err, -EINVAL, "%s: " VALUE " is not known; use true or false",
                         value->where, value->text);
    return 0;
}

static int copy_text(struct options *options, const struct options_flag *flag,
                     const struct options_value *value, const char **ret_copy, struct error *err)
{
    size_t len = strlen(value->text);
    const char *copy;

    if (len == 0)
        return error_set(err, -EINVAL, "%s: is empty; give a value or leave it out", value->where);
    if (len > flag->max)
        return error_set(err, -EINVAL,
                         "%s: " VALUE "... has %zu bytes; at most %" PRIu64 " are allowed",
                         value->where, value->text, len, flag->max);
    copy = arena_copy(&options->strings, value->text, len);
    if (!copy)
        return error_set(err, -ENOMEM, "%s: out of memory", value->where);
    *ret_copy = copy;
    return 0;
}

int option_type_text(struct options *options, const struct options_flag *flag,
                     const struct options_value *value, struct error *err)
{
    return copy_text(options, flag, value, member(options, flag), err);
}

int option_type_socket_path(struct options *options, const struct options_flag *flag,
                            const struct options_value *value, struct error *err)
{
    const char **path = member(options, flag);

    if (value->text[0] == '\0') {
        *path = "";
        return 0;
    }
    if (value->text[0] != '/')
        return error_set(err, -EINVAL,
                         "%s: " VALUE " is not an absolute path; write one, or '' not to ask",
                         value->where, value->text);
    return copy_text(options, flag, value, path, err);
}

int option_type_listen_address(struct options *options, const struct options_flag *flag,
                               const struct options_value *value, struct error *err)
{
    size_t count = value->first ? 0 : options->listen_count;
    int r;

    if (count == OPTIONS_LISTEN_MAX)
        return error_set(err, -E2BIG, "%s: " VALUE " is one too many; give at most %d addresses",
                         value->where, value->text, OPTIONS_LISTEN_MAX);
    r = copy_text(options, flag, value, &options->listen_addresses[count], err);
    if (r < 0)
        return r;
    options->listen_count = count + 1;
    return 0;
}

int option_type_list(struct options *options, const struct options_flag *flag,
                     const struct options_value *value, struct error *err)
{
    struct options_list *list = member(options, flag);
    const char *rest;
    int r = copy_text(options, flag, value, &rest, err);

    if (r < 0)
        return r;
    if (value->first)
        list->count = 0;
    for (char *item = (char *)rest, *comma; item; item = comma) {
        comma = strchr(item, ',');
        if (comma)
            *comma++ = '\0';
        if (*item == '\0')
            return error_set(err, -EINVAL, "%s: " VALUE " has nothing between two commas",
                             value->where, value->text);
        if (list->count == OPTIONS_LIST_MAX)
            return error_set(err, -E2BIG, "%s: " VALUE " is one too many; give at most %d",
                             value->where, item, OPTIONS_LIST_MAX);
        list->items[list->count++] = item;
    }
    return 0;
}

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_metric_name(const char *text)
{
    if (!is_name_start(*text))
        return false;
    for (; *text; text++)
        if (!is_name_start(*text) && (*text < '0' || *text > '9'))
            return false;
    return true;
}

static bool is_one_of(const char *text, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(text, list[i]) == 0)
            return true;
    return false;
}

int option_type_metric_prefix(struct options *options, const struct options_flag *flag,
                              const struct options_value *value, struct error *err)
{
    /* With these the per-process families would take the names of others: gpu_memory_used_bytes,
     * gpu_inference_active, and process_start_time_seconds, which Prometheus gives a meaning. */
    static const char *const taken[] = {"wattribute", "gpu", "gpu_inference", "process"};
    static const char own[] = "wattribute_";
    const char *text = value->text;

    if (*text && (!is_metric_name(text) || text[strlen(text) - 1] == '_'))
        return error_set(err, -EINVAL,
                         "%s: " VALUE " cannot begin a metric's name; use letters, digits and '_', "
                         "with no digit first and no '_' last, for example my_gpu_process",
                         value->where, text);
    if (is_one_of(text, taken, ARRAY_SIZE(taken)) || strncmp(text, own, strlen(own)) == 0)
        return error_set(err, -EINVAL,
                         "%s: " VALUE " would give a metric the name of another; use another "
                         "prefix, for example my_gpu_process",
                         value->where, text);
    return option_type_text(options, flag, value, err);
}

int option_type_metrics_path(struct options *options, const struct options_flag *flag,
                             const struct options_value *value, struct error *err)
{
    static const char *const taken[] = {"/-/healthy", "/-/ready", "/health"};
    const char *text = value->text;

    for (const char *p = text; *p; p++)
        if (text[0] != '/' || *p <= ' ' || *p > '~' || *p == '?' || *p == '#')
            return error_set(err, -EINVAL,
                             "%s: " VALUE " is not the path of a URL; begin with '/' and use "
                             "printable ASCII without blanks, '?' and '#', for example /metrics",
                             value->where, text);
    if (is_one_of(text, taken, ARRAY_SIZE(taken)))
        return error_set(err, -EINVAL,
                         "%s: %s answers health checks; use another path, for example /metrics",
                         value->where, text);
    return option_type_text(options, flag, value, err);
}

int option_type_compat(struct options *options, const struct options_flag *flag,
                       const struct options_value *value, struct error *err)
{
    unsigned before = value->first ? 0 : options->compat;

    for (const struct option_type_word *word = flag->words; word->text; word++)
        if (strcmp(word->text, value->text) == 0) {
            options->compat = before | word->value;
            return 0;
        }
    return unknown_word(flag, value, err);
}

int option_type_currency(struct options *options, const struct options_flag *flag,
                         const struct options_value *value, struct error *err)
{
    if (!price_is_currency(value->text))
        return error_set(err, -EINVAL,
                         "%s: " VALUE " is not the code of a currency; use three capital letters, "
                         "for example EUR",
                         value->where, value->text);
    return option_type_text(options, flag, value, err);
}

int option_type_embodied(struct options *options, const struct options_flag *flag,
                         const struct options_value *value, struct error *err)
{
    struct embodied_rates rates = {0};
    struct span grams = span_of(value->text), meter = span_cut(&grams, '=');
    const struct option_type_word *word = flag->words;
    uint64_t ug;

    if (!value->first)
        rates = options->emissions_embodied;
    while (word->text && !span_equals(meter, word->text))
        word++;
    if (!word->text || parse_millionths(grams, &ug) < 0 || ug > flag->max) {
        char allowed[64];

        options_describe(flag, allowed, sizeof(allowed));
        return error_set(err, -EINVAL,
                         "%s: " VALUE
                         " is not a meter and its grams per hour; use %s, '=' and 0 to "
                         "%" PRIu64 " with at most six digits behind a point, for example gpu=28.5",
                         value->where, value->text, allowed, flag->max / 1000000);
    }
    rates.of[word->value] = (struct embodied_rate){.known = true, .ug_per_hour = ug};
    options->emissions_embodied = rates;
    return 0;
}
