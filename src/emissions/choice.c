#include "emissions/choice.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/macros.h"
#include "emissions/zone.h"

#define HOUR_US (3600 * USEC_PER_SEC)

static const uint64_t STALE_US = 2 * HOUR_US, EXPIRED_US = 24 * HOUR_US, STEP_BACK_US = HOUR_US;
enum { STALE_INTERVALS = 3 };

static void append(struct choice *choice, struct choice_entry line)
{
    line.may_count = true;
    if (choice->count < CHOICE_MAX)
        choice->lines[choice->count++] = line;
}

void choice_add_constant(struct choice *choice, const struct price_factor *factor)
{
    append(choice, (struct choice_entry){.factor = *factor});
}

void choice_add_table(struct choice *choice, const struct price_factor *factor)
{
    append(choice, (struct choice_entry){.factor = *factor, .is_table = true});
}

void choice_add_live(struct choice *choice, const struct provider *provider, const char *zone,
                     enum price_basis basis, uint64_t interval_us)
{
    struct choice_entry line = {
        .factor = {.signal = provider->signal, .basis = basis},
        .is_live = true,
        .stale_us = MAX(STALE_INTERVALS * interval_us, STALE_US) + provider->lag_s * USEC_PER_SEC,
    };
    struct price_factor yearly;

    snprintf(line.factor.provider, sizeof(line.factor.provider), "%s", provider->name);
    snprintf(line.factor.zone, sizeof(line.factor.zone), "%s", zone);
    if (zone_yearly(zone_country(provider, zone), "", &yearly, NULL) == 0)
        snprintf(line.country, sizeof(line.country), "%.31s", yearly.zone);
    append(choice, line);
}

int choice_find(const struct choice *choice, struct span provider)
{
    for (size_t i = 0; i < choice->count; i++)
        if (span_equals(provider, choice->lines[i].factor.provider))
            return (int)i;
    return -ENOENT;
}

static bool may_stand_in(const struct choice_entry *line, const struct choice_entry *primary)
{
    enum price_signal signal = line->factor.signal;

    if (line->is_table)
        return true;
    if (signal != PRICE_SIGNAL_UNSTATED && signal != primary->factor.signal)
        return false;
    return !line->country[0] || !primary->country[0] ||
           strcmp(line->country, primary->country) == 0;
}

void choice_prefer(struct choice *choice, size_t index)
{
    struct choice_entry preferred = choice->lines[index];

    for (; index > 0; index--)
        choice->lines[index] = choice->lines[index - 1];
    preferred.may_count = true;
    choice->lines[0] = preferred;
    for (size_t i = 1; i < choice->count; i++)
        choice->lines[i].may_count = may_stand_in(&choice->lines[i], &preferred);
}

bool choice_update(struct choice_entry *line, const struct emission_factor *factor,
                   uint64_t taken_us)
{
    bool is_recent = taken_us - MIN(line->taken_us, taken_us) < EXPIRED_US;

    if (line->factor.known && is_recent && factor->time_us + STEP_BACK_US < line->time_us) {
        choice_fail(line);
        return false;
    }
    line->factor.known = true;
    line->factor.ug_per_kwh = factor->mg_per_kwh * 1000;
    line->time_us = factor->time_us;
    line->taken_us = taken_us;
    line->is_estimated = factor->is_estimated;
    line->is_up = true;
    return true;
}

void choice_fail(struct choice_entry *line)
{
    line->is_up = false;
    line->errors++;
}

static uint64_t since(uint64_t then_us, uint64_t now_us)
{
    return now_us - MIN(then_us, now_us);
}

uint64_t choice_age_us(const struct choice_entry *line, struct choice_now now)
{
    if (!line->is_live)
        return 0;
    return MAX(since(line->time_us, now.real_us), since(line->taken_us, now.monotonic_us));
}

bool choice_is_stale(const struct choice_entry *line, struct choice_now now)
{
    return line->is_live && choice_age_us(line, now) >= line->stale_us;
}

bool choice_is_usable(const struct choice_entry *line, struct choice_now now)
{
    return line->factor.known && choice_age_us(line, now) < EXPIRED_US;
}

size_t choice_in_force(const struct choice *choice, struct choice_now now)
{
    size_t i = 0;

    while (i + 1 < choice->count &&
           !(choice->lines[i].may_count && choice_is_usable(&choice->lines[i], now)))
        i++;
    return i;
}
