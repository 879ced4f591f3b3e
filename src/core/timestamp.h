/* Time stamps of log lines and of services, in UTC and without the C library's calendar: that one
 * reads files, and knows locales and time zones, which these texts do not have. Pure. */
#pragma once

#include <stdint.h>

#include "core/span.h"

/*
 * RFC 3339 with an offset or "Z", and the form of ISO 8601 without seconds: "2026-01-15T09:30Z".
 * Nothing else: no date alone, no local time, no small letters, no leap second. Digits behind the
 * sixth of a fraction are cut. 0, -EINVAL, or -ERANGE: before 1970.
 */
int timestamp_parse(struct span text, uint64_t *ret_us);

/* As HTTP has them: "Thu, 15 Jan 2026 09:30:00 GMT", and none of the older forms. The day of the
 * week is not compared with the date. 0, -EINVAL or -ERANGE. */
int timestamp_parse_http(struct span text, uint64_t *ret_us);

struct civil_minute {
    unsigned year, month, day, hour, minute; /* UTC */
};

struct civil_minute timestamp_minute(uint64_t t_us);
