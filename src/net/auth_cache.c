#include "net/auth_cache.h"

#include <errno.h>
#include <gnutls/crypto.h>
#include <sys/random.h>

#include "core/macros.h"

int auth_cache_init(struct auth_cache *cache)
{
    *cache = (struct auth_cache){0};
    return getrandom(cache->key, sizeof(cache->key), 0) == sizeof(cache->key) ? 0 : -EIO;
}

/* With its length, so that no two triples look the same. */
static void add_part(gnutls_hmac_hd_t hmac, const char *data, size_t len)
{
    uint64_t len_u64 = len;

    gnutls_hmac(hmac, &len_u64, sizeof(len_u64));
    gnutls_hmac(hmac, data, len);
}

void auth_cache_digest(const struct auth_cache *cache, struct span user, const char *hash,
                       struct span password, unsigned char *ret_digest)
{
    gnutls_hmac_hd_t hmac;

    /* It fails where memory does; a digest of zeros is in no cache. */
    memset(ret_digest, 0, AUTH_CACHE_DIGEST_BYTES);
    if (gnutls_hmac_init(&hmac, GNUTLS_MAC_SHA256, cache->key, sizeof(cache->key)) < 0)
        return;
    add_part(hmac, user.data, user.len);
    add_part(hmac, hash, strlen(hash));
    add_part(hmac, password.data, password.len);
    gnutls_hmac_deinit(hmac, ret_digest);
}

bool auth_cache_has(const struct auth_cache *cache, const unsigned char *digest)
{
    size_t count = MIN(cache->added, (uint64_t)AUTH_CACHE_SIZE);
    bool found = false;

    for (size_t i = 0; i < count; i++)
        found |= gnutls_memcmp(cache->digests[i], digest, AUTH_CACHE_DIGEST_BYTES) == 0;
    return found;
}

void auth_cache_add(struct auth_cache *cache, const unsigned char *digest)
{
    static const unsigned char none[AUTH_CACHE_DIGEST_BYTES];

    if (memcmp(digest, none, sizeof(none)) == 0 || auth_cache_has(cache, digest))
        return;
    memcpy(cache->digests[cache->added++ % AUTH_CACHE_SIZE], digest, AUTH_CACHE_DIGEST_BYTES);
}
