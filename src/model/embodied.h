/*
 * Embodied carbon: what it took to make a device, spread over its life as grams for each hour that
 * it is there. Neither the energy that the device uses nor the PUE changes it.
 *
 * The books hold whose the device's time was, in whole microseconds; metrics/ makes grams of it,
 * once, to print.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/meter.h"
#include "model/price.h"

enum { EMBODIED_MAX_G = 100000 };

struct embodied_rate {
    bool known;
    uint64_t ug_per_hour; /* at most EMBODIED_MAX_G */
};

/* Of each device of a kind. */
struct embodied_rates {
    struct embodied_rate of[METER_KINDS];
};

/* What a device's time is worth, in the unit of bills: 1 g is 3.6e15 us x ug per hour. */
static inline unsigned __int128 embodied_bill(struct embodied_rate rate, uint64_t device_us)
{
    return (unsigned __int128)device_us * rate.ug_per_hour * (BILL_ONE / 3600000000000000);
}
