/*
 * The keys to services that publish emission factors, from --emissions.keys-file and from the
 * environment; the file wins.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

enum { EMISSION_KEYS_MAX = 8, EMISSION_KEY_BYTES = 512 };

struct emission_key {
    const char *provider;
    const char *name;     /* in the file */
    const char *variable; /* of the environment */
    bool is_user;         /* who has the key, rather than the key itself */
};

/* What the providers of the table want, sorted by provider; returns how many. */
size_t emission_keys_list(struct emission_key ret_keys[EMISSION_KEYS_MAX]);

/* In the order of that list; "": there is none. */
struct emission_keys {
    char values[EMISSION_KEYS_MAX][EMISSION_KEY_BYTES];
};

/* Reads the file; without a path ("") there are none. 0, or -errno with what to do: then there are
 * none, too. */
int emission_keys_read(const char *path, struct emission_keys *ret_keys, struct error *err);

/* Adds what the environment has and the file had not. */
void emission_keys_add_environment(struct emission_keys *keys);

/* What a provider wants: NULL where it wants nothing. 0, or -ENOKEY with a text that says what to
 * give. */
int emission_keys_find(const struct emission_keys *keys, const char *provider,
                       const char **ret_user, const char **ret_key, struct error *err);

void emission_keys_wipe(struct emission_keys *keys);
