/*
 * Counters of a board's units that another library reads where the driver has no GPM. The source of
 * the board asks for them; whoever reads them adds them up here; the source of the board passes the
 * mean on as SAMPLE_GPM, in order with its other samples and without ever waiting for the other.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/sample.h"

enum { GPU_COUNTERS_UUID_BYTES = 96 };

struct gpu_counters_board {
    char uuid[GPU_COUNTERS_UUID_BYTES]; /* "": it wants none */
    bool is_new;                        /* something was given since the last take */
    uint64_t t_us;                      /* of the newest reading */
    uint64_t sums[SAMPLE_GPM_COUNT];    /* millipercent, of the readings since the last take */
    uint32_t counts[SAMPLE_GPM_COUNT];
};

struct gpu_counters {
    pthread_mutex_t lock;
    struct gpu_counters_board boards[SAMPLE_GPU_MAX];
};

void gpu_counters_init(struct gpu_counters *counters);

/* Asks for counters of a board. NULL or "": none any more. Nothing happens if `counters` is NULL.
 */
void gpu_counters_want(struct gpu_counters *counters, uint32_t gpu, const char *uuid);

/* The board that wants counters under this index; false: none does. */
bool gpu_counters_wanted(struct gpu_counters *counters, uint32_t gpu,
                         char ret_uuid[GPU_COUNTERS_UUID_BYTES]);

/* What the units did since the last reading. Without any valid value it ends what came before: the
 * next one counts from then on. */
void gpu_counters_give(struct gpu_counters *counters, uint32_t gpu, uint64_t t_us,
                       const struct sample_gpm *reading);

/* The mean since the last take, of the whole board; false: there is nothing new. */
bool gpu_counters_take(struct gpu_counters *counters, uint32_t gpu, uint64_t *ret_t_us,
                       struct sample_gpm *ret_mean);
