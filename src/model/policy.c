#include "model/policy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const struct gpu_idle_power *gpu_idle_find(const struct gpu_idle_powers *powers, uint32_t index,
                                           const char *uuid)
{
    const struct gpu_idle_power *found = NULL;
    char number[16];

    snprintf(number, sizeof(number), "%" PRIu32, index);
    for (size_t i = 0; powers && i < powers->count; i++) {
        const struct gpu_idle_power *power = &powers->items[i];

        if (strcmp(power->gpu, uuid) == 0 || strcmp(power->gpu, number) == 0)
            return power;
        if (power->gpu[0] == '\0')
            found = power;
    }
    return found;
}
