/*
 * Services that publish emission factors, each in one file of providers/ and one line of
 * providers/table.c: where to send a query, what it says, and how to parse the reply. Pure;
 * poll.h sends.
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

struct provider_query {
    const char *zone;       /* as the provider names it */
    enum price_basis basis; /* where it offers both */
    uint64_t now_us;        /* since the epoch */
    const char *token;      /* only for PROVIDER_KEY_IN_PATH */
};

enum provider_key {
    PROVIDER_KEY_NONE,
    PROVIDER_KEY_IN_HEADER, /* auth-token: KEY */
    PROVIDER_KEY_LOGIN,     /* user and password for a token, then Authorization: Bearer TOKEN */
    PROVIDER_KEY_IN_PATH,   /* the path is a secret: never log it */
};

enum { PROVIDER_SECRETS_MAX = 2, PROVIDER_TOKEN_BYTES = 4096 };

struct provider_secret {
    const char *name;     /* in --emissions.keys-file */
    const char *variable; /* in the environment */
};

struct provider {
    const char *name; /* of the label and the flag */
    const char *host;
    enum provider_key key;
    struct provider_secret secrets[PROVIDER_SECRETS_MAX]; /* of a login: the user, the password */

    /* Of PROVIDER_KEY_LOGIN: how user and password become a token, and how long that is used.
     * parse_token writes only what may be part of a header. 0, -ENOMEM or -EBADMSG. */
    const char *login_path;
    unsigned token_s;
    int (*parse_token)(struct span body, char *token, size_t size_bytes, struct error *err);

    bool says_401_when_busy; /* so a single 401 does not mean that the key is wrong */
    const char *country;     /* the only one it covers, as FR; NULL: its zones say */
    unsigned refresh_s, timeout_s;
    bool is_never_zero; /* although it counts direct emissions only */
    unsigned lag_s;     /* usual age of its newest value, where that is hours */
    size_t body_bytes_max;
    enum price_signal signal;
    enum price_basis basis;
    bool offers_direct; /* as well: chosen by --emissions.basis */

    const char *zones; /* for error texts: "one like FR or DE-LU" */

    /* Appends path and query of the URL. 0, or -EINVAL: unknown zone. */
    int (*write_path)(const struct provider_query *query, struct buffer *path);

    /* Parses the reply: its JSON, or a body that is not JSON. One of the two, called by
     * provider_parse only; the factor has the basis above already. Errors as of provider_parse,
     * with a text where there is more to say than it does. */
    int (*read)(const struct json *root, const struct provider_query *query,
                struct emission_factor *factor, struct error *err);
    int (*parse)(struct span body, const struct provider_query *query,
                 struct emission_factor *factor, struct error *err);
};

extern const struct provider electricity_maps_provider, entsoe_provider, rte_provider,
    uk_carbon_intensity_provider, watttime_provider;

/* All of them, in the order of --help, NULL-terminated. */
extern const struct provider *const provider_table[];

/* NULL if there is none. */
const struct provider *provider_find(struct span name);

/* "rte, electricity_maps, ..." */
void provider_list_names(char *text, size_t size_bytes);

/* Appends path and query of the URL. 0, or -EINVAL with a text: unknown zone. */
int provider_write_path(const struct provider *provider, const struct provider_query *query,
                        struct buffer *path, struct error *err);

/*
 * Parses a reply with a good status. 0, -ENOMEM, -EBADMSG (not a reply to this query), -ENODATA
 * (no value yet), -ERANGE (no value that a grid can have) or -ESTALE (of yesterday, or of the
 * future), with a text. A factor that is returned is plausible, and of the query's zone.
 */
int provider_parse(const struct provider *provider, struct span body,
                   const struct provider_query *query, struct emission_factor *ret_factor,
                   struct error *err);

/* Helpers for the parsers of providers. */

/* The JSON tree of a reply; free it with json_free. 0, -ENOMEM or -EBADMSG, also for an object that
 * reports an error, whatever its status. */
int provider_read_json(struct span body, struct json **ret_root, struct error *err);

/* 0, -ENODATA (absent, null, not a number) or -ERANGE. */
int provider_json_grams(const struct json *value, uint64_t *ret_mg);
bool provider_json_time(const struct json *value, uint64_t *ret_us);
bool provider_json_equals(const struct json *value, const char *text);

/* The newest row that has a value. `read_row` returns -ENODATA for a row to skip; any other error
 * ends the search. 0, -ENODATA (no row has a value) or the error of read_row. */
int provider_newest_row(const struct json *rows,
                        int (*read_row)(const struct json *row, struct emission_factor *factor),
                        struct emission_factor *factor);

/* The message of an error reply, in any of the shapes that services use; "" if it has none. */
void provider_error_message(struct span body, char *message, size_t size_bytes);

/* Copies text of a service, cut to the size, with '?' for anything but printable ASCII. */
void provider_copy_printable(struct span text, char *copy, size_t size_bytes);
