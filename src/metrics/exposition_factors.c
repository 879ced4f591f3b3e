/* Emission factors: who says what, how old it is, and which is in force. */
#include "metrics/exposition_parts.h"

static void put_value(struct text *text, const struct snapshot_factor *factor, enum metric metric)
{
    switch (metric) {
    case METRIC_EMISSION_FACTOR:
        text_value(text, (int64_t)factor->factor.ug_per_kwh, MICRO);
        break;
    case METRIC_EMISSION_FACTOR_IN_FORCE:
        text_value(text, factor->in_force, WHOLE);
        break;
    case METRIC_EMISSION_FACTOR_STALE:
        text_value(text, factor->is_stale, WHOLE);
        break;
    case METRIC_EMISSION_FACTOR_ESTIMATED:
        text_value(text, factor->is_estimated, WHOLE);
        break;
    case METRIC_EMISSION_FACTOR_AGE:
        text_value(text, (int64_t)factor->age_us, MICRO);
        break;
    case METRIC_EMISSION_PROVIDER_UP:
        text_value(text, factor->is_up, WHOLE);
        break;
    default: /* METRIC_EMISSION_PROVIDER_ERRORS */
        text_value(text, (int64_t)factor->errors, WHOLE);
    }
}

/* A row for each that has a figure; of a provider, for each that is asked. */
static bool has_row(const struct snapshot_factor *factor, enum metric metric)
{
    if (metric > METRIC_EMISSION_FACTOR_IN_FORCE && !factor->is_live)
        return false;
    return factor->factor.known || metric >= METRIC_EMISSION_PROVIDER_UP;
}

static void put_family(struct text *text, const struct snapshot *snapshot, enum metric metric)
{
    text_family(text, metric);
    for (size_t i = 0; i < snapshot->factor_count; i++) {
        const struct snapshot_factor *factor = &snapshot->factors[i];

        if (!has_row(factor, metric))
            continue;
        text_sample(text);
        text_label(text, "provider", factor->factor.provider);
        text_label(text, "zone", factor->factor.zone);
        if (metric < METRIC_EMISSION_PROVIDER_UP) {
            text_label(text, "signal", price_signal_words[factor->factor.signal]);
            text_label(text, "basis", price_basis_words[factor->factor.basis]);
        }
        put_value(text, factor, metric);
    }
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
    enum metric last =
        has_live(snapshot) ? METRIC_EMISSION_PROVIDER_ERRORS : METRIC_EMISSION_FACTOR_IN_FORCE;

    for (enum metric metric = METRIC_EMISSION_FACTOR; snapshot->factor_count > 0 && metric <= last;
         metric++)
        put_family(text, snapshot, metric);
}
