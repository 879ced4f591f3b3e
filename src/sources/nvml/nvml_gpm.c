/*
 * GPM: the activity of a GPU's units between two samples, of the whole board or, with MIG, of each
 * GPU instance.
 *
 * The percentages of an instance are of its own SMs and bandwidth, not of the board's: NVIDIA's
 * DCGM passes them on as they are, and its test (dcgmproftester/PhysicalGpu.cpp) expects of a GPU
 * instance what its load reached of the instance's own maximum; in DCGM issue 138, 1g.10gb at full
 * load shows 100 %. Not verified on hardware. A sample of an instance is the sum over its compute
 * instances (DCGM, DcgmGpmManager.cpp).
 *
 * Only the board's handle is used: GPM calls on MIG device handles are reported to break later
 * calls of the same process (H100, driver 535).
 */
#include <math.h>
#include <stdlib.h>

#include "core/macros.h"
#include "sources/gpu_counters.h"
#include "sources/nvml/nvml.h"

/* A board that nobody uses is left alone: some versions of DCGM raise its idle power
 * (NVIDIA/dcgm-exporter #464). */
static const uint64_t COUNTERS_KEEP_US = 60 * USEC_PER_SEC;

/* GPM answers zeros and NaN for less (measured, H200). */
static const uint64_t GPM_MIN_US = 110000;

static bool gpm_pair_alloc(const struct nvml_library *nvml, struct nvml_gpm_pair *pair)
{
    if (!pair->older && nvml->gpm_alloc(&pair->older) != NVML_SUCCESS)
        pair->older = NULL;
    if (!pair->newer && nvml->gpm_alloc(&pair->newer) != NVML_SUCCESS)
        pair->newer = NULL;
    return pair->older && pair->newer;
}

void nvml_gpm_pair_done(const struct nvml_library *nvml, struct nvml_gpm_pair *pair)
{
    if (pair->older)
        (void)nvml->gpm_free(pair->older);
    if (pair->newer)
        (void)nvml->gpm_free(pair->newer);
    *pair = (struct nvml_gpm_pair){0};
}

void nvml_gpm_open(struct nvml_gpu *gpu)
{
    const struct nvml_library *nvml = &gpu->shared->library;
    struct nvml_gpm_support support = {.version = NVML_GPM_VERSION};

    if (nvml->gpm_support && nvml->gpm_alloc && nvml->gpm_free && nvml->gpm_sample &&
        nvml->gpm_metrics && nvml->gpm_support(gpu->device, &support) == NVML_SUCCESS &&
        support.is_supported)
        gpu->gpm_metrics = calloc(1, sizeof(*gpu->gpm_metrics));
}

void nvml_gpm_close(struct nvml_gpu *gpu)
{
    nvml_gpm_pair_done(&gpu->shared->library, &gpu->gpm);
    free(gpu->gpm_metrics);
}

/* The activity between the two samples. */
static void add_gpm(struct nvml_poll *poll, const struct nvml_gpm_pair *pair, uint32_t instance)
{
    struct nvml_gpu *gpu = poll->gpu;
    struct nvml_gpm_metrics *metrics = gpu->gpm_metrics;
    struct sample sample = {.kind = SAMPLE_GPM, .gpm.instance = instance};
    int code;

    metrics->version = NVML_GPM_VERSION;
    metrics->count = SAMPLE_GPM_COUNT;
    metrics->from = pair->older;
    metrics->until = pair->newer;
    for (size_t i = 0; i < SAMPLE_GPM_COUNT; i++)
        metrics->metrics[i] = (struct nvml_gpm_metric){.id = sample_gpm_ids[i]};
    code = gpu->shared->library.gpm_metrics(metrics);
    if (instance == SAMPLE_NO_INSTANCE ? !nvml_poll_succeeded(poll, "GPM metrics", code)
                                       : code != NVML_SUCCESS)
        return;
    for (size_t i = 0; i < SAMPLE_GPM_COUNT; i++) {
        const struct nvml_gpm_metric *metric = &metrics->metrics[i];

        if (metric->result != NVML_SUCCESS || !(metric->value >= 0 && metric->value <= 100))
            continue;
        sample.gpm.valid |= (uint16_t)(1 << i);
        sample.gpm.millipercent[i] = (uint32_t)lround(metric->value * 1000);
    }
    nvml_poll_add(poll, sample);
}

/* False: too early, or the driver has no sample. An instance may have been destroyed a moment ago,
 * which is no error of the board. */
static bool take_sample(struct nvml_poll *poll, struct nvml_gpm_pair *pair, uint32_t instance)
{
    const struct nvml_library *nvml = &poll->gpu->shared->library;
    struct nvml_gpm_sample *older;

    if (poll->now_us - pair->older_us < GPM_MIN_US || !gpm_pair_alloc(nvml, pair))
        return false;
    if (instance == SAMPLE_NO_INSTANCE
            ? !NVML_POLL_CALL(poll, "GPM sample", gpm_sample, pair->newer)
            : nvml->gpm_mig_sample(poll->gpu->device, instance, pair->newer) != NVML_SUCCESS)
        return false;
    if (pair->older_us > 0)
        add_gpm(poll, pair, instance);
    older = pair->older;
    pair->older = pair->newer;
    pair->newer = older;
    pair->older_us = poll->now_us;
    return true;
}

void nvml_poll_read_gpm(struct nvml_poll *poll)
{
    if (poll->gpu->gpm_metrics)
        (void)take_sample(poll, &poll->gpu->gpm, SAMPLE_NO_INSTANCE);
}

void nvml_poll_want_counters(struct nvml_poll *poll)
{
    struct nvml_gpu *gpu = poll->gpu;
    bool is_wanted;

    if (gpu->pids.count > 0)
        gpu->used_us = poll->now_us;
    is_wanted =
        !gpu->gpm_metrics && !gpu->mig.is_on && poll->now_us - gpu->used_us < COUNTERS_KEEP_US;
    gpu_counters_want(gpu->shared->context->counters, gpu->index, is_wanted ? gpu->uuid : NULL);
}

void nvml_poll_pass_counters(struct nvml_poll *poll)
{
    struct nvml_gpu *gpu = poll->gpu;
    struct gpu_counters *counters = gpu->shared->context->counters;
    struct sample sample = {.kind = SAMPLE_GPM};

    if (!counters || gpu->gpm_metrics || gpu->mig.is_on ||
        !gpu_counters_take(counters, gpu->index, &sample.t_us, &sample.gpm))
        return;
    /* Traces keep the order of a board's samples. */
    sample.t_us = MIN(MAX(sample.t_us, gpu->passed_us), poll->now_us);
    nvml_poll_add(poll, sample);
}

/*
 * As on a board without MIG: at the end of a window for a process that is alone in its instance, at
 * every poll for several. The first sample is taken when a process appears, the last at the end of
 * the window in which the last one left: between them the activity is theirs. A process that is not
 * listed shows by the memory of its instance.
 */
void nvml_poll_read_instance_gpm(struct nvml_poll *poll)
{
    struct nvml_gpu *gpu = poll->gpu;

    if (!gpu->gpm_metrics || !gpu->shared->library.gpm_mig_sample)
        return;
    for (size_t i = 0; i < gpu->mig.instance_count && !nvml_poll_is_over(poll); i++) {
        struct nvml_gpu_instance *instance = &gpu->mig.instances[i];
        bool has_begun = instance->gpm.older_us > 0;
        bool is_used = instance->listed_count > 0 || instance->used_bytes >= SAMPLE_OCCUPIED_BYTES;

        instance->was_used |= is_used;
        if (!instance->was_used ||
            (has_begun && instance->listed_count < 2 && !poll->window_ends) ||
            !take_sample(poll, &instance->gpm, instance->id))
            continue;
        instance->was_used = is_used;
        if (!instance->was_used)
            instance->gpm.older_us = 0; /* the next one begins anew */
    }
}
