/* Writing JSON into a buffer: only what a value from outside needs, which is quoting. */
#pragma once

#include "core/buffer.h"

/* A quoted JSON string; bytes that are not UTF-8 become U+FFFD. */
void json_string(struct buffer *out, const char *text);
