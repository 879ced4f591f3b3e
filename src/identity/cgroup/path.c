#include "identity/cgroup_path.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/macros.h"
#include "host/cgroup_delegation.h"
#include "identity/cgroup/component.h"
#include "identity/cgroup/walk.h"

/* Kernel paths have up to PATH_MAX - 1 bytes. A lower limit would let whoever can make cgroups hide
 * their processes in a long one. */
enum { PATH_BYTES_MAX = 4096 };

static bool has_boundary(const struct cgroup_walk *walk)
{
    return walk->boundary[0] != '\0';
}

void cgroup_walk_set_boundary(struct cgroup_walk *walk, const char *prefix, const char *name)
{
    if (!has_boundary(walk)) /* everything below it may be forged */
        snprintf(walk->boundary, sizeof(walk->boundary), "%s%s", prefix, name);
}

void cgroup_walk_set_user(struct cgroup_walk *walk, uint32_t uid)
{
    if (has_boundary(walk))
        return;
    walk->place.has_uid = true;
    walk->place.uid = uid;
}

void cgroup_walk_enter_scope(struct cgroup_walk *walk)
{
    memcpy(walk->place.scope, walk->boundary, sizeof(walk->boundary));
}

void cgroup_walk_enter_holder(struct cgroup_walk *walk, enum cgroup_kind kind)
{
    walk->place.kind = walk->place.holder = kind;
    cgroup_walk_enter_scope(walk);
}

bool cgroup_walk_trusts_monitors(const struct cgroup_walk *walk)
{
    return !has_boundary(walk) || walk->boundary_is_user;
}

/* From here on, the user who owns the directory names cgroups. Where nothing else owns what runs
 * here, that user does. */
static void enter_delegated(struct cgroup_walk *walk, uint32_t uid)
{
    char name[16];

    walk->is_delegated = true;
    if (uid != 0 && walk->place.kind == CGROUP_OTHER)
        cgroup_walk_set_user(walk, uid);
    snprintf(name, sizeof(name), "%u", uid);
    cgroup_walk_set_boundary(walk, "", name);
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

/* systemd.slice(5): slices contain slices and units, so the first component that is no slice is the
 * unit, or there is none. Units further down belong to another systemd, in a container. */
static void find_unit(struct cgroup_walk *walk, struct span component)
{
    struct cgroup_place *place = &walk->place;
    struct span slice = component, session = component;
    uint32_t uid;

    if (!walk->may_find_unit || walk->is_delegated || span_strip_suffix(&slice, ".slice"))
        return;
    walk->may_find_unit = false;
    if (!component_is_unit(component) ||
        !component_copy(component, place->unit, sizeof(place->unit)))
        return;
    place->kind = CGROUP_UNIT;
    if (component_is_user_manager(component, &uid) ||
        (component_strip(&session, "session-", ".scope") && session.len > 0 &&
         component_is_user_slice(walk->parent, &uid)))
        place->kind = CGROUP_USER;
}

static void walk_component(struct cgroup_walk *walk, struct span component)
{
    /* The first match wins. VMs come before machines, because one of nspawn may have any name; and
     * machines before what their names might look like: root in an LXC container called "slurm"
     * must not start jobs. Only root starts pods and jobs. */
    static const struct {
        bool (*match)(struct cgroup_walk *, struct span);
        bool is_roots;
    } matchers[] = {
        {match_user, false},
        {cgroup_walk_match_vm, false},
        {cgroup_walk_match_machine, false},
        {cgroup_walk_match_pod, true},
        {cgroup_walk_match_container, false},
        {cgroup_walk_match_conmon, false},
        {cgroup_walk_match_slurm, true},
        {cgroup_walk_match_lsf, true},
        {cgroup_walk_match_pbs, true},
    };

    component = component_unescape_unit(component);
    walk->level = LEVEL_OTHER;
    if (walk->depth == 0)
        walk->place.kind = CGROUP_OTHER;
    find_unit(walk, component);
    for (size_t i = 0; i < ARRAY_SIZE(matchers); i++)
        if (!(matchers[i].is_roots && walk->is_delegated) && matchers[i].match(walk, component))
            break;
    walk->above = walk->level;
    walk->grandparent = walk->parent;
    walk->parent = component;
    walk->depth++;
}

/* False: it leads outside. */
static bool walk_components(struct cgroup_walk *walk, struct span path)
{
    while (path.len > 0) {
        struct span component = span_cut(&path, '/');

        if (component.len == 0)
            continue;
        if (span_equals(component, ".."))
            return false;
        walk_component(walk, component);
    }
    return true;
}

static void walk_path(struct span path, struct cgroup_walk *ret_walk)
{
    struct cgroup_mark mark;
    bool is_inside;

    *ret_walk = (struct cgroup_walk){.may_find_unit = true};
    span_strip_suffix(&path, " (deleted)"); /* the cgroup is gone, its process is a zombie */
    if (cgroup_mark_find(path, &mark)) {
        is_inside = walk_components(ret_walk, mark.above);
        enter_delegated(ret_walk, mark.uid);
        /* Names that anybody could have given say nothing: two tenants may have given the same. */
        if (mark.uid != 0)
            is_inside = is_inside && walk_components(ret_walk, mark.below);
    } else {
        is_inside = walk_components(ret_walk, path);
    }
    if (!is_inside)
        *ret_walk = (struct cgroup_walk){.place.kind = CGROUP_OUTSIDE};
}

void cgroup_path_parse(struct span path, struct cgroup_place *ret_place)
{
    struct cgroup_walk walk;

    walk_path(path, &walk);
    *ret_place = walk.place;
}

/* From here on: the lines of /proc/PID/cgroup. */

struct choice {
    struct cgroup_walk walk;
    bool made;
};

static void choose(struct choice *choice, const struct cgroup_walk *walk)
{
    const struct cgroup_walk *best = &choice->walk;

    if (choice->made && (walk->place.kind < best->place.kind ||
                         (walk->place.kind == best->place.kind && walk->depth <= best->depth)))
        return;
    choice->walk = *walk;
    choice->made = true;
}

struct choices {
    struct choice best;
    struct choice trusted; /* the best of those that only the node's own services can have named */
    struct choice job;     /* the best job of those */
};

static void choose_line(struct choices *choices, const struct cgroup_walk *walk)
{
    enum cgroup_kind kind = walk->place.kind;
    bool is_trusted = walk->place.scope[0] == '\0' && kind >= CGROUP_NSPAWN;

    choose(&choices->best, walk);
    if (is_trusted)
        choose(&choices->trusted, walk);
    if (is_trusted && (kind == CGROUP_SLURM || kind == CGROUP_LSF || kind == CGROUP_PBS))
        choose(&choices->job, walk);
}

/*
 * With v1 a process is in one cgroup per hierarchy, and a user may own a part of one hierarchy
 * only. What was named in there counts if it is inside what the trusted lines say, but not against
 * them, and never against a job.
 */
static const struct cgroup_place *combine_choices(struct choices *choices)
{
    const struct choice *trusted = &choices->trusted, *job = &choices->job;
    struct cgroup_place *place = &choices->best.walk.place;

    if (trusted->made && place->scope[0] != '\0' &&
        (job->made || strcmp(place->scope, trusted->walk.boundary) != 0))
        place = &choices->trusted.walk.place;
    /* A container that a job started has a cgroup of its own. */
    if (job->made && place->kind == CGROUP_CONTAINER && place->holder == CGROUP_ROOT) {
        memcpy(place->job, job->walk.place.job, sizeof(place->job));
        place->has_uid = job->walk.place.has_uid;
        place->uid = job->walk.place.uid;
        place->holder = job->walk.place.holder;
    }
    return place;
}

static bool is_path(struct span path)
{
    span_strip_suffix(&path, " (deleted)");
    return path.len > 0 && path.len < PATH_BYTES_MAX && path.data[0] == '/';
}

int cgroup_file_parse(struct span text, struct cgroup_place *ret_place)
{
    bool is_file = text.len == 0 || text.data[0] != '/';
    struct choices choices = {0};
    struct span last = {NULL, 0};

    while (text.len > 0) {
        struct span path = span_cut(&text, '\n');
        struct cgroup_walk walk;

        if (is_file) { /* "HIERARCHY:CONTROLLERS:PATH"; a path may contain colons */
            span_cut(&path, ':');
            span_cut(&path, ':');
        }
        /* Most hierarchies of v1 have the same path. */
        if (!is_path(path) || (last.len == path.len && memcmp(last.data, path.data, path.len) == 0))
            continue;
        last = path;
        walk_path(path, &walk);
        choose_line(&choices, &walk);
    }
    if (!choices.best.made)
        return -ENODATA;
    *ret_place = *combine_choices(&choices);
    return 0;
}
