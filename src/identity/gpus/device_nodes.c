#include "identity/gpus/device_nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "core/fs.h"
#include "core/macros.h"
#include "host/proc.h"
#include "identity/gpus/device_rules.h"
#include "identity/owner.h"

static const uint64_t AGAIN_US = 60 * USEC_PER_SEC;

enum {
    PROCESSES_MAX = 4, /* of a container that are tried */
    KERNEL_MAJOR = 1,
    KERNEL_LOG_MINOR = 11,
};

int device_nodes_stat_at(int dir_fd, const char *name, struct stat *ret_stat)
{
    return fstatat(dir_fd, name, ret_stat, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : -errno;
}

/* What a process can see. */
struct view {
    device_nodes_stat *stat_at;
    int dev_fd;
    bool has_rules;
    struct span rules;
};

static bool has_node(const struct view *view, const char *name, uint32_t major_number,
                     uint32_t minor_number)
{
    struct stat st;

    return view->stat_at(view->dev_fd, name, &st) == 0 && S_ISCHR(st.st_mode) &&
           major(st.st_rdev) == major_number && minor(st.st_rdev) == minor_number &&
           (!view->has_rules || device_rules_allow(view->rules, major_number, minor_number));
}

static bool has_directory(const struct view *view, const char *name)
{
    struct stat st;

    return view->stat_at(view->dev_fd, name, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Adds a GPU for each of the nodes PREFIX0, PREFIX1 and so on, by their minors. */
static void add_series(const struct view *view, const char *prefix, uint32_t major_number,
                       uint32_t first, uint32_t count, enum allocation_kind kind,
                       struct gpu_access_list *gpus)
{
    /* Runtimes give the kernel's log only to containers that get everything. */
    bool is_privileged = view->has_rules ? device_rules_allow_all(view->rules)
                                         : has_node(view, "kmsg", KERNEL_MAJOR, KERNEL_LOG_MINOR);

    for (uint32_t i = first; i < first + count; i++) {
        char name[32];

        snprintf(name, sizeof(name), "%s%u", prefix, i);
        if (has_node(view, name, major_number, i))
            gpu_access_add(gpus, &(struct gpu_access){.kind = kind,
                                                      .index = i,
                                                      .is_privileged = is_privileged,
                                                      .is_unverified = !view->has_rules,
                                                      .source = ALLOCATED_BY_DEVICE_NODES});
    }
}

/* A GPU is unusable without the first: two stats are enough for nearly every container. */
static void add_nodes(const struct view *view, struct gpu_access_list *gpus)
{
    if (has_node(view, "nvidiactl", GPU_NODE_MAJOR, GPU_CONTROL_MINOR))
        add_series(view, "nvidia", GPU_NODE_MAJOR, 0, GPU_ACCESS_MAX, ALLOCATION_MINOR, gpus);
    if (has_directory(view, "dri"))
        add_series(view, "dri/renderD", DRM_NODE_MAJOR, RENDER_MINOR_FIRST, RENDER_MINORS,
                   ALLOCATION_RENDER, gpus);
}

/* The container can make its /dev anything; unless it is a directory it counts as absent. The
 * kernel hides file systems that a user serves (FUSE) from other users, so only root on the node
 * could block us here. */
static int open_dev(int process_fd)
{
    _cleanup_close_ int root_fd = openat(process_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int dev_fd;

    if (root_fd < 0)
        return -errno;
    dev_fd = openat(root_fd, "dev", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return dev_fd >= 0 ? dev_fd : -ENODEV;
}

int device_nodes_find(const struct host *host, uint32_t pid, const struct workload_owner *owner,
                      device_nodes_stat *stat_at, struct gpu_access_list *gpus)
{
    _cleanup_close_ int process_fd = proc_open(host, pid);
    _cleanup_close_ int dev_fd = process_fd >= 0 ? open_dev(process_fd) : -1;
    char cgroup_text[PROC_CGROUP_BYTES], rules[DEVICE_RULES_BYTES];
    struct view view = {.stat_at = stat_at, .dev_fd = dev_fd};
    struct span cgroup_file = {cgroup_text, 0};

    if (process_fd < 0)
        return process_fd;
    if (proc_read_cgroup(host, process_fd, cgroup_text, sizeof(cgroup_text), &cgroup_file.len) <
            0 ||
        !owner_has_cgroup_file(owner, cgroup_file))
        return -ESRCH;
    if (dev_fd < 0)
        return dev_fd == -ENODEV ? 0 : dev_fd;
    view.rules.data = rules;
    view.has_rules = device_rules_read(host, cgroup_file, rules, sizeof(rules), &view.rules.len);
    add_nodes(&view, gpus);
    return 0;
}

static bool is_container(const struct workload_owner *owner)
{
    return (owner->kind == WORKLOAD_POD || owner->kind == WORKLOAD_CONTAINER) &&
           owner->container_id[0] != '\0' && !owner->container_is_claim;
}

/* Tries another process where the first has just ended. */
static int inspect_container(const struct host *host, const struct process_table *processes,
                             const struct process_table_owner *owner, device_nodes_stat *stat_at,
                             struct gpu_access_list *gpus)
{
    int r = device_nodes_find(host, owner->pid, &owner->owner, stat_at, gpus);
    uint32_t pid = 0;

    for (int i = 1; i < PROCESSES_MAX && r < 0; i++) {
        pid = process_table_next_pid(processes, owner, pid);
        if (pid == 0)
            break;
        r = device_nodes_find(host, pid, &owner->owner, stat_at, gpus);
    }
    return r;
}

void device_nodes_scan(const struct host *host, const struct process_table *processes,
                       device_nodes_stat *stat_at, struct attachments *attachments, unsigned source,
                       uint64_t now_us)
{
    const struct process_table_owner *owner;

    attachments_begin(attachments, source);
    for (size_t i = 0; (owner = process_table_owner_at(processes, i)); i++)
        if (is_container(&owner->owner))
            attachments_keep(attachments, source, attachment_container(owner->owner.container_id));
    attachments_end(attachments, source, now_us);
    for (size_t i = 0; (owner = process_table_owner_at(processes, i)); i++) {
        struct gpu_access_list gpus = {.count = 0};
        struct attachment_key key = attachment_container(owner->owner.container_id);

        if (!is_container(&owner->owner) ||
            !attachments_is_due(attachments, source, key, AGAIN_US, now_us))
            continue;
        if (inspect_container(host, processes, owner, stat_at, &gpus) == 0)
            attachments_set(attachments, source, key, &gpus, now_us);
        else
            attachments_note_failure(attachments, source, key, now_us);
    }
}
