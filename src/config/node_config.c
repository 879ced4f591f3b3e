#include "config/node_config.h"

#include <stdio.h>

#include "identity/identity.h"

struct pipeline_options node_config_pipeline(const struct options *options, bool keep_everything)
{
    return (struct pipeline_options){
        .gpu = {.interval_us = options->sample_interval_us,
                .idle_policy = options->idle_policy,
                .idle_powers = &options->gpu_idle_powers,
                .attribution = options->attribution,
                .patience_us = options->attribution_delay_us},
        .overhead = {.policy = options->node_overhead_policy,
                     .includes_gpus = options->node_meter_includes_gpus},
        .max_processes = options->max_processes,
        .max_workloads = options->max_workloads,
        .retention_us = keep_everything ? UINT64_MAX : options->metric_retention_us,
        .find_owner = identity_find_owner,
    };
}

void node_config_price(const struct options *options, struct price *ret_price)
{
    struct price price = {.pue_millionths = options->pue_millionths};

    if (options_is_given(options, "cost.price")) {
        price.cost = (struct price_cost){.known = true, .micro_per_kwh = options->cost_price_micro};
        snprintf(price.cost.currency, sizeof(price.cost.currency), "%s", options->cost_currency);
    }
    *ret_price = price;
}

struct embodied_rates node_config_embodied(const struct options *options)
{
    return options->emissions_enabled ? options->emissions_embodied : (struct embodied_rates){0};
}

void node_config_switches(const struct options *options, struct source_switches *ret_switches)
{
    *ret_switches = (struct source_switches){0};
    for (size_t i = 0; source_table[i]; i++)
        if (source_table[i]->flag && !options->source_is_on[i])
            ret_switches->off[ret_switches->off_count++] = source_table[i]->name;
}

bool node_config_is_on(const struct options *options, const char *source)
{
    struct source_switches switches;

    node_config_switches(options, &switches);
    return !source_is_off(&switches, source);
}

void node_config_model(const struct options *options, struct source_estimate *ret_model)
{
    bool is_given = options->model_full_uw > 0;

    ret_model->is_on = is_given || options->model_cpu == OPTIONS_MODEL_AUTO;
    ret_model->by_table = !is_given;
    ret_model->idle_uw = options->model_idle_uw;
    ret_model->full_uw = options->model_full_uw;
}

const char *node_config_list_off(const struct source_switches *switches, char *text,
                                 size_t size_bytes)
{
    size_t len = 0;

    for (size_t i = 0; i < switches->off_count && len < size_bytes; i++)
        len += (size_t)snprintf(text + len, size_bytes - len, "%s%s", i > 0 ? ", " : "",
                                switches->off[i]);
    return switches->off_count > 0 ? text : NULL;
}
