#include "core/arena.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"

enum { CHUNK_MIN_BYTES = 16 * 1024 };

struct arena_chunk {
    struct arena_chunk *next;
    size_t size_bytes;
    size_t used_bytes;
    alignas(max_align_t) char data[];
};

void arena_init(struct arena *arena, size_t cap_bytes)
{
    *arena = (struct arena){.cap_bytes = cap_bytes};
}

static void arena_free_chunks(struct arena_chunk *chunk)
{
    while (chunk) {
        struct arena_chunk *next = chunk->next;

        free(chunk);
        chunk = next;
    }
}

void arena_done(struct arena *arena)
{
    arena_free_chunks(arena->chunks);
    arena->chunks = NULL;
    arena->used_bytes = 0;
}

void arena_reset(struct arena *arena)
{
    if (!arena->chunks)
        return;
    arena_free_chunks(arena->chunks->next);
    arena->chunks->next = NULL;
    arena->chunks->used_bytes = 0;
    arena->used_bytes = 0;
}

void *arena_alloc(struct arena *arena, size_t size_bytes)
{
    const size_t align = alignof(max_align_t);
    struct arena_chunk *chunk = arena->chunks;
    size_t need, size;
    void *p;

    if (size_bytes > arena->cap_bytes || size_bytes > SIZE_MAX - align)
        return NULL;
    need = (size_bytes + align - 1) & ~(align - 1);
    if (need > arena->cap_bytes - arena->used_bytes)
        return NULL;
    if (!chunk || chunk->size_bytes - chunk->used_bytes < need) {
        /* Doubling keeps the number of chunks logarithmic in what a cycle needs. */
        size = MAX(need, chunk ? chunk->size_bytes * 2 : CHUNK_MIN_BYTES);
        chunk = malloc(sizeof(*chunk) + size);
        if (!chunk)
            return NULL;
        *chunk = (struct arena_chunk){.next = arena->chunks, .size_bytes = size};
        arena->chunks = chunk;
    }
    p = chunk->data + chunk->used_bytes;
    chunk->used_bytes += need;
    arena->used_bytes += need;
    memset(p, 0, need);
    return p;
}

void *arena_array(struct arena *arena, size_t count, size_t size_bytes)
{
    size_t total;

    if (__builtin_mul_overflow(count, size_bytes, &total))
        return NULL;
    return arena_alloc(arena, total);
}

char *arena_copy(struct arena *arena, const char *bytes, size_t len)
{
    char *copy = len < SIZE_MAX ? arena_alloc(arena, len + 1) : NULL;

    if (copy && len > 0)
        memcpy(copy, bytes, len);
    return copy;
}
