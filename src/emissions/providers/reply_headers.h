/* What the headers of an answer say: what it is, how to ask whether it has changed, and how long
 * not to ask. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { REPLY_VALIDATOR_BYTES = 256 };

/* As they came, printable; "": it has none that is of use. */
struct reply_headers {
    char content_type[128];
    char location[256];
    char etag[REPLY_VALIDATOR_BYTES], last_modified[REPLY_VALIDATOR_BYTES];
    char retry_after[64], rate_limit_reset[64];
};

/* As on_header of struct http_request: `context` is a struct reply_headers, all 0 at first. */
void reply_headers_take(void *context, const char *name, const char *value);

/* Whether the body may be of this format, "JSON" or "XML": nothing says that it is another. */
bool reply_headers_allow(const struct reply_headers *headers, const char *format);

/* How long the service wants to be left alone; 0: it does not say. `now_us` is since the epoch. */
uint64_t reply_headers_wait_us(const struct reply_headers *headers, uint64_t now_us);
