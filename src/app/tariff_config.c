#include "app/tariff_config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "app/suggest.h"
#include "app/time_zone.h"
#include "core/fs.h"
#include "core/macros.h"
#include "core/parse.h"
#include "core/yaml_reader.h"
#include "model/price.h"

enum { FILE_CAP_BYTES = 64 << 10 };

static const uint64_t MAX_MICRO = (uint64_t)PRICE_COST_MAX * 1000000;

struct reader {
    struct yaml_reader *yaml;
    struct tariff *tariff;
    struct tariff_period *period; /* the latest */
};

struct field;
typedef int setter(struct reader *reader, const struct field *field,
                   const struct yaml_reader_node *value);

/* A key of a mapping, and what takes its value. */
struct field {
    const char *name;
    setter *set;
    bool is_needed;
};

#define fail(reader, ...) yaml_reader_fail((reader)->yaml, __VA_ARGS__)

static int check_text(const struct reader *reader, const char *name,
                      const struct yaml_reader_node *node)
{
    return node->kind == YAML_READER_TEXT
               ? 0
               : fail(reader, node, "%s is a %s; give one text", name,
                      node->kind == YAML_READER_LIST ? "list" : "mapping");
}

static int find_field(const struct reader *reader, const struct yaml_reader_node *key,
                      const struct field *fields, size_t count, size_t *ret_index)
{
    struct suggestion near = {0};
    int r = check_text(reader, "the key", key);

    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(key->text, fields[i].name) == 0) {
            *ret_index = i;
            return 0;
        }
        suggest_consider(&near, span_of(key->text), fields[i].name);
    }
    return fail(reader, key, "unknown key '%.80s'%s%s%s; docs/emissions.md lists them", key->text,
                near.name ? " (did you mean '" : "", near.name ? near.name : "",
                near.name ? "'?)" : "");
}

/* Of a mapping that begins at `start`. */
static int read_fields(struct reader *reader, const struct yaml_reader_node *start,
                       const struct field *fields, size_t count)
{
    unsigned seen = 0;

    for (;;) {
        struct yaml_reader_node node;
        size_t index;
        int r = yaml_reader_next(reader->yaml, "the key", &node);

        if (r < 0)
            return r;
        if (node.kind == YAML_READER_END)
            break;
        r = find_field(reader, &node, fields, count, &index);
        if (r < 0)
            return r;
        if (seen & 1U << index)
            return fail(reader, &node, "%s is given twice; keep one", fields[index].name);
        seen |= 1U << index;
        r = yaml_reader_next(reader->yaml, fields[index].name, &node);
        if (r == 0)
            r = fields[index].set(reader, &fields[index], &node);
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < count; i++)
        if (fields[i].is_needed && !(seen & 1U << i))
            return fail(reader, start, "%s is missing; add it", fields[i].name);
    return 0;
}

static int set_currency(struct reader *reader, const struct field *field,
                        const struct yaml_reader_node *value)
{
    int r = check_text(reader, field->name, value);

    if (r < 0)
        return r;
    if (!price_is_currency(value->text))
        return fail(reader, value,
                    "%s: '%.80s' is not the code of a currency; use three capital letters, for "
                    "example EUR",
                    field->name, value->text);
    memcpy(reader->tariff->currency, value->text, sizeof(reader->tariff->currency));
    return 0;
}

static int set_zone(struct reader *reader, const struct field *field,
                    const struct yaml_reader_node *value)
{
    int r = check_text(reader, field->name, value);

    if (r < 0)
        return r;
    if (!time_zone_is_name(value->text) || strlen(value->text) >= sizeof(reader->tariff->zone))
        return fail(reader, value,
                    "%s: '%.80s' is not a time zone; use a name such as Europe/Paris, UTC, or an "
                    "offset such as \"+01:00\"",
                    field->name, value->text);
    snprintf(reader->tariff->zone, sizeof(reader->tariff->zone), "%s", value->text);
    return 0;
}

static int read_price(const struct reader *reader, const struct field *field,
                      const struct yaml_reader_node *value, uint64_t *ret_micro)
{
    uint64_t micro;
    int r = check_text(reader, field->name, value);

    if (r < 0)
        return r;
    if (value->text[0] == '-')
        return fail(reader, value,
                    "%s: '%.80s' is negative, but cost is a counter and cannot fall; use 0 or more",
                    field->name, value->text);
    if (parse_millionths(span_of(value->text), &micro) < 0 || micro > MAX_MICRO)
        return fail(reader, value,
                    "%s: '%.80s' is not a number in range; use 0 to %d, with at most six digits "
                    "behind a point, for example 0.2516",
                    field->name, value->text, PRICE_COST_MAX);
    *ret_micro = micro;
    return 0;
}

static int set_price(struct reader *reader, const struct field *field,
                     const struct yaml_reader_node *value)
{
    return read_price(reader, field, value, &reader->tariff->micro_per_kwh);
}

static int set_period_price(struct reader *reader, const struct field *field,
                            const struct yaml_reader_node *value)
{
    return read_price(reader, field, value, &reader->period->micro_per_kwh);
}

/* What struct tm counts, by name. */
struct calendar {
    const char *const *names;
    unsigned count;
};

static const char *const month_names[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                          "jul", "aug", "sep", "oct", "nov", "dec"};
static const char *const day_names[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
static const struct calendar months = {month_names, ARRAY_SIZE(month_names)};
static const struct calendar days = {day_names, ARRAY_SIZE(day_names)};

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

static int set_months(struct reader *reader, const struct field *field,
                      const struct yaml_reader_node *value)
{
    int r = check_text(reader, field->name, value);

    if (r == 0 && !parse_ranges(&months, span_of(value->text), &reader->period->months))
        r = fail(reader, value,
                 "%s: '%.80s' is not understood; use jan to dec, as nov-mar or jan,apr-jun",
                 field->name, value->text);
    return r;
}

static int set_days(struct reader *reader, const struct field *field,
                    const struct yaml_reader_node *value)
{
    int r = check_text(reader, field->name, value);

    if (r == 0 && !parse_ranges(&days, span_of(value->text), &reader->period->days))
        r = fail(reader, value,
                 "%s: '%.80s' is not understood; use mon to sun, as mon-fri or sat,sun",
                 field->name, value->text);
    return r;
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

static int set_from(struct reader *reader, const struct field *field,
                    const struct yaml_reader_node *value)
{
    int r = check_text(reader, field->name, value);

    if (r == 0 &&
        !parse_time(span_of(value->text), TARIFF_DAY_MINUTES - 1, &reader->period->from_minute))
        r = fail(reader, value, "%s: '%.80s' is not a time; use \"00:00\" to \"23:59\"",
                 field->name, value->text);
    return r;
}

static int set_to(struct reader *reader, const struct field *field,
                  const struct yaml_reader_node *value)
{
    int r = check_text(reader, field->name, value);

    if (r == 0 && !parse_time(span_of(value->text), TARIFF_DAY_MINUTES, &reader->period->to_minute))
        r = fail(reader, value, "%s: '%.80s' is not a time; use \"00:00\" to \"24:00\"",
                 field->name, value->text);
    return r;
}

static const struct field period_fields[] = {
    {.name = "price", .set = set_period_price, .is_needed = true},
    {.name = "months", .set = set_months},
    {.name = "days", .set = set_days},
    {.name = "from", .set = set_from},
    {.name = "to", .set = set_to},
};

static int read_period(struct reader *reader, const struct yaml_reader_node *start)
{
    struct tariff *tariff = reader->tariff;
    struct tariff_period *period;
    int r;

    if (start->kind != YAML_READER_MAPPING)
        return fail(reader, start, "not a period; write '- price: ...' with the others below it");
    if (tariff->period_count == TARIFF_PERIODS_MAX)
        return fail(reader, start,
                    "more than %d periods; join some: months and days take lists and ranges",
                    TARIFF_PERIODS_MAX);
    period = reader->period = &tariff->periods[tariff->period_count++];
    *period = (struct tariff_period){
        .months = all_of(&months), .days = all_of(&days), .to_minute = TARIFF_DAY_MINUTES};
    r = read_fields(reader, start, period_fields, ARRAY_SIZE(period_fields));
    if (r == 0 && period->from_minute == period->to_minute)
        r = fail(reader, start, "from and to are the same; for the whole day leave both out");
    return r;
}

static int set_periods(struct reader *reader, const struct field *field,
                       const struct yaml_reader_node *value)
{
    int r = 0;

    if (value->kind != YAML_READER_LIST)
        return fail(reader, value,
                    "%s is not a list; write '- price: ...' for each, or leave it out",
                    field->name);
    while (r == 0) {
        struct yaml_reader_node item;

        r = yaml_reader_next(reader->yaml, field->name, &item);
        if (r < 0 || item.kind == YAML_READER_END)
            break;
        r = read_period(reader, &item);
    }
    return r;
}

static const struct field root_fields[] = {
    {.name = "currency", .set = set_currency, .is_needed = true},
    {.name = "timezone", .set = set_zone},
    {.name = "price", .set = set_price, .is_needed = true},
    {.name = "periods", .set = set_periods},
};

static int read_document(struct reader *reader)
{
    struct yaml_reader_node root;
    int r = yaml_reader_root(reader->yaml, &root);

    if (r < 0)
        return r;
    if (root.kind != YAML_READER_MAPPING)
        return fail(reader, &root,
                    "not a tariff; write at least two lines, currency: EUR and price: 0.2516");
    return read_fields(reader, &root, root_fields, ARRAY_SIZE(root_fields));
}

int tariff_config_parse(struct span text, const char *file_name, struct tariff *ret_tariff,
                        struct error *err)
{
    struct tariff tariff = {0};
    struct reader reader = {.tariff = &tariff};
    int r = yaml_reader_open(text, file_name, err, &reader.yaml);

    if (r == 0)
        r = read_document(&reader);
    if (r == 0)
        r = yaml_reader_finish(reader.yaml);
    yaml_reader_close(reader.yaml);
    if (r == 0)
        *ret_tariff = tariff;
    return r;
}

int tariff_config_load(const char *path, struct tariff *ret_tariff, struct error *err)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    _cleanup_free_ char *data = NULL;
    size_t len = 0;
    int r = fd < 0 ? -errno : fs_read_fd(fd, FILE_CAP_BYTES, &data, &len);

    if (r == -EFBIG)
        return error_set(
            err, r, "--cost.tariff-file %.300s: larger than 64 KiB; is it the right file?", path);
    if (r < 0)
        return error_set(err, r,
                         "--cost.tariff-file %.300s: cannot be read: %s; check the path and the "
                         "file's permissions",
                         path, strerror(-r));
    return tariff_config_parse((struct span){data, len}, path, ret_tariff, err);
}
