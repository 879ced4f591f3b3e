/* Readings of a GPU: utilisation and its samples, GPM, gauges, errors. */
#include "attribution/gpu/gpu.h"
#include "core/macros.h"

void gpu_age_programs(struct gpu *gpu, const char *driver, uint64_t power_limit_mw)
{
    if (gpu->programs && gpu_is_changed(gpu, driver, power_limit_mw)) {
        programs_cap(&gpu->programs->exact, PROGRAMS_CHANGED_SLOTS);
        programs_cap(&gpu->programs->families, PROGRAMS_CHANGED_SLOTS);
    }
    if (power_limit_mw > 0)
        gpu->power_limit_mw = power_limit_mw;
}

static void set_gauge(struct gpu *gpu, enum gpu_gauge gauge, uint64_t t_us, uint64_t value)
{
    gpu->gauges[gauge] = (struct gpu_reading){t_us, value};
}

void gpu_take_utilisation(struct gpu *gpu, struct window *window, uint64_t t_us,
                          const struct sample_utilisation *utilisation)
{
    window->busiest_percent = MAX(window->busiest_percent, utilisation->gpu_percent);
    window->saw_utilisation = true;
    set_gauge(gpu, GPU_GAUGE_UTILISATION_PERCENT, t_us, utilisation->gpu_percent);
    if (utilisation->memory_percent <= 100)
        set_gauge(gpu, GPU_GAUGE_MEMORY_UTILISATION_PERCENT, t_us, utilisation->memory_percent);
    if (utilisation->sm_clock_mhz > 0) {
        set_gauge(gpu, GPU_GAUGE_SM_CLOCK_MHZ, t_us, utilisation->sm_clock_mhz);
        /* Boards of other vendors slow down between two kernels: theirs at an instant is not that
         * of the window. */
        if (gpu->learning && !gpu->samples.are_counted)
            slots_take_clock(&gpu->learning->slots, utilisation->sm_clock_mhz);
    }
    if (utilisation->temperature_c > 0)
        set_gauge(gpu, GPU_GAUGE_TEMPERATURE_C, t_us, utilisation->temperature_c);
}

void gpu_take_gpm(struct gpu *gpu, struct window *window, uint64_t t_us,
                  const struct sample_gpm *gpm)
{
    enum { MILLIPERCENT = 1000 };
    uint64_t percent = MIN((gpm->millipercent[0] + MILLIPERCENT - 1) / MILLIPERCENT, 100U);
    struct gpu_instance *instance;

    if (gpm->instance == SAMPLE_NO_INSTANCE) {
        if (gpu->learning)
            slots_take_gpm(&gpu->learning->slots, t_us, gpm);
        return;
    }
    instance = gpu->mig ? gpu_mig_find(gpu->mig, gpm->instance) : NULL;
    if (!instance)
        return;
    if (instance->learning)
        slots_take_gpm(&instance->learning->slots, t_us, gpm);
    if (gpm->valid & 1) {
        gpu->mig->has_gpm = true;
        instance->gauges[GPU_GAUGE_UTILISATION_PERCENT] = (struct gpu_reading){t_us, percent};
        window->busiest_percent = MAX(window->busiest_percent, (uint8_t)percent);
        window->gpm_read |= 1U << (instance - gpu->mig->instances);
        window->saw_utilisation = true;
    }
}

/* GPM of an instance is read also while its memory is in use, whoever uses it (nvml_gpm.c). */
static void take_instance_memory(struct gpu *gpu, struct gpu_instance *instance,
                                 struct window *window, uint64_t t_us, uint64_t used_bytes)
{
    bool was_occupied = instance->is_occupied;

    instance->is_occupied = used_bytes >= SAMPLE_OCCUPIED_BYTES;
    if (!instance->is_occupied)
        return;
    window->occupied |= 1U << (instance - gpu->mig->instances);
    if (!was_occupied && instance->learning && !instance->learning->slots.listed)
        slots_begin_gpm(&instance->learning->slots, t_us, gpu->mig->has_gpm);
}

void gpu_take_gauge(struct gpu *gpu, struct window *window, uint64_t t_us,
                    const struct sample_gauge *gauge)
{
    struct gpu_instance *instance;

    if (gauge->instance != SAMPLE_NO_INSTANCE) {
        instance = gpu->mig ? gpu_mig_find(gpu->mig, gauge->instance) : NULL;
        if (!instance)
            return;
        instance->gauges[gauge->gauge] = (struct gpu_reading){t_us, gauge->value};
        if (gauge->gauge == GPU_GAUGE_MEMORY_USED_BYTES)
            take_instance_memory(gpu, instance, window, t_us, gauge->value);
        return;
    }
    set_gauge(gpu, gauge->gauge, t_us, gauge->value);
    if (gauge->gauge == GPU_GAUGE_POWER_LIMIT_MW)
        gpu_age_programs(gpu, gpu->driver, gauge->value);
    else if (gauge->gauge == GPU_GAUGE_MEMORY_USED_BYTES)
        gpu_take_memory(gpu, t_us, gauge->value);
}

void gpu_take_xid(struct gpu *gpu, uint32_t xid)
{
    size_t i = 0;

    while (i < SNAPSHOT_XIDS_MAX - 1 && gpu->xids[i].xid != 0 && gpu->xids[i].xid != xid)
        i++;
    if (gpu->xids[i].xid == 0)
        gpu->xids[i].xid = xid;
    gpu->xids[i].count++;
}

struct gpu_sample *gpu_samples_at(struct gpu_samples *samples, size_t index)
{
    return &samples->ring[(samples->first + index) % GPU_SAMPLES_MAX];
}

static void drop_first(struct gpu_samples *samples)
{
    samples->first = (samples->first + 1) % GPU_SAMPLES_MAX;
    samples->count--;
}

struct gpu_sample *gpu_samples_add(struct gpu_samples *samples, const struct sample_label *sample,
                                   uint64_t settled_until_us)
{
    uint16_t weight =
        MAX(sample->sm_percent, MAX(sample->encoder_percent, sample->decoder_percent));
    struct gpu_sample *taken;

    samples->are_made = true;
    samples->are_missing = false;
    if (sample->pid == 0 || weight > 100 || sample->memory_percent > 100) {
        samples->garbage++;
        return NULL;
    }
    for (size_t i = samples->count; i-- > 0;) {
        taken = gpu_samples_at(samples, i);
        if (taken->at_us == sample->at_us && taken->pid == sample->pid) {
            samples->repeated++;
            return NULL;
        }
    }
    if (samples->count == GPU_SAMPLES_MAX)
        drop_first(samples);
    taken = gpu_samples_at(samples, samples->count++);
    *taken = (struct gpu_sample){
        .at_us = sample->at_us,
        .pid = sample->pid,
        .process = LEDGER_NONE,
        .sm_percent = (uint8_t)sample->sm_percent,
        .memory_percent = (uint8_t)sample->memory_percent,
        .weight = (uint8_t)weight,
        .in_proc = sample->in_proc,
        .counted = sample->at_us <= settled_until_us,
    };
    samples->late += taken->counted;
    return taken;
}

void gpu_samples_prune(struct gpu_samples *samples, uint64_t now_us)
{
    while (samples->count > 0 && gpu_samples_at(samples, 0)->counted &&
           gpu_samples_at(samples, 0)->at_us + GPU_SAMPLES_RATIO_US < now_us)
        drop_first(samples);
}
