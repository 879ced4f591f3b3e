/*
 * The fields of a trace's records: each takes the next blank-separated word off the rest of a line.
 * -EBADMSG says what was expected. Pure.
 */
#pragma once

#include <stdint.h>

#include "core/error.h"
#include "core/span.h"
#include "model/batch.h"

/* Bounds of what hardware can say; beyond them a number is corruption, and sums could overflow. */
#define TRACE_TIME_MAX_US    ((uint64_t)1 << 60)
#define TRACE_COUNTER_MAX_MJ ((uint64_t)1 << 50)   /* 700 W for 51 years */
#define TRACE_POWER_MAX_MW   ((uint64_t)100000000) /* 100 kW */
enum { TRACE_LISTED_MAX = 65536 };                 /* processes, workloads */

/* A number of at most `max`. */
int trace_take_u64(struct span *rest, uint64_t max, const char *what, uint64_t *ret_value,
                   struct error *err);
int trace_take_u32(struct span *rest, uint32_t max, const char *what, uint32_t *ret_value,
                   struct error *err);
int trace_take_u16(struct span *rest, uint16_t max, const char *what, uint16_t *ret_value,
                   struct error *err);

/* A word in which blanks, % and control bytes are written %XX; "-" is the empty text. Also
 * -ENOMEM. */
int trace_take_text(struct span *rest, struct batch *batch, const char *what, const char **ret_text,
                    struct error *err);

/* A number that is there or not, behind a name with its "=". */
int trace_take_named(struct span *rest, const char *name, const char *what, bool *ret_has,
                     uint64_t *ret_value, struct error *err);

/* A letter that is there or not, at the end of the line. */
bool trace_take_flag(struct span *rest, const char *letter);
