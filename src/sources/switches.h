/* Which sources a user switched off, by name. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { SOURCE_SWITCHES_MAX = 16 };

struct source_switches {
    const char *off[SOURCE_SWITCHES_MAX]; /* literals */
    size_t off_count;
};

/* `switches` may be NULL: then all are on. */
static inline bool source_is_off(const struct source_switches *switches, const char *name)
{
    for (size_t i = 0; switches && i < switches->off_count; i++)
        if (strcmp(switches->off[i], name) == 0)
            return true;
    return false;
}
