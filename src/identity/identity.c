#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "identity/gpus/device_nodes.h"
#include "identity/identity_private.h"
#include "identity/job_gpus.h"
#include "identity/owner.h"
#include "identity/runtime_table.h"

/* What was not used for this long is forgotten. */
static const uint64_t EXPIRE_US = 600 * USEC_PER_SEC;

enum { PROCESSES_READ_MAX = 16 };

/* For a process that blocks its readers. Together they delay a scan by about a second. */
enum { READ_WAIT_MS = 100, READ_WAIT_MIN_MS = 2 };
static const uint64_t READ_WAITS_MAX_US = USEC_PER_SEC;

void identity_find_owner(const struct sample_process *process, struct workload_owner *ret_owner)
{
    owner_find_by_cgroup_file(span_of(process->cgroup), process->uid, ret_owner);
}

void identity_want_container(struct identity *identity, const struct workload_owner *owner)
{
    if (owner->container_id[0])
        container_cache_want(identity->container_cache, owner->container_id, owner->pod_uid,
                             owner->container_is_claim, identity_now_us(identity));
}

enum details_state { DETAILS_NONE, DETAILS_INCOMPLETE, DETAILS_COMPLETE };

/* Marks them as used, too. */
static enum details_state use_details(struct identity *identity, const struct workload_owner *owner)
{
    HOLD_LOCK(&identity->lock);
    struct details *details = details_find(&identity->details, owner->kind, owner->id);

    if (!details)
        return DETAILS_NONE;
    details->used_us = identity_now_us(identity);
    return details->complete ? DETAILS_COMPLETE : DETAILS_INCOMPLETE;
}

/* Gathers what is known of an owner, from one of its processes. */
static void learn_owner(struct identity *identity, uint32_t pid, const struct workload_owner *owner)
{
    uint32_t wait_ms = identity->read_us < READ_WAITS_MAX_US ? READ_WAIT_MS : READ_WAIT_MIN_MS;
    uint64_t began_us = identity_now_us(identity);
    struct details details;
    int r;

    identity_want_container(identity, owner);
    if (use_details(identity, owner) == DETAILS_COMPLETE)
        return;
    r = details_read(identity->options.host, pid, owner, wait_ms, &details);
    identity->read_us += identity_now_us(identity) - began_us;
    if (r < 0)
        return;
    details.used_us = identity_now_us(identity);
    pthread_mutex_lock(&identity->lock);
    details_add(&identity->details, &details);
    pthread_mutex_unlock(&identity->lock);
}

static void learn_new_owner(void *context, const struct process_table_owner *owner)
{
    learn_owner(context, owner->pid, &owner->owner);
}

static void learn_noted_owners(struct identity *identity)
{
    for (;;) {
        struct identity_noted noted;
        bool any;

        pthread_mutex_lock(&identity->lock);
        any = identity->noted_count > 0;
        if (any)
            noted = identity->noted[--identity->noted_count];
        pthread_mutex_unlock(&identity->lock);
        if (!any)
            return;
        learn_owner(identity, noted.pid, &noted.owner);
    }
}

/* Owners that have processes are not forgotten, however rare scrapes are. Incomplete details are
 * read from other processes: the first may have been in a container. */
static void refresh_owners(struct identity *identity)
{
    const struct process_table_owner *owner;

    for (size_t i = 0; (owner = process_table_owner_at(identity->processes, i)); i++) {
        uint32_t pid = 0;

        identity_want_container(identity, &owner->owner);
        if (use_details(identity, &owner->owner) != DETAILS_INCOMPLETE)
            continue;
        for (int k = 0; k < PROCESSES_READ_MAX; k++) {
            pid = process_table_next_pid(identity->processes, owner, pid);
            if (pid == 0)
                break;
            learn_owner(identity, pid, &owner->owner);
        }
    }
}

static void scan(struct identity *identity)
{
    uint64_t began_us = identity_now_us(identity), ended_us;
    struct process_table_stats stats;
    const char *why;
    int r;

    identity->read_us = 0;
    r = process_table_scan(identity->processes, false, learn_new_owner, identity);

    process_table_get_stats(identity->processes, &stats);
    why = r < 0 ? strerror(-r) : process_table_error(&stats);
    if (r == 0)
        refresh_owners(identity);
    if (r == 0 && identity->attachments) {
        device_nodes_scan(identity->options.host, identity->processes, device_nodes_stat_at,
                          identity->attachments, IDENTITY_HOST_SOURCE, identity_now_us(identity));
        job_gpus_scan(identity->options.host, identity->processes, identity->attachments,
                      IDENTITY_JOB_SOURCE, READ_WAIT_MS, identity_now_us(identity));
    }
    ended_us = identity_now_us(identity);
    pthread_mutex_lock(&identity->lock);
    identity_status_note(&identity->scan, began_us, ended_us, why);
    if (r == 0) {
        identity->scan.answered_us = ended_us;
        identity->stats = stats;
    }
    if (ended_us > EXPIRE_US)
        details_expire(&identity->details, ended_us - EXPIRE_US);
    pthread_mutex_unlock(&identity->lock);
    if (ended_us > EXPIRE_US)
        container_cache_expire(identity->container_cache, ended_us - EXPIRE_US);
}

static void probe_runtimes(struct identity *identity)
{
    for (size_t i = 0; i < identity->runtime_poller_count; i++)
        runtime_poller_probe(identity->runtime_pollers[i]);
    if (identity->kubelet)
        kubelet_poll(identity->kubelet);
}

/* Until the next scan is due, or a process was noted. True: asked to stop. */
static bool wait_for_work(struct identity *identity, uint64_t until_us)
{
    HOLD_LOCK(&identity->lock);

    while (!identity->stop && identity->noted_count == 0 &&
           lock_wait_until(&identity->wake, &identity->lock, until_us))
        ;
    return identity->stop;
}

static void *run(void *argument)
{
    struct identity *identity = argument;
    uint64_t due_us = identity_now_us(identity);

    do {
        learn_noted_owners(identity);
        if (identity_now_us(identity) < due_us)
            continue;
        scan(identity);
        probe_runtimes(identity);
        due_us = identity_now_us(identity) + identity->options.scan_interval_us;
    } while (!wait_for_work(identity, due_us));
    return NULL;
}

void identity_note_process(struct identity *identity, uint32_t pid,
                           const struct workload_owner *owner)
{
    HOLD_LOCK(&identity->lock);

    if (identity->noted_count < IDENTITY_NOTED_MAX) {
        identity->noted[identity->noted_count].pid = pid;
        identity->noted[identity->noted_count].owner = *owner;
        identity->noted_count++;
        pthread_cond_signal(&identity->wake);
    }
}

void identity_add_names(struct identity *identity, const struct container_list *list)
{
    container_cache_hint(identity->container_cache, list, identity_now_us(identity));
}

void identity_expect_names(struct identity *identity, bool expected)
{
    container_cache_set_present(identity->container_cache, CONTAINER_CACHE_HINTS, expected);
}

void identity_note_api_server(struct identity *identity, int result, uint64_t duration_us)
{
    HOLD_LOCK(&identity->lock);
    uint64_t now_us = identity_now_us(identity);
    uint64_t last_us = duration_us > 0 ? duration_us : identity->api.duration_us;

    /* The collector logs the reason that the fetcher gives. */
    identity_status_note(&identity->api, now_us - last_us, now_us, result == 0 ? NULL : "");
}

static int add_runtime_poller(struct identity *identity, const struct runtime_ops *runtime,
                              const char *name, const char *socket_path)
{
    struct runtime_poller_options options = {
        .runtime = runtime,
        .name = name,
        .socket_path = socket_path,
        .number = (unsigned)identity->runtime_poller_count,
        .container_cache = identity->container_cache,
        .attachments = identity->attachments,
        .clock = identity->options.clock,
    };
    int r;

    if (identity->runtime_poller_count == IDENTITY_RUNTIMES_MAX)
        return -ENOSPC;
    r = runtime_poller_new(&options, &identity->runtime_pollers[identity->runtime_poller_count]);
    if (r == 0)
        identity->runtime_poller_count++;
    return r;
}

/* A default path, below the host's root, wherever that is mounted. */
static int below_rootfs(const struct identity *identity, const char *path, char *text,
                        size_t size_bytes)
{
    const char *root = identity->options.rootfs_path;
    int len = snprintf(text, size_bytes, "%s%s", strcmp(root, "/") == 0 ? "" : root, path);

    return len > 0 && (size_t)len < size_bytes ? 0 : -ENAMETOOLONG;
}

static int add_runtime(struct identity *identity, const struct runtime_ops *runtime,
                       const char *given_path)
{
    char path[4096], name[128];
    int r = 0;

    if (given_path)
        return given_path[0] ? add_runtime_poller(identity, runtime, runtime->name, given_path) : 0;
    for (const char *const *socket = runtime->sockets; *socket && r == 0; socket++) {
        bool is_first = socket == runtime->sockets;

        /* There may be several, containerd's own and k3s', say: they are several sources. */
        snprintf(name, sizeof(name), "%s%s%s", runtime->name, is_first ? "" : ":",
                 is_first ? "" : *socket);
        r = below_rootfs(identity, *socket, path, sizeof(path));
        if (r == 0)
            r = add_runtime_poller(identity, runtime, name, path);
    }
    return r;
}

static int add_kubelet(struct identity *identity)
{
    const char *given = identity->options.pod_resources_socket;
    char path[4096];
    int r;

    if (given)
        return given[0] ? kubelet_new(given, identity->options.clock, &identity->kubelet) : 0;
    r = below_rootfs(identity, POD_RESOURCES_SOCKET, path, sizeof(path));
    return r < 0 ? r : kubelet_new(path, identity->options.clock, &identity->kubelet);
}

static int open_parts(struct identity *identity)
{
    const struct identity_options *options = &identity->options;
    int r = container_cache_new(&identity->container_cache);

    if (r == 0 && options->attachments)
        r = attachments_new(&identity->attachments);
    if (r == 0)
        r = process_table_new(options->host, &identity->processes);
    for (size_t i = 0; r == 0 && runtime_table[i]; i++)
        if (options->kubernetes || !runtime_table[i]->is_kubernetes_only)
            r = add_runtime(identity, runtime_table[i],
                            options->runtime_sockets ? options->runtime_sockets[i] : NULL);
    if (r == 0 && options->kubernetes)
        r = add_kubelet(identity);
    if (r == 0 && options->expects_fetched_names)
        identity_expect_names(identity, true);
    if (r == 0)
        probe_runtimes(identity); /* so that it is known which names to wait for */
    return r;
}

int identity_open(const struct identity_options *options, struct identity **ret_identity,
                  struct error *err)
{
    struct identity *identity = calloc(1, sizeof(*identity));
    int r;

    if (!identity)
        return error_set(err, -ENOMEM, "out of memory");
    identity->options = *options;
    identity->scan = (struct identity_status){.name = "processes"};
    identity->api =
        (struct identity_status){.name = "kubernetes_api", .is_logged_by_fetcher = true};
    arena_init(&identity->found, IDENTITY_FOUND_CAP_BYTES);
    pthread_mutex_init(&identity->lock, NULL);
    lock_condition_init(&identity->wake);
    r = open_parts(identity);
    if (r == 0) {
        r = -pthread_create(&identity->thread, NULL, run, identity);
        identity->started = r == 0;
    }
    if (r < 0) {
        identity_close(identity);
        return error_set(err, r, "cannot start looking up names: %s", strerror(-r));
    }
    *ret_identity = identity;
    return 0;
}

void identity_close(struct identity *identity)
{
    if (!identity)
        return;
    if (identity->started) {
        pthread_mutex_lock(&identity->lock);
        identity->stop = true;
        pthread_cond_signal(&identity->wake);
        pthread_mutex_unlock(&identity->lock);
        pthread_join(identity->thread, NULL);
    }
    for (size_t i = 0; i < identity->runtime_poller_count; i++)
        runtime_poller_free(identity->runtime_pollers[i]);
    kubelet_free(identity->kubelet);
    process_table_free(identity->processes);
    container_cache_free(identity->container_cache);
    attachments_free(identity->attachments);
    details_store_done(&identity->details);
    arena_done(&identity->found);
    pthread_cond_destroy(&identity->wake);
    pthread_mutex_destroy(&identity->lock);
    free(identity);
}
