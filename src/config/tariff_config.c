#include "config/tariff_config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

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

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

enum { OFFSET_HOURS_MAX = 14 }; /* of Kiribati */

/* "07:00" */
static bool parse_clock(struct span text, uint64_t max_hours, unsigned *ret_minutes)
{
    struct span minutes = text, hours = span_cut(&minutes, ':');
    uint64_t hour, minute;

    if (hours.len != 2 || minutes.len != 2 || parse_u64_max(hours, max_hours, &hour) < 0 ||
        parse_u64_max(minutes, 59, &minute) < 0)
        return false;
    *ret_minutes = (unsigned)(hour * 60 + minute);
    return true;
}

/* "+01:00" */
static bool is_offset(const char *text)
{
    struct span offset = span_of(text);
    unsigned ignored;

    return (span_strip_prefix(&offset, "+") || span_strip_prefix(&offset, "-")) &&
           parse_clock(offset, OFFSET_HOURS_MAX, &ignored);
}

/* Neither absolute nor with dots: it stays below its directory. */
static bool is_zone_name(const char *text)
{
    return strspn(text, LETTERS) > 0 && strspn(text, LETTERS "0123456789_+-/") == strlen(text);
}

static int set_zone(const struct yaml_fields *yaml, const struct yaml_field *field,
                    const struct yaml_reader_node *value)
{
    struct tariff *tariff = yaml->target;

    if ((!is_offset(value->text) && !is_zone_name(value->text)) ||
        strlen(value->text) >= sizeof(tariff->zone))
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

static int set_ranges(const struct yaml_fields *yaml, const struct yaml_field *field,
                      const struct yaml_reader_node *value)
{
    const struct calendar *calendar = field->details;
    struct span rest = span_of(value->text);
    unsigned bits = 0;
    bool is_last;

    do {
        size_t len = rest.len;
        struct span range = span_cut(&rest, ',');

        is_last = range.len == len;
        if (!parse_range(calendar, range, &bits))
            return yaml_fields_wrong(yaml, field, value, "is not understood; use %s",
                                     calendar->usage);
    } while (!is_last);
    *(unsigned *)yaml_fields_member(yaml, field) = bits;
    return 0;
}

static int set_time(const struct yaml_fields *yaml, const struct yaml_field *field,
                    const struct yaml_reader_node *value)
{
    const unsigned *max_minute = field->details;
    unsigned minutes;

    if (!parse_clock(span_of(value->text), 24, &minutes) || minutes > *max_minute)
        return yaml_fields_wrong(yaml, field, value,
                                 "is not a time; use \"00:00\" to \"%02u:%02u\"", *max_minute / 60,
                                 *max_minute % 60);
    *(unsigned *)yaml_fields_member(yaml, field) = minutes;
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
    struct tariff_period period = {.months = (1U << ARRAY_SIZE(month_names)) - 1,
                                   .days = (1U << ARRAY_SIZE(day_names)) - 1,
                                   .to_minute = TARIFF_DAY_MINUTES};
    struct yaml_fields inner = {.reader = yaml->reader, .manual = yaml->manual, .target = &period};
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

int tariff_config_parse(struct span text, const char *file_name, struct tariff *ret_tariff,
                        struct error *err)
{
    struct tariff tariff = {0};
    struct yaml_fields yaml = {
        .manual = "docs/emissions.md",
        .target = &tariff,
        .fields = root_fields,
        .field_count = ARRAY_SIZE(root_fields),
        .no_mapping = "not a tariff; write at least two lines, currency: EUR and price: 0.2516",
    };
    int r = yaml_fields_parse(&yaml, text, file_name, err);

    if (r == 0)
        *ret_tariff = tariff;
    return r;
}

int tariff_config_load(const char *path, struct tariff *ret_tariff, struct error *err)
{
    _cleanup_free_ char *data = NULL;
    struct span text;
    int r = yaml_fields_load("--cost.tariff-file", path, FILE_CAP_BYTES, &data, &text, err);

    return r < 0 ? r : tariff_config_parse(text, path, ret_tariff, err);
}

/* As glibc. */
static const char *zone_directory(void)
{
    const char *path = secure_getenv("TZDIR");

    return path && path[0] ? path : "/usr/share/zoneinfo";
}

static bool is_zone_file(const char *name)
{
    static const char magic[] = "TZif";
    char path[PATH_MAX], start[sizeof(magic) - 1];
    int len = snprintf(path, sizeof(path), "%s/%s", zone_directory(), name);
    _cleanup_close_ int fd = -1;

    if (len < 0 || (size_t)len >= sizeof(path))
        return false;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    return fd >= 0 && read(fd, start, sizeof(start)) == (ssize_t)sizeof(start) &&
           memcmp(start, magic, sizeof(start)) == 0;
}

static int unknown_zone(const char *where, const char *name, struct error *err)
{
    return error_set(err, -ENOENT,
                     "%s: there is no time zone '%.80s' in %.200s; check its name (timedatectl "
                     "list-timezones shows them), install tzdata, or write the offset from UTC as "
                     "timezone: \"+01:00\"",
                     where, name, zone_directory());
}

/* TZ may also hold rules, as "CET-1CEST,M3.5.0,M10.5.0/3", and the path of a file. It is a zone's
 * name if it has a '/' before any rule, or no digit: a rule has an offset from UTC. */
static int check_environment(struct error *err)
{
    const char *tz = secure_getenv("TZ");

    if (!tz)
        return 0;
    tz += tz[0] == ':';
    if (strcmp(tz, "UTC") == 0 || strcmp(tz, "GMT") == 0)
        return 0;
    if (is_zone_name(tz) && (strchr(tz, '/') || !strpbrk(tz, "0123456789")) && !is_zone_file(tz))
        return unknown_zone("environment variable TZ", tz, err);
    return 0;
}

int tariff_config_use_zone(const char *name, struct error *err)
{
    char tz[NAME_MAX];
    int r = 0;

    if (name[0] == '\0')
        r = check_environment(err);
    else if (is_offset(name)) /* POSIX counts to the west */
        snprintf(tz, sizeof(tz), "LOCAL%c%s", name[0] == '+' ? '-' : '+', name + 1);
    else if (strcmp(name, "UTC") == 0)
        snprintf(tz, sizeof(tz), "UTC0");
    else if (is_zone_name(name) && is_zone_file(name))
        snprintf(tz, sizeof(tz), "%s", name);
    else
        r = unknown_zone("timezone", name, err);
    if (r == 0 && name[0] && setenv("TZ", tz, 1) < 0)
        r = error_set(err, -errno, "timezone: cannot be set: %s", strerror(errno));
    if (r == 0)
        tzset();
    return r;
}
