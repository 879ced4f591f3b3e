/* The power limits of a board, as calls and as fields. */
#pragma once

#include "call.h"

enum power_limit {
    LIMIT_MIN,
    LIMIT_MAX,
    LIMIT_DEFAULT,
    LIMIT_CURRENT,
};

/* NOT_SUPPORTED where neither the `gpu` line nor a directive gives one. */
int limits_get_mw(const struct call *call, enum power_limit limit, uint64_t *ret_mw);
