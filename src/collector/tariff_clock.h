/*
 * The price of energy over time, by a tariff: which one is in force, since when and until when.
 * Local time is that of localtime_r(), so that nights on which clocks change are right.
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
    uint64_t from_us, until_us; /* real time, as all times here */
    uint64_t since_us;          /* when this tariff was read; 0: at the start */
    const char *path;           /* of its file, which may change; NULL: there is none */
    struct file_stamp stamp;
};

/* Reads the file, and makes its time zone that of the process: before any thread starts. The path
 * must outlive the clock. */
int tariff_clock_open(struct tariff_clock *clock, const char *path, uint64_t now_us,
                      struct error *err);

/* "0.182800 EUR per kWh at 2026-11-16T06:59:30+0100": the price in force and its beginning, in
 * local time, so that a wrong time zone is noticed. */
void tariff_clock_describe(const struct tariff_clock *clock, char text[TARIFF_CLOCK_TEXT_BYTES]);

/* With a tariff that was read, in the time zone of the process. */
void tariff_clock_start(struct tariff_clock *clock, const struct tariff *tariff, uint64_t now_us);

/*
 * Sets every price that came into force since the last call, from its own minute on, however late;
 * also after the clock was set. Returns whether there was one. Windows that end at `now_us` or
 * before can be booked then.
 */
bool tariff_clock_follow(struct tariff_clock *clock, uint64_t now_us, struct pipeline *pipeline);

/* 1: the file has changed, and its prices apply from `now_us` on; 0: it has not; -errno: it has
 * changed and is bad, or has another currency or time zone; the old tariff stays. Once for each
 * change. */
int tariff_clock_check(struct tariff_clock *clock, uint64_t now_us, struct pipeline *pipeline,
                       struct error *err);

/* How long the price stays, unless the clock is set. */
uint64_t tariff_clock_wait_us(const struct tariff_clock *clock, uint64_t now_us);

/* The first minute after `t_us` with another price; at most a day later. */
uint64_t tariff_clock_next_change_us(const struct tariff *tariff, uint64_t t_us);
