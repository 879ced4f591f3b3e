/* WattTime v3: marginal emissions, of the plant that would run for one kWh more, every five
 * minutes. Not for footprints. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "client/http_client.h"
#include "core/macros.h"
#include "core/timestamp.h"
#include "emissions/provider.h"

#define SIGNAL "co2_moer"
#define UNITS  "lbs_co2_per_mwh"

static const uint64_t WINDOW_US = USEC_PER_SEC * 60 * 20;

static int parse_token(struct span body, char *token, size_t size_bytes, struct error *err)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789-._~+/=";
    struct json *root;
    const char *found;
    size_t len;
    int r = provider_read_json(body, &root, err);

    if (r < 0)
        return r;
    found = json_text(json_get(root, "token"));
    len = found ? strlen(found) : 0;
    if (len > 0 && len < size_bytes && strspn(found, allowed) == len)
        memcpy(token, found, len + 1);
    else
        r = error_set(err, -EBADMSG, "the reply to the login has no token");
    json_free(root);
    return r;
}

static void put_time(struct buffer *path, const char *name, uint64_t t_us)
{
    struct civil_minute at = timestamp_minute(t_us);
    char text[64];

    snprintf(text, sizeof(text), "%04u-%02u-%02uT%02u:%02uZ", at.year, at.month, at.day, at.hour,
             at.minute);
    http_put_parameter(path, name, text);
}

static int write_path(const struct provider_query *query, struct buffer *path)
{
    buffer_str(path, "/v3/historical");
    http_put_parameter(path, "region", query->zone);
    put_time(path, "start", query->now_us - MIN(query->now_us, WINDOW_US));
    put_time(path, "end", query->now_us);
    http_put_parameter(path, "signal_type", SIGNAL);
    return 0;
}

/* Points are not sorted. */
static int read_newest(const struct json *points, struct emission_factor *factor)
{
    double newest = 0;
    bool found = false;

    for (size_t i = 0; i < json_length(points); i++) {
        const struct json *point = json_at(points, i);
        uint64_t time_us;
        double value;

        if (!json_double(json_get(point, "value"), &value) ||
            !provider_json_time(json_get(point, "point_time"), &time_us) ||
            (found && time_us <= factor->time_us))
            continue;
        newest = value;
        factor->time_us = time_us;
        found = true;
    }
    return found ? factor_from_pounds(newest, &factor->mg_per_kwh) : -ENODATA;
}

static int read_root(const struct json *root, const struct provider_query *query,
                     struct emission_factor *factor, struct error *err)
{
    const struct json *meta = json_get(root, "meta");

    if (!provider_json_equals(json_get(meta, "units"), UNITS))
        return error_set(err, -EBADMSG, "the reply's units are not " UNITS);
    if (!provider_json_equals(json_get(meta, "signal_type"), SIGNAL))
        return error_set(err, -EBADMSG, "the reply is not for signal " SIGNAL);
    if (!provider_json_equals(json_get(meta, "region"), query->zone))
        return -EBADMSG;
    return read_newest(json_get(root, "data"), factor);
}

const struct provider watttime_provider = {
    .name = "watttime",
    .host = "api.watttime.org",
    .key = PROVIDER_KEY_LOGIN,
    .secrets = {{"watttime_username", "WATTTIME_USERNAME"},
                {"watttime_password", "WATTTIME_PASSWORD"}},
    .login_path = "/login",
    .token_s = 25 * 60, /* of 30 minutes */
    .parse_token = parse_token,
    .refresh_s = 5 * 60,
    .timeout_s = 10,
    .body_bytes_max = 1 << 20,
    .signal = PRICE_MARGINAL,
    .basis = PRICE_DIRECT,
    .zones = "one like CAISO_NORTH",
    .write_path = write_path,
    .read = read_root,
};
