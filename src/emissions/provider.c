#include "emissions/provider.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/macros.h"
#include "core/timestamp.h"

enum { MESSAGE_BYTES = 160 };

/* Clocks differ, and half hours are published before they begin. A value from further ahead would
 * never become stale. */
static const uint64_t AHEAD_MAX_US = 3600 * USEC_PER_SEC;

static const uint64_t BEHIND_MAX_US = USEC_PER_SEC * 3600 * 24;

const struct provider *provider_find(struct span name)
{
    for (size_t i = 0; provider_table[i]; i++)
        if (span_equals(name, provider_table[i]->name))
            return provider_table[i];
    return NULL;
}

void provider_list_names(char *text, size_t size_bytes)
{
    size_t len = 0;

    text[0] = '\0';
    for (size_t i = 0; provider_table[i] && len < size_bytes; i++)
        len += (size_t)snprintf(text + len, size_bytes - len, "%s%s", i > 0 ? ", " : "",
                                provider_table[i]->name);
}

static int read_body(const struct provider *provider, struct span body,
                     const struct provider_query *query, struct emission_factor *factor,
                     struct error *err)
{
    struct json *root;
    int r;

    if (provider->parse)
        return provider->parse(body, query, factor, err);
    r = provider_read_json(body, provider->name, &root, err);
    if (r < 0)
        return r;
    r = provider->read(root, query, factor, err);
    json_free(root);
    return r;
}

int provider_parse(const struct provider *provider, struct span body,
                   const struct provider_query *query, struct emission_factor *ret_factor,
                   struct error *err)
{
    struct emission_factor factor = {.basis = provider->basis};
    int r;

    if (!factor_is_zone(query->zone))
        return error_set(err, -EINVAL, "%s: '%.40s' is not a zone", provider->name, query->zone);
    r = read_body(provider, body, query, &factor, err);
    if (r < 0)
        return r;
    if (factor.mg_per_kwh > FACTOR_MAX_MG)
        return error_set(err, -ERANGE, "%s: implausible value: more than 5000 g/kWh",
                         provider->name);
    if (factor.mg_per_kwh < FACTOR_LEAST_MG &&
        (provider->is_never_zero || factor.basis == PRICE_LIFECYCLE))
        return error_set(err, -ERANGE, "%s: implausible value: less than 1 g/kWh", provider->name);
    if (factor.time_us + BEHIND_MAX_US <= query->now_us)
        return error_set(err, -ESTALE, "%s: the value is a day old or more; is the clock right?",
                         provider->name);
    if (factor.time_us > query->now_us + AHEAD_MAX_US)
        return error_set(err, -ESTALE, "%s: the value is from the future; is the clock right?",
                         provider->name);
    *ret_factor = factor;
    return 0;
}

void provider_copy_printable(struct span text, char *copy, size_t size_bytes)
{
    size_t len = MIN(text.len, size_bytes - 1);

    for (size_t i = 0; i < len; i++)
        copy[i] = text.data[i] < ' ' || text.data[i] > '~' ? '?' : text.data[i];
    copy[len] = '\0';
}

/* {"error": "..."}, {"error": {"code": "...", "message": "..."}}, {"error_code": "...", "message":
 * "..."}, {"status": "error", "message": "..."}; "error": null is none. */
static const char *find_error(const struct json *root)
{
    const struct json *error = json_get(root, "error");
    const char *code = json_text(error);
    const char *message = json_text(json_get(error, "message"));

    if (!code)
        code = json_text(json_get(error, "code"));
    if (!code)
        code = json_text(json_get(root, "error_code"));
    if (!code && provider_json_equals(json_get(root, "status"), "error"))
        code = "error";
    if (!message && code)
        message = json_text(json_get(root, "message"));
    return message ? message : code;
}

void provider_error_message(struct span body, char *message, size_t size_bytes)
{
    struct json *root = NULL;
    const char *found;

    (void)json_read(body, &root);
    found = find_error(root);
    provider_copy_printable(span_of(found ? found : ""), message, size_bytes);
    json_free(root);
}

int provider_read_json(struct span body, const char *provider, struct json **ret_root,
                       struct error *err)
{
    char message[MESSAGE_BYTES];
    struct json *root;
    const char *found;
    int r = json_read(body, &root);

    if (r < 0)
        return error_set(err, r, "%s: %s", provider,
                         r == -ENOMEM ? "out of memory"
                                      : "the reply is not JSON; is a proxy in between?");
    found = find_error(root);
    if (!found) {
        *ret_root = root;
        return 0;
    }
    provider_copy_printable(span_of(found), message, sizeof(message));
    json_free(root);
    return error_set(err, -EBADMSG, "%s: the service replied: %s", provider, message);
}

int provider_json_grams(const struct json *value, uint64_t *ret_mg)
{
    double grams;

    return json_double(value, &grams) ? factor_from_grams(grams, ret_mg) : -ENODATA;
}

bool provider_json_time(const struct json *value, uint64_t *ret_us)
{
    const char *text = json_text(value);

    return text && timestamp_parse(span_of(text), ret_us) == 0;
}

bool provider_json_equals(const struct json *value, const char *text)
{
    const char *found = json_text(value);

    return found && strcmp(found, text) == 0;
}

int provider_newest_row(const struct json *rows,
                        int (*read_row)(const struct json *row, struct emission_factor *factor),
                        struct emission_factor *factor)
{
    int found = -ENODATA;

    for (size_t i = 0; i < json_length(rows); i++) {
        struct emission_factor each = *factor;
        int r = read_row(json_at(rows, i), &each);

        if (r == -ENODATA || (r == 0 && found == 0 && each.time_us <= factor->time_us))
            continue;
        if (r < 0)
            return r;
        *factor = each;
        found = 0;
    }
    return found;
}
