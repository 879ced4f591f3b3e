/* Words of a line, separated by one blank, and the numbers in them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Cuts the next word off; NULL at the end of the line. */
char *words_next(char **rest);

/* Decimal, or hexadecimal after 0x; no sign, nothing behind it. */
bool words_u64(const char *word, uint64_t *ret_value);
