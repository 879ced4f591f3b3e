#include "sources/cgroup/cgroups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "host/machine.h"
#include "model/report.h"
#include "sources/cgroup/block_names.h"
#include "sources/cgroup/reader.h"
#include "sources/cgroup/usage_delta.h"
#include "sources/resctrl/resctrl.h"

/* Energy is divided by what was done in this time: short enough for a job, long enough to be
 * cheap with thousands of cgroups. */
#define INTERVAL_US (5 * USEC_PER_SEC)
/* Directories that no notification told of are found by then. */
enum { RESCAN_EVERY = 12 };

struct cgroups {
    const struct source_context *context;
    struct cgroup_reader *reader; /* NULL: no hierarchy is mounted */
    struct resctrl *resctrl;
    bool has_traffic; /* since the last reading */
    struct block_names block_names;
    struct machine machine; /* as last read */
    bool is_started;
    unsigned cycle;
};

static void cgroups_close(void *state)
{
    struct cgroups *cgroups = state;

    cgroup_reader_free(cgroups->reader);
    resctrl_free(cgroups->resctrl);
    free(cgroups);
}

/* 0 also where there is none. */
static int find_hierarchies(struct cgroups *cgroups)
{
    const struct source_context *context = cgroups->context;
    int r = cgroup_reader_new(context->host, context->judge_cgroup, NULL, &cgroups->reader);

    return r == -ENOENT ? 0 : r;
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
    r = resctrl_new(context->host, &cgroups->resctrl);
    if (r == 0)
        r = find_hierarchies(cgroups);
    if (r < 0) {
        cgroups_close(cgroups);
        return error_set(err, r, "cgroups: %s", strerror(-r));
    }
    *ret_state = cgroups;
    return 0;
}

static const char *keep(struct batch *batch, const char *text)
{
    return text[0] ? arena_copy(&batch->arena, text, strlen(text)) : "";
}

static void name_devices(struct cgroups *cgroups, struct usage *did)
{
    for (size_t i = 0; i < did->io_count; i++)
        block_names_find(&cgroups->block_names, cgroups->context->host, did->io[i].major,
                         did->io[i].minor, did->io[i].device);
}

/* The reader's items are gone with its next cycle, the batch may wait. */
static int describe(struct cgroups *cgroups, struct batch *batch, const struct usage_owner *items,
                    size_t count, struct sample_workload **ret_workloads)
{
    struct sample_workload *workloads = arena_array(&batch->arena, count, sizeof(*workloads));
    struct usage *did = arena_array(&batch->arena, count, sizeof(*did));

    if (!workloads || !did || usage_delta_take(items, count, &batch->arena, did) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        name_devices(cgroups, &did[i]);
        workloads[i] = (struct sample_workload){
            .kind = items[i].owner.kind,
            .id = keep(batch, items[i].owner.id),
            .container_id = keep(batch, items[i].owner.container_id),
            .pod_uid = keep(batch, items[i].owner.pod_uid),
            .cpu_us = cgroups->is_started ? usage_delta_cpu_us(&items[i], &did[i]) : 0,
            .memory_bytes = usage_memory_bytes(&did[i]),
            .did = &did[i],
        };
        if (!workloads[i].id || !workloads[i].container_id || !workloads[i].pod_uid)
            return -ENOMEM;
    }
    *ret_workloads = workloads;
    return 0;
}

static int report(struct cgroups *cgroups, struct batch *batch, const struct machine *machine)
{
    struct sample_workload *workloads = NULL;
    const struct usage_owner *items = NULL;
    struct sample sample = {.kind = SAMPLE_USAGE,
                            .t_us = cgroups->context->clock->realtime_us(cgroups->context->clock)};
    size_t count = 0;
    int r;

    if (cgroups->reader)
        items = cgroup_reader_items(cgroups->reader, &count);
    r = describe(cgroups, batch, items, count, &workloads);
    if (r < 0)
        return r;
    sample.usage = (struct sample_usage){
        .is_first = !cgroups->is_started,
        .is_blind = !cgroups->reader,
        .memory_used_bytes = machine->memory_used_bytes,
        .memory_bytes = machine->memory_bytes,
        .count = count,
        .workloads = workloads,
    };
    if (cgroups->has_traffic)
        usage_traffic_take(cgroups->resctrl, items, workloads, &sample.usage);
    if (cgroups->is_started) {
        const struct machine *last = &cgroups->machine;

        sample.usage.busy_us = machine->busy_us - MIN(machine->busy_us, last->busy_us);
        sample.usage.capacity_us =
            machine->capacity_us - MIN(machine->capacity_us, last->capacity_us);
    }
    r = batch_add(batch, &sample);
    if (r < 0)
        return r;
    if (cgroups->reader)
        cgroup_reader_set_reported(cgroups->reader);
    cgroups->machine = *machine;
    cgroups->is_started = true;
    return 0;
}

/* The machine as a whole, so that no joule of a processor is lost. */
static int read_machine(struct cgroups *cgroups, const struct machine *machine, struct batch *batch,
                        struct error *err)
{
    int r = report(cgroups, batch, machine);

    if (r == 0)
        r = find_hierarchies(cgroups);
    if (r < 0)
        return error_set(err, r, "cgroups: %s", strerror(-r));
    if (cgroups->reader)
        return error_set(err, -ENODEV, "cgroups are there now"); /* it is opened again */
    return error_set(err, -ENOENT,
                     "no cgroup hierarchy is mounted at fs/cgroup below --path.sysfs: what "
                     "workloads use is not known, and the energy of processors is unattributed; "
                     "mount /sys/fs/cgroup there");
}

static int cgroups_read(void *state, struct batch *batch, struct error *err)
{
    struct cgroups *cgroups = state;
    struct machine machine;
    int r;

    r = machine_read(cgroups->context->host, &machine);
    if (r < 0)
        return error_set(err, r, "/proc/stat and /proc/meminfo: %s", strerror(-r));
    if (!cgroups->reader)
        return read_machine(cgroups, &machine, batch, err);
    if (cgroups->cycle++ % RESCAN_EVERY == 0)
        block_names_forget(&cgroups->block_names);
    cgroup_reader_read(cgroups->reader, cgroups->cycle % RESCAN_EVERY == 1);
    cgroups->has_traffic = resctrl_read(
        cgroups->resctrl, cgroups->context->clock->monotonic_us(cgroups->context->clock));
    r = report(cgroups, batch, &machine);
    if (r < 0)
        return error_set(err, r, "cgroups: %s", strerror(-r));
    return 0;
}

static int cgroups_event_fd(void *state)
{
    struct cgroups *cgroups = state;

    return cgroups->reader ? cgroup_reader_event_fd(cgroups->reader) : -1;
}

static uint64_t cgroups_attend(void *state)
{
    struct cgroups *cgroups = state;
    const struct clock *clock = cgroups->context->clock;
    uint64_t now_us = clock->monotonic_us(clock);
    uint64_t next_us =
        cgroups->reader ? cgroup_reader_attend(cgroups->reader, now_us) : CGROUP_READER_NEVER;

    return next_us == CGROUP_READER_NEVER ? SOURCE_NEVER : next_us - MIN(now_us, next_us);
}

/* Says nothing where resctrl is not mounted, or cannot count. */
static void cgroups_check(const struct source_context *context, struct report *report)
{
    struct resctrl *resctrl;
    size_t count;

    if (resctrl_new(context->host, &resctrl) < 0)
        return;
    (void)resctrl_read(resctrl, 0);
    if (resctrl_read(resctrl, USEC_PER_SEC)) { /* what is counted can only be seen twice */
        count = resctrl_container_count(resctrl);
        if (count > 0)
            report_add(report, "memory traffic", VERDICT_OK, NULL,
                       "fs/resctrl has groups of containers: %zu", count);
        else
            report_add(report, "memory traffic", VERDICT_LIMITED,
                       "let the container runtime make them: docs/power.md",
                       "fs/resctrl counts, but has no groups of containers");
    }
    resctrl_free(resctrl);
}

const struct source_ops cgroups_source = {
    .name = "cgroups",
    .flag = "collector.cgroups",
    .help = "read the CPU time and memory of workloads; without it only GPU energy has owners",
    .is_no_meter = true,
    .interval_us = INTERVAL_US,
    .open = cgroups_open,
    .read = cgroups_read,
    .event_fd = cgroups_event_fd,
    .attend = cgroups_attend,
    .close = cgroups_close,
    .check = cgroups_check,
};
