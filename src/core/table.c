#include "core/table.h"

#include <stdlib.h>

#include "core/array.h"

struct lookup {
    const struct table *table;
    table_has_key *has_key;
};

static bool table_entry_matches(const void *context, uint32_t value, const void *key)
{
    const struct lookup *lookup = context;

    return lookup->has_key(lookup->table->items[value], key);
}

void *table_find(const struct table *table, uint64_t hash, table_has_key *has_key, const void *key)
{
    const struct lookup lookup = {table, has_key};
    uint32_t index;

    return map_find(&table->map, hash, table_entry_matches, &lookup, key, &index)
               ? table->items[index]
               : NULL;
}

void *table_add(struct table *table, uint64_t hash, size_t size_bytes)
{
    struct table_entry *entry;

    if (!array_reserve(&table->items, &table->capacity, table->count, sizeof(void *)) ||
        !(entry = calloc(1, size_bytes)))
        return NULL;
    if (map_insert(&table->map, hash, (uint32_t)table->count) < 0) {
        free(entry);
        return NULL;
    }
    *entry = (struct table_entry){hash, (uint32_t)table->count};
    table->items[table->count++] = entry;
    return entry;
}

void table_remove(struct table *table, void *entry)
{
    const struct table_entry *old = entry;
    struct table_entry *last = table->items[--table->count];

    map_remove(&table->map, old->hash, old->index);
    if (last != old) {
        map_remove(&table->map, last->hash, last->index);
        last->index = old->index;
        table->items[last->index] = last;
        /* Cannot fail: there is room for the two that were taken out. */
        (void)map_insert(&table->map, last->hash, last->index);
    }
    free(entry);
}

void table_done(struct table *table)
{
    for (size_t i = 0; i < table->count; i++)
        free(table->items[i]);
    free(table->items);
    map_done(&table->map);
    *table = (struct table){0};
}
