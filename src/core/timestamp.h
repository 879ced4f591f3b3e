/* Timestamps in UTC. Pure: the C library's calendar reads files for time zones. */
#pragma once

#include <stdint.h>

#include "core/span.h"

/*
 * RFC 3339 with an offset or "Z", and the form of ISO 8601 without seconds: "2026-01-15T09:30Z".
 * No date alone, local time, lower case or leap second. Digits of a fraction beyond the sixth are
 * dropped. 0, -EINVAL, or -ERANGE: before 1970.
 */
int timestamp_parse(struct span text, uint64_t *ret_us);

/* An HTTP-date, "Thu, 15 Jan 2026 09:30:00 GMT", and none of the obsolete forms. The day of the
 * week is not compared with the date. Returns as above. */
int timestamp_parse_http(struct span text, uint64_t *ret_us);

struct civil_minute {
    unsigned year, month, day, hour, minute; /* UTC */
};

struct civil_minute timestamp_minute(uint64_t t_us);
