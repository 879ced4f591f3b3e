/*
 * How a test steers the fake libnvidia-ml.so.1 from inside its own process. The functions are
 * exported beside NVML's; resolve them with dlsym from the same handle:
 *
 *     typeof(fake_nvml_load) *load = dlsym(library, "fake_nvml_load");
 *
 * Without them the environment steers it: FAKE_NVML_SCENARIO is the trace that the first nvmlInit
 * reads, FAKE_NVML_SPEED the pace (1), FAKE_NVML_PIDS a file as of the directive `pids-from`.
 * README.md describes the directives. All functions may be called from any thread; only
 * fake_nvml_wait_hanging blocks.
 */
#pragma once

#include <stdint.h>

#define FAKE_NVML_API __attribute__((visibility("default")))

/* Reads a scenario instead of FAKE_NVML_SCENARIO; the clock starts with the next nvmlInit.
 * Refused with -EBUSY while NVML is initialised, -EINVAL for a bad file (the reason is on stderr).
 */
FAKE_NVML_API int fake_nvml_load(const char *path);

/* Stops the clock at this time after the start of the trace. Until fake_nvml_reset the clock
 * moves only by further calls, and the times handed out are those of the trace itself. */
FAKE_NVML_API void fake_nvml_set_time_us(uint64_t elapsed_us);

/* As if the library had just been loaded: no scenario, no handles, no counts, the real clock. */
FAKE_NVML_API void fake_nvml_reset(void);

/* How often this NVML function was called; 0 for a name that the fake does not know. */
FAKE_NVML_API uint64_t fake_nvml_call_count(const char *symbol);

/* GPM samples and event sets that were made and not freed. */
FAKE_NVML_API unsigned fake_nvml_open_handles(void);

/* Calls of nvmlInit that no nvmlShutdown has answered yet. */
FAKE_NVML_API unsigned fake_nvml_init_count(void);

/* Calls with a handle from before the last nvmlShutdown. */
FAKE_NVML_API uint64_t fake_nvml_stale_uses(void);

/* Blocks until this many calls hang at the same time. */
FAKE_NVML_API void fake_nvml_wait_hanging(unsigned calls);

/* Lets all calls go on that hang now on a stopped clock. */
FAKE_NVML_API void fake_nvml_release_hangs(void);
