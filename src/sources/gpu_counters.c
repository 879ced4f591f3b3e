#include "sources/gpu_counters.h"

#include <stdio.h>
#include <string.h>

#include "core/macros.h"

void gpu_counters_init(struct gpu_counters *counters)
{
    *counters = (struct gpu_counters){0};
    pthread_mutex_init(&counters->lock, NULL);
}

void gpu_counters_want(struct gpu_counters *counters, uint32_t gpu, const char *uuid)
{
    struct gpu_counters_board *board;

    if (!counters)
        return;
    board = &counters->boards[gpu];
    pthread_mutex_lock(&counters->lock);
    if (strcmp(board->uuid, uuid ? uuid : "") != 0) {
        *board = (struct gpu_counters_board){0};
        snprintf(board->uuid, sizeof(board->uuid), "%s", uuid ? uuid : "");
    }
    pthread_mutex_unlock(&counters->lock);
}

bool gpu_counters_wanted(struct gpu_counters *counters, uint32_t gpu,
                         char ret_uuid[GPU_COUNTERS_UUID_BYTES])
{
    bool is_wanted;

    pthread_mutex_lock(&counters->lock);
    is_wanted = counters->boards[gpu].uuid[0] != '\0';
    if (is_wanted)
        memcpy(ret_uuid, counters->boards[gpu].uuid, GPU_COUNTERS_UUID_BYTES);
    pthread_mutex_unlock(&counters->lock);
    return is_wanted;
}

void gpu_counters_give(struct gpu_counters *counters, uint32_t gpu, uint64_t t_us,
                       const struct sample_gpm *reading)
{
    struct gpu_counters_board *board = &counters->boards[gpu];

    pthread_mutex_lock(&counters->lock);
    if (reading->valid == 0) {
        memset(board->sums, 0, sizeof(board->sums));
        memset(board->counts, 0, sizeof(board->counts));
    }
    for (size_t i = 0; i < SAMPLE_GPM_COUNT; i++)
        if (reading->valid & (1 << i)) {
            board->sums[i] += reading->millipercent[i];
            board->counts[i]++;
        }
    board->t_us = t_us;
    board->is_new = true;
    pthread_mutex_unlock(&counters->lock);
}

bool gpu_counters_take(struct gpu_counters *counters, uint32_t gpu, uint64_t *ret_t_us,
                       struct sample_gpm *ret_mean)
{
    struct gpu_counters_board *board = &counters->boards[gpu];
    struct sample_gpm mean = {.instance = SAMPLE_NO_INSTANCE};
    bool is_new;

    pthread_mutex_lock(&counters->lock);
    is_new = board->is_new;
    for (size_t i = 0; i < SAMPLE_GPM_COUNT; i++)
        if (board->counts[i] > 0) {
            mean.valid |= (uint16_t)(1 << i);
            mean.millipercent[i] = (uint32_t)(board->sums[i] / board->counts[i]);
        }
    if (is_new) {
        *ret_t_us = board->t_us;
        *ret_mean = mean;
        memset(board->sums, 0, sizeof(board->sums));
        memset(board->counts, 0, sizeof(board->counts));
        board->is_new = false;
    }
    pthread_mutex_unlock(&counters->lock);
    return is_new;
}
