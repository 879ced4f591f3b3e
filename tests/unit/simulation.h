/* The simulated GPU of shared_gpu.h as samples of a pipeline, at the rates of a real one. */
#pragma once

#include "pipeline_fixture.h"
#include "shared_gpu.h"

/* Where the simulation stands. Process i has the pid pids[i]; 0: there is none. */
struct simulation {
    struct pipeline *pipeline;
    struct shared_gpu gpu;
    uint32_t pids[LOADS_MAX];
    bool is_hidden[LOADS_MAX]; /* in samples, but on no list */
    uint64_t now_us, counter_uj;
    uint64_t slots; /* fed so far */
};

static struct pipeline_options intensity_options(void)
{
    struct pipeline_options options = default_options();

    options.gpu.attribution = ATTRIBUTION_INTENSITY;
    options.gpu.patience_us = 60 * SECOND;
    return options;
}

static void simulation_list(struct simulation *simulation)
{
    struct sample_listed entries[LOADS_MAX];
    size_t count = 0;

    for (size_t i = 0; i < simulation->gpu.count; i++)
        if (simulation->pids[i] > 0 && !simulation->is_hidden[i])
            entries[count++] = (struct sample_listed){simulation->pids[i], 1 << 20,
                                                      SAMPLE_NO_INSTANCE, SAMPLE_NO_INSTANCE};
    feed(simulation->pipeline, (struct sample){.kind = SAMPLE_LIST,
                                               .t_us = simulation->now_us,
                                               .list = {.count = count, .entries = entries}});
}

static void simulation_gpm(struct simulation *simulation, const struct shared_slot *ran)
{
    struct sample sample = {
        .kind = SAMPLE_GPM,
        .t_us = simulation->now_us,
        .gpm = {.valid = (1 << SAMPLE_GPM_COUNT) - 1, .instance = SAMPLE_NO_INSTANCE}};
    uint32_t *values = sample.gpm.millipercent;
    size_t u = 0;

    values[0] = (uint32_t)(ran->busy * 1e5);
    for (size_t i = 1; i < SAMPLE_GPM_COUNT; i++) /* 5 is HMMA, which nobody looks at */
        values[i] = i == 5 ? 0 : (uint32_t)(ran->units[u++] * 1e5);
    feed(simulation->pipeline, sample);
}

static void simulation_begin(struct simulation *simulation, struct pipeline *pipeline)
{
    simulation->pipeline = pipeline;
    simulation->now_us = T0;
    if (simulation->gpu.random.state == 0)
        simulation->gpu.random.state = 1;
    energy(pipeline, 0, T0, 0);
    simulation_list(simulation);
    simulation_gpm(simulation, &(struct shared_slot){0});
}

/*
 * A fifth of a second more: what the device did, who won the sample, the counter; once a second the
 * lists and the device's utilisation.
 */
static struct shared_slot simulation_run(struct simulation *simulation, const double *parts)
{
    struct shared_slot ran = shared_gpu_run(&simulation->gpu, parts);

    if (simulation->slots++ % 5 == 0) {
        simulation->now_us += 1;
        simulation_list(simulation);
        utilisation(simulation->pipeline, 0, simulation->now_us, (uint8_t)(ran.busy * 100));
        simulation->now_us -= 1;
    }
    simulation->now_us += SHARED_SLOT_US;
    if (ran.winner != SIZE_MAX)
        label(simulation->pipeline, 0, simulation->now_us, simulation->pids[ran.winner],
              simulation->now_us - SHARED_SLOT_US / 2, (uint16_t)(ran.busy * 99));
    simulation_gpm(simulation, &ran);
    simulation->counter_uj += (uint64_t)(ran.joules * 1e6);
    energy(simulation->pipeline, 0, simulation->now_us, simulation->counter_uj);
    return ran;
}
