/* VMs, LXC and nspawn. */
#include "identity/cgroup/cgroup_component.h"
#include "identity/cgroup/cgroup_walk.h"

static void enter_machine(struct cgroup_walk *walk, enum cgroup_kind kind, const char *runtime)
{
    walk->place.kind = kind;
    walk->place.runtime = runtime;
    cgroup_walk_enter_scope(walk);
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

bool cgroup_walk_match_machine(struct cgroup_walk *walk, struct span component)
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
