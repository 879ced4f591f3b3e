/* What a client shows, and whether it is right. The only user of libcrypt. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/span.h"

enum { BASIC_AUTH_MAX_BYTES = 768 }; /* of both together */

/* The Authorization header of basic authentication (RFC 7617): a name and a password in base64. */
struct basic_auth {
    struct span user, password; /* in `bytes`; any bytes at all */
    char bytes[BASIC_AUTH_MAX_BYTES];
};

/* `header` may be NULL. 0, or -EINVAL: no such header, or not of this form. */
int basic_auth_parse(const char *header, struct basic_auth *ret_auth);

/* Passwords are kept as bcrypt hashes. */
enum {
    PASSWORD_HASH_LEN = 60,
    PASSWORD_MAX_BYTES = 511, /* libcrypt refuses longer ones */
    /* Each step doubles the work: 10 takes 65 ms, 14 a second, 16 four. */
    PASSWORD_COST_MIN = 4,
    PASSWORD_COST_MAX = 16,
};

/*
 * Is it "$2a$", "$2b$" or "$2y$", a cost, "$" and 53 characters of salt and hash? Everything else
 * is kept from libcrypt, which takes what it does not know for a hash of DES.
 */
bool password_is_hash(struct span text, unsigned *ret_cost);

/* Takes as long as the cost says. `hash` must be one. A password that is too long or holds a NUL
 * character is no match. */
bool password_matches(struct span password, const char *hash);
