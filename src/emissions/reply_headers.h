/* Headers of a provider's reply: its type, its validators for a conditional request, and how long
 * to wait before the next one. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { REPLY_VALIDATOR_BYTES = 256 };

/* Printable; "": absent, or of no use. */
struct reply_headers {
    char content_type[128];
    char location[256];
    char etag[REPLY_VALIDATOR_BYTES], last_modified[REPLY_VALIDATOR_BYTES];
    char retry_after[64], rate_limit_reset[64];
};

/* The on_header of struct http_request; `context` is a struct reply_headers, initially all 0. */
void reply_headers_take(void *context, const char *name, const char *value);

/* Whether the body may be in this format, "JSON" or "XML": no header says otherwise. */
bool reply_headers_allow(const struct reply_headers *headers, const char *format);

/* How long the service wants no request; 0: it does not say. `now_us` is since the epoch. */
uint64_t reply_headers_wait_us(const struct reply_headers *headers, uint64_t now_us);
