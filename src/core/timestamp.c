#include "core/timestamp.h"

#include <errno.h>
#include <stdbool.h>

#include "core/macros.h"

enum { MINUTE_S = 60, HOUR_S = 3600, DAY_S = 86400 };

/* Exactly `count` digits off the front. */
static bool cut_digits(struct span *text, unsigned count, unsigned *ret_value)
{
    unsigned value = 0;

    if (text->len < count)
        return false;
    for (unsigned i = 0; i < count; i++) {
        char c = text->data[i];

        if (c < '0' || c > '9')
            return false;
        value = value * 10 + (unsigned)(c - '0');
    }
    *text = (struct span){text->data + count, text->len - count};
    *ret_value = value;
    return true;
}

static bool is_leap(unsigned year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static unsigned days_in(unsigned year, unsigned month)
{
    static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    return days[month - 1] + (month == 2 && is_leap(year));
}

/* Days from 1970 to the first of January. */
static int64_t days_before(unsigned year)
{
    int64_t past = (int64_t)year - 1;

    return past * 365 + past / 4 - past / 100 + past / 400 - 719162;
}

static bool count_days(unsigned year, unsigned month, unsigned day, int64_t *ret_days)
{
    if (year == 0 || month < 1 || month > 12 || day < 1 || day > days_in(year, month))
        return false;
    *ret_days = days_before(year) + day - 1;
    for (unsigned m = 1; m < month; m++)
        *ret_days += days_in(year, m);
    return true;
}

static bool cut_date(struct span *text, int64_t *ret_days)
{
    unsigned year, month, day;

    return cut_digits(text, 4, &year) && span_strip_prefix(text, "-") &&
           cut_digits(text, 2, &month) && span_strip_prefix(text, "-") &&
           cut_digits(text, 2, &day) && count_days(year, month, day, ret_days);
}

static bool cut_hour_and_minute(struct span *text, int64_t *ret_s)
{
    unsigned hour, minute;

    if (!cut_digits(text, 2, &hour) || !span_strip_prefix(text, ":") ||
        !cut_digits(text, 2, &minute) || hour > 23 || minute > 59)
        return false;
    *ret_s = (int64_t)hour * HOUR_S + (int64_t)minute * MINUTE_S;
    return true;
}

static bool cut_fraction(struct span *text, unsigned *ret_us)
{
    unsigned scale = (unsigned)(USEC_PER_SEC / 10), digit, us = 0, digits = 0;

    for (; cut_digits(text, 1, &digit); digits++) {
        us += digit * scale;
        scale /= 10;
    }
    *ret_us = us;
    return digits > 0;
}

/* ":SS" and ".fraction", both of which may be missing. */
static bool cut_seconds(struct span *text, unsigned *ret_s, unsigned *ret_us)
{
    *ret_s = 0;
    *ret_us = 0;
    if (!span_strip_prefix(text, ":"))
        return true;
    if (!cut_digits(text, 2, ret_s) || *ret_s > 59)
        return false;
    return !span_strip_prefix(text, ".") || cut_fraction(text, ret_us);
}

static bool cut_offset(struct span *text, int64_t *ret_s)
{
    bool is_west;

    *ret_s = 0;
    if (span_strip_prefix(text, "Z"))
        return true;
    is_west = span_strip_prefix(text, "-");
    if ((!is_west && !span_strip_prefix(text, "+")) || !cut_hour_and_minute(text, ret_s))
        return false;
    if (is_west)
        *ret_s = -*ret_s;
    return true;
}

int timestamp_parse(struct span text, uint64_t *ret_us)
{
    int64_t days, of_day_s, offset_s, t_s;
    unsigned second, us;

    if (!cut_date(&text, &days) || !span_strip_prefix(&text, "T") ||
        !cut_hour_and_minute(&text, &of_day_s) || !cut_seconds(&text, &second, &us) ||
        !cut_offset(&text, &offset_s) || text.len > 0)
        return -EINVAL;
    t_s = days * DAY_S + of_day_s + second - offset_s;
    if (t_s < 0)
        return -ERANGE;
    *ret_us = (uint64_t)t_s * USEC_PER_SEC + us;
    return 0;
}

static bool cut_name(struct span *text, const char *const *names, unsigned count,
                     unsigned *ret_index)
{
    for (unsigned i = 0; i < count; i++)
        if (span_strip_prefix(text, names[i])) {
            *ret_index = i;
            return true;
        }
    return false;
}

static bool cut_http_date(struct span *text, int64_t *ret_days)
{
    static const char *const weekdays[] = {"Mon, ", "Tue, ", "Wed, ", "Thu, ",
                                           "Fri, ", "Sat, ", "Sun, "};
    static const char *const months[] = {" Jan ", " Feb ", " Mar ", " Apr ", " May ", " Jun ",
                                         " Jul ", " Aug ", " Sep ", " Oct ", " Nov ", " Dec "};
    unsigned weekday, year, month, day;

    return cut_name(text, weekdays, ARRAY_SIZE(weekdays), &weekday) && cut_digits(text, 2, &day) &&
           cut_name(text, months, ARRAY_SIZE(months), &month) && cut_digits(text, 4, &year) &&
           count_days(year, month + 1, day, ret_days);
}

int timestamp_parse_http(struct span text, uint64_t *ret_us)
{
    int64_t days, of_day_s;
    unsigned second;

    if (!cut_http_date(&text, &days) || !span_strip_prefix(&text, " ") ||
        !cut_hour_and_minute(&text, &of_day_s) || !span_strip_prefix(&text, ":") ||
        !cut_digits(&text, 2, &second) || second > 59 || !span_equals(text, " GMT"))
        return -EINVAL;
    if (days < 0)
        return -ERANGE;
    *ret_us = (uint64_t)(days * DAY_S + of_day_s + second) * USEC_PER_SEC;
    return 0;
}

struct civil_minute timestamp_minute(uint64_t t_us)
{
    uint64_t t_s = t_us / USEC_PER_SEC, of_day_s = t_s % DAY_S;
    int64_t days = (int64_t)(t_s / DAY_S);
    struct civil_minute civil = {
        .year = 1970 + (unsigned)(days / 366), /* never too late; the loop makes it exact */
        .month = 1,
        .hour = (unsigned)(of_day_s / HOUR_S),
        .minute = (unsigned)(of_day_s % HOUR_S / MINUTE_S),
    };

    while (days_before(civil.year + 1) <= days)
        civil.year++;
    days -= days_before(civil.year);
    while (days >= days_in(civil.year, civil.month))
        days -= days_in(civil.year, civil.month++);
    civil.day = (unsigned)days + 1;
    return civil;
}
