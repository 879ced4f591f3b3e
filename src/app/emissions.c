#include "app/emissions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/log.h"
#include "core/macros.h"

static struct choice_now now(const struct emissions *emissions)
{
    const struct clock *clock = emissions->clock;

    return (struct choice_now){clock->realtime_us(clock), clock->monotonic_us(clock)};
}

int emissions_init(struct emissions *emissions, const struct options *options,
                   const struct clock *clock, struct error *err)
{
    int r;

    *emissions = (struct emissions){.clock = clock};
    r = emissions_config_read(options, &emissions->config, err);
    if (r == 0)
        (void)emissions_refresh(emissions);
    return r;
}

static const char *grams_text(const struct price_factor *factor, char *text, size_t size_bytes)
{
    snprintf(text, size_bytes, "%" PRIu64 ".%03" PRIu64, factor->ug_per_kwh / 1000000,
             factor->ug_per_kwh / 1000 % 1000);
    return text;
}

/* So that a figure which is right but strange is seen by somebody, once. */
static void look_at(const struct choice_line *line, const struct emission_factor *factor)
{
    char grams[32];
    bool was_unusual =
        line->factor.known && line->factor.ug_per_kwh > (uint64_t)FACTOR_UNUSUAL_MG * 1000;

    if (factor->mg_per_kwh <= FACTOR_UNUSUAL_MG || was_unusual)
        return;
    snprintf(grams, sizeof(grams), "%" PRIu64, factor->mg_per_kwh / 1000);
    log_warn("an emission factor is higher than almost any grid's", "provider",
             line->factor.provider, "zone", line->factor.zone, "grams_per_kwh", grams);
}

static struct choice_line *line_of(struct emissions *emissions, size_t inquiry)
{
    return &emissions->config.choice.lines[emissions->config.inquiries[inquiry].line];
}

void emissions_take(struct emissions *emissions, size_t inquiry,
                    const struct emission_factor *factor, uint64_t taken_us)
{
    struct choice_line *line = line_of(emissions, inquiry);

    look_at(line, factor);
    choice_take(line, factor, taken_us);
}

void emissions_miss(struct emissions *emissions, size_t inquiry)
{
    choice_miss(line_of(emissions, inquiry));
}

static bool is_same_source(const struct price_factor *a, const struct price_factor *b)
{
    return strcmp(a->provider, b->provider) == 0 && strcmp(a->zone, b->zone) == 0;
}

bool emissions_refresh(struct emissions *emissions)
{
    const struct choice *choice = &emissions->config.choice;
    struct price_factor *in_force = &emissions->in_force;
    const struct price_factor *chosen;
    bool is_other, has_changed;
    char grams[32];

    if (choice->count == 0)
        return false;
    chosen = &choice->lines[choice_in_force(choice, now(emissions))].factor;
    is_other = !is_same_source(in_force, chosen);
    has_changed = is_other || in_force->ug_per_kwh != chosen->ug_per_kwh;
    *in_force = *chosen;
    if (is_other && emissions->config.inquiry_count > 0)
        log_info("an emission factor is in force", "provider", chosen->provider, "zone",
                 chosen->zone, "grams_per_kwh", grams_text(chosen, grams, sizeof(grams)));
    return has_changed;
}

int emissions_describe(const struct emissions *emissions, struct snapshot *snapshot)
{
    const struct choice *choice = &emissions->config.choice;
    const struct choice_now time = now(emissions);
    struct snapshot_factor *rows;

    if (choice->count == 0)
        return 0;
    rows = arena_array(&snapshot->arena, choice->count, sizeof(*rows));
    if (!rows)
        return -ENOMEM;
    for (size_t i = 0; i < choice->count; i++) {
        const struct choice_line *line = &choice->lines[i];

        rows[i] = (struct snapshot_factor){
            .factor = line->factor,
            .in_force = is_same_source(&line->factor, &emissions->in_force),
            .is_live = line->is_live,
            .is_stale = choice_is_stale(line, time),
            .is_estimated = line->is_estimated,
            .is_up = line->is_up,
            .age_us = choice_age_us(line, time),
            .errors = line->errors,
        };
        rows[i].factor.known = choice_is_usable(line, time);
    }
    snapshot->factors = rows;
    snapshot->factor_count = choice->count;
    return 0;
}
