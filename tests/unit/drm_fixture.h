/* The exporter's own code for AMD's and Intel's GPUs on a scripted machine (tests/fakes/drm), in a
 * rig. */
#pragma once

#include "source_rig.h"

#include <machine.h>
#include <math.h>

#include "sources/drm/drm.h"

static inline void move_machine(struct rig *rig)
{
    fake_machine_write(rig->machine, rig->elapsed_us);
}

/* Makes its files; the test may change them before the source sees them. */
static inline void make_machine(struct rig *rig, struct fake_machine *machine,
                                const struct fake_script *script)
{
    *rig = (struct rig){
        .root = "/tmp/drmXXXXXX", .step_us = SECOND / 10, .move = move_machine, .machine = machine};
    assert_non_null(mkdtemp(rig->root));
    fake_machine_init(machine, script, rig->root, START_US / SECOND, false);
    rig_begin(rig, rig_defaults());
    rig->host.program_secret = (struct program_secret){{1, 2}};
}

static inline void open_machine(struct rig *rig, struct fake_machine *machine,
                                const struct fake_script *script)
{
    make_machine(rig, machine, script);
    rig_add_source(rig, &drm_source);
}

/* The time of the last step. */
static inline uint64_t last_us(const struct rig *rig)
{
    return rig->elapsed_us - rig->step_us;
}

/* Plays the second that begins now, too, so that the window before it is whole. */
static inline void play_whole(struct rig *rig, uint64_t duration_us)
{
    play(rig, duration_us + rig->step_us);
    assert_int_equal(pipeline_finish(rig->pipeline), 0);
}

/* Everything that the counter of a board has moved is in the books. */
static inline void check_energy(const struct rig *rig, unsigned gpu, unsigned board)
{
    const struct fake_script *script = rig->machine->script;
    uint64_t counted_uj =
        fake_counter_uj(script, board, last_us(rig)) - fake_counter_uj(script, board, 0);

    assert_int_equal(meter_of(rig, (int)gpu)->energy_uj, counted_uj);
}

/* The part of a board's active energy that is booked to the wrong process, and how much of what the
 * processes caused is not booked to them as active at all; dies are one board. */
struct drm_score {
    double wrong, missing;
};

static inline uint64_t active_uj_of(const struct rig *rig, unsigned gpu, uint32_t pid)
{
    struct snapshot *snapshot = books(rig);
    uint64_t active_uj = 0;

    for (size_t i = 0; i < snapshot->process_count; i++)
        if (snapshot->processes[i].gpu == gpu && snapshot->processes[i].pid == pid)
            active_uj += snapshot->processes[i].active_uj;
    close_books(snapshot);
    return active_uj;
}

/* The number of the GPU that a board is: both dies of one are the same. */
static inline unsigned gpu_of(const struct fake_script *script, unsigned board)
{
    unsigned gpu = board;

    for (unsigned i = 0; i <= board; i++)
        gpu -= script->boards[i].is_second_die;
    return gpu;
}

static inline struct drm_score score(const struct rig *rig, unsigned gpu)
{
    const struct fake_script *script = rig->machine->script;
    double booked_j[FAKE_PROCESSES_MAX] = {0}, true_j[FAKE_PROCESSES_MAX] = {0};
    double booked = 0, caused = 0, wrong = 0;

    for (size_t i = 0; i < FAKE_PROCESSES_MAX && script->processes[i].pid; i++) {
        const struct fake_process *process = &script->processes[i];

        if (gpu_of(script, process->board) != gpu)
            continue;
        true_j[i] = fake_truth_j(process, last_us(rig));
        booked_j[i] = (double)active_uj_of(rig, gpu, process->pid) / 1e6;
        booked += booked_j[i];
        caused += true_j[i];
    }
    for (size_t i = 0; i < FAKE_PROCESSES_MAX && booked > 0 && caused > 0; i++)
        wrong += fabs(booked_j[i] / booked - true_j[i] / caused) / 2;
    return (struct drm_score){wrong, caused > 0 ? 1 - booked / caused : 0};
}

static inline void close_machine(struct rig *rig)
{
    rig_end(rig);
}
