/* What no reading of a node's power can be. */
#pragma once

#include <stdint.h>

/* No node draws 50 kW; registers of all ones claim more. */
#define PLAUSIBLE_POWER_MAX_UW ((uint64_t)50000000000)
