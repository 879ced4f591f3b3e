/*
 * The price of energy by a tariff, as time goes by: which one is in force, since when exactly, and
 * until when. Local time is what localtime_r() tells, so that nights on which clocks are changed
 * are right.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "attribution/pipeline.h"
#include "config/file_stamp.h"
#include "core/error.h"
#include "model/price.h"

enum { TARIFF_CLOCK_TEXT_BYTES = 96 };

struct tariff_clock {
    struct tariff tariff;
    struct price_cost cost;     /* the one in force */
    uint64_t from_us, until_us; /* in which it is; all times are real ones */
    uint64_t since_us;          /* when this tariff was read; 0: at the start */
    const char *path;           /* of its file, which may change; NULL: there is none */
    struct file_stamp mark;
};

/* Reads the file, and makes its time zone that of the process: before any thread starts. The path
 * must outlive the clock. */
int tariff_clock_open(const char *path, uint64_t now_us, struct tariff_clock **ret_clock,
                      struct error *err);

/* "0.182800 EUR per kWh at 2026-11-16T06:59:30+0100": the price in force and its beginning, in
 * local time, so that a wrong time zone is noticed. */
void tariff_clock_describe(const struct tariff_clock *clock, char text[TARIFF_CLOCK_TEXT_BYTES]);

/* Accepts NULL. */
void tariff_clock_close(struct tariff_clock *clock);

/* With a tariff that was read, in the time zone of the process. */
void tariff_clock_start(struct tariff_clock *clock, const struct tariff *tariff, uint64_t now_us);

/*
 * Tells the pipeline every price that came into force since the last call, from its own minute on,
 * however late it is; also after the clock was set. Returns whether there was one. Windows that
 * end at `now_us` or before can be booked then.
 */
bool tariff_clock_follow(struct tariff_clock *clock, uint64_t now_us, struct pipeline *pipeline);

/*
 * Looks whether the file has changed. 1: it tells the price from `now_us` on, and the pipeline was
 * told; 0: nothing new; negative errno: it has changed and is bad, or has another currency or time
 * zone, `err` says why; the tariff before stays. That is said once for each change.
 */
int tariff_clock_look(struct tariff_clock *clock, uint64_t now_us, struct pipeline *pipeline,
                      struct error *err);

/* How long there is nothing to follow, unless the clock is set. */
uint64_t tariff_clock_wait_us(const struct tariff_clock *clock, uint64_t now_us);

/* The first minute after `t_us` from which on another price is in force; or a day later, if it is
 * the same until then. */
uint64_t tariff_clock_next_change_us(const struct tariff *tariff, uint64_t t_us);
