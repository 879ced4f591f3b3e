#include "config/tariff_config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "config/time_zone.h"
#include "config/yaml_fields.h"
#include "core/macros.h"
#include "core/parse.h"
#include "model/price.h"

enum { FILE_CAP_BYTES = 64 << 10 };

static const uint64_t MAX_MICRO = (uint64_t)PRICE_COST_MAX * 1000000;

static int set_currency(const struct yaml_fields *yaml, const struct yaml_field *field,
                        const struct yaml_reader_node *value)
{
    struct tariff *tariff = yaml->target;

    if (!price_is_currency(value->text))
        return yaml_fields_wrong(yaml, field, value,
                                 "is not the code of a currency; use three capital letters, for "
                                 "example EUR");
    memcpy(tariff->currency, value->text, sizeof(tariff->currency));
    return 0;
}

static int set_zone(const struct yaml_fields *yaml, const struct yaml_field *field,
                    const struct yaml_reader_node *value)
{
    struct tariff *tariff = yaml->target;

    if (!time_zone_is_name(value->text) || strlen(value->text) >= sizeof(tariff->zone))
        return yaml_fields_wrong(yaml, field, value,
                                 "is not a time zone; use a name such as Europe/Paris, UTC, or an "
                                 "offset such as \"+01:00\"");
    snprintf(tariff->zone, sizeof(tariff->zone), "%s", value->text);
    return 0;
}

static int set_price(const struct yaml_fields *yaml, const struct yaml_field *field,
                     const struct yaml_reader_node *value)
{
    uint64_t *micro = yaml_fields_member(yaml, field);

    if (value->text[0] == '-')
        return yaml_fields_wrong(
            yaml, field, value,
            "is negative, but cost is a counter and cannot fall; use 0 or more");
    if (parse_millionths(span_of(value->text), micro) < 0 || *micro > MAX_MICRO)
        return yaml_fields_wrong(yaml, field, value,
                                 "is not a number in range; use 0 to %d, with at most six digits "
                                 "behind a point, for example 0.2516",
                                 PRICE_COST_MAX);
    return 0;
}

/* What struct tm counts, by name. */
struct calendar {
    const char *const *names;
    unsigned count;
    const char *usage;
};

static const char *const month_names[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                          "jul", "aug", "sep", "oct", "nov", "dec"};
static const char *const day_names[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
static const struct calendar months = {month_names, ARRAY_SIZE(month_names),
                                       "jan to dec, as nov-mar or jan,apr-jun"};
static const struct calendar days = {day_names, ARRAY_SIZE(day_names),
                                     "mon to sun, as mon-fri or sat,sun"};

static unsigned all_of(const struct calendar *calendar)
{
    return (1U << calendar->count) - 1;
}

static bool find_name(const struct calendar *calendar, struct span text, unsigned *ret_index)
{
    while (span_strip_prefix(&text, " "))
        continue;
    while (span_strip_suffix(&text, " "))
        continue;
    for (unsigned i = 0; i < calendar->count; i++)
        if (text.len == strlen(calendar->names[i]) &&
            strncasecmp(text.data, calendar->names[i], text.len) == 0) {
            *ret_index = i;
            return true;
        }
    return false;
}

/* "fri-mon", or one name. */
static bool parse_range(const struct calendar *calendar, struct span text, unsigned *bits)
{
    struct span rest = text, first_name = span_cut(&rest, '-');
    bool is_range = first_name.len < text.len;
    unsigned first, last;

    if (!find_name(calendar, first_name, &first) ||
        !find_name(calendar, is_range ? rest : first_name, &last))
        return false;
    for (unsigned i = first;; i = (i + 1) % calendar->count) {
        *bits |= 1U << i;
        if (i == last)
            return true;
    }
}

static bool parse_ranges(const struct calendar *calendar, struct span rest, unsigned *ret_bits)
{
    unsigned bits = 0;
    bool is_last;

    do {
        size_t len = rest.len;
        struct span range = span_cut(&rest, ',');

        is_last = range.len == len;
        if (!parse_range(calendar, range, &bits))
            return false;
    } while (!is_last);
    *ret_bits = bits;
    return true;
}

static int set_ranges(const struct yaml_fields *yaml, const struct yaml_field *field,
                      const struct yaml_reader_node *value)
{
    const struct calendar *calendar = field->details;

    if (!parse_ranges(calendar, span_of(value->text), yaml_fields_member(yaml, field)))
        return yaml_fields_wrong(yaml, field, value, "is not understood; use %s", calendar->usage);
    return 0;
}

/* "07:00" */
static bool parse_time(struct span text, unsigned max_minute, unsigned *ret_minute)
{
    struct span minutes = text, hours = span_cut(&minutes, ':');
    uint64_t hour, minute;

    if (hours.len != 2 || minutes.len != 2 || parse_u64_max(hours, 24, &hour) < 0 ||
        parse_u64_max(minutes, 59, &minute) < 0 || hour * 60 + minute > max_minute)
        return false;
    *ret_minute = (unsigned)(hour * 60 + minute);
    return true;
}

static int set_time(const struct yaml_fields *yaml, const struct yaml_field *field,
                    const struct yaml_reader_node *value)
{
    const unsigned *max_minute = field->details;

    if (!parse_time(span_of(value->text), *max_minute, yaml_fields_member(yaml, field)))
        return yaml_fields_wrong(yaml, field, value,
                                 "is not a time; use \"00:00\" to \"%02u:%02u\"", *max_minute / 60,
                                 *max_minute % 60);
    return 0;
}

static const unsigned from_max_minute = TARIFF_DAY_MINUTES - 1, to_max_minute = TARIFF_DAY_MINUTES;

#define AT(type, member) .offset = offsetof(struct type, member)

static const struct yaml_field period_fields[] = {
    {.name = "price", .set = set_price, .is_needed = true, AT(tariff_period, micro_per_kwh)},
    {.name = "months", .set = set_ranges, AT(tariff_period, months), .details = &months},
    {.name = "days", .set = set_ranges, AT(tariff_period, days), .details = &days},
    {.name = "from", .set = set_time, AT(tariff_period, from_minute), .details = &from_max_minute},
    {.name = "to", .set = set_time, AT(tariff_period, to_minute), .details = &to_max_minute},
};

static int take_period(const struct yaml_fields *yaml, const struct yaml_field *field,
                       const struct yaml_reader_node *start)
{
    struct tariff *tariff = yaml->target;
    struct tariff_period period = {
        .months = all_of(&months), .days = all_of(&days), .to_minute = TARIFF_DAY_MINUTES};
    struct yaml_fields inner = {yaml->reader, yaml->manual, &period, NULL};
    int r;

    (void)field;
    if (start->kind != YAML_READER_MAPPING)
        return yaml_fields_fail(yaml, start,
                                "not a period; write '- price: ...' with the others below it");
    if (tariff->period_count == TARIFF_PERIODS_MAX)
        return yaml_fields_fail(
            yaml, start, "more than %d periods; join some: months and days take lists and ranges",
            TARIFF_PERIODS_MAX);
    r = yaml_fields_read(&inner, start, period_fields, ARRAY_SIZE(period_fields));
    if (r < 0)
        return r;
    if (period.from_minute == period.to_minute)
        return yaml_fields_fail(yaml, start,
                                "from and to are the same; for the whole day leave both out");
    tariff->periods[tariff->period_count++] = period;
    return 0;
}

static int set_periods(const struct yaml_fields *yaml, const struct yaml_field *field,
                       const struct yaml_reader_node *value)
{
    if (value->kind != YAML_READER_LIST)
        return yaml_fields_fail(yaml, value,
                                "%s is not a list; write '- price: ...' for each, or leave it out",
                                field->name);
    return yaml_fields_each(yaml, field, field->name, take_period);
}

static const struct yaml_field root_fields[] = {
    {.name = "currency", .set = set_currency, .is_needed = true},
    {.name = "timezone", .set = set_zone},
    {.name = "price", .set = set_price, .is_needed = true, AT(tariff, micro_per_kwh)},
    {.name = "periods", .set = set_periods, .takes_any = true},
};

static int read_root(const struct yaml_fields *yaml, const struct yaml_reader_node *root)
{
    if (root->kind != YAML_READER_MAPPING)
        return yaml_fields_fail(
            yaml, root, "not a tariff; write at least two lines, currency: EUR and price: 0.2516");
    return yaml_fields_read(yaml, root, root_fields, ARRAY_SIZE(root_fields));
}

int tariff_config_parse(struct span text, const char *file_name, struct tariff *ret_tariff,
                        struct error *err)
{
    struct tariff tariff = {0};
    struct yaml_fields yaml = {.manual = "docs/emissions.md", .target = &tariff};
    int r = yaml_fields_parse(&yaml, text, file_name, read_root, err);

    if (r == 0)
        *ret_tariff = tariff;
    return r;
}

int tariff_config_load(const char *path, struct tariff *ret_tariff, struct error *err)
{
    _cleanup_free_ char *data = NULL;
    struct span text;
    int r =
        yaml_fields_load("--cost.tariff-file", path, FILE_CAP_BYTES, "the path", &data, &text, err);

    return r < 0 ? r : tariff_config_parse(text, path, ret_tariff, err);
}
