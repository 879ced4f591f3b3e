/* The memory that nobody owns: in use, but by no process that the driver lists. */
#include "attribution/gpu/gpu.h"

#include <stdlib.h>

#include "core/macros.h"

/* Lists that were read longer before the memory than this, and three windows, say nothing of it. */
static const uint64_t LISTS_STALE_US = 5 * USEC_PER_SEC;

void gpu_set_attached(struct gpu *gpu, struct attached *attached, size_t count)
{
    free(gpu->attached);
    gpu->attached = attached;
    gpu->attached_count = count;
}

/* The memory of a listed process; a process on two lists has it once. False: the driver does not
 * say. */
static bool memory_of(const struct gpu *gpu, uint32_t process, uint64_t *ret_bytes)
{
    const struct sighting *seen = gpu_sighting(gpu, process);

    *ret_bytes = 0;
    for (int kind = 0; kind < SAMPLE_LIST_KINDS; kind++) {
        if (gpu->list_round[kind] == 0 || seen->list_round[kind] != gpu->list_round[kind])
            continue;
        if (seen->memory_bytes[kind] == SAMPLE_MEMORY_UNKNOWN)
            return false;
        *ret_bytes = MAX(*ret_bytes, seen->memory_bytes[kind]);
    }
    return true;
}

static bool lists_are_fresh(const struct gpu *gpu, uint64_t t_us)
{
    uint64_t read_us = gpu->list_us[SAMPLE_LIST_COMPUTE];

    return read_us > 0 && read_us + MAX(LISTS_STALE_US, 3 * gpu->options.interval_us) >= t_us;
}

void gpu_read_memory(struct gpu *gpu, uint64_t t_us, uint64_t used_bytes)
{
    uint64_t known_bytes = 0, bytes;
    bool told = lists_are_fresh(gpu, t_us);

    for (uint32_t i = 0; i < ledger_process_slots(gpu->ledger) && told; i++) {
        const struct ledger_process *process = ledger_process(gpu->ledger, i);

        if (!process || process->superseded || process->meter != gpu->meter)
            continue;
        told = memory_of(gpu, i, &bytes);
        known_bytes += bytes;
    }
    if (!told) {
        gpu->unknown_readings = 0;
        return;
    }
    gpu->unknown_bytes[gpu->unknown_readings++ % GPU_UNKNOWN_READINGS] =
        used_bytes > known_bytes ? used_bytes - known_bytes : 0;
}

/*
 * The least of the last readings: the list and the memory are two calls, and a process that
 * allocates between them must not look like a stranger.
 */
bool gpu_unknown_memory(const struct gpu *gpu, uint64_t *ret_bytes)
{
    uint64_t least = UINT64_MAX;

    if (gpu->unknown_readings < GPU_UNKNOWN_READINGS)
        return false;
    for (size_t i = 0; i < GPU_UNKNOWN_READINGS; i++)
        least = MIN(least, gpu->unknown_bytes[i]);
    *ret_bytes = least;
    return true;
}
