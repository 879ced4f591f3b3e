/* A machine of ordinary files below a directory of its own, and one source that reads it by a clock
 * that the test moves. */
#pragma once

#include "tree_fixture.h"

#include <stdlib.h>

#include "host/host.h"
#include "sources/source.h"

#define MACHINE_START_US ((uint64_t)1734094386462336)

struct machine {
    char path[40];
    int fd; /* of sysfs */
    struct host host;
    struct clock_manual clock;
    struct source_context context;
    const struct source_ops *ops;
    void *source;
    struct batch batch;
    struct error err;
};

static int machine_set_up(void **state)
{
    struct machine *machine = calloc(1, sizeof(*machine));

    if (!machine)
        return -1;
    strcpy(machine->path, "/tmp/test_sysfs.XXXXXX");
    if (!mkdtemp(machine->path))
        return -1;
    machine->fd = open(machine->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    machine->host = (struct host){.procfs_fd = -1, .sysfs_fd = machine->fd, .rootfs_fd = -1};
    clock_manual_init(&machine->clock, MACHINE_START_US);
    machine->context = (struct source_context){
        .host = &machine->host, .clock = &machine->clock.clock, .interval_us = USEC_PER_SEC};
    batch_init(&machine->batch);
    *state = machine;
    return 0;
}

/* As tree_write and tree_remove. */
static void machine_write(const struct machine *machine, const char *path, const char *text)
{
    tree_write(machine->path, path, text);
}

static void machine_remove(const struct machine *machine, const char *path)
{
    tree_remove(machine->path, path);
}

static int machine_tear_down(void **state)
{
    struct machine *machine = *state;

    if (machine->source)
        machine->ops->close(machine->source);
    batch_done(&machine->batch);
    machine_remove(machine, "");
    close(machine->fd);
    free(machine);
    return 0;
}

static int machine_open(struct machine *machine, const struct source_ops *ops)
{
    machine->ops = ops;
    return ops->open(&machine->context, &machine->source, &machine->err);
}

/* The result of one reading; its samples are in the batch. */
static int machine_read(struct machine *machine)
{
    batch_reset(&machine->batch);
    return machine->ops->read(machine->source, &machine->batch, &machine->err);
}

/* After so long, readings in between not counted. */
static int machine_read_after(struct machine *machine, uint64_t us)
{
    machine->clock.now_us += us;
    return machine_read(machine);
}

static const struct sample *machine_find(const struct machine *machine, enum meter_kind kind,
                                         const char *id)
{
    for (size_t i = 0; i < machine->batch.count; i++) {
        const struct sample *sample = &machine->batch.samples[i];

        if (sample->kind == SAMPLE_METER && sample->meter.kind == kind &&
            strcmp(sample->meter.id, id) == 0)
            return sample;
    }
    return NULL;
}

/* The meter is in the batch and says this. */
static void machine_expect(const struct machine *machine, enum meter_kind kind, const char *id,
                           uint64_t energy_uj, uint32_t breaks)
{
    const struct sample *sample = machine_find(machine, kind, id);

    if (!sample)
        fail_msg("no %s %s", meter_words[kind], id);
    assert_int_equal(sample->meter.counter_uj, energy_uj);
    assert_int_equal(sample->meter.breaks, breaks);
}

static const struct sample *machine_node_power(const struct machine *machine)
{
    for (size_t i = 0; i < machine->batch.count; i++)
        if (machine->batch.samples[i].kind == SAMPLE_NODE_POWER)
            return &machine->batch.samples[i];
    return NULL;
}

#define machine_test(function)                                                                     \
    cmocka_unit_test_setup_teardown(function, machine_set_up, machine_tear_down)
