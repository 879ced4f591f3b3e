/* SipHash-2-4 (Aumasson, Bernstein): a keyed hash. Whoever does not know the key can neither choose
 * texts with the same hash nor learn a text from its hash. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/span.h"

struct siphash {
    uint64_t v[4];
    uint64_t word; /* bytes that are not compressed yet */
    size_t len;
};

struct siphash siphash_begin(const uint64_t key[2]);
void siphash_add(struct siphash *hash, struct span bytes);
uint64_t siphash_end(struct siphash *hash); /* may be 0 */

/* With a key that everybody knows: the same in every process, so that it may be stored. */
uint64_t siphash_public(struct span bytes);
uint64_t siphash_public_pair(uint64_t a, uint64_t b);
