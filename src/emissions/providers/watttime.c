/* WattTime v3: what the plant emits that would run for one kWh more, by five minutes. Marginal, so
 * not for footprints. */
#include "emissions/providers/watttime.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/macros.h"
#include "core/timestamp.h"
#include "emissions/provider.h"
#include "emissions/providers/reply.h"

#define NAME   "watttime"
#define SIGNAL "co2_moer"
#define UNITS  "lbs_co2_per_mwh"

static const uint64_t WINDOW_US = USEC_PER_SEC * 60 * 20;

int watttime_parse_token(struct span body, char *token, size_t size_bytes, struct error *err)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789-._~+/=";
    struct json *root;
    const char *said;
    size_t len;
    int r = reply_read(body, NAME, &root, err);

    if (r < 0)
        return r;
    said = json_text(json_get(root, "token"));
    len = said ? strlen(said) : 0;
    if (len > 0 && len < size_bytes && strspn(said, allowed) == len)
        memcpy(token, said, len + 1);
    else
        r = error_set(err, -EBADMSG, NAME ": the answer to the login has no token");
    json_free(root);
    return r;
}

static void ask_time(struct buffer *path, const char *name, uint64_t t_us)
{
    struct civil_minute at = timestamp_minute(t_us);
    char text[64];

    snprintf(text, sizeof(text), "%04u-%02u-%02uT%02u:%02uZ", at.year, at.month, at.day, at.hour,
             at.minute);
    reply_ask(path, name, text);
}

static int write_path(const struct provider_question *question, struct buffer *path,
                      struct error *err)
{
    if (!factor_is_zone(question->zone))
        return error_set(err, -EINVAL, NAME ": '%.40s' is no region; one is as CAISO_NORTH",
                         question->zone);
    buffer_str(path, "/v3/historical");
    reply_ask(path, "region", question->zone);
    ask_time(path, "start", question->now_us - MIN(question->now_us, WINDOW_US));
    ask_time(path, "end", question->now_us);
    reply_ask(path, "signal_type", SIGNAL);
    return 0;
}

static int check_meta(const struct json *meta, const struct provider_question *question,
                      struct error *err)
{
    if (!reply_says(json_get(meta, "units"), UNITS))
        return error_set(err, -EBADMSG, NAME ": the answer's units are not " UNITS);
    if (!reply_says(json_get(meta, "region"), question->zone))
        return error_set(err, -EBADMSG, NAME ": the answer is not of region %s", question->zone);
    if (!reply_says(json_get(meta, "signal_type"), SIGNAL))
        return error_set(err, -EBADMSG, NAME ": the answer is not of signal " SIGNAL);
    return 0;
}

/* The points come in no order. */
static int read_newest(const struct json *points, struct emission_factor *factor)
{
    double newest = 0;
    bool found = false;

    for (size_t i = 0; i < json_length(points); i++) {
        const struct json *point = json_at(points, i);
        uint64_t time_us;
        double value;

        if (!json_double(json_get(point, "value"), &value) ||
            !reply_time(json_get(point, "point_time"), &time_us) ||
            (found && time_us <= factor->time_us))
            continue;
        newest = value;
        factor->time_us = time_us;
        found = true;
    }
    return found ? factor_from_pounds(newest, &factor->mg_per_kwh) : -ENODATA;
}

static int read_root(const struct json *root, const struct provider_question *question,
                     struct emission_factor *factor, struct error *err)
{
    int r = check_meta(json_get(root, "meta"), question, err);

    if (r < 0)
        return r;
    r = read_newest(json_get(root, "data"), factor);
    if (r == -ENODATA)
        return error_set(err, r, NAME ": region %s has no value yet", question->zone);
    if (r < 0)
        return error_set(err, r, NAME ": the value is not from 0 to 11023 lb/MWh");
    return 0;
}

static const struct provider_login login = {
    .path = "/login",
    .token_s = 25 * 60, /* it is valid for 30 minutes */
    .parse_token = watttime_parse_token,
};

const struct provider watttime_provider = {
    .name = NAME,
    .host = "api.watttime.org",
    .key = PROVIDER_KEY_LOGIN,
    .secrets = {{"watttime_username", "WATTTIME_USERNAME"},
                {"watttime_password", "WATTTIME_PASSWORD"}},
    .login = &login,
    .refresh_s = 5 * 60,
    .timeout_s = 10,
    .body_bytes_max = 1 << 20,
    .signal = PRICE_MARGINAL,
    .basis = PRICE_DIRECT,
    .write_path = write_path,
    .read = read_root,
};
