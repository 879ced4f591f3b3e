/* Base64 (RFC 4648, section 4), as the Authorization header of HTTP wants it. */
#pragma once

#include "core/buffer.h"
#include "core/span.h"

void base64_write(struct buffer *out, struct span bytes);
