/* Pack: serialised fields for another process of the same program. Numbers are as in memory, texts
 * after their length. Reading checks everything all the same. */
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
