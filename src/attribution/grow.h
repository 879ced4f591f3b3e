/* Arrays that only grow, so that an index stays valid. */
#pragma once

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"

/* Grows an array of `slots` items to at least `needed`, the new ones zeroed. `items` is the address
 * of the pointer to them, which may be NULL. 0 or -ENOMEM; then nothing has changed. */
static inline int grow_zeroed(void *items, size_t *slots, size_t needed, size_t item_bytes)
{
    size_t grown_slots = MAX(needed, MAX(*slots * 2, (size_t)16));
    char *old, *grown;

    if (needed <= *slots)
        return 0;
    memcpy(&old, items, sizeof(old));
    grown = reallocarray(old, grown_slots, item_bytes);
    if (!grown)
        return -ENOMEM;
    memset(grown + *slots * item_bytes, 0, (grown_slots - *slots) * item_bytes);
    memcpy(items, &grown, sizeof(grown));
    *slots = grown_slots;
    return 0;
}
