/* The answers of identity: names, details and statuses. */
#include "identity/identity_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/macros.h"

/* Is it in the pod that a runtime says it is in? A cgroup that names another pod is not where the
 * runtime put the container. */
static bool is_pod_believed(const struct container *container, const char *pod_uid)
{
    if (pod_uid[0] && container->pod_uid[0])
        return strcmp(container->pod_uid, pod_uid) == 0;
    return container->is_pod_certain;
}

/* The container's names as far as they are known. False: nobody knows it; then there are at least
 * those of the pod that its cgroup names, from another container in it. */
static bool read_container(struct identity *identity, const char *container_id, const char *pod_uid,
                           struct arena *arena, struct workload_names *names)
{
    struct container container;
    bool found =
        container_id[0] && container_cache_find(identity->container_cache, container_id,
                                                identity_now_us(identity), arena, &container);

    if (found) {
        names->container = container.name;
        names->image = container.image;
        if (is_pod_believed(&container, pod_uid)) {
            names->namespace = container.namespace;
            names->pod = container.pod;
        }
    }
    if (!found && pod_uid[0])
        (void)container_cache_find_pod(identity->container_cache, pod_uid,
                                       identity_now_us(identity), arena, &names->namespace,
                                       &names->pod);
    return found;
}

/* False: a runtime may still tell more. */
static bool find_container(struct identity *identity, const struct workload_owner *owner,
                           struct workload_names *names)
{
    const char *id = owner->container_id;
    bool found, final;

    if (id[0] && owner->container_is_claim &&
        container_cache_is_taken(identity->container_cache, id))
        return true;
    found = read_container(identity, id, owner->pod_uid, &identity->found, names);
    if (!id[0])
        return true;
    if (!found)
        container_cache_want(identity->container_cache, id, owner->pod_uid,
                             owner->container_is_claim, identity_now_us(identity));
    final = !container_cache_may_learn(identity->container_cache, id);
    /* What came in between would be missed for ever. */
    (void)read_container(identity, id, owner->pod_uid, &identity->found, names);
    return final;
}

/* A text of the owner's details. False: they may still be read. */
static bool find_detail(struct identity *identity, const struct workload_owner *owner,
                        char *const *(*pick)(const struct details *), const char **ret_text)
{
    HOLD_LOCK(&identity->lock);
    struct details *details = details_find(&identity->details, owner->kind, owner->id);

    if (details) {
        details->used_us = identity_now_us(identity);
        *ret_text = identity_copy(&identity->found, *pick(details));
    }
    return details != NULL;
}

static char *const *pick_user(const struct details *details)
{
    return &details->user;
}

static char *const *pick_vm_name(const struct details *details)
{
    return &details->vm_name;
}

bool identity_find_names(void *context, const struct workload_owner *owner,
                         struct workload_names *ret_names)
{
    struct identity *identity = context;
    struct workload_names names = {"", "", "", "", ""};
    bool known;

    arena_reset(&identity->found);
    known = find_container(identity, owner, &names);
    switch (owner->kind) {
    case WORKLOAD_POD:
    case WORKLOAD_CONTAINER:
        names.name = names.pod[0] && owner->kind == WORKLOAD_POD ? names.pod : names.container;
        break;
    case WORKLOAD_USER:
        names.name = owner->id;
        known &= find_detail(identity, owner, pick_user, &names.name);
        break;
    case WORKLOAD_VM:
        names.name = owner->id;
        known &= find_detail(identity, owner, pick_vm_name, &names.name);
        break;
    case WORKLOAD_SLURM:
    case WORKLOAD_LSF:
    case WORKLOAD_PBS:
    case WORKLOAD_LXC:
    case WORKLOAD_NSPAWN:
    case WORKLOAD_UNIT:
        names.name = owner->id;
        break;
    case WORKLOAD_PROCESS:
    case WORKLOAD_SYSTEM:
    case WORKLOAD_OTHER:
    case WORKLOAD_RETIRED:
    case WORKLOAD_KINDS:
        break;
    }
    *ret_names = names;
    return known;
}

bool identity_awaits_names(void *context, const struct workload_owner *owner)
{
    struct identity *identity = context;

    return owner->container_id[0] &&
           container_cache_is_awaited(identity->container_cache, owner->container_id);
}

/* The details' part of an info row. */
static void describe_details(struct identity *identity, struct arena *arena,
                             struct snapshot_info *info)
{
    HOLD_LOCK(&identity->lock);
    struct details *details = details_find(&identity->details, info->kind, info->id);
    const char *unverified = "";

    if (details) {
        details->used_us = identity_now_us(identity);
        info->user = identity_copy(arena, details->user);
        info->account = identity_copy(arena, details->account);
        info->job_id = identity_copy(arena, details->job_id);
        info->job_name = identity_copy(arena, details->job_name);
        info->uuid = identity_copy(arena, details->uuid);
        if (workload_is_job(details->kind))
            unverified =
                details->job_id_unverified ? "account,job_id,job_name" : "account,job_name";
    }
    info->unverified = unverified;
}

/* What the snapshot's rows of a workload have in common. */
struct shown {
    enum workload_kind kind;
    const char *id, *container_id, *pod_uid;
};

static struct snapshot_info describe(struct identity *identity, const struct shown *workload,
                                     struct arena *arena)
{
    struct workload_names names = {"", "", "", "", ""};
    struct snapshot_info info = {
        .kind = workload->kind,
        .id = workload->id,
        .user = "",
        .account = "",
        .job_id = "",
        .job_name = "",
        .uuid = "",
        .container_id = workload->container_id,
        .pod_uid = workload->pod_uid,
    };
    struct container container;

    describe_details(identity, arena, &info);
    (void)read_container(identity, workload->container_id, workload->pod_uid, arena, &names);
    info.namespace = names.namespace;
    info.pod = names.pod;
    info.container = names.container;
    info.image = names.image;
    if (!info.pod_uid[0] && info.container_id[0] &&
        container_cache_find(identity->container_cache, info.container_id,
                             identity_now_us(identity), arena, &container) &&
        container.is_pod_certain)
        info.pod_uid = container.pod_uid;
    return info;
}

static int by_kind_and_id(const void *a, const void *b)
{
    const struct shown *x = a, *y = b;

    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return strcmp(x->id, y->id);
}

/* Those of which something is to be told; a workload may come several times. */
static int list_shown(struct snapshot *snapshot, struct shown **ret_shown, size_t *ret_count)
{
    struct shown *shown = arena_array(
        &snapshot->arena, snapshot->workload_count + snapshot->usage_count, sizeof(*shown));
    size_t count = 0, kept = 0;

    if (!shown)
        return -ENOMEM;
    for (size_t i = 0; i < snapshot->workload_count; i++) {
        const struct snapshot_workload *row = &snapshot->workloads[i];

        shown[count++] = (struct shown){row->kind, row->id, row->container_id, row->pod_uid};
    }
    for (size_t i = 0; i < snapshot->usage_count; i++) {
        const struct snapshot_usage *row = &snapshot->usages[i];

        shown[count++] = (struct shown){row->kind, row->id, row->container_id, row->pod_uid};
    }
    for (size_t i = 0; i < count; i++)
        if (shown[i].kind > WORKLOAD_PROCESS && shown[i].kind < WORKLOAD_SYSTEM)
            shown[kept++] = shown[i];
    qsort(shown, kept, sizeof(*shown), by_kind_and_id);
    *ret_shown = shown;
    *ret_count = kept;
    return 0;
}

/* One row for each workload, whatever is shown of it. */
static int add_infos(struct identity *identity, struct snapshot *snapshot)
{
    struct snapshot_info *infos;
    struct shown *shown;
    size_t count;

    if (list_shown(snapshot, &shown, &count) < 0)
        return -ENOMEM;
    infos = arena_array(&snapshot->arena, count, sizeof(*infos));
    if (!infos)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        if (i == 0 || by_kind_and_id(&shown[i - 1], &shown[i]) != 0)
            infos[snapshot->info_count++] = describe(identity, &shown[i], &snapshot->arena);
    snapshot->infos = infos;
    return 0;
}

static bool scan_status(struct identity *identity, struct identity_status *ret_status)
{
    HOLD_LOCK(&identity->lock);
    uint64_t now = identity_now_us(identity);

    *ret_status = (struct identity_status){
        .name = "processes",
        .asked = identity->scanned_us > 0 || identity->scan_errors > 0,
        .up = identity->scan_up,
        .age_us = identity->scanned_us > 0 ? now - MIN(now, identity->scanned_us) : 0,
        .duration_us = identity->scan_duration_us,
        .errors = identity->scan_errors,
    };
    snprintf(ret_status->error, sizeof(ret_status->error), "%s", identity->scan_error);
    return true;
}

static bool kubelet_status(struct identity *identity, struct identity_status *ret_status)
{
    struct kubelet_status status;

    if (!identity->kubelet)
        return false;
    kubelet_get_status(identity->kubelet, &status);
    *ret_status = (struct identity_status){
        .name = "kubelet",
        .asked = status.up || status.errors > 0,
        .up = status.up,
        .age_us = status.age_us,
        .duration_us = status.duration_us,
        .errors = status.errors,
    };
    memcpy(ret_status->error, status.error, sizeof(status.error));
    return status.present;
}

static bool api_status(struct identity *identity, struct identity_status *ret_status)
{
    HOLD_LOCK(&identity->lock);
    uint64_t now = identity_now_us(identity);

    *ret_status = (struct identity_status){
        .name = "kubernetes_api",
        .asked = identity->api_asked,
        .up = identity->api_up,
        .age_us = identity->api_answered_us > 0 ? now - MIN(now, identity->api_answered_us) : 0,
        .duration_us = identity->api_duration_us,
        .errors = identity->api_errors,
        .logs_elsewhere = true,
    };
    return identity->options.names_from_elsewhere;
}

static bool runtime_status(struct identity *identity, size_t index,
                           struct identity_status *ret_status)
{
    struct runtime_poller_status status;
    bool present = runtime_poller_get_status(identity->runtime_pollers[index], &status);

    *ret_status = (struct identity_status){
        .asked = status.asked,
        .up = status.up,
        .age_us = status.age_us,
        .duration_us = status.duration_us,
        .errors = status.errors,
    };
    snprintf(ret_status->name, sizeof(ret_status->name), "%s", status.name);
    memcpy(ret_status->error, status.error, sizeof(status.error));
    return present;
}

enum { OTHERS = 3 }; /* that have a status, besides runtimes */

bool identity_get_status(struct identity *identity, size_t index,
                         struct identity_status *ret_status)
{
    size_t present = 0;

    for (size_t i = 0; i < identity->runtime_poller_count + OTHERS; i++) {
        bool here = i == 0   ? scan_status(identity, ret_status)
                    : i == 1 ? kubelet_status(identity, ret_status)
                    : i == 2 ? api_status(identity, ret_status)
                             : runtime_status(identity, i - OTHERS, ret_status);

        if (here && present++ == index)
            return true;
    }
    return false;
}

/* Behind the sources that the snapshot has already. */
static int add_statuses(struct identity *identity, struct snapshot *snapshot)
{
    size_t most = snapshot->source_count + identity->runtime_poller_count + OTHERS;
    struct snapshot_source *rows = arena_array(&snapshot->arena, most, sizeof(*rows));
    size_t count = snapshot->source_count;
    struct identity_status status;

    if (!rows)
        return -ENOMEM;
    if (count > 0)
        memcpy(rows, snapshot->sources, count * sizeof(*rows));
    for (size_t i = 0; count < most && identity_get_status(identity, i, &status); i++) {
        if (!status.asked)
            continue; /* neither up nor down yet */
        rows[count++] = (struct snapshot_source){
            .name = identity_copy(&snapshot->arena, status.name),
            .up = status.up,
            .age_us = status.age_us,
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
        r = identity_add_allocations(identity, snapshot);
    if (r == 0)
        r = add_statuses(identity, snapshot);
    pthread_mutex_lock(&identity->lock);
    snapshot->processes_scanned = identity->scanned_us > 0;
    snapshot->node_processes = identity->stats.processes;
    snapshot->node_processes_outside = identity->stats.outside;
    pthread_mutex_unlock(&identity->lock);
    return r;
}
