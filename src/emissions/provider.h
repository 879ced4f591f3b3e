/*
 * The services that publish emission factors, each in one file of providers/ and one line of
 * providers/table.c: where to ask, what to ask, and what the answer says. Pure: who asks is
 * elsewhere.
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
    enum price_basis basis; /* where it offers both */
    uint64_t now_us;        /* since the epoch */
    const char *token;      /* only for PROVIDER_KEY_IN_PATH */
};

enum provider_key {
    PROVIDER_KEY_NONE,
    PROVIDER_KEY_IN_HEADER, /* auth-token: KEY */
    PROVIDER_KEY_LOGIN,     /* name and password for a token, then Authorization: Bearer TOKEN */
    PROVIDER_KEY_IN_PATH,   /* the path is a secret: never log it */
};

enum { PROVIDER_SECRETS_MAX = 2, PROVIDER_TOKEN_BYTES = 4096 };

/* What a user has from the provider. */
struct provider_secret {
    const char *name;     /* in the file of --emissions.keys-file */
    const char *variable; /* of the environment */
};

/* How name and password become a token. */
struct provider_login {
    const char *path;
    unsigned token_s; /* for how long one is used */
    /* Writes what may stand in a header. 0, -ENOMEM or -EBADMSG. */
    int (*parse_token)(struct span body, char *token, size_t size_bytes, struct error *err);
};

struct provider {
    const char *name; /* of the label and the flag */
    const char *host;
    enum provider_key key;
    struct provider_secret secrets[PROVIDER_SECRETS_MAX]; /* of a login, the name is the first */
    const struct provider_login *login;                   /* of a login */
    bool says_401_when_busy; /* so that one alone does not mean the key */
    const char *country;     /* the one that it is about, as FR; NULL: its zones say */
    unsigned refresh_s, timeout_s;
    bool is_never_zero; /* though it counts only what is burned */
    unsigned lag_s;     /* how old its newest value usually is, where that is hours */
    size_t body_bytes_max;
    enum price_signal signal;
    enum price_basis basis;
    bool offers_direct; /* too: it is asked for what --emissions.basis says */

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

extern const struct provider electricity_maps_provider, entsoe_provider, rte_provider,
    uk_carbon_intensity_provider, watttime_provider;

/* All of them, in the order of --help, ended by NULL. */
extern const struct provider *const provider_table[];

/* By name; NULL if there is none. */
const struct provider *provider_find(struct span name);

/* "rte, electricity_maps, ...": the names of all. */
void provider_list_names(char *text, size_t size_bytes);

/*
 * What an answer with a good status says. 0, -ENOMEM, -EINVAL (no such zone), -EBADMSG (not an
 * answer to this question), -ENODATA (it has no value now; later it may), -ERANGE (no value that a
 * grid can have) or -ESTALE (of yesterday, or of the future). What comes back is plausible, and of
 * the zone that was asked for.
 */
int provider_parse(const struct provider *provider, struct span body,
                   const struct provider_question *question, struct emission_factor *ret_factor,
                   struct error *err);
