#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "client/http_client.h"
#include "config/node_config.h"
#include "core/clock.h"
#include "host/cgroup_hierarchy.h"
#include "identity/gpu_access.h"
#include "identity/job_gpus.h"
#include "identity/pod_resources.h"
#include "identity/process_events.h"
#include "identity/process_table.h"
#include "identity/runtime.h"
#include "identity/runtime_table.h"
#include "identity/vm_gpus.h"
#include "model/report.h"

enum { INSPECTED_MAX = 64, JOB_TIMEOUT_MS = 100 };

static const uint64_t TIMEOUT_US = 3 * USEC_PER_SEC;

/* Reports only a failure: `owners` covers success. */
static void check_hierarchies(struct report *report, const struct host *host)
{
    struct hierarchies hierarchies;

    if (hierarchies_open(host, &hierarchies) == 0) {
        hierarchies_close(&hierarchies);
        return;
    }
    report_add(
        report, "cgroups", VERDICT_MISSING,
        "mount the host's /sys/fs/cgroup, and set --path.sysfs if it is elsewhere",
        "no cgroup hierarchy is mounted: the usage of workloads is unknown, and CPU energy is "
        "unattributed");
}

/* Nothing where there are neither jobs nor units with GPUs of their own. */
static void check_jobs(struct report *report, const struct host *host,
                       const struct process_table *processes)
{
    struct job_gpus_count count = job_gpus_count(host, processes, JOB_TIMEOUT_MS);

    if (count.incomplete > 0)
        report_add(report, "GPUs of jobs", VERDICT_LIMITED,
                   "nothing readable names them: with --gpu-bind, start srun in a batch script, "
                   "which has all of the job's GPUs, or use device rules that can be read",
                   "%zu of %zu job%s %s %zu more GPU%s than the node shows which", count.incomplete,
                   count.jobs, PLURAL_S(count.jobs), count.incomplete == 1 ? "has" : "have",
                   count.unknown, PLURAL_S(count.unknown));
    if (count.by_environment > 0)
        report_add(
            report, "GPUs of jobs", VERDICT_LIMITED,
            "none needed: they are shown as unverified. Device rules prove more, with cgroup "
            "v1 and where they name each GPU",
            "%zu by device rules, %zu by the job's environment alone", count.by_rules,
            count.by_environment);
    else if (count.jobs > 0 || count.by_rules > 0)
        report_add(report, "GPUs of jobs", VERDICT_OK, NULL, "%zu job%s; %zu by device rules",
                   count.jobs, PLURAL_S(count.jobs), count.by_rules);
}

/* The machine that has this board; NULL: none that is known. */
static const char *find_machine(const struct host *host, const struct process_table *processes,
                                const char *address)
{
    const struct process_table_owner *owner;

    for (size_t i = 0; (owner = process_table_owner_at(processes, i)); i++) {
        struct gpu_access_list gpus = {.count = 0};

        if (owner->owner.kind != WORKLOAD_VM ||
            job_gpus_find(host, processes, owner, JOB_TIMEOUT_MS, &gpus) < 0)
            continue;
        for (size_t k = 0; k < gpus.count; k++)
            if (strcmp(gpus.items[k].id, address) == 0)
                return owner->owner.id;
    }
    return NULL;
}

/* The boards that no driver of this node can meter. */
static void check_passed_through(struct report *report, const struct host *host,
                                 const struct process_table *processes)
{
    static const char remedy[] =
        "this node's driver cannot see it: to meter it, run wattribute in the machine";
    struct gpu_access_list boards = {.count = 0};

    vm_gpus_list_passed_through(host, &boards);
    for (size_t i = 0; i < boards.count; i++) {
        const char *machine = find_machine(host, processes, boards.items[i].id);
        char what[64];

        snprintf(what, sizeof(what), "GPU %.40s", boards.items[i].id);
        if (machine)
            report_add(report, what, VERDICT_LIMITED, remedy,
                       "passed through to the virtual machine %.100s (VFIO)", machine);
        else
            report_add(report, what, VERDICT_LIMITED, remedy,
                       "reserved for pass-through (VFIO); no known virtual machine has it");
    }
}

static void check_cgroups(struct report *report, const struct host *host)
{
    struct process_table_stats stats = {0};
    struct process_table *table = NULL;
    const char *why;
    int r = process_table_new(host, &table);

    if (r == 0)
        r = process_table_scan(table, true, NULL, NULL);
    if (r == 0)
        process_table_get_stats(table, &stats);
    report->workloads = stats.owners;
    why = r < 0 ? strerror(-r) : process_table_error(&stats);
    if (why)
        report_add(report, "owners", VERDICT_FAILED, "mount the host's /proc and set --path.procfs",
                   "processes cannot be read: %s", why);
    else if (stats.outside > 0)
        report_add(report, "owners", VERDICT_LIMITED,
                   "run in the host's cgroup namespace (docker: --cgroupns=host), or mount the "
                   "host's /sys and set --path.sysfs",
                   "%llu of %llu process%s %s outside our cgroup namespace",
                   (unsigned long long)stats.outside, (unsigned long long)stats.processes,
                   stats.processes == 1 ? "" : "es", stats.outside == 1 ? "is" : "are");
    else
        report_add(report, "owners", VERDICT_OK, NULL, "%llu process%s of %llu owner%s",
                   (unsigned long long)stats.processes, stats.processes == 1 ? "" : "es",
                   (unsigned long long)stats.owners, PLURAL_S(stats.owners));
    if (!why) {
        check_jobs(report, host, table);
        check_passed_through(report, host, table);
    }
    process_table_free(table);
}

static void check_events(struct report *report, const struct host *host)
{
    struct process_events *events = NULL;
    int r = process_events_start(host, &clock_system, &events);

    process_events_stop(events);
    if (r == 0)
        report_add(report, "process events", VERDICT_OK, NULL, "permitted");
    else
        report_add(report, "process events", VERDICT_LIMITED,
                   "none needed: only processes shorter than 0.2 s lose their names; or run in the "
                   "host's PID, user and network namespaces (before Linux 6.6 with CAP_NET_ADMIN)",
                   "%s", strerror(-r));
}

static bool is_socket(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* The configured path, or one of the usual paths below the host's root. */
static const char *find_socket(const struct options *options, const char *given,
                               const char *const *usual, char *path, size_t size_bytes)
{
    const char *root = strcmp(options->rootfs_path, "/") == 0 ? "" : options->rootfs_path;

    if (given)
        return given[0] && is_socket(given) ? given : NULL;
    for (; *usual; usual++) {
        int len = snprintf(path, size_bytes, "%s%s", root, *usual);

        if (len > 0 && (size_t)len < size_bytes && is_socket(path))
            return path;
    }
    return NULL;
}

/* Inspects only the first of a long list: enough to see whether it answers. */
static int count_gpu_containers(const struct runtime_call *call, const struct container_list *list,
                                size_t *ret_count, struct error *err)
{
    size_t count = 0;

    for (size_t i = 0; i < list->count && i < INSPECTED_MAX; i++) {
        struct gpu_access_list gpus = {.count = 0};
        int r = call->runtime->inspect(call, list->items[i].id, &gpus, err);

        if (r < 0 && r != -ESRCH)
            return r;
        count += gpus.count > 0;
    }
    *ret_count = count;
    return 0;
}

static void check_runtime(struct report *report, struct http_client *client,
                          const struct runtime_ops *runtime, const char *socket_path)
{
    const struct runtime_call call = {runtime, client, socket_path, TIMEOUT_US};
    struct container_list list;
    struct error err = {""};
    size_t with_gpu = 0;
    int r;

    if (!socket_path) {
        report_add(
            report, runtime->name, VERDICT_MISSING,
            "not needed if this node does not run it; otherwise mount the directory of its socket",
            "no socket");
        return;
    }
    container_list_init(&list);
    r = runtime->list(&call, RUNTIME_RUNNING, &list, &err);
    if (r == 0)
        r = count_gpu_containers(&call, &list, &with_gpu, &err);
    if (r == 0)
        report_add(report, runtime->name, VERDICT_OK, NULL,
                   "%.100s: %zu container%s, %zu of%s them with a GPU", socket_path, list.count,
                   PLURAL_S(list.count), with_gpu,
                   list.count > INSPECTED_MAX ? " the first 64 of" : "");
    else
        report_add(report, runtime->name, VERDICT_FAILED,
                   r == -EACCES ? "run as root" : "names are missing; no energy is lost", "%s",
                   err.text);
    container_list_done(&list);
}

static void check_kubelet(struct report *report, struct http_client *client,
                          const char *socket_path)
{
    struct allocation_list list;
    struct error err = {""};
    size_t claims = 0;
    int r;

    if (!socket_path) {
        report_add(report, "kubelet", VERDICT_MISSING,
                   "not needed outside Kubernetes; otherwise mount /var/lib/kubelet/pod-resources",
                   "no socket");
        return;
    }
    allocation_list_init(&list);
    r = pod_resources_list(client, socket_path, TIMEOUT_US, &list, &err);
    for (size_t i = 0; i < list.count; i++)
        claims += list.items[i].is_claim;
    if (r == 0)
        report_add(report, "kubelet", VERDICT_OK, NULL,
                   "%.100s: %zu GPU%s allocated, %zu of them by claims", socket_path, list.count,
                   PLURAL_S(list.count), claims);
    else
        report_add(report, "kubelet", VERDICT_FAILED, "only GPU allocations are missing", "%s",
                   err.text);
    allocation_list_done(&list);
}

void check_identity(struct report *report, const struct host *host, const struct options *options)
{
    static const char *const kubelet[] = {POD_RESOURCES_SOCKET, NULL};
    struct http_client *client;
    char path[4096];

    check_cgroups(report, host);
    if (node_config_is_on(options, "cgroups"))
        check_hierarchies(report, host);
    check_events(report, host);
    if (http_client_new(&client) < 0)
        return;
    for (size_t i = 0; runtime_table[i]; i++)
        check_runtime(report, client, runtime_table[i],
                      find_socket(options, options->runtime_sockets[i], runtime_table[i]->sockets,
                                  path, sizeof(path)));
    check_kubelet(report, client,
                  find_socket(options, options->pod_resources_socket, kubelet, path, sizeof(path)));
    http_client_free(client);
}
