#include "core/map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "core/siphash.h"

enum { CAPACITY_MIN = 16 };

void map_done(struct map *map)
{
    free(map->slots);
    *map = (struct map){0};
}

bool map_find(const struct map *map, uint64_t hash, map_equal *equal, const void *context,
              const void *key, uint32_t *ret_value)
{
    if (map->capacity == 0)
        return false;
    for (size_t i = hash & (map->capacity - 1); map->slots[i].hash != 0;
         i = (i + 1) & (map->capacity - 1)) {
        if (map->slots[i].hash != hash || !equal(context, map->slots[i].value, key))
            continue;
        *ret_value = map->slots[i].value;
        return true;
    }
    return false;
}

static void map_place(struct map_slot *slots, size_t capacity, struct map_slot entry)
{
    size_t i = entry.hash & (capacity - 1);

    while (slots[i].hash != 0)
        i = (i + 1) & (capacity - 1);
    slots[i] = entry;
}

static int map_grow(struct map *map)
{
    size_t capacity = map->capacity ? map->capacity * 2 : CAPACITY_MIN;
    struct map_slot *slots = calloc(capacity, sizeof(*slots));

    if (!slots)
        return -ENOMEM;
    for (size_t i = 0; i < map->capacity; i++)
        if (map->slots[i].hash != 0)
            map_place(slots, capacity, map->slots[i]);
    free(map->slots);
    map->slots = slots;
    map->capacity = capacity;
    return 0;
}

int map_insert(struct map *map, uint64_t hash, uint32_t value)
{
    /* At most two thirds full: probes stay short. */
    if (map->count + 1 > map->capacity / 3 * 2) {
        int r = map_grow(map);

        if (r < 0)
            return r;
    }
    map_place(map->slots, map->capacity, (struct map_slot){hash, value});
    map->count++;
    return 0;
}

void map_remove(struct map *map, uint64_t hash, uint32_t value)
{
    size_t mask = map->capacity - 1, hole;

    if (map->capacity == 0)
        return;
    hole = hash & mask;
    while (map->slots[hole].hash != hash || map->slots[hole].value != value) {
        if (map->slots[hole].hash == 0)
            return;
        hole = (hole + 1) & mask;
    }
    /* Move later entries of the cluster back, so that no tombstone is needed. */
    for (size_t i = (hole + 1) & mask; map->slots[i].hash != 0; i = (i + 1) & mask) {
        size_t home = map->slots[i].hash & mask;

        if (((i - home) & mask) >= ((i - hole) & mask)) {
            map->slots[hole] = map->slots[i];
            hole = i;
        }
    }
    map->slots[hole] = (struct map_slot){0};
    map->count--;
}

/* The kernel's gift to each process: 16 random bytes. No call that could fail, no state to set up.
 */
static void map_key(uint64_t ret_key[2])
{
    const void *bytes = (const void *)getauxval(AT_RANDOM);

    memcpy(ret_key, bytes, 2 * sizeof(*ret_key));
}

uint64_t map_hash_u64(uint64_t number)
{
    uint64_t key[2];

    /* Between the halves of the key, the finaliser of splitmix64: numbers are pids and the like,
     * of which nobody can choose many. 0 is reserved for an empty slot. */
    map_key(key);
    number += key[0];
    number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9ULL;
    number = (number ^ (number >> 27)) * 0x94d049bb133111ebULL;
    number ^= (number >> 31) ^ key[1];
    return number ?: 1;
}

uint64_t map_hash_bytes(struct span bytes)
{
    struct siphash hash;
    uint64_t key[2];

    map_key(key);
    hash = siphash_begin(key);
    siphash_add(&hash, bytes);
    return siphash_end(&hash) ?: 1;
}
