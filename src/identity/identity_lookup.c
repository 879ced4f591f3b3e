/* Lookups: names, details and statuses. */
#include "identity/identity_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/macros.h"

/* Is the container in the pod that the runtime names? A cgroup of another pod is not where the
 * runtime put it. */
static bool is_pod_believed(const struct container *container, const char *pod_uid)
{
    if (pod_uid[0] && container->pod_uid[0])
        return strcmp(container->pod_uid, pod_uid) == 0;
    return container->is_pod_certain;
}

/* Fills in what is known. False: the container is unknown; then there are at least the names of the
 * pod in its cgroup, from another container in it. */
static bool read_names(struct identity *identity, const char *container_id, const char *pod_uid,
                       struct arena *arena, struct workload_names *names,
                       struct container *ret_container)
{
    uint64_t now_us = identity_now_us(identity);

    if (!container_id[0] || !container_cache_find(identity->container_cache, container_id, now_us,
                                                  arena, ret_container)) {
        if (pod_uid[0])
            (void)container_cache_find_pod(identity->container_cache, pod_uid, now_us, arena,
                                           &names->namespace, &names->pod);
        return false;
    }
    names->container = ret_container->name;
    names->image = ret_container->image;
    if (is_pod_believed(ret_container, pod_uid)) {
        names->namespace = ret_container->namespace;
        names->pod = ret_container->pod;
    }
    return true;
}

/* False: a runtime may still answer. */
static bool find_container(struct identity *identity, const struct workload_owner *owner,
                           struct workload_names *names)
{
    const char *id = owner->container_id;
    struct container container;
    bool found, is_final;

    if (id[0] && owner->container_is_claim &&
        container_cache_is_taken(identity->container_cache, id))
        return true;
    found = read_names(identity, id, owner->pod_uid, &identity->found, names, &container);
    if (!id[0])
        return true;
    if (!found)
        identity_want_container(identity, owner);
    is_final = !container_cache_may_learn(identity->container_cache, id);
    /* Once more: an answer that came in between would be missed for ever. */
    (void)read_names(identity, id, owner->pod_uid, &identity->found, names, &container);
    return is_final;
}

/* False: the details may still be read. */
static bool find_detail(struct identity *identity, const struct workload_owner *owner,
                        enum workload_text which, const char **ret_text)
{
    HOLD_LOCK(&identity->lock);
    struct details *details = details_find(&identity->details, owner->kind, owner->id);

    if (details) {
        details->used_us = identity_now_us(identity);
        *ret_text = identity_copy(&identity->found, details->texts[which]);
    }
    return details != NULL;
}

bool identity_find_names(void *context, const struct workload_owner *owner,
                         struct workload_names *ret_names)
{
    struct identity *identity = context;
    struct workload_names names = {"", "", "", "", ""};
    bool known;

    arena_reset(&identity->found);
    known = find_container(identity, owner, &names);
    if (owner->kind == WORKLOAD_POD || owner->kind == WORKLOAD_CONTAINER)
        names.name = names.pod[0] && owner->kind == WORKLOAD_POD ? names.pod : names.container;
    else if (owner->kind != WORKLOAD_PROCESS && owner->kind < WORKLOAD_SYSTEM)
        names.name = owner->id;
    if (owner->kind == WORKLOAD_USER)
        known &= find_detail(identity, owner, WORKLOAD_TEXT_USER, &names.name);
    else if (owner->kind == WORKLOAD_VM)
        known &= find_detail(identity, owner, WORKLOAD_TEXT_NAME, &names.name);
    *ret_names = names;
    return known;
}

/* A domain id is Xen's, whose machines have no cgroup here. */
bool identity_find_vm(void *context, const char *vm, bool is_uuid, struct workload_owner *ret_owner)
{
    struct identity *identity = context;
    HOLD_LOCK(&identity->lock);

    for (size_t i = 0; i < identity->details.count && is_uuid; i++) {
        struct details *details = identity->details.items[i];
        const char *uuid = details->texts[WORKLOAD_TEXT_UUID];

        if (details->kind != WORKLOAD_VM || !uuid || strcasecmp(uuid, vm) != 0)
            continue;
        details->used_us = identity_now_us(identity);
        *ret_owner = (struct workload_owner){.kind = WORKLOAD_VM};
        snprintf(ret_owner->id, sizeof(ret_owner->id), "%s", details->id);
        return true;
    }
    return false;
}

bool identity_awaits_names(void *context, const struct workload_owner *owner)
{
    struct identity *identity = context;

    return owner->container_id[0] &&
           container_cache_is_awaited(identity->container_cache, owner->container_id);
}

/* A workload of the snapshot, which may have several rows. */
struct shown {
    enum workload_kind kind;
    const char *id, *container_id, *pod_uid;
};

static struct snapshot_info describe_workload(struct identity *identity,
                                              const struct shown *workload, struct arena *arena)
{
    HOLD_LOCK(&identity->lock);
    struct details *details = details_find(&identity->details, workload->kind, workload->id);
    static const struct details none;
    char *const *texts = details ? details->texts : none.texts;
    struct workload_names names = {"", "", "", "", ""};
    struct container container;
    struct snapshot_info info = {
        .kind = workload->kind,
        .id = workload->id,
        .user = identity_copy(arena, texts[WORKLOAD_TEXT_USER]),
        .account = identity_copy(arena, texts[WORKLOAD_TEXT_ACCOUNT]),
        .job_id = identity_copy(arena, texts[WORKLOAD_TEXT_JOB_ID]),
        .job_name = identity_copy(arena, texts[WORKLOAD_TEXT_JOB_NAME]),
        .uuid = identity_copy(arena, texts[WORKLOAD_TEXT_UUID]),
        .container_id = workload->container_id,
        .pod_uid = workload->pod_uid,
        .unverified = "",
    };

    if (details)
        details->used_us = identity_now_us(identity);
    if (details && workload_is_job(details->kind))
        info.unverified =
            details->job_id_unverified ? "account,job_id,job_name" : "account,job_name";
    if (read_names(identity, workload->container_id, workload->pod_uid, arena, &names,
                   &container) &&
        container.is_pod_certain && !info.pod_uid[0])
        info.pod_uid = container.pod_uid;
    info.namespace = names.namespace;
    info.pod = names.pod;
    info.container = names.container;
    info.image = names.image;
    return info;
}

static int by_kind_and_id(const void *a, const void *b)
{
    const struct shown *x = a, *y = b;

    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return strcmp(x->id, y->id);
}

static void add_shown(struct shown *shown, size_t *count, struct shown workload)
{
    if (workload.kind > WORKLOAD_PROCESS && workload.kind < WORKLOAD_SYSTEM)
        shown[(*count)++] = workload;
}

/* One row for each workload of the snapshot. */
static int add_infos(struct identity *identity, struct snapshot *snapshot)
{
    size_t most = snapshot->workload_count + snapshot->usage_count, count = 0;
    struct shown *shown = arena_array(&snapshot->arena, most, sizeof(*shown));
    struct snapshot_info *infos;

    if (!shown)
        return -ENOMEM;
    for (size_t i = 0; i < snapshot->workload_count; i++) {
        const struct snapshot_workload *row = &snapshot->workloads[i];

        add_shown(shown, &count,
                  (struct shown){row->kind, row->id, row->container_id, row->pod_uid});
    }
    for (size_t i = 0; i < snapshot->usage_count; i++) {
        const struct snapshot_usage *row = &snapshot->usages[i];

        add_shown(shown, &count,
                  (struct shown){row->kind, row->id, row->container_id, row->pod_uid});
    }
    qsort(shown, count, sizeof(*shown), by_kind_and_id);
    infos = arena_array(&snapshot->arena, count, sizeof(*infos));
    if (!infos)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        if (i == 0 || by_kind_and_id(&shown[i - 1], &shown[i]) != 0)
            infos[snapshot->info_count++] =
                describe_workload(identity, &shown[i], &snapshot->arena);
    snapshot->infos = infos;
    return 0;
}

bool identity_is_full(struct identity *identity)
{
    bool is_full = container_cache_is_full(identity->container_cache);
    HOLD_LOCK(&identity->lock);

    return is_full || identity->stats.left_out > 0 || identity->details.count >= DETAILS_MAX;
}

enum { STATUS_SCAN, STATUS_KUBELET, STATUS_API, STATUS_RUNTIMES };

/* False: absent. */
static bool read_status(struct identity *identity, size_t which, struct identity_status *ret_status)
{
    HOLD_LOCK(&identity->lock);

    switch (which) {
    case STATUS_SCAN:
        *ret_status = identity->scan;
        return true;
    case STATUS_KUBELET:
        return identity->kubelet && kubelet_get_status(identity->kubelet, ret_status);
    case STATUS_API:
        *ret_status = identity->api;
        return identity->options.expects_fetched_names;
    default:
        return runtime_poller_get_status(identity->runtime_pollers[which - STATUS_RUNTIMES],
                                         ret_status);
    }
}

bool identity_get_status(struct identity *identity, size_t index,
                         struct identity_status *ret_status)
{
    size_t present = 0;

    for (size_t i = 0; i < identity->runtime_poller_count + STATUS_RUNTIMES; i++)
        if (read_status(identity, i, ret_status) && present++ == index)
            return true;
    return false;
}

/* After the sources that the snapshot already has. */
static int add_statuses(struct identity *identity, struct snapshot *snapshot)
{
    size_t most = snapshot->source_count + identity->runtime_poller_count + STATUS_RUNTIMES;
    struct snapshot_source *rows = arena_array(&snapshot->arena, most, sizeof(*rows));
    size_t count = snapshot->source_count;
    uint64_t now_us = identity_now_us(identity);
    struct identity_status status;

    if (!rows)
        return -ENOMEM;
    if (count > 0)
        memcpy(rows, snapshot->sources, count * sizeof(*rows));
    for (size_t i = 0; count < most && identity_get_status(identity, i, &status); i++) {
        if (!status.polled)
            continue; /* neither up nor down yet */
        rows[count++] = (struct snapshot_source){
            .name = identity_copy(&snapshot->arena, status.name),
            .up = status.up,
            .age_us = status.answered_us > 0 ? now_us - MIN(now_us, status.answered_us) : 0,
            .duration_us = status.duration_us,
            .errors = status.errors,
        };
    }
    snapshot->sources = rows;
    snapshot->source_count = count;
    return 0;
}

int identity_describe(struct identity *identity, struct snapshot *snapshot)
{
    int r = add_infos(identity, snapshot);

    if (r == 0)
        r = add_statuses(identity, snapshot);
    pthread_mutex_lock(&identity->lock);
    snapshot->processes_scanned = identity->scan.answered_us > 0;
    snapshot->node_processes = identity->stats.processes;
    snapshot->node_processes_outside = identity->stats.outside;
    snapshot->node_job_gpus_unknown =
        identity->attachments ? attachments_count_unknown(identity->attachments) : 0;
    pthread_mutex_unlock(&identity->lock);
    return r;
}
