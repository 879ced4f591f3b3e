/* Map: open addressing from a hash to a 32-bit value, usually an index into the caller's array. It
 * holds no keys: on equal hashes the caller compares. So it serves numbers and strings alike. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/span.h"

struct map_slot {
    uint64_t hash; /* 0 is an empty slot */
    uint32_t value;
};

struct map {
    struct map_slot *slots;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
};

/* Is `value` that of `key`? */
typedef bool map_equal(const void *context, uint32_t value, const void *key);

void map_done(struct map *map);
bool map_find(const struct map *map, uint64_t hash, map_equal *equal, const void *context,
              const void *key, uint32_t *ret_value);

/* The key must not be in the map yet. Returns 0 or -ENOMEM. */
int map_insert(struct map *map, uint64_t hash, uint32_t value);

/* Removes the entry with this value, if there is one. */
void map_remove(struct map *map, uint64_t hash, uint32_t value);

/*
 * Never 0. Keyed by the process, so that names cannot be chosen to collide: tenants name cgroups,
 * containers and images. For maps alone: not to be stored, recorded or compared across processes
 * (siphash_public is for that).
 */
uint64_t map_hash_u64(uint64_t number);
uint64_t map_hash_bytes(struct span bytes);
