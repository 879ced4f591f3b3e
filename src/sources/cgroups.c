#include "sources/cgroups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "sources/cgroup/reader.h"
#include "sources/machine.h"
#include "sources/usage_delta.h"

/* Energy is divided by what was done in this time: short enough for a job, long enough to be
 * cheap with thousands of cgroups. */
#define INTERVAL_US (5 * USEC_PER_SEC)
/* Directories that no notification told of are found by then. */
enum { RESCAN_EVERY = 12 };

struct cgroups {
    const struct source_context *context;
    struct cgroup_reader *reader;
    struct usage_delta delta;
    struct usage_did *did;
    size_t did_capacity;
    struct machine machine; /* as last read */
    bool is_started;
    unsigned cycle;
};

static void cgroups_close(void *state)
{
    struct cgroups *cgroups = state;

    cgroup_reader_free(cgroups->reader);
    usage_delta_done(&cgroups->delta);
    free(cgroups->did);
    free(cgroups);
}

static int cgroups_open(const struct source_context *context, void **ret_state, struct error *err)
{
    struct cgroups *cgroups;
    int r;

    if (context->replay_path || !context->judge_cgroup)
        return -ENODEV;
    cgroups = calloc(1, sizeof(*cgroups));
    if (!cgroups)
        return error_set(err, -ENOMEM, "out of memory");
    cgroups->context = context;
    r = cgroup_reader_new(context->host, context->judge_cgroup, NULL, &cgroups->reader);
    if (r < 0) {
        free(cgroups);
        return r == -ENOENT ? -ENODEV : error_set(err, r, "cgroups: %s", strerror(-r));
    }
    *ret_state = cgroups;
    return 0;
}

static int reserve(struct cgroups *cgroups, size_t count)
{
    struct usage_did *did;

    if (count <= cgroups->did_capacity)
        return 0;
    did = realloc(cgroups->did, count * sizeof(*did));
    if (!did)
        return -ENOMEM;
    cgroups->did = did;
    cgroups->did_capacity = count;
    return 0;
}

static const char *keep(struct batch *batch, const char *text)
{
    return text[0] ? arena_copy(&batch->arena, text, strlen(text)) : "";
}

/* The reader's items are gone with its next cycle, the batch may wait. */
static int describe(struct cgroups *cgroups, struct batch *batch, const struct usage_owner *items,
                    size_t count, struct sample_workload **ret_workloads)
{
    struct sample_workload *workloads = arena_array(&batch->arena, count, sizeof(*workloads));

    for (size_t i = 0; workloads && i < count; i++) {
        workloads[i] = (struct sample_workload){
            .kind = items[i].owner.kind,
            .id = keep(batch, items[i].owner.id),
            .container_id = keep(batch, items[i].owner.container_id),
            .pod_uid = keep(batch, items[i].owner.pod_uid),
            .cpu_us = cgroups->did[i].cpu_us,
            .memory_bytes = cgroups->did[i].memory_bytes,
        };
        if (!workloads[i].id || !workloads[i].container_id || !workloads[i].pod_uid)
            return -ENOMEM;
    }
    *ret_workloads = workloads;
    return workloads ? 0 : -ENOMEM;
}

static int report(struct cgroups *cgroups, struct batch *batch, const struct machine *machine)
{
    struct sample_workload *workloads = NULL;
    const struct usage_owner *items;
    struct sample sample = {.kind = SAMPLE_USAGE,
                            .t_us = cgroups->context->clock->realtime_us(cgroups->context->clock)};
    size_t count;
    int r;

    items = cgroup_reader_items(cgroups->reader, &count);
    r = reserve(cgroups, count);
    if (r == 0)
        r = usage_delta_take(&cgroups->delta, items, count, cgroups->did);
    if (r == 0)
        r = describe(cgroups, batch, items, count, &workloads);
    if (r < 0)
        return r;
    sample.usage = (struct sample_usage){
        .is_first = !cgroups->is_started,
        .memory_used_bytes = machine->memory_used_bytes,
        .memory_bytes = machine->memory_bytes,
        .count = count,
        .workloads = workloads,
    };
    if (cgroups->is_started) {
        const struct machine *last = &cgroups->machine;

        sample.usage.busy_us = machine->busy_us - MIN(machine->busy_us, last->busy_us);
        sample.usage.capacity_us =
            machine->capacity_us - MIN(machine->capacity_us, last->capacity_us);
    }
    cgroups->machine = *machine;
    cgroups->is_started = true;
    return batch_add(batch, &sample);
}

static int cgroups_read(void *state, struct batch *batch, struct error *err)
{
    struct cgroups *cgroups = state;
    struct machine machine;
    int r;

    r = machine_read(cgroups->context->host, &machine);
    if (r < 0)
        return error_set(err, r, "/proc/stat and /proc/meminfo: %s", strerror(-r));
    cgroup_reader_read(cgroups->reader, cgroups->cycle++ % RESCAN_EVERY == 0);
    r = report(cgroups, batch, &machine);
    if (r < 0)
        return error_set(err, r, "cgroups: %s", strerror(-r));
    return 0;
}

const struct source_ops cgroups_source = {
    .name = "cgroups",
    .is_no_meter = true,
    .interval_us = INTERVAL_US,
    .open = cgroups_open,
    .read = cgroups_read,
    .close = cgroups_close,
};
