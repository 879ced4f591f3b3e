/* Validation of UTF-8. */
#pragma once

#include <stddef.h>

#include "core/span.h"

#define UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* Length in bytes (1 to 4) of the valid character at the front, or 0 if there is none: overlong
 * forms, surrogates, values above U+10FFFF and cut sequences are not valid. */
size_t utf8_char_len(struct span text);
