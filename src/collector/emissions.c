#include "collector/emissions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "config/asker_ca.h"
#include "config/asker_keys.h"
#include "core/log.h"
#include "core/macros.h"
#include "process/channel.h"

enum { RECORDS_PER_WAKE = 64 };

static struct choice_now now(const struct emissions *emissions)
{
    const struct clock *clock = emissions->clock;

    return (struct choice_now){clock->realtime_us(clock), clock->monotonic_us(clock)};
}

static uint64_t monotonic_us(const struct emissions *emissions)
{
    return emissions->clock->monotonic_us(emissions->clock);
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

static void write_flags(const struct options *options, const struct emissions_config *config,
                        struct asker_flags *flags)
{
    *flags = (struct asker_flags){
        .ca_path = or_empty(options->emissions_ca_path),
        .interval_us = options->emissions_interval_us,
        .basis = options->emissions_basis,
        .count = config->inquiry_count,
    };
    for (size_t i = 0; i < flags->count; i++) {
        flags->inquiries[i].provider = config->inquiries[i].provider->name;
        flags->inquiries[i].zone = config->inquiries[i].zone;
        flags->inquiries[i].url = or_empty(config->inquiries[i].url);
    }
}

static bool has_keys(const struct emissions *emissions, const struct asker_keys *keys)
{
    struct asker_keys ours = {0};
    bool are_same = emissions->keys_fd >= 0 && asker_keys_unseal(emissions->keys_fd, &ours) == 0 &&
                    memcmp(&ours, keys, sizeof(ours)) == 0;

    asker_keys_wipe(&ours);
    return are_same;
}

/* 1: the file has other keys than before, which the askers to come will have; 0: the same. */
static int read_keys(struct emissions *emissions, struct error *err)
{
    struct asker_keys keys;
    int fd, r = asker_keys_read(emissions->keys_path, &keys, err);

    if (r == 0 && !has_keys(emissions, &keys)) {
        r = asker_keys_seal(&keys, &fd);
        if (r < 0) {
            error_format(err, "cannot keep the keys of emission factors: %s", strerror(-r));
        } else {
            cleanup_close(&emissions->keys_fd);
            emissions->keys_fd = fd;
            r = 1;
        }
    }
    asker_keys_wipe(&keys);
    return r;
}

int emissions_init(struct emissions *emissions, const struct options *options,
                   const struct clock *clock, struct error *err)
{
    int r;

    *emissions = (struct emissions){
        .clock = clock, .keys_path = or_empty(options->emissions_keys_path), .keys_fd = -1};
    r = emissions_config_read(options, &emissions->config, err);
    write_flags(options, &emissions->config, &emissions->flags);
    asker_process_init(&emissions->asker,
                       &(struct asker_process_options){.flags = &emissions->flags,
                                                       .log_level = options->log_level,
                                                       .log_format = options->log_format});
    (void)file_stamp_renew(&emissions->keys_mark, emissions->keys_path);
    if (r == 0 && emissions->flags.count > 0)
        r = read_keys(emissions, err);
    if (r >= 0 && emissions->flags.count > 0)
        r = asker_ca_check(emissions->flags.ca_path, err);
    if (r >= 0)
        (void)emissions_refresh(emissions);
    return MIN(r, 0);
}

int emissions_start(struct emissions *emissions, struct error *err)
{
    if (emissions->flags.count == 0 || emissions->asker.fd >= 0)
        return 0;
    return asker_process_start(&emissions->asker, emissions->keys_fd, monotonic_us(emissions), err);
}

static void take(struct emissions *emissions, const struct channel_factor *record)
{
    const struct emission_factor factor = {
        .mg_per_kwh = record->mg_per_kwh,
        .time_us = record->time_us,
        .is_estimated = record->is_estimated,
    };

    if (record->index >= emissions->config.inquiry_count)
        return;
    if (record->result == 0)
        emissions_take(emissions, record->index, &factor,
                       MIN(record->taken_us, monotonic_us(emissions)));
    else
        emissions_miss(emissions, record->index);
}

void emissions_read(struct emissions *emissions)
{
    struct channel_factor record;
    int r = 0;

    for (int i = 0; i < RECORDS_PER_WAKE && r == 0; i++) {
        r = channel_receive_factor(emissions->asker.fd, &record);
        if (r == 0)
            take(emissions, &record);
    }
    if (r == 0 || r == -EAGAIN)
        return;
    if (r != -ENOTCONN)
        log_error("the asker broke the protocol and is replaced", "error", strerror(-r));
    /* Either it is dying, or it must: SIGCHLD brings the next one. */
    asker_process_kill(&emissions->asker);
    asker_process_close(&emissions->asker);
}

void emissions_look_at_keys(struct emissions *emissions)
{
    struct error err;
    int r;

    if (emissions->flags.count == 0)
        return;
    if (emissions->asker.is_ending) /* since the last look: it is held up */
        asker_process_kill(&emissions->asker);
    if (!file_stamp_renew(&emissions->keys_mark, emissions->keys_path))
        return;
    r = read_keys(emissions, &err);
    if (r < 0)
        log_error("the keys of emission factors have changed and cannot be used; those before stay",
                  "error", err.text);
    if (r <= 0)
        return;
    log_info("the keys of emission factors have changed and are used from now on", "file",
             emissions->keys_path);
    asker_process_replace(&emissions->asker);
}

void emissions_reap(struct emissions *emissions)
{
    bool was_asked_to = emissions->asker.is_ending;
    char how[64];
    int status;

    if (asker_process_reap(&emissions->asker, monotonic_us(emissions), &status) && !was_asked_to)
        log_warn("the process that asks for emission factors ended and is started again; the last "
                 "factors stay",
                 "how", child_describe_end(status, how, sizeof(how)));
}

void emissions_stop(struct emissions *emissions, uint64_t wait_us)
{
    asker_process_stop(&emissions->asker, wait_us);
    cleanup_close(&emissions->keys_fd);
    emissions->keys_fd = -1;
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

/* So that a figure which is right but strange is seen by somebody, once. */
static void warn_of(const char *message, const struct price_factor *factor)
{
    char grams[32];

    log_warn(message, "provider", factor->provider, "zone", factor->zone, "grams_per_kwh",
             grams_text(factor, grams, sizeof(grams)));
}

static void look_at(const struct price_factor *factor)
{
    if (is_high(factor))
        warn_of("an emission factor is higher than almost any grid's", factor);
}

/* What is asked for may be as low as it is; of what somebody wrote the unit is in doubt. */
static void look_at_constant(const struct choice *choice)
{
    int index = choice_find(choice, span_of("constant"));
    const struct price_factor *factor = index < 0 ? NULL : &choice->lines[index].factor;

    if (!factor)
        return;
    look_at(factor);
    if (factor->ug_per_kwh > 0 && factor->ug_per_kwh < (uint64_t)FACTOR_LEAST_MG * 1000)
        warn_of("an emission factor is lower than almost any grid's; is it in kg? "
                "--emissions.factor must be in grams per kWh",
                factor);
}

static struct choice_line *line_of(struct emissions *emissions, size_t inquiry)
{
    return &emissions->config.choice.lines[emissions->config.inquiries[inquiry].line];
}

void emissions_take(struct emissions *emissions, size_t inquiry,
                    const struct emission_factor *factor, uint64_t taken_us)
{
    struct choice_line *line = line_of(emissions, inquiry);
    bool was_up = line->is_up, was_high = is_high(&line->factor);
    bool is_taken = choice_take(line, factor, taken_us);

    if (is_taken && !was_high)
        look_at(&line->factor);
    if (!is_taken && was_up)
        log_warn("a provider of emission factors went back in time: the later figure stays",
                 "provider", line->factor.provider, "zone", line->factor.zone);
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
    const struct choice_now time = now(emissions);
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

void emissions_announce(struct emissions *emissions)
{
    const struct price_factor *factor = &emissions->in_force;
    char grams[32];

    if (strcmp(emissions->announced, factor->provider) == 0)
        return;
    if (emissions->announced[0] == '\0')
        look_at_constant(&emissions->config.choice);
    snprintf(emissions->announced, sizeof(emissions->announced), "%s", factor->provider);
    if (emissions->flags.count > 0)
        log_info("an emission factor is in force", "provider", factor->provider, "zone",
                 factor->zone, "grams_per_kwh", grams_text(factor, grams, sizeof(grams)));
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
