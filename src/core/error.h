/* An error message for users: what was tried, on what, why it failed, what to do. Functions take a
 * `struct error *`, which may be NULL, beside returning a negative errno. */
#pragma once

#include <stdbool.h>

#include "core/macros.h"

struct error {
    char text[1024];
};

void error_format(struct error *err, const char *format, ...) PRINTF(2, 3);

/* Formats the text; its value is `code`, a negative errno, for `return error_set(...)`. A macro, so
 * that analysers see the value. */
#define error_set(err, code, ...)                                                                  \
    ({                                                                                             \
        int error_code_ = (code);                                                                  \
        error_format((err), __VA_ARGS__);                                                          \
        error_code_;                                                                               \
    })

/* 0, or a negative errno as the kernel has them (MAX_ERRNO). For results from other processes: -r
 * is defined. */
static inline bool error_is_result(int r)
{
    return r <= 0 && r > -4096;
}
