/* RTE eCO2mix: what France without Corsica generates, by the quarter hour; direct emissions,
 * without imports. The rows of the whole day exist from midnight on, with null for what is to come.
 */
#include <errno.h>

#include "emissions/provider.h"
#include "emissions/providers/reply.h"

#define NAME "rte"

static int write_path(const struct provider_question *question, struct buffer *path,
                      struct error *err)
{
    if (!span_equals(span_of(question->zone), "FR"))
        return error_set(err, -EINVAL, NAME ": '%.40s' is no zone of it, only FR is",
                         question->zone);
    buffer_str(path, "/api/explore/v2.1/catalog/datasets/eco2mix-national-tr/records");
    reply_ask(path, "select", "taux_co2,date_heure");
    reply_ask(path, "where", "taux_co2 is not null");
    reply_ask(path, "order_by", "date_heure desc");
    reply_ask(path, "limit", "1");
    reply_ask(path, "timezone", "Europe/Paris");
    reply_ask(path, "include_links", "false");
    reply_ask(path, "include_app_metas", "false");
    return 0;
}

static int read_row(const struct json *row, struct emission_factor *factor)
{
    if (!reply_time(json_get(row, "date_heure"), &factor->time_us))
        return -ENODATA;
    return reply_grams(json_get(row, "taux_co2"), &factor->mg_per_kwh);
}

static int read_root(const struct json *root, const struct provider_question *question,
                     struct emission_factor *factor, struct error *err)
{
    int r = reply_newest(json_get(root, "results"), read_row, factor);

    (void)question;
    if (r < 0)
        return error_set(err, r, NAME ": the answer has no %s",
                         r == -ENODATA ? "value yet" : "value from 0 to 5000 g/kWh");
    return 0;
}

const struct provider rte_provider = {
    .name = NAME,
    .host = "odre.opendatasoft.com",
    .country = "FR",
    .is_never_zero = true, /* the gas and waste of so large a country */
    .refresh_s = 15 * 60,
    .timeout_s = 10,
    .body_bytes_max = 1 << 20,
    .signal = PRICE_AVERAGE,
    .basis = PRICE_DIRECT,
    .write_path = write_path,
    .read = read_root,
};
