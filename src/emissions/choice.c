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

/* The value of a live line. */
struct choice_value {
    char provider[sizeof(((struct price_factor *)0)->provider)];
    char zone[sizeof(((struct price_factor *)0)->zone)];
    uint64_t ug_per_kwh, time_us, taken_ago_us;
    bool is_estimated;
};

static void code_value(struct choice_value *value, struct coder *coder)
{
    code_array_text(coder, value->provider, sizeof(value->provider));
    code_array_text(coder, value->zone, sizeof(value->zone));
    value->ug_per_kwh = code_u64(coder, value->ug_per_kwh, PRICE_FACTOR_MAX_G * (uint64_t)1000000);
    value->time_us = code_u64(coder, value->time_us, UINT64_MAX);
    value->taken_ago_us = code_u64(coder, value->taken_ago_us, UINT64_MAX);
    value->is_estimated = code_u64(coder, value->is_estimated, 1);
}

static void resume_value(struct choice *choice, struct choice_now now, uint64_t elapsed_us,
                         const struct choice_value *value)
{
    int index = choice_find(choice, span_of(value->provider));
    struct choice_entry *line = index < 0 ? NULL : &choice->lines[index];

    if (!line || !line->is_live || strcmp(line->factor.zone, value->zone) != 0)
        return;
    line->factor.known = true;
    line->factor.ug_per_kwh = value->ug_per_kwh;
    line->time_us = value->time_us;
    /* The monotonic clock cannot tell what was before the machine started: time_us does. */
    line->taken_us = since(value->taken_ago_us, now.monotonic_us);
    line->taken_us = since(elapsed_us, line->taken_us);
    line->is_estimated = value->is_estimated;
}

void choice_code(struct choice *choice, struct choice_now now, uint64_t elapsed_us,
                 struct coder *coder)
{
    size_t count = 0;

    for (size_t i = 0; i < choice->count; i++)
        count += choice->lines[i].is_live && choice->lines[i].factor.known;
    count = code_u64(coder, count, CHOICE_MAX);
    for (size_t i = 0; i < choice->count && !coder_is_unpacking(coder); i++) {
        const struct choice_entry *line = &choice->lines[i];
        struct choice_value value = {
            .ug_per_kwh = line->factor.ug_per_kwh,
            .time_us = line->time_us,
            .taken_ago_us = since(line->taken_us, now.monotonic_us),
            .is_estimated = line->is_estimated,
        };

        if (!line->is_live || !line->factor.known)
            continue;
        memcpy(value.provider, line->factor.provider, sizeof(value.provider));
        memcpy(value.zone, line->factor.zone, sizeof(value.zone));
        code_value(&value, coder);
    }
    for (size_t i = 0; i < count && coder_is_unpacking(coder) && !coder->in.is_broken; i++) {
        struct choice_value value = {0};

        code_value(&value, coder);
        if (!coder->in.is_broken)
            resume_value(choice, now, elapsed_us, &value);
    }
}
