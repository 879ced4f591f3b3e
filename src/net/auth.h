/*
 * Basic authentication: who may ask. bcrypt takes up to seconds, so one thread of its own checks
 * passwords, a few wait for it, and more than that are turned away; a password that was right once
 * is remembered and waits for nobody.
 *
 * All functions are for one thread, the server's, and none of them blocks but auth_free.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/span.h"

enum { AUTH_WAITING_MAX = 8, AUTH_USER_MAX_BYTES = 255 };

struct auth_user {
    const char *name;
    const char *hash; /* of bcrypt, checked by password_is_hash */
};

struct auth;

enum auth_verdict {
    AUTH_YES,
    AUTH_NO,
    AUTH_LATER, /* auth_next tells */
    AUTH_BUSY,  /* too many wait already */
};

/*
 * Starts the thread, which calls `prepare` first (to lock itself up) and ends if that fails.
 * Without the thread nobody who is not remembered gets in.
 */
int auth_new(int (*prepare)(void), struct auth **ret_auth);

/* Waits for the check in progress. Accepts NULL. */
void auth_free(struct auth *auth);

/* Copies them. No users: everybody may ask. On failure the old ones stay. */
int auth_set_users(struct auth *auth, const struct auth_user *users, size_t count);

/* `header` is the value of Authorization or NULL. With AUTH_LATER *ret_id is the check's. */
enum auth_verdict auth_check(struct auth *auth, const char *header, uint64_t *ret_id);

/* Readable when auth_next has something to tell. */
int auth_fd(const struct auth *auth);

/* The next check that is done; false: none is. */
bool auth_next(struct auth *auth, uint64_t *ret_id, bool *ret_ok);
