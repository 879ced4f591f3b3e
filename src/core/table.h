/*
 * Table: entries by key, each in memory of its own, and all of them in an array without holes. An
 * entry begins with a struct table_entry; the key is in the rest of it, and the caller compares.
 */
#pragma once

#include "core/map.h"

struct table_entry {
    uint64_t hash;
    uint32_t index;
};

/* Zeroed, it is empty. */
struct table {
    void **items;
    size_t count, capacity;
    struct map map;
};

/* Has the entry this key? */
typedef bool table_has_key(const void *entry, const void *key);

/* NULL: there is none. */
void *table_find(const struct table *table, uint64_t hash, table_has_key *has_key, const void *key);

/* Adds zeroed memory of `size_bytes`, as the last item, for an entry whose key is not in the table
 * yet. NULL: out of memory. */
void *table_add(struct table *table, uint64_t hash, size_t size_bytes);

/* Frees the entry, not what it points to. The last item takes its place: go from the last to the
 * first to remove some. */
void table_remove(struct table *table, void *entry);

/* Frees the entries, not what they point to. */
void table_done(struct table *table);
