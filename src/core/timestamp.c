#include "core/timestamp.h"

#include <errno.h>
#include <stdbool.h>

#include "core/macros.h"
#include "core/parse.h"

enum { MINUTE_S = 60, HOUR_S = 3600, DAY_S = 86400 };
enum { NAME_LEN = 3 }; /* of months and days of the week */

/* Cuts a pattern off the front: a digit stands for a number of so many digits, which is written to
 * `numbers`, any other character for itself. */
static bool cut_pattern(struct span *text, const char *pattern, unsigned *numbers)
{
    for (; *pattern; pattern++) {
        unsigned digits = parse_is_digit(*pattern) ? (unsigned)(*pattern - '0') : 0, number = 0;

        if (text->len < MAX(digits, 1U) || (digits == 0 && text->data[0] != *pattern))
            return false;
        for (unsigned i = 0; i < digits; i++) {
            if (!parse_is_digit(text->data[i]))
                return false;
            number = number * 10 + (unsigned)(text->data[i] - '0');
        }
        if (digits > 0)
            *numbers++ = number;
        *text = (struct span){text->data + MAX(digits, 1U), text->len - MAX(digits, 1U)};
    }
    return true;
}

/* Days since 1970, in years that begin with March so that leap days come last. */
static int64_t days_of(unsigned year, unsigned month, unsigned day)
{
    int64_t y = (int64_t)year - (month < 3), m = (month + 9) % 12;

    return y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 719469;
}

struct civil_minute timestamp_minute(uint64_t t_us)
{
    uint64_t t_s = t_us / USEC_PER_SEC, of_day_s = t_s % DAY_S;
    int64_t days = (int64_t)(t_s / DAY_S);
    struct civil_minute civil = {
        .year = 1970 + (unsigned)(days / 366), /* never too late; the loops make it exact */
        .month = 1,
        .hour = (unsigned)(of_day_s / HOUR_S),
        .minute = (unsigned)(of_day_s % HOUR_S / MINUTE_S),
    };

    while (days_of(civil.year + 1, 1, 1) <= days)
        civil.year++;
    while (civil.month < 12 && days_of(civil.year, civil.month + 1, 1) <= days)
        civil.month++;
    civil.day = (unsigned)(days - days_of(civil.year, civil.month, 1)) + 1;
    return civil;
}

/* -EINVAL: there is no such time; -ERANGE: before 1970. */
static int civil_to_us(const struct civil_minute *civil, unsigned second, int64_t offset_s,
                       uint64_t *ret_us)
{
    int64_t t_s = days_of(civil->year, civil->month, civil->day) * DAY_S +
                  (int64_t)civil->hour * HOUR_S + (int64_t)civil->minute * MINUTE_S +
                  (int64_t)second - offset_s;
    int64_t month_days = days_of(civil->year + civil->month / 12, civil->month % 12 + 1, 1) -
                         days_of(civil->year, civil->month, 1);

    if (civil->year == 0 || civil->month < 1 || civil->month > 12 || civil->day < 1 ||
        civil->day > month_days || civil->hour > 23 || civil->minute > 59 || second > 59)
        return -EINVAL;
    if (t_s < 0)
        return -ERANGE;
    *ret_us = (uint64_t)t_s * USEC_PER_SEC;
    return 0;
}

static bool cut_fraction(struct span *text, unsigned *ret_us)
{
    unsigned scale = (unsigned)(USEC_PER_SEC / 10), digit, us = 0, digits = 0;

    for (; cut_pattern(text, "1", &digit); digits++) {
        us += digit * scale;
        scale /= 10;
    }
    *ret_us = us;
    return digits > 0;
}

/* "Z", "+HH:MM" or "-HH:MM" */
static bool cut_offset(struct span *text, int64_t *ret_s)
{
    bool is_west = text->len > 0 && text->data[0] == '-';
    unsigned offset[2] = {0};

    if (!cut_pattern(text, "Z", NULL) &&
        (!cut_pattern(text, is_west ? "-2:2" : "+2:2", offset) || offset[0] > 23 || offset[1] > 59))
        return false;
    *ret_s = ((int64_t)offset[0] * HOUR_S + (int64_t)offset[1] * MINUTE_S) * (is_west ? -1 : 1);
    return true;
}

int timestamp_parse(struct span text, uint64_t *ret_us)
{
    unsigned n[5], second = 0, us = 0;
    int64_t offset_s;
    int r;

    if (!cut_pattern(&text, "4-2-2T2:2", n))
        return -EINVAL;
    if (span_strip_prefix(&text, ":") &&
        (!cut_pattern(&text, "2", &second) ||
         (span_strip_prefix(&text, ".") && !cut_fraction(&text, &us))))
        return -EINVAL;
    if (!cut_offset(&text, &offset_s) || text.len > 0)
        return -EINVAL;
    r = civil_to_us(&(struct civil_minute){n[0], n[1], n[2], n[3], n[4]}, second, offset_s, ret_us);
    if (r == 0)
        *ret_us += us;
    return r;
}

static bool cut_name(struct span *text, const char *names, unsigned *ret_number)
{
    for (*ret_number = 1; *names; names += NAME_LEN, ++*ret_number)
        if (text->len >= NAME_LEN && memcmp(text->data, names, NAME_LEN) == 0) {
            *text = (struct span){text->data + NAME_LEN, text->len - NAME_LEN};
            return true;
        }
    return false;
}

int timestamp_parse_http(struct span text, uint64_t *ret_us)
{
    unsigned weekday, day, month, n[4];

    if (!cut_name(&text, "MonTueWedThuFriSatSun", &weekday) || !cut_pattern(&text, ", 2 ", &day) ||
        !cut_name(&text, "JanFebMarAprMayJunJulAugSepOctNovDec", &month) ||
        !cut_pattern(&text, " 4 2:2:2 GMT", n) || text.len > 0)
        return -EINVAL;
    return civil_to_us(&(struct civil_minute){n[0], month, day, n[1], n[2]}, n[3], 0, ret_us);
}
