/* Electricity Maps: what is consumed in a zone, by the hour, imports traced to where they were
 * generated. Recent hours are estimates. */
#include <errno.h>

#include "emissions/provider.h"
#include "emissions/providers/reply.h"

#define NAME "electricity_maps"

/* Lifecycle unless asked otherwise. */
static enum price_basis basis_of(const struct provider_question *question)
{
    return question->basis == PRICE_DIRECT ? PRICE_DIRECT : PRICE_LIFECYCLE;
}

static int write_path(const struct provider_question *question, struct buffer *path,
                      struct error *err)
{
    if (!factor_is_zone(question->zone))
        return error_set(err, -EINVAL, NAME ": '%.40s' is no zone; one is as FR or US-CAL-CISO",
                         question->zone);
    buffer_str(path, "/v3/carbon-intensity/latest");
    reply_ask(path, "zone", question->zone);
    reply_ask(path, "emissionFactorType", price_basis_words[basis_of(question)]);
    /* Else a zone that it does not know becomes the one of the caller's address. */
    reply_ask(path, "shouldUseFallbackCallerLookup", "false");
    return 0;
}

static int read_root(const struct json *root, const struct provider_question *question,
                     struct emission_factor *factor, struct error *err)
{
    const char *basis = json_text(json_get(root, "emissionFactorType"));
    int r;

    if (!reply_says(json_get(root, "zone"), question->zone))
        return error_set(err, -EBADMSG, NAME ": the answer is not of zone %s", question->zone);
    if (basis && !span_equals(span_of(basis), price_basis_words[basis_of(question)]))
        return error_set(err, -EBADMSG, NAME ": the answer is not of %s emissions",
                         price_basis_words[basis_of(question)]);
    r = reply_grams(json_get(root, "carbonIntensity"), &factor->mg_per_kwh);
    if (r == -ENODATA)
        return error_set(err, r, NAME ": zone %s has no value yet", question->zone);
    if (r < 0)
        return error_set(err, r, NAME ": the value is not from 0 to 5000 g/kWh");
    if (!reply_time(json_get(root, "datetime"), &factor->time_us))
        return error_set(err, -EBADMSG, NAME ": the answer does not say what time it is of");
    factor->is_estimated = json_is_true(json_get(root, "isEstimated"));
    factor->basis = basis_of(question);
    return 0;
}

const struct provider electricity_maps_provider = {
    .name = NAME,
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
    .write_path = write_path,
    .read = read_root,
};
