#include "identity/owner.h"

#include <stdio.h>
#include <string.h>

#include "core/span.h"

static void set_owner(struct workload_owner *owner, enum workload_kind kind, const char *scope,
                      const char *id)
{
    owner->kind = kind;
    snprintf(owner->id, sizeof(owner->id), "%s%s%s", scope, scope[0] ? "/" : "", id);
}

static void set_container(struct workload_owner *owner, const char *id)
{
    snprintf(owner->container_id, sizeof(owner->container_id), "%s", id);
}

static void set_pod(const struct cgroup_place *place, struct workload_owner *owner)
{
    const char *container = place->pod_container_id;

    set_owner(owner, WORKLOAD_POD, place->scope, container[0] ? container : place->pod_uid);
    if (place->scope[0] != '\0')
        return;
    set_container(owner, container);
    memcpy(owner->pod_uid, place->pod_uid, sizeof(owner->pod_uid));
}

static void set_user(uint32_t uid, struct workload_owner *owner)
{
    char id[16];

    if (uid == 0 || uid == OWNER_UID_UNKNOWN) {
        set_owner(owner, WORKLOAD_SYSTEM, "", "system");
        return;
    }
    snprintf(id, sizeof(id), "%u", uid);
    set_owner(owner, WORKLOAD_USER, "", id);
}

/* Whether a monitor's unit is more than the scope made for this one monitor. */
static bool unit_runs_monitors(const struct cgroup_place *place)
{
    struct span unit = span_of(place->unit);

    return !place->has_uid &&
           (span_strip_suffix(&unit, ".service") || span_strip_suffix(&unit, "slurmstepd.scope"));
}

/* A job or VM. A container that the node's own services named is around it or in it; one that only
 * the job can have named is its claim. */
static void set_holder(const struct cgroup_place *place, enum workload_kind kind, const char *id,
                       struct workload_owner *owner)
{
    set_owner(owner, kind, place->scope, id);
    set_container(owner, place->trusted_container_id);
    if (!workload_is_job(kind) || place->scope[0] != '\0' || owner->container_id[0] != '\0')
        return;
    set_container(owner,
                  place->outer_container_id[0] ? place->outer_container_id : place->container_id);
    owner->container_is_claim = owner->container_id[0] != '\0';
}

void owner_find(const struct cgroup_place *place, uint32_t uid, struct workload_owner *ret_owner)
{
    enum cgroup_kind kind;

    *ret_owner = (struct workload_owner){.kind = WORKLOAD_PROCESS};
    if (!place) {
        if (uid != OWNER_UID_UNKNOWN)
            set_user(uid, ret_owner);
        return;
    }
    kind =
        place->kind == CGROUP_MONITOR || place->holder == CGROUP_ROOT ? place->kind : place->holder;
    if (kind == CGROUP_POD)
        set_pod(place, ret_owner);
    else if (kind == CGROUP_SLURM)
        set_holder(place, WORKLOAD_SLURM, place->job, ret_owner);
    else if (kind == CGROUP_LSF)
        set_holder(place, WORKLOAD_LSF, place->job, ret_owner);
    else if (kind == CGROUP_PBS)
        set_holder(place, WORKLOAD_PBS, place->job, ret_owner);
    else if (kind == CGROUP_VM)
        set_holder(place, WORKLOAD_VM, place->machine, ret_owner);
    else if (kind == CGROUP_LXC)
        set_owner(ret_owner, WORKLOAD_LXC, place->scope, place->machine);
    else if (kind == CGROUP_NSPAWN)
        set_owner(ret_owner, WORKLOAD_NSPAWN, place->scope, place->machine);
    else if (kind == CGROUP_UNIT || (kind == CGROUP_MONITOR && unit_runs_monitors(place)))
        set_owner(ret_owner, WORKLOAD_UNIT, "", place->unit);
    else if (kind != CGROUP_CONTAINER)
        set_user(place->has_uid ? place->uid : uid, ret_owner);
    else {
        set_owner(ret_owner, WORKLOAD_CONTAINER, place->scope, place->container_id);
        if (place->scope[0] == '\0')
            set_container(ret_owner, place->container_id);
    }
}

void owner_find_by_cgroup_file(struct span text, uint32_t uid, struct workload_owner *ret_owner)
{
    struct cgroup_place place;

    owner_find(cgroup_file_parse(text, &place) == 0 ? &place : NULL, uid, ret_owner);
}

bool owner_has_cgroup_file(const struct workload_owner *owner, struct span text)
{
    struct workload_owner now;

    owner_find_by_cgroup_file(text, OWNER_UID_UNKNOWN, &now);
    return now.kind == owner->kind && strcmp(now.id, owner->id) == 0;
}
