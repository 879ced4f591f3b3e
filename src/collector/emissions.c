#include "collector/emissions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/emission_keys.h"
#include "core/log.h"
#include "core/macros.h"

static struct choice_now choice_time(const struct emissions *emissions)
{
    const struct clock *clock = emissions->clock;

    return (struct choice_now){clock->realtime_us(clock), clock->monotonic_us(clock)};
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

int emissions_init(struct emissions *emissions, const struct options *options,
                   const struct clock *clock, struct error *err)
{
    int r;

    *emissions = (struct emissions){.clock = clock, .options = options};
    r = emissions_config_read(options, &emissions->config, err);
    if (r == 0)
        (void)emissions_refresh(emissions);
    return r;
}

static bool is_polled(const struct emissions_job *job, const char *provider)
{
    for (size_t i = 0; i < job->count; i++)
        if (strcmp(job->polls[i].provider, provider) == 0)
            return true;
    return false;
}

int emissions_make_job(const struct emissions *emissions, struct emissions_job *ret_job,
                       struct error *err)
{
    const struct options *options = emissions->options;
    const struct emissions_config *config = &emissions->config;
    struct emission_key keys[EMISSION_KEYS_MAX];
    size_t key_count = emission_keys_list(keys);
    struct emissions_job *job = ret_job;
    int r;

    *job = (struct emissions_job){
        .ca_path = or_empty(options->emissions_ca_path),
        .interval_us = options->emissions_interval_us,
        .basis = options->emissions_basis,
        .count = config->poll_count,
    };
    for (size_t i = 0; i < job->count; i++) {
        job->polls[i].provider = config->polls[i].provider->name;
        job->polls[i].zone = config->polls[i].zone;
        job->polls[i].url = or_empty(config->polls[i].url);
    }
    for (size_t i = 0; i < PROXY_VARIABLES; i++)
        job->proxies[i] = or_empty(getenv(proxy_variables[i]));
    r = emission_keys_read(or_empty(options->emissions_keys_path), &job->keys, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < key_count; i++)
        if (!is_polled(job, keys[i].provider))
            explicit_bzero(job->keys.values[i], sizeof(job->keys.values[i]));
    return emissions_config_check_ca(job->ca_path, err);
}

static const char *grams_text(const struct price_factor *factor, char *text, size_t size_bytes)
{
    snprintf(text, size_bytes, "%" PRIu64 ".%03" PRIu64, factor->ug_per_kwh / 1000000,
             factor->ug_per_kwh / 1000 % 1000);
    return text;
}

static bool is_high(const struct price_factor *factor)
{
    return factor->known && factor->ug_per_kwh > (uint64_t)FACTOR_UNUSUAL_MG * 1000;
}

/* An unusual value may be right: it is used, and logged once. */
static void warn_unusual(const char *message, const struct price_factor *factor)
{
    char grams[32];

    log_warn(message, "provider", factor->provider, "zone", factor->zone, "grams_per_kwh",
             grams_text(factor, grams, sizeof(grams)));
}

static const char too_high[] = "an emission factor is higher than almost any grid's";

/* A provider may report any low value; the unit of a value that a user wrote is in doubt. */
static void check_constant(const struct choice *choice)
{
    int index = choice_find(choice, span_of("constant"));
    const struct price_factor *factor = index < 0 ? NULL : &choice->lines[index].factor;

    if (!factor)
        return;
    if (is_high(factor))
        warn_unusual(too_high, factor);
    if (factor->ug_per_kwh > 0 && factor->ug_per_kwh < (uint64_t)FACTOR_LEAST_MG * 1000)
        warn_unusual("an emission factor is lower than almost any grid's; is it in kg? "
                     "--emissions.factor must be in grams per kWh",
                     factor);
}

/* The fetcher has no key for it, or no request to send. */
static bool is_never_polled(int result)
{
    return result == -ENOKEY || result == -EINVAL || result == -EILSEQ;
}

static void log_result(struct emissions *emissions, const struct channel_factor *record)
{
    const char *provider = emissions->config.polls[record->index].provider->name;
    const char *zone = or_empty(emissions->config.polls[record->index].zone);
    bool has_answered = emissions->logged[record->index].has_answered;
    int last_result = emissions->logged[record->index].result;

    emissions->logged[record->index].result = record->result;
    if (record->result < 0 && record->result != last_result) {
        log_warn(is_never_polled(record->result) ? "a provider of emission factors is not polled"
                                                 : "a provider of emission factors fails",
                 "provider", provider, "zone", zone, "error", record->why);
    } else if (record->result == 0 && (!has_answered || last_result < 0)) {
        log_info(has_answered ? "a provider of emission factors is back"
                              : "reading emission factors",
                 "provider", provider, "zone", zone);
        emissions->logged[record->index].has_answered = true;
    }
}

void emissions_take_record(struct emissions *emissions, const struct channel_factor *record)
{
    /* Provider, zone and kind are those of the poll. */
    const struct emission_factor factor = {
        .mg_per_kwh = record->mg_per_kwh,
        .time_us = record->time_us,
        .is_estimated = record->is_estimated,
    };
    struct choice_entry *line;
    bool was_up, was_high, is_taken;

    if (record->index >= emissions->config.poll_count)
        return;
    log_result(emissions, record);
    line = &emissions->config.choice.lines[emissions->config.polls[record->index].line];
    if (record->result < 0) {
        choice_fail(line);
        return;
    }
    was_up = line->is_up;
    was_high = is_high(&line->factor);
    is_taken =
        choice_update(line, &factor, MIN(record->taken_us, choice_time(emissions).monotonic_us));
    if (is_taken && !was_high && is_high(&line->factor))
        warn_unusual(too_high, &line->factor);
    if (!is_taken && was_up)
        log_warn("a provider of emission factors went back in time: the later figure stays",
                 "provider", line->factor.provider, "zone", line->factor.zone);
}

static bool is_same_source(const struct price_factor *a, const struct price_factor *b)
{
    return strcmp(a->provider, b->provider) == 0 && strcmp(a->zone, b->zone) == 0;
}

bool emissions_refresh(struct emissions *emissions)
{
    const struct choice *choice = &emissions->config.choice;
    struct price_factor *in_force = &emissions->in_force;
    const struct choice_now time = choice_time(emissions);
    const struct price_factor *chosen;
    bool has_changed;

    if (choice->count == 0)
        return false;
    chosen = &choice->lines[choice_in_force(choice, time)].factor;
    has_changed = !is_same_source(in_force, chosen) || in_force->ug_per_kwh != chosen->ug_per_kwh ||
                  time.real_us < emissions->since_us;
    *in_force = *chosen;
    if (has_changed)
        emissions->since_us = time.real_us;
    return has_changed;
}

void emissions_code_state(struct emissions *emissions, uint64_t elapsed_us, struct coder *coder)
{
    choice_code(&emissions->config.choice, choice_time(emissions), elapsed_us, coder);
    if (coder_is_unpacking(coder))
        (void)emissions_refresh(emissions);
}

void emissions_announce(struct emissions *emissions)
{
    const struct price_factor *factor = &emissions->in_force;
    char grams[32];

    if (strcmp(emissions->announced, factor->provider) == 0)
        return;
    if (emissions->announced[0] == '\0')
        check_constant(&emissions->config.choice);
    snprintf(emissions->announced, sizeof(emissions->announced), "%s", factor->provider);
    if (emissions->config.poll_count > 0)
        log_info("an emission factor is in force", "provider", factor->provider, "zone",
                 factor->zone, "grams_per_kwh", grams_text(factor, grams, sizeof(grams)));
}

int emissions_describe(const struct emissions *emissions, struct snapshot *snapshot)
{
    const struct choice *choice = &emissions->config.choice;
    const struct choice_now time = choice_time(emissions);
    struct snapshot_factor *rows;

    if (choice->count == 0)
        return 0;
    rows = arena_array(&snapshot->arena, choice->count, sizeof(*rows));
    if (!rows)
        return -ENOMEM;
    for (size_t i = 0; i < choice->count; i++) {
        const struct choice_entry *line = &choice->lines[i];

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
