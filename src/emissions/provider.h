/*
 * The services that publish emission factors, each in one file and one line of a table: where to
 * ask, what to ask, and what the answer says. Pure: who asks is elsewhere.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/buffer.h"
#include "core/error.h"
#include "core/json_reader.h"
#include "core/span.h"
#include "emissions/factor.h"

struct provider_question {
    const char *zone;       /* as the provider names it */
    enum price_basis basis; /* for the one that offers both */
    uint64_t now_us;        /* since the epoch */
    const char *token;      /* only for PROVIDER_KEY_IN_PATH */
};

enum provider_key {
    PROVIDER_KEY_NONE,
    PROVIDER_KEY_IN_HEADER, /* auth-token: KEY */
    PROVIDER_KEY_LOGIN,     /* name and password for a token, then Authorization: Bearer TOKEN */
    PROVIDER_KEY_IN_PATH,   /* the path is a secret: never log it */
};

struct provider {
    const char *name; /* of the label and the flag */
    const char *host;
    enum provider_key key;
    bool says_401_when_busy; /* so that one alone does not mean the key */
    const char *country;     /* the one that it is about, as FR; NULL: its zones say */
    unsigned refresh_s, timeout_s;
    bool is_never_zero; /* though it counts only what is burned */
    unsigned lag_s;     /* how old its newest value usually is, where that is hours */
    size_t body_bytes_max;
    enum price_signal signal;
    enum price_basis basis;

    /* Appends the path with the query: what follows the host. 0, or -EINVAL: no such zone. */
    int (*write_path)(const struct provider_question *question, struct buffer *path,
                      struct error *err);

    /* What the answer says: of its JSON, or of one that is none. One of the two, and called by
     * provider_parse only; the factor has the signal and basis above already. */
    int (*read)(const struct json *root, const struct provider_question *question,
                struct emission_factor *factor, struct error *err);
    int (*parse)(struct span body, const struct provider_question *question,
                 struct emission_factor *factor, struct error *err);
};

extern const struct provider rte_provider, electricity_maps_provider, watttime_provider,
    uk_carbon_intensity_provider, entsoe_provider;

/* The `index`th of all, NULL behind the last; by name, NULL if there is none. */
const struct provider *provider_at(size_t index);
const struct provider *provider_find(struct span name);

/*
 * What an answer with a good status says. 0, -ENOMEM, -EINVAL (no such zone), -EBADMSG (not an
 * answer to this question), -ENODATA (it has no value now; later it may), -ERANGE (no value that a
 * grid can have) or -ESTALE (of yesterday, or of the future). What comes back is plausible, and of
 * the zone that was asked for.
 */
int provider_parse(const struct provider *provider, struct span body,
                   const struct provider_question *question, struct emission_factor *ret_factor,
                   struct error *err);
