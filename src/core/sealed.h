/* Sealed memory: bytes for another process that cannot be changed any more. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { SEALED_MAX_BYTES = 256 << 20 };

/* Copies `data` into a new memfd and seals it. -EFBIG when it is empty or over SEALED_MAX_BYTES,
 * which the other end would reject. */
int sealed_create(const char *data, size_t len, int *ret_fd);

/* 0: it is sealed and exactly this long, so that mapping it is safe. Else -EPROTO. */
int sealed_check(int fd, uint64_t bytes);
