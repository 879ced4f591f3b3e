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

int provider_write_path(const struct provider *provider, const struct provider_query *query,
                        struct buffer *path, struct error *err)
{
    int r = provider->write_path(query, path);

    if (r == 0 && !factor_is_zone(query->zone))
        r = -EINVAL;
    return r < 0 ? error_set(err, r, "%s: '%.40s' is not a zone; expected %s", provider->name,
                             query->zone, provider->zones)
                 : 0;
}

static int read_body(const struct provider *provider, struct span body,
                     const struct provider_query *query, struct emission_factor *factor,
                     struct error *err)
{
    struct json *root;
    int r;

    if (provider->parse)
        return provider->parse(body, query, factor, err);
    r = provider_read_json(body, &root, err);
    if (r < 0)
        return r;
    r = provider->read(root, query, factor, err);
    json_free(root);
    return r;
}

static int check_factor(const struct provider *provider, const struct provider_query *query,
                        const struct emission_factor *factor)
{
    if (factor->mg_per_kwh > FACTOR_MAX_MG ||
        (factor->mg_per_kwh < FACTOR_LEAST_MG &&
         (provider->is_never_zero || factor->basis == PRICE_LIFECYCLE)))
        return -ERANGE;
    return factor->time_us + BEHIND_MAX_US <= query->now_us ||
                   factor->time_us > query->now_us + AHEAD_MAX_US
               ? -ESTALE
               : 0;
}

static const char *describe_error(int r)
{
    switch (r) {
    case -ENODATA:
        return "no value yet";
    case -ERANGE:
        return "implausible value";
    case -ESTALE:
        return "the value is a day old or more, or from the future; is the clock right?";
    case -EBADMSG:
        return "the reply is not for this zone";
    default:
        return "out of memory";
    }
}

int provider_parse(const struct provider *provider, struct span body,
                   const struct provider_query *query, struct emission_factor *ret_factor,
                   struct error *err)
{
    struct emission_factor factor = {.basis = provider->basis};
    struct error why = {""};
    int r = read_body(provider, body, query, &factor, &why);

    if (r == 0)
        r = check_factor(provider, query, &factor);
    if (r < 0)
        return error_set(err, r, "%s: %.900s", provider->name,
                         why.text[0] ? why.text : describe_error(r));
    *ret_factor = factor;
    return 0;
}

void provider_copy_printable(struct span text, char *copy, size_t size_bytes)
{
    size_t len = MIN(text.len, size_bytes - 1);

    for (size_t i = 0; i < len; i++) {
        char c = text.data[i];

        if (c < ' ' || c > '~')
            c = '?';
        copy[i] = c;
    }
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

int provider_read_json(struct span body, struct json **ret_root, struct error *err)
{
    char message[MESSAGE_BYTES];
    struct json *root;
    const char *found;
    int r = json_read(body, &root);

    if (r < 0)
        return error_set(err, r, "%s",
                         r == -ENOMEM ? "out of memory"
                                      : "the reply is not JSON; is a proxy in between?");
    found = find_error(root);
    if (!found) {
        *ret_root = root;
        return 0;
    }
    provider_copy_printable(span_of(found), message, sizeof(message));
    json_free(root);
    return error_set(err, -EBADMSG, "the service replied: %s", message);
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
