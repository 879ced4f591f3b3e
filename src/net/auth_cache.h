/*
 * Passwords that were found right, so that a scraper pays for bcrypt once. Holds no password: only
 * keyed digests (HMAC-SHA256 with a random key) of user, hash and password together. So an entry
 * counts for its user alone, and for nobody once the user has another hash.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/span.h"

enum { AUTH_CACHE_SIZE = 64, AUTH_CACHE_DIGEST_BYTES = 32 };

struct auth_cache {
    unsigned char key[32];
    unsigned char digests[AUTH_CACHE_SIZE][AUTH_CACHE_DIGEST_BYTES];
    uint64_t added; /* ever; the oldest goes first */
};

/* -errno where there are no random numbers. */
int auth_cache_init(struct auth_cache *cache);

void auth_cache_digest(const struct auth_cache *cache, struct span user, const char *hash,
                       struct span password, unsigned char *ret_digest);
bool auth_cache_has(const struct auth_cache *cache, const unsigned char *digest);
void auth_cache_add(struct auth_cache *cache, const unsigned char *digest);
