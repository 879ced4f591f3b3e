#include "emissions/provider.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/macros.h"
#include "emissions/providers/reply.h"

/* Clocks differ, and a half hour is published before it begins. One that lies further ahead would
 * never get old. */
static const uint64_t AHEAD_MAX_US = 3600 * USEC_PER_SEC;

/* Yesterday's value says nothing of today. */
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
                     const struct provider_question *question, struct emission_factor *factor,
                     struct error *err)
{
    struct json *root;
    int r;

    if (provider->parse)
        return provider->parse(body, question, factor, err);
    r = reply_read(body, provider->name, &root, err);
    if (r < 0)
        return r;
    r = provider->read(root, question, factor, err);
    json_free(root);
    return r;
}

int provider_parse(const struct provider *provider, struct span body,
                   const struct provider_question *question, struct emission_factor *ret_factor,
                   struct error *err)
{
    struct emission_factor factor = {
        .provider = provider->name, .signal = provider->signal, .basis = provider->basis};
    int r;

    if (!factor_is_zone(question->zone))
        return error_set(err, -EINVAL, "%s: '%.40s' is no zone", provider->name, question->zone);
    memcpy(factor.zone, question->zone, strlen(question->zone) + 1);
    r = read_body(provider, body, question, &factor, err);
    if (r < 0)
        return r;
    if (!factor_is_plausible(&factor))
        return error_set(err, -ERANGE, "%s: more than 5000 g/kWh is no grid's", provider->name);
    if (factor.mg_per_kwh < FACTOR_LEAST_MG &&
        (provider->is_never_zero || factor.basis == PRICE_LIFECYCLE))
        return error_set(err, -ERANGE, "%s: less than 1 g/kWh cannot be", provider->name);
    if (factor.time_us + BEHIND_MAX_US <= question->now_us)
        return error_set(err, -ESTALE, "%s: the value is a day old or more; is the clock right?",
                         provider->name);
    if (factor.time_us > question->now_us + AHEAD_MAX_US)
        return error_set(err, -ESTALE, "%s: the value is of the future; is the clock right?",
                         provider->name);
    *ret_factor = factor;
    return 0;
}
