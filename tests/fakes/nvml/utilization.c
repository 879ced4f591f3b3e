/*
 * Utilisation of processes: the driver's ring of samples, one for about 200 ms of the whole device,
 * each labelled with the process that was resident at that instant (measured on the H200).
 */
#include "call.h"

enum {
    RING_SLOTS = 72,
    RING_US = RING_SLOTS * 200000,
};

struct ring {
    struct nvml_process_utilization_sample samples[RING_SLOTS];
    unsigned count;
};

static struct nvml_process_utilization_sample make_sample(const struct call *call,
                                                          const struct pids *pids,
                                                          const struct record *record,
                                                          int64_t elapsed_us)
{
    return (struct nvml_process_utilization_sample){
        .pid = pids_map(pids, record->values[0]),
        .time_stamp = call_stamp_us(call, elapsed_us),
        .sm_util = (uint32_t)record->values[2],
        .mem_util = (uint32_t)record->values[3],
        .enc_util = (uint32_t)record->values[4],
        .dec_util = (uint32_t)record->values[5],
    };
}

/* Adds the samples of one round that the ring still holds, newest first. False: it holds no more.
 */
static bool take_round(struct call *call, struct ring *ring, uint64_t round, uint64_t last_seen_us)
{
    const struct scenario *scenario = call->fake->scenario;
    const struct series *series = &call_gpu(call)->series[KIND_SAMPLE];
    const struct pids *pids = call_pids(call);
    uint64_t end_us = round == call->play.round ? call->play.t_us : scenario->loop_us - 1;
    const struct record *record = series_at(series, end_us);

    for (; record && record >= series->records; record--) {
        int64_t elapsed_us = play_elapsed_us(scenario, round, record->t_us);
        int64_t age_us = (int64_t)call->play.elapsed_us - elapsed_us;

        if (ring->count == RING_SLOTS || age_us >= RING_US ||
            call_stamp_us(call, elapsed_us) <= last_seen_us)
            return false;
        ring->samples[ring->count++] = make_sample(call, pids, record, elapsed_us);
    }
    return true;
}

/* One record for a process: its mean over all samples, at the time of its last one. The samples
 * come newest first. */
static void make_means(struct ring *ring)
{
    unsigned all = ring->count, count = 0;
    uint32_t sums[RING_SLOTS][4] = {0};

    for (unsigned i = 0; i < all; i++) {
        struct nvml_process_utilization_sample sample = ring->samples[i];
        unsigned at = 0;

        while (at < count && ring->samples[at].pid != sample.pid)
            at++;
        if (at == count)
            ring->samples[count++] = sample;
        sums[at][0] += sample.sm_util;
        sums[at][1] += sample.mem_util;
        sums[at][2] += sample.enc_util;
        sums[at][3] += sample.dec_util;
    }
    for (unsigned i = 0; i < count; i++) {
        ring->samples[i].sm_util = sums[i][0] / all;
        ring->samples[i].mem_util = sums[i][1] / all;
        ring->samples[i].enc_util = sums[i][2] / all;
        ring->samples[i].dec_util = sums[i][3] / all;
    }
    ring->count = count;
}

/* All samples after a time in the order of time; or their means, as the real driver answers. */
static void read_ring(struct call *call, struct ring *ring, uint64_t last_seen_us)
{
    uint64_t round = call->play.round;

    ring->count = 0;
    while (take_round(call, ring, round, last_seen_us) && round > 0)
        round--;
    if (call_directive(call, DIRECTIVE_SAMPLES, 0))
        make_means(ring);
    for (unsigned i = 0; i < ring->count / 2; i++) {
        struct nvml_process_utilization_sample swap = ring->samples[i];

        ring->samples[i] = ring->samples[ring->count - 1 - i];
        ring->samples[ring->count - 1 - i] = swap;
    }
}

/* The samples that the caller gets. Without an array the driver tells its number of slots. */
static int read_new(struct call *call, struct ring *ring, uint32_t *count, bool array,
                    uint64_t last_seen_us)
{
    if (!array) {
        *count = RING_SLOTS;
        return NVML_INSUFFICIENT_SIZE;
    }
    /* "On MIG-enabled GPUs, querying process utilization is not currently supported" (nvml.h); the
     * size is told all the same (reported of an H100, driver 535). */
    if (call_is_mig(call))
        return NVML_NOT_SUPPORTED;
    read_ring(call, ring, last_seen_us);
    if (ring->count == 0)
        return NVML_NOT_FOUND;
    if (*count < ring->count) {
        *count = ring->count;
        return NVML_INSUFFICIENT_SIZE;
    }
    *count = ring->count;
    return NVML_SUCCESS;
}

int nvmlDeviceGetProcessUtilization(void *dev, struct nvml_process_utilization_sample *samples,
                                    unsigned *count, unsigned long long last_seen_us)
{
    _call_ struct call call = call_begin_device(SYMBOL_nvmlDeviceGetProcessUtilization, dev);
    struct ring ring;

    if (call.code)
        return call.code;
    if (!count)
        return NVML_INVALID_ARGUMENT;
    call.code = read_new(&call, &ring, count, samples, last_seen_us);
    for (unsigned i = 0; !call.code && i < ring.count; i++)
        samples[i] = ring.samples[i];
    return call.code;
}

int nvmlDeviceGetProcessesUtilizationInfo(void *dev, struct nvml_processes_utilization_info *info)
{
    _call_ struct call call = call_begin_device(SYMBOL_nvmlDeviceGetProcessesUtilizationInfo, dev);
    struct ring ring;

    if (call.code)
        return call.code;
    if (!info)
        return NVML_INVALID_ARGUMENT;
    if (info->version != NVML_VERSION_WORD(*info, 1))
        return NVML_ARGUMENT_VERSION_MISMATCH;
    call.code = read_new(&call, &ring, &info->process_samples_count, info->proc_util_array,
                         info->last_seen_time_stamp);
    for (unsigned i = 0; !call.code && i < ring.count; i++)
        info->proc_util_array[i] = (struct nvml_process_utilization_info){
            .time_stamp = ring.samples[i].time_stamp,
            .pid = ring.samples[i].pid,
            .sm_util = ring.samples[i].sm_util,
            .mem_util = ring.samples[i].mem_util,
            .enc_util = ring.samples[i].enc_util,
            .dec_util = ring.samples[i].dec_util,
        };
    return call.code;
}
