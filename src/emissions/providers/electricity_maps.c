/* Electricity Maps: consumption in a zone, hourly, with imports traced to where they were
 * generated. Recent hours are estimates. */
#include <errno.h>

#include "client/http_client.h"
#include "emissions/provider.h"

static enum price_basis basis_of(const struct provider_query *query)
{
    return query->basis == PRICE_DIRECT ? PRICE_DIRECT : PRICE_LIFECYCLE;
}

static int write_path(const struct provider_query *query, struct buffer *path)
{
    buffer_str(path, "/v3/carbon-intensity/latest");
    http_put_parameter(path, "zone", query->zone);
    http_put_parameter(path, "emissionFactorType", price_basis_words[basis_of(query)]);
    /* Else an unknown zone becomes that of the caller's IP address. */
    http_put_parameter(path, "shouldUseFallbackCallerLookup", "false");
    return 0;
}

static int read_root(const struct json *root, const struct provider_query *query,
                     struct emission_factor *factor, struct error *err)
{
    const char *basis = json_text(json_get(root, "emissionFactorType"));
    int r;

    if (!provider_json_equals(json_get(root, "zone"), query->zone))
        return -EBADMSG;
    if (basis && !span_equals(span_of(basis), price_basis_words[basis_of(query)]))
        return error_set(err, -EBADMSG, "the reply is not for %s emissions",
                         price_basis_words[basis_of(query)]);
    r = provider_json_grams(json_get(root, "carbonIntensity"), &factor->mg_per_kwh);
    if (r < 0)
        return r;
    if (!provider_json_time(json_get(root, "datetime"), &factor->time_us))
        return error_set(err, -EBADMSG, "the reply has no time");
    factor->is_estimated = json_is_true(json_get(root, "isEstimated"));
    factor->basis = basis_of(query);
    return 0;
}

const struct provider electricity_maps_provider = {
    .name = "electricity_maps",
    .host = "api.electricitymaps.com",
    .key = PROVIDER_KEY_IN_HEADER,
    .secrets = {{"electricity_maps", "ELECTRICITY_MAPS_TOKEN"}},
    .says_401_when_busy = true,
    .refresh_s = 15 * 60,
    .timeout_s = 10,
    .body_bytes_max = 1 << 20,
    .signal = PRICE_AVERAGE,
    .basis = PRICE_LIFECYCLE,
    .offers_direct = true,
    .zones = "one like FR or US-CAL-CISO",
    .write_path = write_path,
    .read = read_root,
};
