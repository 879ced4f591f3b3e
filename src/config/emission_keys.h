/* The keys of emission providers, from --emissions.keys-file or the environment; the file wins. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

enum { EMISSION_KEYS_MAX = 8, EMISSION_KEY_BYTES = 512 };

struct emission_key {
    const char *provider;
    const char *name;     /* in the file */
    const char *variable; /* of the environment */
    bool is_user;         /* a user name, not a key */
};

/* The keys of all providers; returns how many. */
size_t emission_keys_list(struct emission_key ret_keys[EMISSION_KEYS_MAX]);

/* In the order of that list; "": none. */
struct emission_keys {
    char values[EMISSION_KEYS_MAX][EMISSION_KEY_BYTES];
};

/* Reads the file, unless `path` is "", then the environment. 0, or -errno with what to do; then the
 * keys are empty. */
int emission_keys_read(const char *path, struct emission_keys *ret_keys, struct error *err);

/* A provider's user and key, NULL where it needs none. 0, or -ENOKEY with what to set. */
int emission_keys_find(const struct emission_keys *keys, const char *provider,
                       const char **ret_user, const char **ret_key, struct error *err);
