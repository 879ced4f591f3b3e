/* WattTime's login, which comes before its question. */
#pragma once

#include <stddef.h>

#include "core/error.h"
#include "core/span.h"

/* The token of a login's answer, as provider_login has it. */
int watttime_parse_token(struct span body, char *token, size_t size_bytes, struct error *err);
