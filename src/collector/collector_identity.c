/* The collector and identity: names, runtimes that come and go, and access to GPUs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/collector_private.h"
#include "core/array.h"
#include "core/log.h"
#include "host/proc.h"
#include "identity/runtime.h"

static void warn_if_missing(const char *flag, const char *path)
{
    struct stat st;

    if (!path || !path[0] || (stat(path, &st) == 0 && S_ISSOCK(st.st_mode)))
        return;
    log_warn("names may be missing: a configured socket does not exist; it is tried again", "flag",
             flag, "path", path);
}

/* Its own container has access to GPUs, too, and does not count. */
static void find_own_container(struct collector *collector)
{
    struct sample_process self;
    struct workload_owner owner;
    struct proc_reader reader;
    struct arena arena;

    arena_init(&arena, 1 << 20);
    proc_reader_init(&reader, collector->host);
    if (proc_identify(&reader, (uint32_t)getpid(), &arena, &self) == 0) {
        identity_find_owner(&self, &owner);
        memcpy(collector->own_container_id, owner.container_id, sizeof(owner.container_id));
    }
    arena_done(&arena);
}

int collector_open_names(struct collector *collector, struct pipeline_options *pipeline,
                         struct error *err)
{
    const struct options *options = collector->options;
    int r;

    if (options->replay_path) {
        r = recorded_names_new(&collector->names);
        pipeline->find_names = recorded_names_find;
        pipeline->names_context = collector->names;
        return r;
    }
    for (size_t i = 0; runtime_table[i]; i++)
        warn_if_missing(runtime_table[i]->flag, options->runtime_sockets[i]);
    warn_if_missing("pod-resources-socket", options->pod_resources_socket);
    find_own_container(collector);
    r = identity_open(
        &(struct identity_options){
            .host = collector->host,
            .rootfs_path = options->rootfs_path,
            .clock = collector->clock,
            .scan_interval_us = options->process_scan_interval_us,
            .kubernetes = options->kubernetes_enabled,
            .attachments = true,
            .expects_fetched_names = collector->fetchers.items[FETCHER_KUBERNETES].is_wanted,
            .runtime_sockets = options->runtime_sockets,
            .pod_resources_socket = options->pod_resources_socket,
        },
        &collector->identity, err);
    pipeline->find_names = identity_find_names;
    pipeline->are_names_awaited = identity_awaits_names;
    pipeline->names_context = collector->identity;
    if (r == 0 && options->process_events &&
        process_events_start(collector->host, collector->clock, &collector->events) < 0)
        collector->events = NULL; /* `check` says what it would need */
    return r;
}

/* Once for each change. */
static void log_runtime(struct runtime_log *log, const struct identity_status *status)
{
    size_t at = 0;
    bool is_new;

    while (at < log->count && strcmp(log->seen[at].name, status->name) != 0)
        at++;
    is_new = at == log->count;
    if (at == ARRAY_SIZE(log->seen) || !status->polled ||
        (!is_new && log->seen[at].up == status->up))
        return;
    if (is_new) {
        memcpy(log->seen[at].name, status->name, sizeof(status->name));
        log->count++;
    }
    log->seen[at].up = status->up;
    if (!status->up)
        log_warn("names may be missing: a source of them does not answer; no energy is lost",
                 "source", status->name, "error", status->error);
    else if (is_new)
        log_info("names are read", "source", status->name);
    else
        log_info("source of names is back", "source", status->name);
}

/* The containers with access to one GPU, by the kubelet, a runtime or the host. */
struct grant_list {
    const char *own_container_id;
    struct snapshot_gpu gpu;
    bool privileged; /* those that were granted no GPU, but can use any */
    struct attached *items;
    size_t count, capacity;
};

static void add_grant(void *context, const struct attachment *attachment)
{
    struct grant_list *list = context;
    struct attached *attached;

    if (attachment->is_privileged != list->privileged || list->count == ATTACHED_MAX ||
        strlen(attachment->container_id) >= sizeof(attached->owner.container_id) ||
        strcmp(attachment->container_id, list->own_container_id) == 0 ||
        !attachment_is_of(attachment, &list->gpu) ||
        !array_reserve(&list->items, &list->capacity, list->count, sizeof(*list->items)))
        return;
    attached = &list->items[list->count++];
    *attached = (struct attached){.units = 1, .memory_bytes = attachment->memory_bytes};
    snprintf(attached->owner.id, sizeof(attached->owner.id), "%s", attachment->container_id);
    snprintf(attached->owner.container_id, sizeof(attached->owner.container_id), "%s",
             attachment->container_id);
    snprintf(attached->name, sizeof(attached->name), "%.127s", attachment->container_name);
}

static int by_container(const void *a, const void *b)
{
    return strcmp(((const struct attached *)a)->owner.container_id,
                  ((const struct attached *)b)->owner.container_id);
}

/* A container that several sources report is one. */
static void merge_duplicates(struct grant_list *list)
{
    size_t kept = 0;

    if (list->count > 0)
        qsort(list->items, list->count, sizeof(*list->items), by_container);
    for (size_t i = 0; i < list->count; i++) {
        struct attached *last = kept > 0 ? &list->items[kept - 1] : NULL;

        if (!last || by_container(last, &list->items[i]) != 0) {
            list->items[kept++] = list->items[i];
            continue;
        }
        last->memory_bytes = MAX(last->memory_bytes, list->items[i].memory_bytes);
        if (!last->name[0])
            memcpy(last->name, list->items[i].name, sizeof(last->name));
    }
    list->count = kept;
}

/* A container of a pod is charged as one: it was seen as one before, or is named as one. */
static void set_kind(struct identity *identity, const struct pipeline *pipeline,
                     struct workload_owner *owner)
{
    struct workload_names names = {"", "", "", "", ""};
    uint32_t workload;

    owner->kind = WORKLOAD_POD;
    if (ledger_find_workload(pipeline->ledger, owner, &workload))
        return;
    owner->kind = WORKLOAD_CONTAINER;
    if (ledger_find_workload(pipeline->ledger, owner, &workload))
        return;
    if (identity_find_names(identity, owner, &names) && names.namespace[0])
        owner->kind = WORKLOAD_POD;
}

/* Out of memory: some are missing until the next scan. */
static void refresh_grants(struct collector *collector, const struct gpu *gpu)
{
    struct grant_list list = {.own_container_id = collector->own_container_id,
                              .gpu = {.gpu = gpu->index,
                                      .uuid = gpu->uuid,
                                      .has_minor = gpu->has_minor,
                                      .minor = gpu->minor}};

    identity_each_attachment(collector->identity, add_grant, &list);
    if (list.count == 0) {
        list.privileged = true;
        identity_each_attachment(collector->identity, add_grant, &list);
    }
    merge_duplicates(&list);
    for (size_t i = 0; i < list.count; i++)
        set_kind(collector->identity, collector->pipeline, &list.items[i].owner);
    pipeline_set_attached(collector->pipeline, gpu->index, list.items, list.count);
}

void collector_refresh_identity(struct collector *collector)
{
    struct identity_status status;

    for (size_t i = 0; identity_get_status(collector->identity, i, &status); i++)
        if (!status.is_logged_by_fetcher)
            log_runtime(&collector->runtime_log, &status);
    if (!collector->runtime_log.full && identity_is_full(collector->identity)) {
        log_warn("names may be missing: the node has more processes, containers, pods or jobs than "
                 "are kept; no energy is lost");
        collector->runtime_log.full = true;
    }
    for (size_t i = 0; i < SAMPLE_GPU_MAX; i++)
        if (collector->pipeline->gpus[i])
            refresh_grants(collector, collector->pipeline->gpus[i]);
    collector->books_moved = true;
}
