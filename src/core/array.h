/* Arrays that grow at their end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for one more than `count` items. `items` is the address of the pointer to them, which
 * may be NULL. False: out of memory; nothing has changed. */
static inline bool array_reserve(void *items, size_t *capacity, size_t count, size_t item_bytes)
{
    size_t more = *capacity ? *capacity * 2 : 32;
    void *old, *grown;

    if (count < *capacity)
        return true;
    memcpy(&old, items, sizeof(old));
    grown = reallocarray(old, more, item_bytes);
    if (!grown)
        return false;
    memcpy(items, &grown, sizeof(grown));
    *capacity = more;
    return true;
}
