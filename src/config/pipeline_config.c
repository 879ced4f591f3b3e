#include "config/pipeline_config.h"

#include <stdio.h>

#include "identity/identity.h"

struct pipeline_options pipeline_config_options(const struct options *options, bool keep_everything)
{
    return (struct pipeline_options){
        .gpu = {.interval_us = options->sample_interval_us,
                .idle_policy = options->idle_policy,
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

void pipeline_config_price(const struct options *options, struct price *ret_price)
{
    struct price price = {.pue_millionths = options->pue_millionths};

    if (options_is_given(options, "cost.price")) {
        price.cost = (struct price_cost){.known = true, .micro_per_kwh = options->cost_price_micro};
        snprintf(price.cost.currency, sizeof(price.cost.currency), "%s", options->cost_currency);
    }
    *ret_price = price;
}

struct embodied_rates pipeline_config_embodied(const struct options *options)
{
    return options->emissions_enabled ? options->emissions_embodied : (struct embodied_rates){0};
}
