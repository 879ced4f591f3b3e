/*
 * Pack: fields one after another, for another process of the same program. Numbers travel as they
 * are in memory, texts after their length. What can be wrong with them is checked all the same.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/buffer.h"
#include "core/span.h"

void pack_u64(struct buffer *buffer, uint64_t value);
void pack_bytes(struct buffer *buffer, struct span bytes);
void pack_text(struct buffer *buffer, const char *text); /* NULL is "" */

/* What is left to read. After the first fault everything is 0 or empty. */
struct unpack {
    struct span rest;
    bool is_broken;
};

uint64_t unpack_u64(struct unpack *unpack, uint64_t max);
/* Both point into the bytes that are read. */
struct span unpack_bytes(struct unpack *unpack);
const char *unpack_text(struct unpack *unpack);

/* Was all of it read, without a fault? 0 or -EPROTO. */
int unpack_end(const struct unpack *unpack);
