#include "identity/gpus/device_nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "core/fs.h"
#include "core/macros.h"
#include "core/parse.h"
#include "host/cgroup_delegation.h"
#include "host/proc.h"
#include "identity/owner.h"

static const uint64_t AGAIN_US = 60 * USEC_PER_SEC;

enum {
    PROCESSES_MAX = 4, /* of a container that are tried */
    RULES_BYTES = 64 << 10,
    KERNEL_MAJOR = 1,
    KERNEL_LOG_MINOR = 11,
};

/* From here on: the rules of cgroup v1. */

static bool has_byte(struct span text, char byte)
{
    return text.len > 0 && memchr(text.data, byte, text.len);
}

static bool is_number(struct span text, uint32_t number)
{
    uint64_t value;

    return span_equals(text, "*") || (parse_u64(text, &value) == 0 && value == number);
}

/* "c 195:0 rwm", "c *:* m" (Docker's default: nodes may be made, but not opened), "a *:* rwm". */
bool device_rules_allow(struct span rules, uint32_t major, uint32_t minor)
{
    while (rules.len > 0) {
        struct span line = span_cut(&rules, '\n'), type = span_cut(&line, ' ');
        struct span device = span_cut(&line, ' '), device_major = span_cut(&device, ':');

        if ((span_equals(type, "c") || span_equals(type, "a")) && is_number(device_major, major) &&
            is_number(device, minor) && has_byte(line, 'r') && has_byte(line, 'w'))
            return true;
    }
    return false;
}

bool device_rules_allow_all(struct span rules)
{
    while (rules.len > 0)
        if (span_equals(span_cut(&rules, '\n'), "a *:* rwm"))
            return true;
    return false;
}

static bool has_devices(struct span controllers)
{
    while (controllers.len > 0)
        if (span_equals(span_cut(&controllers, ','), "devices"))
            return true;
    return false;
}

bool device_rules_find_path(struct span cgroup_file, struct span *ret_path)
{
    while (cgroup_file.len > 0) {
        struct span path = span_cut(&cgroup_file, '\n');

        span_cut(&path, ':');
        if (!has_devices(span_cut(&path, ':')))
            continue;
        if (path.len == 0 || path.data[0] != '/' || memmem(path.data, path.len, "/..", 3))
            return false;
        *ret_path = path;
        return true;
    }
    return false;
}

/* False with v2. */
static bool read_rules(const struct host *host, struct span cgroup_file, char *rules,
                       size_t size_bytes, size_t *ret_len)
{
    struct cgroup_mark mark = {.below = {"", 0}};
    char name[4096];
    struct span path;
    int len;

    if (!device_rules_find_path(cgroup_file, &path) || path.len > sizeof(name))
        return false;
    if (!cgroup_mark_find(path, &mark))
        mark.above = path;
    len = snprintf(name, sizeof(name), "fs/cgroup/devices%.*s/%.*s/devices.list",
                   (int)mark.above.len, mark.above.data, (int)mark.below.len, mark.below.data);
    return len > 0 && (size_t)len < sizeof(name) &&
           fs_read_at(host->sysfs_fd, name, rules, size_bytes, ret_len) == 0;
}

/* From here on: one process. */

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

static void add_nodes(const struct view *view, struct gpu_access_list *gpus)
{
    bool is_privileged;

    /* A GPU is unusable without it: one stat is enough for nearly every container. */
    if (!has_node(view, "nvidiactl", GPU_NODE_MAJOR, GPU_CONTROL_MINOR))
        return;
    /* Runtimes give the kernel's log only to containers that get everything. */
    is_privileged = view->has_rules ? device_rules_allow_all(view->rules)
                                    : has_node(view, "kmsg", KERNEL_MAJOR, KERNEL_LOG_MINOR);
    for (uint32_t i = 0; i < GPU_ACCESS_MAX; i++) {
        char name[32];

        snprintf(name, sizeof(name), "nvidia%u", i);
        if (has_node(view, name, GPU_NODE_MAJOR, i))
            gpu_access_add(gpus, &(struct gpu_access){.kind = ALLOCATION_MINOR,
                                                      .index = i,
                                                      .is_privileged = is_privileged});
    }
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
    char cgroup_text[PROC_CGROUP_BYTES], rules[RULES_BYTES];
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
    view.has_rules = read_rules(host, cgroup_file, rules, sizeof(rules), &view.rules.len);
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
    struct container_list list;
    int r = 0;

    container_list_init(&list);
    for (size_t i = 0; r == 0 && (owner = process_table_owner_at(processes, i)); i++)
        if (is_container(&owner->owner))
            r = container_list_add(&list, &(struct container){.id = owner->owner.container_id});
    if (r == 0)
        attachments_list(attachments, source, &list, now_us);
    container_list_done(&list);
    for (size_t i = 0; (owner = process_table_owner_at(processes, i)); i++) {
        struct gpu_access_list gpus = {.count = 0};
        const char *id = owner->owner.container_id;

        if (!is_container(&owner->owner) ||
            !attachments_is_due(attachments, source, id, AGAIN_US, now_us))
            continue;
        if (inspect_container(host, processes, owner, stat_at, &gpus) == 0)
            attachments_set(attachments, source, id, &gpus, now_us);
        else
            attachments_note_failure(attachments, source, id, now_us);
    }
}
