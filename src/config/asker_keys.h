/*
 * The keys to services that publish emission factors, from --emissions.keys-file and from the
 * environment; the file wins. The collector reads the file and keeps what is good of it sealed, for
 * each asker that it starts; who asks adds the environment's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

enum { ASKER_KEYS_MAX = 8, ASKER_KEY_BYTES = 512 };

struct asker_key {
    const char *provider;
    const char *name;     /* in the file */
    const char *variable; /* of the environment */
    bool is_user;         /* who has the key, rather than the key itself */
};

/* What the providers of the table want, sorted by provider; returns how many. */
size_t asker_keys_list(struct asker_key ret_keys[ASKER_KEYS_MAX]);

/* In the order of that list; "": there is none. */
struct asker_keys {
    char values[ASKER_KEYS_MAX][ASKER_KEY_BYTES];
};

/* Reads the file; without a path ("") there are none. 0, or -errno with what to do: then there are
 * none, too. */
int asker_keys_read(const char *path, struct asker_keys *ret_keys, struct error *err);

/* As a sealed descriptor, so that they are written to memory only; and back. 0 or -errno. */
int asker_keys_seal(const struct asker_keys *keys, int *ret_fd);
int asker_keys_unseal(int fd, struct asker_keys *ret_keys);

/* Adds what the environment has and the file had not, and wipes all of them there: whoever may read
 * /proc/PID/environ finds nothing. */
void asker_keys_take_environment(struct asker_keys *keys);

/* What a provider wants: NULL where it wants nothing. 0, or -ENOKEY with a text that says what to
 * give. */
int asker_keys_find(const struct asker_keys *keys, const char *provider, const char **ret_user,
                    const char **ret_key, struct error *err);

void asker_keys_wipe(struct asker_keys *keys);
