/* RTE eCO2mix: generation in France without Corsica, every quarter hour; direct emissions, without
 * imports. The rows of the whole day exist from midnight on, with null until they are measured. */
#include <errno.h>

#include "client/http_client.h"
#include "emissions/provider.h"

static int write_path(const struct provider_query *query, struct buffer *path)
{
    if (!span_equals(span_of(query->zone), "FR"))
        return -EINVAL;
    buffer_str(path, "/api/explore/v2.1/catalog/datasets/eco2mix-national-tr/records");
    http_put_parameter(path, "select", "taux_co2,date_heure");
    http_put_parameter(path, "where", "taux_co2 is not null");
    http_put_parameter(path, "order_by", "date_heure desc");
    http_put_parameter(path, "limit", "1");
    http_put_parameter(path, "timezone", "Europe/Paris");
    http_put_parameter(path, "include_links", "false");
    http_put_parameter(path, "include_app_metas", "false");
    return 0;
}

static int read_row(const struct json *row, struct emission_factor *factor)
{
    if (!provider_json_time(json_get(row, "date_heure"), &factor->time_us))
        return -ENODATA;
    return provider_json_grams(json_get(row, "taux_co2"), &factor->mg_per_kwh);
}

static int read_root(const struct json *root, const struct provider_query *query,
                     struct emission_factor *factor, struct error *err)
{
    (void)query, (void)err;
    return provider_newest_row(json_get(root, "results"), read_row, factor);
}

const struct provider rte_provider = {
    .name = "rte",
    .host = "odre.opendatasoft.com",
    .country = "FR",
    .is_never_zero = true, /* a country this large always burns gas and waste */
    .refresh_s = 15 * 60,
    .timeout_s = 10,
    .body_bytes_max = 1 << 20,
    .signal = PRICE_AVERAGE,
    .basis = PRICE_DIRECT,
    .zones = "FR",
    .write_path = write_path,
    .read = read_root,
};
