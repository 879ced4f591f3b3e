/*
 * Basic authentication. bcrypt takes up to seconds, so a thread of its own checks one password at a
 * time; a few requests wait for it, more are rejected. A keyed digest of each user's last valid
 * password is kept, so that a scraper pays for bcrypt once.
 *
 * All functions are for the server's thread, and only auth_free blocks. The only user of libcrypt.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/span.h"

enum {
    AUTH_WAITING_MAX = 8,
    AUTH_USER_MAX_BYTES = 255,
    AUTH_HEADER_MAX_BYTES = 768,   /* user and password together, decoded */
    AUTH_PASSWORD_MAX_BYTES = 511, /* libcrypt refuses longer ones */
    /* Each step doubles the work: 10 takes 65 ms, 14 a second, 16 four. */
    AUTH_COST_MIN = 4,
    AUTH_COST_MAX = 16,
};

struct auth_user {
    const char *name;
    const char *hash; /* bcrypt, checked by auth_is_hash */
};

/*
 * True for "$2a$", "$2b$" or "$2y$", a cost, "$" and 53 characters of salt and hash. Nothing else
 * may reach libcrypt, which takes an unknown format for a DES hash.
 */
bool auth_is_hash(struct span text, unsigned *ret_cost);

/* The value of an Authorization header (RFC 7617), decoded. */
struct auth_header {
    struct span user, password; /* in `bytes`; any bytes at all */
    char bytes[AUTH_HEADER_MAX_BYTES];
};

/* `text` may be NULL. 0 or -EINVAL. */
int auth_header_parse(const char *text, struct auth_header *ret_header);

struct auth;

enum auth_verdict {
    AUTH_YES,
    AUTH_NO,
    AUTH_PENDING, /* auth_next returns the verdict */
    AUTH_BUSY,    /* too many checks are waiting */
};

/* The thread calls `prepare` first (to enter its sandbox) and ends if that fails. Then only
 * passwords that are remembered are accepted. */
int auth_new(int (*prepare)(void), struct auth **ret_auth);

/* Waits for the check in progress. Accepts NULL. */
void auth_free(struct auth *auth);

/* Copies them. Without users every request is allowed. On failure the old ones stay. */
int auth_set_users(struct auth *auth, const struct auth_user *users, size_t count);

/* `header` is the value of Authorization, or NULL. *ret_id is set for AUTH_PENDING. */
enum auth_verdict auth_check(struct auth *auth, const char *header, uint64_t *ret_id);

/* Readable when auth_next has a result. */
int auth_fd(const struct auth *auth);

/* The next finished check; false: none. */
bool auth_next(struct auth *auth, uint64_t *ret_id, bool *ret_ok);
