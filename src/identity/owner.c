#include "identity/owner.h"

#include <stdio.h>
#include <string.h>

#include "core/macros.h"
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

static void own_by_pod(const struct cgroup_place *place, struct workload_owner *owner)
{
    const char *container = place->pod_container_id;

    set_owner(owner, WORKLOAD_POD, place->scope, container[0] ? container : place->pod_uid);
    if (place->scope[0] != '\0')
        return;
    set_container(owner, container);
    memcpy(owner->pod_uid, place->pod_uid, sizeof(owner->pod_uid));
}

static void own_by_user(uint32_t uid, struct workload_owner *owner)
{
    char id[16];

    if (uid == 0 || uid == OWNER_UID_UNKNOWN) {
        set_owner(owner, WORKLOAD_SYSTEM, "", "system");
        return;
    }
    snprintf(id, sizeof(id), "%u", uid);
    set_owner(owner, WORKLOAD_USER, "", id);
}

/* Whether a monitor's unit is more than the scope that was made for this one monitor. */
static bool unit_runs_monitors(const struct cgroup_place *place)
{
    struct span unit = span_of(place->unit);

    return !place->has_uid &&
           (span_strip_suffix(&unit, ".service") || span_strip_suffix(&unit, "slurmstepd.scope"));
}

/* Where nothing holds the process but what the host itself has set up. */
static void own_by_host(const struct cgroup_place *place, uint32_t uid,
                        struct workload_owner *owner)
{
    if (place->kind == CGROUP_UNIT || (place->kind == CGROUP_MONITOR && unit_runs_monitors(place)))
        set_owner(owner, WORKLOAD_UNIT, "", place->unit);
    else
        own_by_user(place->has_uid ? place->uid : uid, owner);
}

/* A container that the node's own services named is around or in the job or VM. One that only the
 * job can have named is its claim. */
static void own_by_holder(const struct cgroup_place *place, enum workload_kind kind, const char *id,
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
    *ret_owner = (struct workload_owner){0};
    if (place->kind == CGROUP_MONITOR) {
        own_by_host(place, uid, ret_owner);
    } else if (place->holder == CGROUP_POD) {
        own_by_pod(place, ret_owner);
    } else if (place->holder == CGROUP_SLURM) {
        own_by_holder(place, WORKLOAD_SLURM, place->job, ret_owner);
    } else if (place->holder == CGROUP_LSF) {
        own_by_holder(place, WORKLOAD_LSF, place->job, ret_owner);
    } else if (place->holder == CGROUP_PBS) {
        own_by_holder(place, WORKLOAD_PBS, place->job, ret_owner);
    } else if (place->holder == CGROUP_VM) {
        own_by_holder(place, WORKLOAD_VM, place->machine, ret_owner);
    } else if (place->kind == CGROUP_CONTAINER) {
        set_owner(ret_owner, WORKLOAD_CONTAINER, place->scope, place->container_id);
        if (place->scope[0] == '\0')
            set_container(ret_owner, place->container_id);
    } else if (place->kind == CGROUP_LXC) {
        set_owner(ret_owner, WORKLOAD_LXC, place->scope, place->machine);
    } else if (place->kind == CGROUP_NSPAWN) {
        set_owner(ret_owner, WORKLOAD_NSPAWN, place->scope, place->machine);
    } else {
        own_by_host(place, uid, ret_owner);
    }
}

void owner_of_cgroup_file(struct span text, uint32_t uid, struct workload_owner *ret_owner)
{
    struct cgroup_place place;

    if (cgroup_file_parse(text, &place, NULL) == 0) {
        owner_find(&place, uid, ret_owner);
        return;
    }
    *ret_owner = (struct workload_owner){.kind = WORKLOAD_PROCESS};
    if (uid != OWNER_UID_UNKNOWN)
        own_by_user(uid, ret_owner);
}
