/* Meters, and what nobody owns of them. */
#include "metrics/exposition_parts.h"

const char *const exposition_owner_words[UNOWNED_COUNT] = {"idle", "system", "unattributed", "gap"};

void exposition_meter_labels(struct text *text, const struct snapshot_meter *meter)
{
    text_label(text, "meter", meter_words[meter->kind]);
    text_label(text, "meter_id", meter->meter_id);
}

void exposition_meter_row(struct text *text, const struct snapshot_meter *meter, int64_t value,
                          unsigned digits)
{
    text_sample(text);
    exposition_meter_labels(text, meter);
    text_value(text, value, digits);
}

static void rest_value(struct text *text, const struct snapshot *snapshot, bool value)
{
    text_sample(text);
    text_label(text, "source", snapshot->rest_source);
    text_value(text, value, WHOLE);
}

void exposition_meters(struct text *text, const struct snapshot *snapshot)
{
    const struct snapshot_meter *rows = snapshot->meters;

    text_family(text, METRIC_METER_ENERGY);
    for (size_t i = 0; i < snapshot->meter_count; i++)
        exposition_meter_row(text, &rows[i], (int64_t)rows[i].energy_uj, MICRO);
    text_family(text, METRIC_METER_HARDWARE_ENERGY);
    for (size_t i = 0; i < snapshot->meter_count; i++)
        if (rows[i].has_counter)
            exposition_meter_row(text, &rows[i], (int64_t)rows[i].counter_uj, MICRO);
    for (size_t i = 0; i < snapshot->observed_count; i++) {
        text_sample(text);
        text_label(text, "meter", meter_words[snapshot->observed[i].kind]);
        text_label(text, "meter_id", snapshot->observed[i].id);
        text_value(text, (int64_t)snapshot->observed[i].counter_uj, MICRO);
    }
    text_family(text, METRIC_NODE_POWER);
    for (size_t i = 0; i < snapshot->node_power_count; i++) {
        text_sample(text);
        text_label(text, "source", snapshot->node_powers[i].source);
        text_value(text, (int64_t)snapshot->node_powers[i].power_mw, MILLI);
    }
    text_family(text, METRIC_NODE_METER_INCLUDES_GPUS);
    if (snapshot->rest_source && snapshot->gpu_count > 0)
        rest_value(text, snapshot, snapshot->rest_includes_gpus);
    text_family(text, METRIC_NODE_METER_MISMATCH);
    if (snapshot->rest_source)
        rest_value(text, snapshot, snapshot->rest_mismatch);
    text_family(text, METRIC_ENERGY_PENDING);
    for (size_t i = 0; i < snapshot->meter_count; i++)
        exposition_meter_row(text, &rows[i], (int64_t)rows[i].pending_uj, MICRO);
    text_family(text, METRIC_UNOWNED_ENERGY);
    for (size_t i = 0; i < snapshot->meter_count; i++)
        for (int owner = 0; owner < UNOWNED_COUNT; owner++) {
            text_sample(text);
            exposition_meter_labels(text, &rows[i]);
            text_label(text, "owner", exposition_owner_words[owner]);
            text_value(text, (int64_t)rows[i].unowned_uj[owner], MICRO);
        }
}
