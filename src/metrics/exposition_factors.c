/* Emission factors: who says what, how old it is, and which is in force. */
#include "metrics/exposition_parts.h"

typedef void put_value(struct text *text, const struct snapshot_factor *factor);

static void put_labels(struct text *text, const struct price_factor *factor)
{
    text_label(text, "provider", factor->provider);
    text_label(text, "zone", factor->zone);
    text_label(text, "signal", price_signal_words[factor->signal]);
    text_label(text, "basis", price_basis_words[factor->basis]);
}

/* A row for each that has a figure. */
static void of_known(struct text *text, const struct snapshot *snapshot, enum metric metric,
                     bool live_only, put_value *put)
{
    text_family(text, metric);
    for (size_t i = 0; i < snapshot->factor_count; i++) {
        const struct snapshot_factor *factor = &snapshot->factors[i];

        if (!factor->factor.known || (live_only && !factor->is_live))
            continue;
        text_sample(text);
        put_labels(text, &factor->factor);
        put(text, factor);
    }
}

/* And for each that is asked. */
static void of_asked(struct text *text, const struct snapshot *snapshot, enum metric metric,
                     put_value *put)
{
    text_family(text, metric);
    for (size_t i = 0; i < snapshot->factor_count; i++) {
        const struct snapshot_factor *factor = &snapshot->factors[i];

        if (!factor->is_live)
            continue;
        text_sample(text);
        text_label(text, "provider", factor->factor.provider);
        text_label(text, "zone", factor->factor.zone);
        put(text, factor);
    }
}

static void put_grams(struct text *text, const struct snapshot_factor *factor)
{
    text_value(text, (int64_t)factor->factor.ug_per_kwh, MICRO);
}

static void put_in_force(struct text *text, const struct snapshot_factor *factor)
{
    text_value(text, factor->in_force, WHOLE);
}

static void put_stale(struct text *text, const struct snapshot_factor *factor)
{
    text_value(text, factor->is_stale, WHOLE);
}

static void put_estimated(struct text *text, const struct snapshot_factor *factor)
{
    text_value(text, factor->is_estimated, WHOLE);
}

static void put_age(struct text *text, const struct snapshot_factor *factor)
{
    text_value(text, (int64_t)factor->age_us, MICRO);
}

static void put_up(struct text *text, const struct snapshot_factor *factor)
{
    text_value(text, factor->is_up, WHOLE);
}

static void put_errors(struct text *text, const struct snapshot_factor *factor)
{
    text_value(text, (int64_t)factor->errors, WHOLE);
}

static bool has_live(const struct snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->factor_count; i++)
        if (snapshot->factors[i].is_live)
            return true;
    return false;
}

void exposition_factors(struct text *text, const struct snapshot *snapshot)
{
    if (snapshot->factor_count == 0)
        return;
    of_known(text, snapshot, METRIC_EMISSION_FACTOR, false, put_grams);
    of_known(text, snapshot, METRIC_EMISSION_FACTOR_IN_FORCE, false, put_in_force);
    if (!has_live(snapshot))
        return;
    of_known(text, snapshot, METRIC_EMISSION_FACTOR_STALE, true, put_stale);
    of_known(text, snapshot, METRIC_EMISSION_FACTOR_ESTIMATED, true, put_estimated);
    of_known(text, snapshot, METRIC_EMISSION_FACTOR_AGE, true, put_age);
    of_asked(text, snapshot, METRIC_EMISSION_PROVIDER_UP, put_up);
    of_asked(text, snapshot, METRIC_EMISSION_PROVIDER_ERRORS, put_errors);
}
