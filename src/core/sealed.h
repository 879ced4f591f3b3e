/* Sealed memory: bytes that one process hands another, which nobody can change any more. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { SEALED_MAX_BYTES = 256 << 20 };

/* Copies `data` into a new memfd and seals it. -EFBIG when it is empty or over SEALED_MAX_BYTES:
 * the other end would refuse it. */
int sealed_create(const char *data, size_t len, int *ret_fd);

/* Is it sealed, and exactly this long? 0 or -EPROTO. Then mapping it is safe. */
int sealed_check(int fd, uint64_t bytes);
