/* How much of what was booked is determined by data: what was measured counts 1, a time share 0. */
#pragma once

#include <stdint.h>

/* In millionths; 0 where nothing was booked. */
static inline int64_t confidence_millionths(uint64_t known_uj, uint64_t energy_uj)
{
    return energy_uj ? (int64_t)((unsigned __int128)known_uj * 1000000 / energy_uj) : 0;
}
