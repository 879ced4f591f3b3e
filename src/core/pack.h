/* Pack: serialised fields for another process of the same program, or its next run. Numbers have
 * seven bits a byte, the lowest first (LEB128), texts are after their length. Reading checks
 * everything all the same. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/buffer.h"
#include "core/span.h"

void pack_u64(struct buffer *buffer, uint64_t value);
void pack_bytes(struct buffer *buffer, struct span bytes);
void pack_text(struct buffer *buffer, const char *text); /* NULL is "" */

/* After the first fault everything reads as 0 or empty. */
struct unpack {
    struct span rest;
    bool is_broken;
};

uint64_t unpack_u64(struct unpack *unpack, uint64_t max);
/* Both point into the packed bytes. */
struct span unpack_bytes(struct unpack *unpack);
const char *unpack_text(struct unpack *unpack);

/* 0: everything was read, without a fault. Else -EPROTO. */
int unpack_end(const struct unpack *unpack);

/*
 * Coder: one walk over the fields of a struct packs or unpacks it. code_*() packs `value` and
 * returns it, or returns what was unpacked.
 */
struct coder {
    struct buffer *out; /* NULL: unpacking */
    struct unpack in;
};

static inline bool coder_is_unpacking(const struct coder *coder)
{
    return !coder->out;
}

/* What was unpacked cannot be right: nothing more is read. Packing, it does nothing. */
void coder_reject(struct coder *coder);

uint64_t code_u64(struct coder *coder, uint64_t value, uint64_t max);
unsigned __int128 code_u128(struct coder *coder, unsigned __int128 value);
double code_double(struct coder *coder, double value); /* finite */
struct span code_bytes(struct coder *coder, struct span value);
const char *code_text(struct coder *coder, const char *value);

/* A number of items that follow, each of at least a byte: never more than there can be. */
size_t code_count(struct coder *coder, size_t value, size_t max);

/* A text of less than `size_bytes` in an array of that size. */
void code_array_text(struct coder *coder, char *text, size_t size_bytes);

/* The same of a text that is allocated; "" is NULL. Rejects it if out of memory. */
void code_allocated_text(struct coder *coder, char **text, size_t size_bytes);
