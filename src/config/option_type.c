#include "config/option_type.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/macros.h"
#include "core/parse.h"
#include "model/price.h"

/* Values are cut in messages, so that the advice at the end fits. */
#define VALUE "'%.80s'"

static void *flag_member(struct options *options, const struct options_flag *flag)
{
    return (char *)options + flag->offset;
}

static void format_duration(uint64_t us, char *text, size_t size_bytes)
{
    static const struct {
        const char *unit;
        uint64_t us;
    } units[] = {
        {"h", 3600 * USEC_PER_SEC}, {"m", 60 * USEC_PER_SEC}, {"s", USEC_PER_SEC}, {"ms", 1000}};
    size_t i = us == 0 ? 2 : 0;

    while (i + 1 < ARRAY_SIZE(units) && us % units[i].us != 0)
        i++;
    snprintf(text, size_bytes, "%" PRIu64 "%s", us / units[i].us, units[i].unit);
}

const struct option_type_number option_type_duration = {
    parse_duration_us, 0, "a duration",
    "; write a number with a unit, for example 250ms, 10s or 1h30m"};
const struct option_type_number option_type_count = {parse_u64, 1, "a whole number", ""};
const struct option_type_number option_type_decimal = {
    parse_millionths, 1000000, "a number", ", with at most six decimals, for example 1.25"};

void option_type_describe_range(const struct options_flag *flag, char *text, size_t size_bytes)
{
    uint64_t unit = flag->number->unit;
    char min[32], max[32];

    format_duration(flag->min, min, sizeof(min));
    format_duration(flag->max, max, sizeof(max));
    if (unit == 0)
        snprintf(text, size_bytes, "%s to %s", min, max);
    else /* limits are whole numbers */
        snprintf(text, size_bytes, "%" PRIu64 " to %" PRIu64, flag->min / unit, flag->max / unit);
}

int option_type_number(struct options *options, const struct options_flag *flag,
                       const struct options_value *value, struct error *err)
{
    char allowed[64];
    uint64_t number;

    if (flag->number->parse(span_of(value->text), &number) < 0 || number < flag->min ||
        number > flag->max) {
        option_type_describe_range(flag, allowed, sizeof(allowed));
        return error_set(err, -EINVAL, "%s: " VALUE " is not %s from %s%s", value->where,
                         value->text, flag->number->noun, allowed, flag->number->hint);
    }
    *(uint64_t *)flag_member(options, flag) = number;
    return 0;
}

void option_type_describe_words(const struct options_flag *flag, char *text, size_t size_bytes)
{
    size_t len = 0;

    text[0] = '\0';
    for (size_t i = 0; i < flag->word_count && len < size_bytes; i++) {
        const char *joint = len == 0 ? "" : i + 1 < flag->word_count ? ", " : " or ";

        if (flag->words[i])
            len += (size_t)snprintf(text + len, size_bytes - len, "%s%s", joint, flag->words[i]);
    }
}

/* The value that a word stands for; -1: none. */
static int find_word(const struct options_flag *flag, struct span text)
{
    for (size_t i = 0; i < flag->word_count; i++)
        if (flag->words[i] && span_equals(text, flag->words[i]))
            return (int)i;
    return -1;
}

static int unknown_word(const struct options_flag *flag, const struct options_value *value,
                        struct error *err)
{
    char allowed[128];

    option_type_describe_words(flag, allowed, sizeof(allowed));
    return error_set(err, -EINVAL, "%s: " VALUE " is not known; use %s", value->where, value->text,
                     allowed);
}

int option_type_word(struct options *options, const struct options_flag *flag,
                     const struct options_value *value, struct error *err)
{
    int word = find_word(flag, span_of(value->text));

    if (word < 0)
        return unknown_word(flag, value, err);
    *(unsigned *)flag_member(options, flag) = (unsigned)word;
    return 0;
}

int option_type_compat(struct options *options, const struct options_flag *flag,
                       const struct options_value *value, struct error *err)
{
    int bit = find_word(flag, span_of(value->text));

    if (bit < 0)
        return unknown_word(flag, value, err);
    options->compat = (value->first ? 0 : options->compat) | 1U << bit;
    return 0;
}

int option_type_switch(struct options *options, const struct options_flag *flag,
                       const struct options_value *value, struct error *err)
{
    if (parse_bool(span_of(value->text), flag_member(options, flag)) < 0)
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
        return error_set(err, -EINVAL, "%s: is empty; set a value or leave it out", value->where);
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
    return copy_text(options, flag, value, flag_member(options, flag), err);
}

int option_type_absolute_path(struct options *options, const struct options_flag *flag,
                              const struct options_value *value, struct error *err)
{
    const char **path = flag_member(options, flag);

    if (value->text[0] == '\0') {
        *path = "";
        return 0;
    }
    if (value->text[0] != '/')
        return error_set(err, -EINVAL,
                         "%s: " VALUE " is not an absolute path; write one, or '' to disable",
                         value->where, value->text);
    return copy_text(options, flag, value, path, err);
}

int option_type_list(struct options *options, const struct options_flag *flag,
                     const struct options_value *value, struct error *err)
{
    struct options_list *list = flag_member(options, flag);
    const char *rest;
    int r = copy_text(options, flag, value, &rest, err);

    if (r < 0)
        return r;
    if (value->first)
        list->count = 0;
    for (char *item = (char *)rest, *comma; item; item = comma) {
        comma = flag->splits ? strchr(item, ',') : NULL;
        if (comma)
            *comma++ = '\0';
        if (*item == '\0')
            return error_set(err, -EINVAL, "%s: " VALUE " has nothing between two commas",
                             value->where, value->text);
        if (list->count == OPTIONS_LIST_MAX)
            return error_set(err, -E2BIG, "%s: " VALUE " is one too many; at most %d are allowed",
                             value->where, item, OPTIONS_LIST_MAX);
        list->items[list->count++] = item;
    }
    return 0;
}

static bool is_metric_name(const char *text)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

    return *text && !(*text >= '0' && *text <= '9') && text[strspn(text, allowed)] == '\0';
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
    /* With these the per-process metrics would clash with others: gpu_memory_used_bytes,
     * gpu_inference_active, and process_start_time_seconds, which Prometheus defines. */
    static const char *const taken[] = {"wattribute", "gpu", "gpu_inference", "process"};
    static const char own[] = "wattribute_";
    const char *text = value->text;

    if (*text && (!is_metric_name(text) || text[strlen(text) - 1] == '_'))
        return error_set(err, -EINVAL,
                         "%s: " VALUE
                         " is not a prefix of metric names; use letters, digits and '_', "
                         "with no digit first and no '_' last, for example my_gpu_process",
                         value->where, text);
    if (is_one_of(text, taken, ARRAY_SIZE(taken)) || strncmp(text, own, strlen(own)) == 0)
        return error_set(err, -EINVAL,
                         "%s: " VALUE " would clash with the names of other metrics; use another "
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
    if (strncmp(text, "/api/", strlen("/api/")) == 0)
        return error_set(err, -EINVAL,
                         "%s: paths below /api/ are of the API; use another one, for example "
                         "/metrics",
                         value->where);
    return option_type_text(options, flag, value, err);
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

int option_type_gpu_idle(struct options *options, const struct options_flag *flag,
                         const struct options_value *value, struct error *err)
{
    struct gpu_idle_powers *powers = &options->gpu_idle_powers;
    const char *equals = strchr(value->text, '=');
    struct span watts = span_of(equals ? equals + 1 : value->text);
    const char *gpu = "";
    size_t at = 0;
    uint64_t uw;

    if (equals == value->text || parse_millionths(watts, &uw) < 0 || uw > flag->max ||
        uw % 1000 != 0)
        return error_set(err, -EINVAL,
                         "%s: " VALUE " is not WATTS or GPU=WATTS; use watts from 0 to %" PRIu64
                         " with at most three decimals, and a GPU's UUID or index, for example 75 "
                         "or 0=75.5",
                         value->where, value->text, flag->max / 1000000);
    if (equals)
        gpu = arena_copy(&options->strings, value->text, (size_t)(equals - value->text));
    if (!gpu)
        return error_set(err, -ENOMEM, "%s: out of memory", value->where);
    if (value->first)
        powers->count = 0;
    while (at < powers->count && strcmp(powers->items[at].gpu, gpu) != 0)
        at++;
    if (at == GPU_IDLE_POWERS_MAX)
        return error_set(err, -E2BIG, "%s: " VALUE " is one too many; at most %d are allowed",
                         value->where, value->text, GPU_IDLE_POWERS_MAX);
    powers->items[at] = (struct gpu_idle_power){.gpu = gpu, .mw = (uint32_t)(uw / 1000)};
    powers->count = MAX(powers->count, at + 1);
    return 0;
}

int option_type_embodied(struct options *options, const struct options_flag *flag,
                         const struct options_value *value, struct error *err)
{
    struct embodied_rates rates = {0};
    struct span grams = span_of(value->text), meter = span_cut(&grams, '=');
    int kind = find_word(flag, meter);
    uint64_t ug;

    if (!value->first)
        rates = options->emissions_embodied;
    if (kind < 0 || parse_millionths(grams, &ug) < 0 || ug > flag->max) {
        char allowed[64];

        option_type_describe_words(flag, allowed, sizeof(allowed));
        return error_set(err, -EINVAL,
                         "%s: " VALUE " is not METER=GRAMS; use %s, '=' and grams per hour from 0 "
                         "to %" PRIu64 " with at most six decimals, for example gpu=28.5",
                         value->where, value->text, allowed, flag->max / 1000000);
    }
    rates.of[kind] = (struct embodied_rate){.known = true, .ug_per_hour = ug};
    options->emissions_embodied = rates;
    return 0;
}
