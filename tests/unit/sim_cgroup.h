/*
 * Simulated workloads: cgroups of either version that come and go and use CPU time and memory, the
 * machine around them, and what a report of usage can say of them.
 */
#pragma once

#include "tree_fixture.h"

#include "model/workload.h"
#include "random.h"

enum { SIM_CGROUPS_MAX = 8, SIM_CPUS = 16 };

#define SIM_MEMORY_BYTES ((uint64_t)256 << 30)

struct sim_cgroup_plan {
    const char *path;
    int around; /* index of the one that it is in, or -1 */
    bool comes_and_goes;
};

struct sim_cgroup {
    const struct sim_cgroup_plan *plan;
    struct workload_owner owner;
    bool exists, is_garbage;
    uint64_t cpu_us, memory_bytes; /* with those inside */
    bool is_known;                 /* it was read, or began after the first report */
    uint64_t seen_us;
    uint64_t did_us, held_bytes; /* as reported: without those inside */
};

struct sim_node {
    const char *root;
    bool is_v1;
    struct sim_cgroup cgroups[SIM_CGROUPS_MAX];
    size_t count;
    uint64_t busy_us, capacity_us; /* as drawn; /proc has whole ticks */
    uint64_t tick_us;
    uint64_t seen_busy_us;
    uint64_t system_us, used_bytes; /* of the last report: the whole machine less its workloads */
    bool has_reported;
};

static void sim_cgroup_path(const struct sim_node *node, const struct sim_cgroup *cgroup,
                            const char *controller, const char *file, char path[static 512])
{
    snprintf(path, 512, "sys/fs/cgroup/%s%s%s%s", node->is_v1 ? controller : "", cgroup->plan->path,
             file[0] ? "/" : "", file);
}

static void sim_cgroup_write(const struct sim_node *node, const struct sim_cgroup *cgroup)
{
    char path[512], text[64] = "junk\n";

    sim_cgroup_path(node, cgroup, "cpu,cpuacct", node->is_v1 ? "cpuacct.usage" : "cpu.stat", path);
    if (!cgroup->is_garbage)
        snprintf(text, sizeof(text), node->is_v1 ? "%ju000\n" : "usage_usec %ju\n",
                 (uintmax_t)cgroup->cpu_us);
    tree_write(node->root, path, text);
    sim_cgroup_path(node, cgroup, "memory", "memory.stat", path);
    snprintf(text, sizeof(text), node->is_v1 ? "total_rss %ju\n" : "anon %ju\n",
             (uintmax_t)cgroup->memory_bytes);
    tree_write(node->root, path, text);
}

static void sim_cgroup_remove(const struct sim_node *node, struct sim_cgroup *cgroup)
{
    static const char *const controllers[] = {"cpu,cpuacct", "memory"};
    char path[512];

    for (size_t i = 0; i < (node->is_v1 ? ARRAY_SIZE(controllers) : 1); i++) {
        sim_cgroup_path(node, cgroup, controllers[i], "", path);
        tree_remove(node->root, path);
    }
    cgroup->exists = false;
    cgroup->is_known = false;
}

static void sim_cgroup_create(const struct sim_node *node, struct sim_cgroup *cgroup)
{
    cgroup->exists = true;
    cgroup->cpu_us = cgroup->seen_us = 0;
    cgroup->is_known = node->has_reported; /* else it is older than the first report */
}

static void sim_node_write(const struct sim_node *node, bool is_garbage)
{
    uint64_t ticks = node->busy_us / node->tick_us;
    char text[256];

    snprintf(text, sizeof(text), "cpu  %ju 0 0 %ju 0 0 0 0 0 0\n", (uintmax_t)ticks,
             (uintmax_t)(node->capacity_us / node->tick_us - ticks));
    tree_write(node->root, "proc/stat", is_garbage ? "cpu  junk\n" : text);
    snprintf(text, sizeof(text), "MemTotal: %ju kB\nMemAvailable: %ju kB\n",
             (uintmax_t)(SIM_MEMORY_BYTES / 1024),
             (uintmax_t)((SIM_MEMORY_BYTES - node->used_bytes) / 1024));
    tree_write(node->root, "proc/meminfo", text);
}

/* All workloads at work for so long: up to half of the machine, and never so little of it that the
 * exporter would take it for idle. */
static void sim_node_work(struct sim_node *node, uint64_t us, struct random_source *random)
{
    uint64_t system_us = us / 2 + random_u64(random) % us;
    uint64_t used_bytes = ((uint64_t)8 << 30) + random_u64(random) % 1024 * 1024;

    node->busy_us += system_us;
    node->capacity_us += us * SIM_CPUS;
    for (size_t i = 0; i < node->count; i++)
        node->cgroups[i].memory_bytes = 0;
    for (size_t i = 0; i < node->count; i++) {
        struct sim_cgroup *cgroup = &node->cgroups[i];
        uint64_t own_us = random_u64(random) % us, own_bytes = random_u64(random) % (20ULL << 30);

        if (!cgroup->exists)
            continue;
        node->busy_us += own_us;
        used_bytes += own_bytes;
        cgroup->cpu_us += own_us;
        cgroup->memory_bytes += own_bytes;
        if (cgroup->plan->around >= 0) {
            node->cgroups[cgroup->plan->around].cpu_us += own_us;
            node->cgroups[cgroup->plan->around].memory_bytes += own_bytes;
        }
    }
    node->used_bytes = used_bytes / 1024 * 1024;
}

/* Some come, some go, some cannot be read. */
static void sim_node_change(struct sim_node *node, struct random_source *random)
{
    for (size_t i = 0; i < node->count; i++) {
        struct sim_cgroup *cgroup = &node->cgroups[i];

        cgroup->is_garbage = random_u64(random) % 40 == 0;
        if (!cgroup->plan->comes_and_goes || random_u64(random) % 12 > 0)
            continue;
        if (cgroup->exists)
            sim_cgroup_remove(node, cgroup);
        else
            sim_cgroup_create(node, cgroup);
    }
}

static void sim_take_out(uint64_t *from, uint64_t amount)
{
    *from = amount < *from ? *from - amount : 0;
}

/* A report was made now: the usage of each in it. */
static void sim_node_note_report(struct sim_node *node)
{
    uint64_t done_us[SIM_CGROUPS_MAX] = {0};
    uint64_t busy_us = node->busy_us / node->tick_us * node->tick_us;
    uint64_t workloads_us = 0;

    for (size_t i = 0; i < node->count; i++) {
        struct sim_cgroup *cgroup = &node->cgroups[i];

        if (cgroup->exists && !cgroup->is_garbage) {
            if (cgroup->is_known)
                done_us[i] = cgroup->cpu_us - cgroup->seen_us;
            cgroup->seen_us = cgroup->cpu_us;
            cgroup->is_known = true;
        }
        cgroup->did_us = done_us[i];
        cgroup->held_bytes = cgroup->exists ? cgroup->memory_bytes : 0;
    }
    for (size_t i = 0; i < node->count; i++) {
        const struct sim_cgroup *cgroup = &node->cgroups[i];

        if (cgroup->plan->around < 0 || !cgroup->exists)
            continue;
        sim_take_out(&node->cgroups[cgroup->plan->around].did_us, done_us[i]);
        sim_take_out(&node->cgroups[cgroup->plan->around].held_bytes, cgroup->memory_bytes);
    }
    for (size_t i = 0; i < node->count; i++)
        workloads_us += node->cgroups[i].did_us;
    node->system_us = busy_us - node->seen_busy_us;
    sim_take_out(&node->system_us, workloads_us);
    node->seen_busy_us = busy_us;
    node->has_reported = true;
}

/* Who reports begins anew: what was before counts for nothing. */
static void sim_node_note_closed(struct sim_node *node)
{
    node->has_reported = false;
    for (size_t i = 0; i < node->count; i++)
        node->cgroups[i].is_known = false;
}
