/* The limits of cgroups: settings, which hardly ever change, and apply to everything below. */
#include <fcntl.h>
#include <stdio.h>

#include "core/fs.h"
#include "core/macros.h"
#include "sources/cgroup/reader.h"

/* False: it is not there. */
static bool read_text(struct cgroup_reader *reader, int root_fd, const char *path, const char *file,
                      struct span *ret_text)
{
    char name[CGROUP_PATH_BYTES + CGROUP_FILE_NAME_BYTES];
    size_t len;

    snprintf(name, sizeof(name), "%s%s%s", path[1] ? path + 1 : "", path[1] ? "/" : "", file);
    if (fs_read_at(root_fd, name, reader->buffer, sizeof(reader->buffer), &len) < 0)
        return false;
    *ret_text = (struct span){reader->buffer, len};
    return true;
}

static uint64_t read_memory(struct cgroup_reader *reader, const char *path)
{
    const struct hierarchies *hierarchies = &reader->hierarchies;
    struct span text;
    uint64_t bytes;

    if (hierarchies->homes[CONTROLLER_MEMORY] == hierarchies->unified &&
        hierarchies->unified != HIERARCHY_NONE &&
        read_text(reader, hierarchies->fds[hierarchies->unified], path, "memory.max", &text) &&
        cgroup_parse_number(text, &bytes) == 0)
        return bytes;
    return UINT64_MAX;
}

static uint64_t read_quota(struct cgroup_reader *reader, const char *path)
{
    const struct hierarchies *hierarchies = &reader->hierarchies;
    int home = hierarchies->homes[CONTROLLER_CPU];
    char joined[64];
    struct span text;
    uint64_t quota = UINT64_MAX;
    int len;

    if (home == HIERARCHY_NONE)
        return UINT64_MAX;
    if (home == hierarchies->unified) {
        if (read_text(reader, hierarchies->fds[home], path, "cpu.max", &text))
            (void)cgroup_parse_quota(text, &quota);
        return quota;
    }
    /* As one line of v2. */
    if (!read_text(reader, hierarchies->fds[home], path, "cpu.cfs_quota_us", &text))
        return UINT64_MAX;
    (void)span_strip_suffix(&text, "\n");
    if (span_equals(text, "-1")) /* as most have */
        return UINT64_MAX;
    len = snprintf(joined, sizeof(joined), "%.*s ", (int)MIN(text.len, (size_t)24), text.data);
    if (!read_text(reader, hierarchies->fds[home], path, "cpu.cfs_period_us", &text))
        return UINT64_MAX;
    len += snprintf(joined + len, sizeof(joined) - (size_t)len, "%.*s",
                    (int)MIN(text.len, (size_t)24), text.data);
    (void)cgroup_parse_quota((struct span){joined, (size_t)len}, &quota);
    return quota;
}

/* The effective CPUs are those that are online, and in the cpusets around it. */
static uint64_t read_cpuset(struct cgroup_reader *reader, const char *path)
{
    static const char *const v1_names[] = {"cpuset.effective_cpus", "cpuset.cpus"};
    const struct hierarchies *hierarchies = &reader->hierarchies;
    struct span text;
    uint64_t cpus;

    if (hierarchies->cpuset_fd < 0) {
        if (hierarchies->unified != HIERARCHY_NONE &&
            read_text(reader, hierarchies->fds[hierarchies->unified], path, "cpuset.cpus.effective",
                      &text) &&
            cgroup_parse_cpuset(text, &cpus) == 0)
            return cpus * 1000;
        return UINT64_MAX;
    }
    for (size_t i = 0; i < ARRAY_SIZE(v1_names); i++)
        if (read_text(reader, hierarchies->cpuset_fd, path, v1_names[i], &text) &&
            cgroup_parse_cpuset(text, &cpus) == 0)
            return cpus * 1000;
    return UINT64_MAX;
}

/* Its own ones. */
static struct cgroup_limits read_limits(struct cgroup_reader *reader,
                                        const struct cgroup_node *node)
{
    struct cgroup_limits limits = CGROUP_NO_LIMITS;
    char path[CGROUP_PATH_BYTES];

    if (!cgroup_nodes_get_path(&reader->tree.nodes, node, path))
        return limits;
    limits.cpuset_thousandths = read_cpuset(reader, path);
    if (node->depth > 0) { /* the root has no others */
        limits.memory_bytes = read_memory(reader, path);
        limits.quota_thousandths = read_quota(reader, path);
    }
    return limits;
}

static const struct cgroup_limits *find_limits(struct cgroup_reader *reader,
                                               struct cgroup_node *node)
{
    struct cgroup_node *parent = cgroup_nodes_get(&reader->tree.nodes, node->parent);

    if (node->limit_turn != reader->turn) {
        const struct cgroup_limits above = parent ? *find_limits(reader, parent) : CGROUP_NO_LIMITS;
        struct cgroup_limits limits = read_limits(reader, node);

        limits.memory_bytes = MIN(limits.memory_bytes, above.memory_bytes);
        limits.quota_thousandths = MIN(limits.quota_thousandths, above.quota_thousandths);
        limits.cpuset_thousandths = MIN(limits.cpuset_thousandths, above.cpuset_thousandths);
        node->limits = limits;
        node->limit_turn = reader->turn;
    }
    return &node->limits;
}

void cgroup_limits_update(struct cgroup_reader *reader, struct cgroup_workload *workload,
                          struct cgroup_node *node)
{
    struct cgroup_node *above = node;

    /* Its creator may still be about to limit it, or what it is in. */
    if (workload->is_late && workload->first_turn == reader->turn)
        do {
            above->limit_turn = 0;
            above = cgroup_nodes_get(&reader->tree.nodes, above->parent);
        } while (above);
    workload->limits = *find_limits(reader, node);
}
