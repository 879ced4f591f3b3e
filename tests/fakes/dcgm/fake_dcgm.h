/*
 * How a test steers the fake libdcgm.so.4 from inside its own process; resolve the functions with
 * dlsym. Without them the environment steers it: FAKE_DCGM_GPUS has the UUIDs of the boards of the
 * host engine, separated by commas, whose units are active half of the time; without it no host
 * engine runs. With FAKE_DCGM_SILENT it accepts, and connecting hangs.
 */
#pragma once

#include <stdint.h>

#define FAKE_DCGM_API __attribute__((visibility("default")))

enum fake_dcgm_engine {
    FAKE_DCGM_ABSENT,       /* nobody listens */
    FAKE_DCGM_RUNS,         /* with all fields */
    FAKE_DCGM_FEW_FIELDS,   /* an older one, which knows fields up to 1008 */
    FAKE_DCGM_NO_PROFILING, /* its boards cannot be profiled */
    FAKE_DCGM_OTHER_ENGINE, /* of another version than the library */
    FAKE_DCGM_HANGS,        /* it accepts, and its values never come */
    FAKE_DCGM_SILENT,       /* it accepts, and says nothing */
};

/* As if the library had just been loaded, with a host engine that has one board. */
FAKE_DCGM_API void fake_dcgm_reset(enum fake_dcgm_engine engine, const char *uuid);

/* From now on the host engine does that; one that was absent before has no connections. Lets calls
 * that hang go on with an error. */
FAKE_DCGM_API void fake_dcgm_set_engine(enum fake_dcgm_engine engine);

/* The newest value of a profiling field, as the host engine caches it. */
FAKE_DCGM_API void fake_dcgm_set_value(uint16_t field, double value, uint64_t t_us);

/* Blocks until a call hangs. */
FAKE_DCGM_API void fake_dcgm_wait_hanging(void);

/* Fields that are watched, and calls of dcgmInit that no dcgmShutdown has answered. */
FAKE_DCGM_API unsigned fake_dcgm_watched(void);
FAKE_DCGM_API unsigned fake_dcgm_init_count(void);
