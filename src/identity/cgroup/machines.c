/* The cgroups of virtual machines, LXC and systemd-nspawn. */
#include "core/macros.h"
#include "identity/cgroup/component.h"
#include "identity/cgroup/walk.h"

/* "machine-qemu\x2d2\x2dNAME.scope", or "qemu-2-NAME.libvirt-qemu" without systemd. */
static bool parse_libvirt(struct span component, char *name)
{
    struct span plain = component;

    if (span_strip_prefix(&component, "machine-qemu\\x2d"))
        return span_strip_suffix(&component, ".scope") &&
               component_strip_number(&component, "\\x2d") && component_unescape(component, name);
    return component_strip(&plain, "qemu-", ".libvirt-qemu") &&
           component_strip_number(&plain, "-") && component_copy(plain, name, CGROUP_NAME_BYTES);
}

/* "100.scope" */
static bool parse_proxmox(struct span component, char *name)
{
    return span_strip_suffix(&component, ".scope") && component_is_decimal(component) &&
           component_copy(component, name, CGROUP_NAME_BYTES);
}

bool cgroup_walk_match_vm(struct cgroup_walk *walk, struct span component)
{
    char name[CGROUP_NAME_BYTES];

    if (!parse_libvirt(component, name) &&
        !(span_equals(walk->parent, "qemu.slice") && parse_proxmox(component, name)))
        return false;
    if (walk->is_delegated)
        return true; /* of a tenant: not a machine of nspawn either */
    memcpy(walk->place.machine, name, strlen(name) + 1);
    cgroup_walk_enter_holder(walk, CGROUP_VM);
    return true;
}

static bool match_lxc(struct cgroup_walk *walk, struct span component)
{
    bool is_bare_name = walk->depth == 1 && span_equals(walk->parent, "lxc");

    if ((!span_strip_prefix(&component, "lxc.payload.") && !is_bare_name) ||
        !component_copy(component, walk->place.machine, CGROUP_NAME_BYTES))
        return false;
    walk->place.kind = CGROUP_LXC;
    cgroup_walk_enter_scope(walk);
    cgroup_walk_set_boundary(walk, "lxc:", walk->place.machine);
    return true;
}

static bool match_lxc_monitor(struct cgroup_walk *walk, struct span component)
{
    if (!cgroup_walk_trusts_monitors(walk) || !span_strip_prefix(&component, "lxc.monitor.") ||
        !component_copy(component, walk->place.machine, CGROUP_NAME_BYTES))
        return false;
    walk->place.kind = CGROUP_MONITOR;
    return true;
}

static bool match_nspawn(struct cgroup_walk *walk, struct span component)
{
    struct span service = component;
    bool is_service = component_strip(&service, "systemd-nspawn@", ".service");

    if (!is_service && !(span_equals(walk->parent, "machine.slice") &&
                         component_strip(&component, "machine-", ".scope")))
        return false;
    if (!component_unescape(is_service ? service : component, walk->place.machine))
        return false;
    walk->place.kind = CGROUP_NSPAWN;
    cgroup_walk_enter_scope(walk);
    cgroup_walk_set_boundary(walk, "nspawn:", walk->place.machine);
    walk->level = LEVEL_NSPAWN;
    return true;
}

/* The monitor runs beside "payload", the only part that the machine itself can write to. */
static bool match_nspawn_monitor(struct cgroup_walk *walk, struct span component)
{
    bool is_trusted =
        (walk->place.scope[0] == '\0' && !walk->is_delegated) || walk->boundary_is_user;

    if (walk->above != LEVEL_NSPAWN || !is_trusted || !span_equals(component, "supervisor"))
        return false;
    walk->place.kind = CGROUP_MONITOR;
    return true;
}

bool cgroup_walk_match_machine(struct cgroup_walk *walk, struct span component)
{
    /* In a container, pod, job or VM these would own nothing. */
    if (walk->place.holder != CGROUP_ROOT || walk->place.container_id[0] != '\0')
        return false;
    return match_lxc(walk, component) || match_lxc_monitor(walk, component) ||
           match_nspawn(walk, component) || match_nspawn_monitor(walk, component);
}
