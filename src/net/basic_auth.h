/* The Authorization header of basic authentication (RFC 7617): a name and a password in base64. */
#pragma once

#include "core/span.h"

enum { BASIC_AUTH_MAX_BYTES = 768 }; /* of both together */

struct basic_auth {
    struct span user, password; /* in `bytes`; any bytes at all */
    char bytes[BASIC_AUTH_MAX_BYTES];
};

/* `header` may be NULL. 0, or -EINVAL: no such header, or not of this form. */
int basic_auth_parse(const char *header, struct basic_auth *ret_auth);
