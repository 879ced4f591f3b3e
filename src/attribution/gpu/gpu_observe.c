/* Observes the windows of a GPU, in order and before they are settled: those in which nothing
 * worked show its idle levels. */
#include "attribution/gpu/gpu.h"

/* Can somebody have worked without a sign of it? In MIG mode each instance has signs of its own. */
static bool is_activity_unknown(const struct gpu *gpu, const struct window *window, bool context)
{
    if (!gpu->mig || gpu->samples.are_counted)
        return context && !window->saw_utilisation;
    for (size_t i = 0; i < window->presence_count; i++) {
        const struct presence *presence = &window->presences[i];
        const struct gpu_instance *instance = gpu_mig_find(gpu->mig, presence->gpu_instance);

        if (window_lists_of(window, presence) != 0 &&
            !gpu_is_idle_server(gpu, window, presence->process) &&
            !(instance && window->gpm_read & 1U << (instance - gpu->mig->instances)))
            return true;
    }
    return window->occupied & ~window->gpm_read;
}

void gpu_observe_window(struct gpu *gpu, const struct window *window)
{
    uint64_t duration_us = window->end_us - window->start_us;
    bool busy = window->busiest_percent > 0, is_listed = false, context;
    struct idle_part idle;

    for (size_t i = 0; i < gpu->samples.count && !busy; i++) {
        const struct gpu_sample *sample = gpu_samples_at(&gpu->samples, i);

        busy = !sample->counted && sample->weight > 0 && sample->at_us > window->start_us &&
               sample->at_us <= window->end_us;
    }
    for (size_t i = 0; i < window->presence_count; i++) {
        busy |= window->presences[i].busy_us > 0;
        is_listed |= window_lists_of(window, &window->presences[i]) != 0 &&
                     !gpu_sighting(gpu, window->presences[i].process)->is_mps_server;
    }
    context = busy || is_listed;
    gpu->samples.are_missing |= busy && is_listed && !gpu->samples.are_made && !gpu->mig;
    busy |= is_activity_unknown(gpu, window, context); /* not known to be idle */
    idle = idle_split(&gpu->idle, context, window->energy_uj, duration_us);
    /* GPM shows neither video engines nor copies: in MIG mode a window in which nothing else worked
     * may still not be an idle one. A window in which a context came or went shows neither level; a
     * busy one at most that the level is too high. But the driver's utilisation, a mean over up to
     * a second, outlasts the process that caused it: then there is no context. */
    if (!(window->saw_context && window->saw_no_context) &&
        !((gpu->mig || gpu->samples.are_counted) && context &&
          idle_is_exceeded(&gpu->idle, window->energy_uj, duration_us)) &&
        (!busy || (is_listed && idle.floor_uj + idle.step_uj == window->energy_uj)))
        idle_learn(&gpu->idle, context, window->energy_uj, duration_us);
}
