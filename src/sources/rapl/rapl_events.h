/*
 * What the kernel says of its `power` PMU, in /sys/bus/event_source/devices/power: parsers of those
 * files. Each takes a whole file, with its newline. Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/span.h"

/* "event=0x02": the number of the event, of 8 bits. 0 or -EINVAL. */
int rapl_parse_event(struct span text, uint8_t *ret_event);

/* Microjoules of one count, as a fraction in its lowest terms: 2^-32 J are 15625 / 2^26. */
struct rapl_scale {
    uint64_t numerator;
    uint64_t denominator;
};

/*
 * "2.3283064365386962890625e-10", in joules. Exactly as it is written: rounded to a double and
 * multiplied with a count that goes on for months, it would drift. 0, -EINVAL, or -ERANGE for a
 * fraction that does not fit.
 */
int rapl_parse_scale(struct span text, struct rapl_scale *ret_scale);

/* Rounded down. 0 or -ERANGE. */
int rapl_scale_apply(const struct rapl_scale *scale, uint64_t counts, uint64_t *ret_uj);

/* "0,24" or "0-3,8". 0, -EINVAL, or -ERANGE when there are more than `max`. An empty list is none.
 */
int rapl_parse_cpus(struct span text, uint32_t *cpus, size_t max, size_t *ret_count);
