/*
 * A GPU that processes share, as the estimator believes it to be: while a process is resident it
 * has its own watts and uses units in its own way, and they take turns. All of that is exact; which
 * of them a utilisation sample names is a draw.
 */
#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "attribution/gpu/intensity/slot.h"
#include "core/macros.h"
#include "random.h"

enum { LOADS_MAX = 64 };
#define SHARED_SLOT_US ((uint64_t)200000)

/* A process, while it is resident. */
struct load {
    double watts;             /* above idle */
    double units[UNIT_COUNT]; /* as parts of their maximum */
};

struct shared_gpu {
    double idle_watts;
    size_t count;
    struct load loads[LOADS_MAX];
    double noise; /* of power and units, as a part of them */
    uint32_t clock_mhz;
    double clock_exponent; /* of the watts: those of the loads are at 2 GHz */
    struct random_source random;
};

/* What went on for a fifth of a second. */
struct shared_slot {
    double busy;            /* as a part of it */
    double joules;          /* with idle */
    double used[LOADS_MAX]; /* active joules of each: the truth */
    double units[UNIT_COUNT];
    size_t winner; /* of the sample; SIZE_MAX: no load was resident */
};

/* About 1, the wider the noisier. */
static double shared_gpu_noise(struct shared_gpu *gpu)
{
    return 1 + gpu->noise * (random_part(&gpu->random) + random_part(&gpu->random) - 1) * 2;
}

/* Each process is resident for its part of the time; what is left of 1 is idle. */
static struct shared_slot shared_gpu_run(struct shared_gpu *gpu, const double *parts)
{
    double seconds = (double)SHARED_SLOT_US / 1e6, drawn = random_part(&gpu->random);
    double at_clock = gpu->clock_mhz > 0 ? pow(gpu->clock_mhz / 2000.0, gpu->clock_exponent) : 1;
    struct shared_slot slot = {.joules = gpu->idle_watts * seconds, .winner = SIZE_MAX};

    for (size_t i = 0; i < gpu->count; i++) {
        if (drawn >= slot.busy && drawn < slot.busy + parts[i])
            slot.winner = i;
        slot.busy += parts[i];
        slot.used[i] = parts[i] * gpu->loads[i].watts * at_clock * seconds;
        slot.joules += slot.used[i];
        for (size_t u = 0; u < UNIT_COUNT; u++)
            slot.units[u] += parts[i] * gpu->loads[i].units[u];
    }
    slot.joules *= shared_gpu_noise(gpu);
    for (size_t u = 0; u < UNIT_COUNT; u++)
        slot.units[u] = MIN(slot.units[u] * shared_gpu_noise(gpu), 1.0);
    return slot;
}

/* The same as the estimator reads it, with tenant i for process i. */
static struct slot shared_slot_read(const struct shared_gpu *gpu, const struct shared_slot *ran,
                                    uint64_t start_us, uint32_t listed)
{
    struct slot slot = {
        .start_us = start_us,
        .end_us = start_us + SHARED_SLOT_US,
        .energy_uj = (uint64_t)(ran->joules * 1e6),
        .clock_sum_mhz = gpu->clock_mhz,
        .clock_readings = gpu->clock_mhz > 0,
        .listed = listed,
        .gpm = {.known_us = (double)SHARED_SLOT_US, .busy_us = ran->busy * (double)SHARED_SLOT_US},
    };

    for (size_t u = 0; u < UNIT_COUNT; u++)
        slot.gpm.units_us[u] = ran->units[u] * (double)SHARED_SLOT_US;
    if (ran->winner < TENANTS_MAX)
        slot.won[ran->winner] = 1;
    return slot;
}
