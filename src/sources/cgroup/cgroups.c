#include "sources/cgroup/cgroups.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/macros.h"
#include "host/machine.h"
#include "model/report.h"
#include "sources/cgroup/reader.h"

/* Energy is divided by the usage of this time: short enough for a job, long enough to be cheap with
 * thousands of cgroups. */
#define INTERVAL_US (5 * USEC_PER_SEC)
/* Finds directories whose events were lost. */
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
    int r = cgroup_reader_new(context->host, context->classify_cgroup, &cgroups->reader);

    return r == -ENOENT ? 0 : r;
}

static int cgroups_open(const struct source_context *context, void **ret_state, struct error *err)
{
    struct cgroups *cgroups;
    int r;

    if (context->replay_path || !context->classify_cgroup)
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

/* /sys/dev/block/8:0 is a link to .../block/sda. */
static void read_block_name(const struct host *host, uint32_t major, uint32_t minor,
                            char name[static USAGE_DEVICE_BYTES])
{
    char link[64], target[PATH_MAX];
    const char *last;
    ssize_t len;

    snprintf(name, USAGE_DEVICE_BYTES, "%u:%u", major, minor);
    snprintf(link, sizeof(link), "dev/block/%u:%u", major, minor);
    len = readlinkat(host->sysfs_fd, link, target, sizeof(target) - 1);
    target[MAX(len, 0)] = '\0';
    last = strrchr(target, '/');
    last = last ? last + 1 : target;
    if (last[0] && strlen(last) < USAGE_DEVICE_BYTES)
        memcpy(name, last, strlen(last) + 1);
}

void block_names_find(struct block_names *names, const struct host *host, uint32_t major,
                      uint32_t minor, char ret_name[static USAGE_DEVICE_BYTES])
{
    size_t i = 0;

    while (i < names->count && (names->items[i].major != major || names->items[i].minor != minor))
        i++;
    if (i == names->count) {
        i = i < BLOCK_NAMES_MAX ? i : 0;
        names->items[i].major = major;
        names->items[i].minor = minor;
        read_block_name(host, major, minor, names->items[i].name);
        names->count += i == names->count;
    }
    memcpy(ret_name, names->items[i].name, USAGE_DEVICE_BYTES);
}

static const char *copy_text(struct batch *batch, const char *text)
{
    return text[0] ? arena_copy(&batch->arena, text, strlen(text)) : "";
}

/* Copies into the batch: it outlives the reader's items, which change with the next cycle. */
static struct sample_workload *describe_workloads(struct cgroups *cgroups, struct batch *batch)
{
    const struct usage_owner *items = cgroups->reader ? cgroups->reader->items : NULL;
    size_t count = cgroups->reader ? cgroups->reader->count : 0;
    struct sample_workload *workloads =
        arena_array(&batch->arena, count + 1, sizeof(*workloads)); /* and a sum of others */
    struct usage *did = arena_array(&batch->arena, count, sizeof(*did));

    if (!workloads || !did || usage_delta_compute(items, count, &batch->arena, did) < 0)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < did[i].io_count; k++)
            block_names_find(&cgroups->block_names, cgroups->context->host, did[i].io[k].major,
                             did[i].io[k].minor, did[i].io[k].device);
        workloads[i] = (struct sample_workload){
            .kind = items[i].owner.kind,
            .id = copy_text(batch, items[i].owner.id),
            .container_id = copy_text(batch, items[i].owner.container_id),
            .pod_uid = copy_text(batch, items[i].owner.pod_uid),
            .cpu_us = cgroups->is_started ? usage_delta_cpu_us(&items[i], &did[i]) : 0,
            .memory_bytes = usage_memory_bytes(&did[i]),
            .did = &did[i],
        };
        if (!workloads[i].id || !workloads[i].container_id || !workloads[i].pod_uid)
            return NULL;
    }
    return workloads;
}

static int add_sample(struct cgroups *cgroups, struct batch *batch, const struct machine *machine)
{
    const struct clock *clock = cgroups->context->clock;
    const struct machine *last = &cgroups->machine;
    struct cgroup_reader *reader = cgroups->reader;
    struct sample_workload *workloads = describe_workloads(cgroups, batch);
    struct sample sample = {
        .kind = SAMPLE_USAGE,
        .t_us = clock->realtime_us(clock),
        .usage = {.is_first = !cgroups->is_started,
                  .is_blind = !reader,
                  .memory_used_bytes = machine->memory_used_bytes,
                  .memory_bytes = machine->memory_bytes,
                  .count = reader ? reader->count : 0,
                  .workloads = workloads},
    };

    if (!workloads)
        return -ENOMEM;
    if (reader && cgroups->has_traffic)
        usage_traffic_assign(cgroups->resctrl, reader->items, workloads, &sample.usage);
    if (cgroups->is_started) {
        sample.usage.busy_us = machine->busy_us - MIN(machine->busy_us, last->busy_us);
        sample.usage.capacity_us =
            machine->capacity_us - MIN(machine->capacity_us, last->capacity_us);
    }
    if (reader && reader->tree.misses_workloads)
        usage_others_add(workloads, &sample.usage);
    if (batch_add(batch, &sample) < 0)
        return -ENOMEM;
    if (reader)
        cgroup_reader_set_reported(reader);
    cgroups->machine = *machine;
    cgroups->is_started = true;
    return 0;
}

static int cgroups_read(void *state, struct batch *batch, struct error *err)
{
    struct cgroups *cgroups = state;
    const struct clock *clock = cgroups->context->clock;
    bool rescan = cgroups->cycle % RESCAN_EVERY == 0, had_reader = cgroups->reader;
    struct machine machine;
    int r = machine_read(cgroups->context->host, &machine);

    if (r < 0)
        return error_set(err, r, "/proc/stat and /proc/meminfo: %s", strerror(-r));
    if (had_reader) {
        cgroups->cycle++;
        if (rescan)
            cgroups->block_names.count = 0;
        cgroup_reader_read(cgroups->reader, rescan);
        cgroups->has_traffic = resctrl_read(cgroups->resctrl, clock->monotonic_us(clock));
    }
    /* Without cgroups, the machine as a whole, so that no joule of a processor is lost. */
    r = add_sample(cgroups, batch, &machine);
    if (r == 0 && !had_reader)
        r = find_hierarchies(cgroups);
    if (r < 0)
        return error_set(err, r, "cgroups: %s", strerror(-r));
    if (had_reader)
        return 0;
    if (cgroups->reader)
        return error_set(err, -ENODEV, "cgroups are mounted now"); /* it is opened again */
    return error_set(err, -ENOENT,
                     "no cgroup hierarchy is mounted at fs/cgroup below --path.sysfs: what "
                     "workloads use is not known, and the energy of processors is unattributed; "
                     "mount /sys/fs/cgroup there");
}

static int cgroups_event_fd(void *state)
{
    const struct cgroups *cgroups = state;

    return cgroups->reader ? cgroups->reader->tree.inotify_fd : -1;
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

/* Reports nothing where resctrl is not mounted, or cannot count. */
static void cgroups_check(const struct source_context *context, struct report *report)
{
    struct resctrl *resctrl;
    size_t count;

    if (resctrl_new(context->host, &resctrl) < 0)
        return;
    (void)resctrl_read(resctrl, 0);
    if (resctrl_read(resctrl, USEC_PER_SEC)) { /* a difference needs two */
        count = resctrl_container_count(resctrl);
        if (count > 0)
            report_add(report, "memory traffic", VERDICT_OK, NULL,
                       "fs/resctrl has groups of containers: %zu", count);
        else
            report_add(report, "memory traffic", VERDICT_LIMITED,
                       "have the container runtime create them: docs/power.md",
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
