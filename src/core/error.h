/*
 * An error for people: what was tried, on what, why it failed, what to do.
 *
 * Functions whose failure a user will read take a `struct error *` (may be NULL) beside their
 * negative errno. The text is filled once, where most is known.
 */
#pragma once

#include "core/macros.h"

struct error {
    char text[1024];
};

void error_format(struct error *err, const char *format, ...) PRINTF(2, 3);

/* Fills the text; its value is `code` (a negative errno), so that `return error_set(...)` reads. A
 * macro, so that analysers see the value. */
#define error_set(err, code, ...)                                                                  \
    ({                                                                                             \
        int error_code_ = (code);                                                                  \
        error_format((err), __VA_ARGS__);                                                          \
        error_code_;                                                                               \
    })
