/* Arena: memory that is freed at once, for what lives one cycle. Not thread-safe. Beyond a cap
 * allocation fails, so that outsiders cannot exhaust memory. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct arena_chunk;

struct arena {
    struct arena_chunk *chunks; /* newest first */
    size_t used_bytes;          /* over all chunks */
    size_t cap_bytes;
};

void arena_init(struct arena *arena, size_t cap_bytes);

/* Frees everything; the arena stays usable. Accepts a zeroed struct. */
void arena_done(struct arena *arena);

/* Empties it but keeps the newest chunk, so that a steady cycle allocates nothing. */
void arena_reset(struct arena *arena);

/* Zeroed memory, aligned for any type. NULL when out of memory or over the cap. */
void *arena_alloc(struct arena *arena, size_t size_bytes) __attribute__((malloc));
void *arena_array(struct arena *arena, size_t count, size_t size_bytes);

/* A NUL-terminated copy of `len` bytes. NULL as above. */
char *arena_copy(struct arena *arena, const char *bytes, size_t len);
