/* Table: entries by key, each allocated on its own, and an array of all of them without holes. An
 * entry begins with a struct table_entry and holds its key, which the caller compares. */
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

typedef bool table_has_key(const void *entry, const void *key);

/* NULL: not found. */
void *table_find(const struct table *table, uint64_t hash, table_has_key *has_key, const void *key);

/* Appends a zeroed entry of `size_bytes` for a key that is not in the table yet. NULL: out of
 * memory. */
void *table_add(struct table *table, uint64_t hash, size_t size_bytes);

/* Frees the entry, not what it points to. The last item takes its place: iterate backwards to
 * remove several. */
void table_remove(struct table *table, void *entry);

/* Frees the entries, not what they point to. */
void table_done(struct table *table);
