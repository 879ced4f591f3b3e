/* WattTime's login, which comes before its question. Basic authentication is for who asks. */
#pragma once

#include <stddef.h>

#include "core/error.h"
#include "core/span.h"

#define WATTTIME_LOGIN_PATH "/login"

enum {
    WATTTIME_TOKEN_BYTES = 4096,
    WATTTIME_TOKEN_S = 25 * 60, /* it is valid for 30 minutes */
};

/* The token of a login's answer: only what may stand in a header. 0, -ENOMEM or -EBADMSG. */
int watttime_parse_token(struct span body, char *token, size_t size_bytes, struct error *err);
