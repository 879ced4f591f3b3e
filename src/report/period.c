#include "report/period.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/parse.h"

enum { DAY_S = 86400, QUARTER_S = 900, YEAR_MIN = 1971, YEAR_MAX = 2999 };

struct day {
    int year, month, day; /* also beyond the end of a month */
};

static struct day day_of(int64_t t_s)
{
    time_t t = (time_t)t_s;
    struct tm tm = {0};

    localtime_r(&t, &tm);
    return (struct day){tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday};
}

static int compare_days(struct day a, struct day b)
{
    if (a.year != b.year)
        return a.year < b.year ? -1 : 1;
    if (a.month != b.month)
        return a.month < b.month ? -1 : 1;
    return (a.day > b.day) - (a.day < b.day);
}

/* The real day that "the 32nd" is. */
static struct day normalize(struct day day)
{
    struct tm tm = {.tm_year = day.year - 1900,
                    .tm_mon = day.month - 1,
                    .tm_mday = day.day,
                    .tm_hour = 12,
                    .tm_isdst = -1};

    return day_of((int64_t)mktime(&tm));
}

/* When a day begins, which is not midnight where the clocks change then. */
static int64_t begin_of(struct day day)
{
    struct tm tm = {
        .tm_year = day.year - 1900, .tm_mon = day.month - 1, .tm_mday = day.day, .tm_isdst = -1};
    int64_t t_s = (int64_t)mktime(&tm);
    struct day wanted = normalize(day);

    while (compare_days(day_of(t_s), wanted) < 0)
        t_s += QUARTER_S;
    while (compare_days(day_of(t_s - QUARTER_S), wanted) >= 0)
        t_s -= QUARTER_S;
    return t_s;
}

static bool read_digits(struct span text, size_t digits, int *ret)
{
    uint64_t value;

    if (text.len != digits || parse_u64(text, &value) < 0)
        return false;
    *ret = (int)value;
    return true;
}

static bool read_day(struct span text, struct day *ret)
{
    struct span year = span_cut(&text, '-'), month = span_cut(&text, '-');
    struct day day;

    if (!read_digits(year, 4, &day.year) || !read_digits(month, 2, &day.month) ||
        !read_digits(text, 2, &day.day) || day.year < YEAR_MIN || day.year > YEAR_MAX ||
        compare_days(normalize(day), day) != 0)
        return false;
    *ret = day;
    return true;
}

static bool read_days(struct span text, struct day *ret_first, struct day *ret_last)
{
    struct span rest = text, from = span_cut(&rest, '.');

    if (from.len == text.len)
        return read_day(text, ret_first) && read_day(text, ret_last);
    return span_strip_prefix(&rest, ".") && read_day(from, ret_first) && read_day(rest, ret_last);
}

int period_parse(struct span text, int64_t now_s, struct period *ret, struct error *err)
{
    struct day today = day_of(now_s), first, last;
    struct period period;

    if (span_equals(text, "today"))
        first = last = today;
    else if (span_equals(text, "yesterday"))
        first = last = (struct day){today.year, today.month, today.day - 1};
    else if (span_equals(text, "this-month"))
        first = (struct day){today.year, today.month, 1}, last = today;
    else if (span_equals(text, "last-month"))
        first = (struct day){today.year, today.month - 1, 1},
        last = (struct day){today.year, today.month, 0};
    else if (!read_days(text, &first, &last))
        return error_set(err, -EINVAL,
                         "--period: '%.*s' is none; write today, yesterday, this-month, "
                         "last-month, 2026-10-01 or 2026-10-01..2026-10-31",
                         (int)(text.len < 80 ? text.len : 80), text.data);
    period.from_s = begin_of(first);
    period.to_s = begin_of((struct day){last.year, last.month, last.day + 1});
    period.is_running = period.to_s > now_s;
    if (period.to_s <= period.from_s)
        return error_set(err, -EINVAL, "--period: the last day is before the first");
    if (period.to_s - period.from_s > (int64_t)PERIOD_DAYS_MAX * DAY_S)
        return error_set(err, -EINVAL, "--period: more than %d days", PERIOD_DAYS_MAX);
    if (period.is_running)
        period.to_s = now_s;
    if (period.to_s <= period.from_s)
        return error_set(err, -EINVAL, "--period: it is in the future");
    *ret = period;
    return 0;
}

static void put_time(int64_t t_s, const char *format, char text[PERIOD_TITLE_BYTES])
{
    time_t t = (time_t)t_s;
    struct tm tm = {0};

    localtime_r(&t, &tm);
    if (strftime(text, PERIOD_TITLE_BYTES, format, &tm) == 0)
        text[0] = '\0';
}

void period_moment(int64_t t_s, char text[PERIOD_TITLE_BYTES])
{
    put_time(t_s, "%Y-%m-%d %H:%M", text);
}

void period_title(const struct period *period, char text[PERIOD_TITLE_BYTES])
{
    char from[PERIOD_TITLE_BYTES], to[PERIOD_TITLE_BYTES];

    put_time(period->from_s, "%Y-%m-%d %H:%M", from);
    put_time(period->to_s, "%Y-%m-%d %H:%M %Z", to);
    snprintf(text, PERIOD_TITLE_BYTES, "%.24s to %.32s", from, to);
}

static int64_t next_edge(enum period_unit unit, int64_t t_s)
{
    struct day day = day_of(t_s);

    switch (unit) {
    case PERIOD_HOURS:
        return t_s + 3600;
    case PERIOD_DAYS:
        return begin_of((struct day){day.year, day.month, day.day + 1});
    default:
        return begin_of((struct day){day.year, day.month + 1, 1});
    }
}

void period_divide(const struct period *period, struct period_parts *ret)
{
    int64_t length_s = period->to_s - period->from_s;
    int64_t t_s = period->from_s;

    ret->unit = length_s <= (int64_t)2 * DAY_S + 3600 ? PERIOD_HOURS
                : length_s <= (int64_t)93 * DAY_S     ? PERIOD_DAYS
                                                      : PERIOD_MONTHS;
    ret->count = 0;
    ret->edges_s[0] = t_s;
    while (t_s < period->to_s && ret->count < PERIOD_PARTS_MAX) {
        t_s = next_edge(ret->unit, t_s);
        t_s = t_s < period->to_s ? t_s : period->to_s;
        ret->edges_s[++ret->count] = t_s;
    }
    ret->edges_s[ret->count] = period->to_s;
}

size_t period_part_of(const struct period_parts *parts, int64_t t_s)
{
    size_t low = 0, high = parts->count;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (parts->edges_s[middle] < t_s)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void period_part_title(const struct period_parts *parts, size_t index,
                       char text[PERIOD_TITLE_BYTES])
{
    static const char *const formats[] = {"%m-%d %H:%M", "%Y-%m-%d", "%Y-%m"};

    put_time(parts->edges_s[index], formats[parts->unit], text);
}
