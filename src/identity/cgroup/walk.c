#include "identity/cgroup/walk.h"

#include <stdio.h>

#include "core/macros.h"
#include "identity/cgroup/component.h"
#include "identity/cgroup/container.h"

static bool has_boundary(const struct cgroup_walk *walk)
{
    return walk->boundary[0] != '\0';
}

void cgroup_walk_set_boundary(struct cgroup_walk *walk, const char *prefix, const char *name)
{
    if (!has_boundary(walk)) /* below it all may be invented */
        snprintf(walk->boundary, sizeof(walk->boundary), "%s%s", prefix, name);
}

void cgroup_walk_set_user(struct cgroup_walk *walk, uint32_t uid)
{
    if (has_boundary(walk))
        return;
    walk->place.has_uid = true;
    walk->place.uid = uid;
}

static void enter_scope(struct cgroup_walk *walk)
{
    memcpy(walk->place.scope, walk->boundary, sizeof(walk->boundary));
}

void cgroup_walk_enter_holder(struct cgroup_walk *walk, enum cgroup_kind kind, const char *runtime)
{
    walk->place.kind = walk->place.holder = kind;
    walk->place.runtime = runtime;
    enter_scope(walk);
}

static void set_container_id(struct cgroup_place *place, struct span id)
{
    if (place->container_id[0] != '\0')
        memcpy(place->outer_container_id, place->container_id, sizeof(place->container_id));
    place->container_id[0] = '\0';
    component_copy(id, place->container_id, sizeof(place->container_id));
}

static void enter_container(struct cgroup_walk *walk, struct span id, const char *runtime)
{
    struct cgroup_place *place = &walk->place;

    set_container_id(place, id);
    place->runtime = runtime;
    place->parent[0] = '\0';
    place->kind = place->holder == CGROUP_POD ? CGROUP_POD : CGROUP_CONTAINER;
    if (place->holder == CGROUP_POD && place->pod_container_id[0] == '\0')
        memcpy(place->pod_container_id, place->container_id, sizeof(place->container_id));
    if (place->holder == CGROUP_ROOT)
        enter_scope(walk);
    if (!has_boundary(walk))
        memcpy(place->trusted_container_id, place->container_id, sizeof(place->container_id));
    cgroup_walk_set_boundary(walk, "", place->container_id);
    walk->below_ecs = false;
}

static void enter_pod(struct cgroup_walk *walk, const struct cgroup_pod *pod)
{
    struct cgroup_place *place = &walk->place;

    cgroup_walk_enter_holder(walk, CGROUP_POD, "kubernetes");
    memcpy(place->pod_uid, pod->uid, sizeof(place->pod_uid));
    place->qos = pod->qos;
    place->pod_container_id[0] = '\0';
    set_container_id(place, (struct span){NULL, 0}); /* one that is around the pod is not in it */
    walk->level = LEVEL_POD;
    if (pod->container.runtime)
        enter_container(walk, pod->container.id, pod->container.runtime);
}

bool cgroup_walk_believes_monitors(const struct cgroup_walk *walk)
{
    return !has_boundary(walk) || walk->boundary_is_user;
}

void cgroup_walk_enter_monitor(struct cgroup_walk *walk, const char *runtime)
{
    walk->place.kind = CGROUP_MONITOR;
    walk->place.runtime = runtime;
}

static bool match_user(struct cgroup_walk *walk, struct span component)
{
    uint32_t uid;
    char name[16];

    if (!(component_is_user_slice(component, &uid) && span_equals(walk->parent, "user.slice")) &&
        !component_is_user_manager(component, &uid))
        return false;
    if (has_boundary(walk))
        return true;
    cgroup_walk_set_user(walk, uid);
    snprintf(name, sizeof(name), "%u", uid);
    cgroup_walk_set_boundary(walk, "", name);
    walk->boundary_is_user = true;
    return true;
}

static bool match_pod(struct cgroup_walk *walk, struct span component)
{
    struct cgroup_pod pod = {.qos = CGROUP_QOS_GUARANTEED};
    struct span above = walk->parent;

    if (cgroup_container_parse_pod_slice(component, &pod) ||
        cgroup_container_parse_static_pod_slice(walk->parent, component, &pod)) {
        enter_pod(walk, &pod);
        return true;
    }
    if (span_equals(walk->parent, "burstable"))
        pod.qos = CGROUP_QOS_BURSTABLE;
    else if (span_equals(walk->parent, "besteffort"))
        pod.qos = CGROUP_QOS_BESTEFFORT;
    if (pod.qos != CGROUP_QOS_GUARANTEED)
        above = walk->grandparent;
    if (!span_equals(above, "kubepods") || !cgroup_container_parse_pod_uid(component, pod.uid))
        return false;
    enter_pod(walk, &pod);
    return true;
}

/* Of a container that is named by its id alone. */
static const char *runtime_by_parent(const struct cgroup_walk *walk)
{
    if (walk->above == LEVEL_POD)
        return "kubernetes";
    if (walk->below_ecs)
        return "ecs";
    if (walk->parent.len == 0)
        return "unknown";
    return span_equals(walk->parent, "docker") ? "docker" : "containerd";
}

static bool match_container(struct cgroup_walk *walk, struct span component)
{
    struct cgroup_place *place = &walk->place;
    struct cgroup_container container;

    if (cgroup_container_parse(component, &container)) {
        enter_container(walk, container.id, container.runtime);
    } else if (cgroup_container_is_id(component)) {
        const char *runtime = runtime_by_parent(walk);

        enter_container(walk, component, runtime);
        if (strcmp(runtime, "containerd") == 0)
            component_copy(walk->parent, place->parent, sizeof(place->parent));
    } else if (walk->below_ecs && cgroup_container_is_fargate_id(component)) {
        enter_container(walk, component, "ecs");
    } else {
        walk->below_ecs |= span_equals(component, "ecs");
        return false;
    }
    return true;
}

static bool match_conmon(struct cgroup_walk *walk, struct span component)
{
    struct cgroup_container container;

    if (!cgroup_walk_believes_monitors(walk))
        return false;
    if (span_equals(component, "conmon") && span_equals(walk->parent, "libpod_parent")) {
        cgroup_walk_enter_monitor(walk, "podman");
        return true;
    }
    if (!cgroup_container_parse_monitor(component, &container))
        return false;
    cgroup_walk_enter_monitor(walk, container.runtime);
    set_container_id(&walk->place, container.id);
    return true;
}

/* From here on: VMs, LXC and nspawn. */

static void enter_machine(struct cgroup_walk *walk, enum cgroup_kind kind, const char *runtime)
{
    walk->place.kind = kind;
    walk->place.runtime = runtime;
    enter_scope(walk);
}

static bool match_vm(struct cgroup_walk *walk, struct span component)
{
    char *name = walk->place.machine;

    if (component_is_libvirt(component, name))
        cgroup_walk_enter_holder(walk, CGROUP_VM, "libvirt");
    else if (span_equals(walk->parent, "qemu.slice") && component_is_proxmox(component, name))
        cgroup_walk_enter_holder(walk, CGROUP_VM, "proxmox");
    else
        return false;
    return true;
}

static bool match_lxc(struct cgroup_walk *walk, struct span component)
{
    struct cgroup_place *place = &walk->place;
    bool is_named_only = walk->depth == 1 && span_equals(walk->parent, "lxc");

    if ((!span_strip_prefix(&component, "lxc.payload.") && !is_named_only) ||
        !component_copy(component, place->machine, sizeof(place->machine)))
        return false;
    enter_machine(walk, CGROUP_LXC, "lxc");
    cgroup_walk_set_boundary(walk, "lxc:", place->machine);
    return true;
}

static bool match_lxc_monitor(struct cgroup_walk *walk, struct span component)
{
    struct cgroup_place *place = &walk->place;

    if (!cgroup_walk_believes_monitors(walk) || !span_strip_prefix(&component, "lxc.monitor.") ||
        !component_copy(component, place->machine, sizeof(place->machine)))
        return false;
    cgroup_walk_enter_monitor(walk, "lxc");
    return true;
}

static bool match_nspawn(struct cgroup_walk *walk, struct span component)
{
    char *name = walk->place.machine;

    if (!component_is_nspawn(component, name) && (!span_equals(walk->parent, "machine.slice") ||
                                                  !component_is_machine_scope(component, name)))
        return false;
    enter_machine(walk, CGROUP_NSPAWN, "nspawn");
    cgroup_walk_set_boundary(walk, "nspawn:", name);
    walk->level = LEVEL_NSPAWN;
    return true;
}

/* It runs beside "payload", which is all that the machine itself can write to. */
static bool match_nspawn_monitor(struct cgroup_walk *walk, struct span component)
{
    bool is_real = walk->place.scope[0] == '\0' || walk->boundary_is_user;

    if (walk->above != LEVEL_NSPAWN || !is_real || !span_equals(component, "supervisor"))
        return false;
    cgroup_walk_enter_monitor(walk, "nspawn");
    return true;
}

static bool match_machine(struct cgroup_walk *walk, struct span component)
{
    /* libvirt's scopes first: a machine of nspawn may be named anything. */
    if (match_vm(walk, component))
        return true;
    /* In a container, pod, job or VM these would own nothing. */
    if (walk->place.holder != CGROUP_ROOT || walk->place.container_id[0] != '\0')
        return false;
    return match_lxc(walk, component) || match_lxc_monitor(walk, component) ||
           match_nspawn(walk, component) || match_nspawn_monitor(walk, component);
}

/* From here on: the walk. */

/* systemd.slice(5): slices hold slices and units, so the first that is none is the unit or no
 * unit is there. Units further down belong to another systemd, in a container. */
static void seek_unit(struct cgroup_walk *walk, struct span component)
{
    struct cgroup_place *place = &walk->place;
    uint32_t uid;

    if (!walk->unit_is_ahead || component_is_slice(component))
        return;
    walk->unit_is_ahead = false;
    if (!component_is_unit(component) ||
        !component_copy(component, place->unit, sizeof(place->unit)))
        return;
    place->kind = CGROUP_UNIT;
    if (component_is_user_manager(component, &uid) ||
        (component_is_session(component) && component_is_user_slice(walk->parent, &uid)))
        place->kind = CGROUP_USER;
}

static void take_component(struct cgroup_walk *walk, struct span component)
{
    /* The first that matches has it. Machines go before what their names might look like: root in
     * an LXC that is called "slurm" must not start jobs. */
    static bool (*const matches[])(struct cgroup_walk *, struct span) = {
        match_user,
        match_machine,
        match_pod,
        match_container,
        match_conmon,
        cgroup_walk_match_slurm,
        cgroup_walk_match_lsf,
        cgroup_walk_match_pbs,
    };

    component = component_unescape_unit(component);
    walk->level = LEVEL_OTHER;
    if (walk->depth == 0)
        walk->place.kind = CGROUP_OTHER;
    seek_unit(walk, component);
    for (size_t i = 0; i < ARRAY_SIZE(matches); i++)
        if (matches[i](walk, component))
            break;
    walk->above = walk->level;
    walk->grandparent = walk->parent;
    walk->parent = component;
    walk->depth++;
}

void cgroup_walk(struct span path, struct cgroup_walk *ret_walk)
{
    static const struct cgroup_walk start = {.place.runtime = "", .unit_is_ahead = true};

    *ret_walk = start;
    span_strip_suffix(&path, " (deleted)"); /* the cgroup is gone, its process is a zombie */
    while (path.len > 0) {
        struct span component = span_cut(&path, '/');

        if (component.len == 0)
            continue;
        if (span_equals(component, "..")) {
            *ret_walk = start;
            ret_walk->place.kind = CGROUP_OUTSIDE;
            return;
        }
        take_component(ret_walk, component);
    }
}
