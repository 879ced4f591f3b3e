/* The explicit list of providers, in the order of --help. */
#include "emissions/provider.h"

/* clang-format off */
const struct provider *const provider_table[] = {
    &rte_provider,
    &electricity_maps_provider,
    &watttime_provider,
    &uk_carbon_intensity_provider,
    &entsoe_provider,
    NULL,
};
/* clang-format on */
