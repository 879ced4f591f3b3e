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
        pipeline->find_vm = recorded_names_find_vm;
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
    pipeline->find_vm = identity_find_vm;
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

/* The workloads with access to one GPU, by the kubelet, a runtime or the host. */
struct grant_list {
    const char *own_container_id;
    struct snapshot_gpu gpu;
    bool has_mig; /* a board of the node is in MIG mode */
    struct attached *items;
    size_t count, capacity;
};

static void add_grant(void *context, const struct attachment *attachment)
{
    bool is_container = attachment->owner_kind == WORKLOAD_CONTAINER;
    struct grant_list *list = context;
    struct attached *attached;
    uint32_t instance;

    /* Schedulers that count GPUs count MIG devices, too. */
    if (list->count == ATTACHED_MAX || (list->has_mig && attachment->kind == ALLOCATION_ORDINAL) ||
        strlen(attachment->owner_id) >=
            (is_container ? sizeof(attached->owner.container_id) : sizeof(attached->owner.id)) ||
        (is_container && strcmp(attachment->owner_id, list->own_container_id) == 0) ||
        !attachment_is_of(attachment, &list->gpu, &instance) ||
        !array_reserve(&list->items, &list->capacity, list->count, sizeof(*list->items)))
        return;
    attached = &list->items[list->count++];
    *attached = (struct attached){
        .owner.kind = attachment->owner_kind,
        .source = attachment->source,
        .is_unverified = attachment->is_unverified,
        .is_allocated = !attachment->is_privileged,
        .units = 1,
        .memory_bytes = attachment->memory_bytes,
        .is_of_instance = instance != ATTACHMENT_NO_INSTANCE,
        .gpu_instance = instance,
    };
    snprintf(attached->owner.id, sizeof(attached->owner.id), "%s", attachment->owner_id);
    if (is_container)
        snprintf(attached->owner.container_id, sizeof(attached->owner.container_id), "%s",
                 attachment->owner_id);
    snprintf(attached->container, sizeof(attached->container), "%s", attachment->container_name);
    if (attachment->namespace && attachment->pod) {
        snprintf(attached->namespace, sizeof(attached->namespace), "%s", attachment->namespace);
        snprintf(attached->pod, sizeof(attached->pod), "%s", attachment->pod);
    }
}

static int by_owner(const void *a, const void *b)
{
    const struct attached *x = a, *y = b;

    if (x->owner.kind != y->owner.kind)
        return x->owner.kind < y->owner.kind ? -1 : 1;
    return strcmp(x->owner.id, y->owner.id);
}

/* What was given before what is merely possible, and then by the strength of the evidence. */
static int by_owner_and_evidence(const void *a, const void *b)
{
    const struct attached *x = a, *y = b;
    int r = by_owner(a, b);

    if (r != 0)
        return r;
    if (x->is_allocated != y->is_allocated)
        return x->is_allocated ? -1 : 1;
    if (x->source != y->source)
        return x->source > y->source ? 1 : -1;
    if (x->gpu_instance != y->gpu_instance)
        return x->gpu_instance > y->gpu_instance ? 1 : -1;
    return x->is_unverified - y->is_unverified;
}

/* Another GPU instance that it was given, too, and not one that it may merely claim. */
static bool is_another_instance(const struct attached *a, const struct attached *b)
{
    return a->is_of_instance && b->is_of_instance && a->gpu_instance != b->gpu_instance &&
           (a->source == b->source || !b->is_unverified);
}

/* The one of the first `count` that says the same as this, or more. */
static struct attached *find_same(struct grant_list *list, size_t count,
                                  const struct attached *attached)
{
    while (count-- > 0 && by_owner(&list->items[count], attached) == 0)
        if (!is_another_instance(&list->items[count], attached))
            return &list->items[count];
    return NULL;
}

/* A workload that several sources report is one, by the strongest evidence; of a board in MIG mode,
 * one for each of its instances. */
static void merge_duplicates(struct grant_list *list)
{
    size_t kept = 0;

    if (list->count > 0)
        qsort(list->items, list->count, sizeof(*list->items), by_owner_and_evidence);
    for (size_t i = 0; i < list->count; i++) {
        struct attached *best = find_same(list, kept, &list->items[i]);

        if (!best) {
            list->items[kept++] = list->items[i];
            continue;
        }
        best->memory_bytes = MAX(best->memory_bytes, list->items[i].memory_bytes);
        if (!best->container[0])
            memcpy(best->container, list->items[i].container, sizeof(best->container));
        if (!best->pod[0]) {
            memcpy(best->namespace, list->items[i].namespace, sizeof(best->namespace));
            memcpy(best->pod, list->items[i].pod, sizeof(best->pod));
        }
    }
    list->count = kept;
}

static bool is_given(const struct attached *attached)
{
    return attached->is_allocated && attached->source != ALLOCATED_BY_ENVIRONMENT;
}

/*
 * Who was given the GPU pays for it, and can be behind what nobody is seen to do. Where nobody was:
 * privileged containers, which can use any device, can be behind it; and who says himself that he
 * has it pays. His word alone never takes a share from somebody who was given it.
 */
static void set_roles(struct grant_list *list)
{
    bool any_given = false;
    size_t kept = 0;

    for (size_t i = 0; i < list->count; i++)
        any_given |= is_given(&list->items[i]);
    for (size_t i = 0; i < list->count; i++) {
        struct attached *attached = &list->items[i];

        if (!attached->is_allocated && any_given)
            continue;
        /* Nobody has the whole of a partitioned board: without an instance it is not clear what it
         * has. */
        attached->pays_idle = (is_given(attached) || (attached->is_allocated && !any_given)) &&
                              (attached->is_of_instance || !gpu_is_partitioned(&list->gpu));
        attached->is_candidate = is_given(attached) || !attached->is_allocated;
        list->items[kept++] = *attached;
    }
    list->count = kept;
}

/* The kubelet's stand where nothing else tells them: a runtime is not believed what it says of a
 * pod in which no process was seen. */
static void set_names(struct attached *attached, const struct workload_names *names)
{
    bool is_named_by_kubelet =
        attached->pod[0] && !(names->pod && names->pod[0]) && attached->owner.kind == WORKLOAD_POD;

    snprintf(attached->name, sizeof(attached->name), "%s",
             is_named_by_kubelet ? attached->pod
             : names->name       ? names->name
                                 : "");
    if (!is_named_by_kubelet) {
        snprintf(attached->namespace, sizeof(attached->namespace), "%s",
                 names->namespace ? names->namespace : "");
        snprintf(attached->pod, sizeof(attached->pod), "%s", names->pod ? names->pod : "");
    }
    if (names->container && names->container[0])
        snprintf(attached->container, sizeof(attached->container), "%s", names->container);
    attached->is_named = true;
}

/* As its energy is shown; held back with it. */
static bool take_names_of_books(const struct ledger *ledger, struct attached *attached)
{
    const struct ledger_workload *workload;
    uint32_t index;

    if (!ledger_find_workload(ledger, &attached->owner, &index))
        return false;
    workload = ledger_workload(ledger, index);
    if (workload->identity.is_named)
        set_names(attached, &workload->identity.names);
    return true;
}

/* A container of a pod is charged as one: it was seen as one before, or is named as one. */
static void describe_grant(struct identity *identity, const struct ledger *ledger,
                           struct attached *attached)
{
    struct workload_names names = {"", "", "", "", ""};
    bool is_container = attached->owner.kind == WORKLOAD_CONTAINER, is_known;

    if (is_container) {
        attached->owner.kind = WORKLOAD_POD;
        if (take_names_of_books(ledger, attached))
            return;
        attached->owner.kind = WORKLOAD_CONTAINER;
    }
    if (take_names_of_books(ledger, attached))
        return;
    is_known = identity_find_names(identity, &attached->owner, &names);
    if (is_container && (names.namespace[0] || attached->source <= ALLOCATED_BY_DRA)) {
        attached->owner.kind = WORKLOAD_POD;
        names.name = names.pod;
    }
    if (is_known)
        set_names(attached, &names);
}

static bool has_mig(const struct pipeline *pipeline)
{
    for (size_t i = 0; i < SAMPLE_GPU_MAX; i++)
        if (pipeline->gpus[i] && pipeline->gpus[i]->mig)
            return true;
    return false;
}

/* Out of memory: some are missing until the next scan. */
static void refresh_grants(struct collector *collector, const struct gpu *gpu)
{
    struct grant_list list = {.own_container_id = collector->own_container_id,
                              .has_mig = has_mig(collector->pipeline)};
    struct arena arena;

    arena_init(&arena, SNAPSHOT_CAP_BYTES);
    if (gpu_snapshot(gpu, 0, 0, &arena, &list.gpu) < 0) {
        arena_done(&arena);
        return;
    }
    identity_each_attachment(collector->identity, add_grant, &list);
    merge_duplicates(&list);
    set_roles(&list);
    for (size_t i = 0; i < list.count; i++)
        describe_grant(collector->identity, collector->pipeline->ledger, &list.items[i]);
    pipeline_set_attached(collector->pipeline, gpu->index, list.items, list.count);
    arena_done(&arena);
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
