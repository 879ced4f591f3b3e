#include "collector/tariff_clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/tariff_config.h"
#include "core/macros.h"

static const uint64_t MINUTE_US = 60 * USEC_PER_SEC, DAY_US = 86400 * USEC_PER_SEC;

/* Longer than a window of energy takes until it is booked. */
static const uint64_t LATE_US = 300 * USEC_PER_SEC;

static struct tm local_at(uint64_t t_us)
{
    time_t seconds = (time_t)(t_us / USEC_PER_SEC);
    struct tm local;

    localtime_r(&seconds, &local);
    return local;
}

static uint64_t price_at(const struct tariff *tariff, uint64_t t_us)
{
    struct tm local = local_at(t_us);

    return tariff_price_at(tariff, &local);
}

/* All zones of today differ from UTC by whole minutes. */
uint64_t tariff_clock_next_change_us(const struct tariff *tariff, uint64_t t_us)
{
    uint64_t price = price_at(tariff, t_us), minute = t_us - t_us % MINUTE_US;
    uint64_t end = minute + DAY_US;

    do
        minute += MINUTE_US;
    while (minute < end && price_at(tariff, minute) == price);
    return minute;
}

static void enter_price(struct tariff_clock *clock, uint64_t from_us)
{
    clock->cost.micro_per_kwh = price_at(&clock->tariff, from_us);
    clock->from_us = from_us;
    clock->until_us = tariff_clock_next_change_us(&clock->tariff, from_us);
}

void tariff_clock_start(struct tariff_clock *clock, const struct tariff *tariff, uint64_t now_us)
{
    *clock = (struct tariff_clock){.tariff = *tariff, .cost = {.known = true}};
    memcpy(clock->cost.currency, tariff->currency, sizeof(clock->cost.currency));
    enter_price(clock, now_us);
}

int tariff_clock_open(struct tariff_clock *clock, const char *path, uint64_t now_us,
                      struct error *err)
{
    struct file_stamp stamp = {0};
    struct tariff tariff;
    struct error why;
    int r;

    (void)file_stamp_update(&stamp, path);
    r = tariff_config_load(path, &tariff, err);
    if (r < 0)
        return r;
    r = tariff_config_use_zone(tariff.zone, &why);
    if (r < 0)
        return error_set(err, r, "%.300s: %s", path, why.text);
    tariff_clock_start(clock, &tariff, now_us);
    clock->path = path;
    clock->stamp = stamp;
    return 0;
}

void tariff_clock_describe(const struct tariff_clock *clock, char text[TARIFF_CLOCK_TEXT_BYTES])
{
    struct tm local = local_at(clock->from_us);
    char since[40];

    strftime(since, sizeof(since), "%Y-%m-%dT%H:%M:%S%z", &local);
    snprintf(text, TARIFF_CLOCK_TEXT_BYTES, "%u.%06u %s per kWh at %s",
             (unsigned)(clock->cost.micro_per_kwh / 1000000),
             (unsigned)(clock->cost.micro_per_kwh % 1000000), clock->cost.currency, since);
}

static void set_price(const struct tariff_clock *clock, struct pipeline *pipeline)
{
    const struct price price = {.cost = clock->cost,
                                .pue_millionths = pipeline->price.pue_millionths};

    pipeline_set_price(pipeline, &price, clock->from_us);
}

bool tariff_clock_follow(struct tariff_clock *clock, uint64_t now_us, struct pipeline *pipeline)
{
    /* The clock was set back, or ahead by so much that not every minute in between matters. */
    bool is_new = now_us < clock->from_us || now_us - clock->from_us > 2 * DAY_US;

    if (is_new) {
        /* Again for the time that may still be booked, but not for that of an earlier tariff. */
        clock->since_us = MIN(clock->since_us, now_us);
        enter_price(clock, MAX(now_us - MIN(now_us, LATE_US), clock->since_us));
        set_price(clock, pipeline);
    }
    while (now_us >= clock->until_us) {
        uint64_t before = clock->cost.micro_per_kwh;

        enter_price(clock, clock->until_us);
        if (clock->cost.micro_per_kwh == before)
            continue;
        set_price(clock, pipeline);
        is_new = true;
    }
    return is_new;
}

static const char *zone_text(const struct tariff *tariff)
{
    return tariff->zone[0] ? tariff->zone : "the machine's own";
}

/* Fixed at the start: the currency is a label of counters that go on, and a time zone can only be
 * set while there is one thread. */
static int check_same(const struct tariff_clock *clock, const struct tariff *news,
                      struct error *err)
{
    const struct tariff *old = &clock->tariff;

    if (strcmp(news->currency, old->currency) != 0)
        return error_set(err, -EINVAL,
                         "%.300s: the currency cannot be changed from %s to %s while the exporter "
                         "runs; restart it, or give the prices in %s",
                         clock->path, old->currency, news->currency, old->currency);
    if (strcmp(news->zone, old->zone) != 0)
        return error_set(err, -EINVAL,
                         "%.300s: timezone cannot be changed from %s to %s while the exporter "
                         "runs; restart it",
                         clock->path, zone_text(old), zone_text(news));
    return 0;
}

int tariff_clock_check(struct tariff_clock *clock, uint64_t now_us, struct pipeline *pipeline,
                       struct error *err)
{
    struct tariff tariff;
    int r;

    if (!file_stamp_update(&clock->stamp, clock->path))
        return 0;
    r = tariff_config_load(clock->path, &tariff, err);
    if (r == 0)
        r = check_same(clock, &tariff, err);
    if (r < 0)
        return r;
    (void)tariff_clock_follow(clock, now_us, pipeline); /* the old prices, up to now */
    clock->tariff = tariff;
    clock->since_us = now_us;
    enter_price(clock, now_us);
    set_price(clock, pipeline);
    return 1;
}

uint64_t tariff_clock_wait_us(const struct tariff_clock *clock, uint64_t now_us)
{
    return clock->until_us > now_us ? clock->until_us - now_us : 0;
}
