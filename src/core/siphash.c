#include "core/siphash.h"

#include <endian.h>
#include <string.h>

static uint64_t rotate_left(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

static void siphash_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate_left(v[1], 13) ^ v[0];
    v[3] = rotate_left(v[3], 16) ^ v[2];
    v[0] = rotate_left(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate_left(v[1], 17) ^ v[2];
    v[3] = rotate_left(v[3], 21) ^ v[0];
    v[2] = rotate_left(v[2], 32);
}

static void siphash_compress(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    siphash_round(v);
    siphash_round(v);
    v[0] ^= word;
}

struct siphash siphash_begin(const uint64_t key[2])
{
    return (struct siphash){.v = {key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
                                  key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573}};
}

/* Bytes that complete a word, or are left for the next. */
static size_t siphash_add_part(struct siphash *hash, struct span bytes)
{
    size_t used = 0;

    while (used < bytes.len && (used == 0 || hash->len % 8 != 0))
        hash->word |= (uint64_t)(unsigned char)bytes.data[used++] << (hash->len++ % 8 * 8);
    if (hash->len % 8 == 0 && used > 0) {
        siphash_compress(hash->v, hash->word);
        hash->word = 0;
    }
    return used;
}

void siphash_add(struct siphash *hash, struct span bytes)
{
    size_t at = hash->len % 8 == 0 ? 0 : siphash_add_part(hash, bytes);
    uint64_t v[4]; /* in registers */

    memcpy(v, hash->v, sizeof(v));
    for (; bytes.len - at >= 8; at += 8) {
        uint64_t word;

        memcpy(&word, bytes.data + at, sizeof(word));
        siphash_compress(v, le64toh(word));
        hash->len += 8;
    }
    memcpy(hash->v, v, sizeof(v));
    (void)siphash_add_part(hash, (struct span){bytes.data + at, bytes.len - at});
}

uint64_t siphash_end(struct siphash *hash)
{
    siphash_compress(hash->v, hash->word | (uint64_t)hash->len << 56);
    hash->v[2] ^= 0xff;
    for (int i = 0; i < 4; i++)
        siphash_round(hash->v);
    return hash->v[0] ^ hash->v[1] ^ hash->v[2] ^ hash->v[3];
}

uint64_t siphash_public(struct span bytes)
{
    struct siphash hash = siphash_begin((const uint64_t[2]){0});

    siphash_add(&hash, bytes);
    return siphash_end(&hash);
}

uint64_t siphash_public_pair(uint64_t a, uint64_t b)
{
    const uint64_t words[] = {htole64(a), htole64(b)};

    return siphash_public((struct span){(const char *)words, sizeof(words)});
}
