/* "Did you mean": the nearest of the names that exist to one that does not. */
#pragma once

#include <stddef.h>

#include "core/span.h"

struct suggestion {
    const char *name; /* NULL: nothing is near enough */
    size_t distance;
};

/* Keeps `candidate` if it is nearer to `wanted` than what `best` (zeroed at first) holds. */
void suggest_consider(struct suggestion *best, struct span wanted, const char *candidate);
