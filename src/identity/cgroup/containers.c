/* The cgroups of pods, containers and their monitors, as runtimes and the kubelet name them. */
#include "core/macros.h"
#include "identity/cgroup/component.h"
#include "identity/cgroup/walk.h"

enum { ID_LEN = 64, HASH_LEN = 32, UID_LEN = 36 };

static const char *const container_names[] = {
    "docker", "cri-containerd", "crio", "libpod", "libpod-payload", "nerdctl", "containerd", NULL};
static const char *const monitor_names[] = {"crio-conmon", "libpod-conmon", NULL};

/* NAME-ID or NAME-ID.scope. */
static bool parse_named_id(struct span component, const char *const *names, struct span *ret_id)
{
    struct span id;

    span_strip_suffix(&component, ".scope");
    if (component.len < ID_LEN)
        return false;
    component.len -= ID_LEN;
    id = (struct span){component.data + component.len, ID_LEN};
    if (!span_strip_suffix(&component, "-") || !component_is_container_id(id))
        return false;
    while (*names && !span_equals(component, *names))
        names++;
    if (!*names)
        return false;
    *ret_id = id;
    return true;
}

/* "0123...-3054012820": Fargate names containers so below their task. */
static bool is_fargate_id(struct span component)
{
    struct span task = span_cut(&component, '-');

    return task.len == HASH_LEN && component_is_hex(task) && component.len < ID_LEN - HASH_LEN &&
           component_is_decimal(component);
}

static void set_container_id(struct cgroup_place *place, struct span id)
{
    if (place->container_id[0] != '\0')
        memcpy(place->outer_container_id, place->container_id, sizeof(place->container_id));
    place->container_id[0] = '\0';
    component_copy(id, place->container_id, sizeof(place->container_id));
}

static void enter_container(struct cgroup_walk *walk, struct span id)
{
    struct cgroup_place *place = &walk->place;

    set_container_id(place, id);
    place->kind = place->holder == CGROUP_POD ? CGROUP_POD : CGROUP_CONTAINER;
    if (place->holder == CGROUP_POD && place->pod_container_id[0] == '\0' && !walk->is_delegated)
        memcpy(place->pod_container_id, place->container_id, sizeof(place->container_id));
    if (place->holder == CGROUP_ROOT)
        cgroup_walk_enter_scope(walk);
    if (walk->boundary[0] == '\0')
        memcpy(place->trusted_container_id, place->container_id, sizeof(place->container_id));
    cgroup_walk_set_boundary(walk, "", place->container_id);
    walk->below_ecs = false;
}

bool cgroup_walk_match_container(struct cgroup_walk *walk, struct span component)
{
    struct span id = component;

    if (parse_named_id(component, container_names, &id) || component_is_container_id(component) ||
        (walk->below_ecs && is_fargate_id(component))) {
        enter_container(walk, id);
        return true;
    }
    walk->below_ecs |= span_equals(component, "ecs");
    return false;
}

bool cgroup_walk_match_conmon(struct cgroup_walk *walk, struct span component)
{
    bool is_podmans =
        span_equals(component, "conmon") && span_equals(walk->parent, "libpod_parent");
    struct span id;

    if (!cgroup_walk_trusts_monitors(walk) ||
        (!is_podmans && !parse_named_id(component, monitor_names, &id)))
        return false;
    walk->place.kind = CGROUP_MONITOR;
    if (!is_podmans)
        set_container_id(&walk->place, id);
    return true;
}

/* From here on: pods. */

static void replace_underscores(char *text)
{
    for (; (text = strchr(text, '_')); text++)
        *text = '-';
}

/* 8-4-4-4-12 hex digits with '_' between, or the 32 of a static pod's hash. */
static bool parse_uid(struct span text, char uid[WORKLOAD_POD_UID_BYTES])
{
    static const size_t groups[] = {8, 4, 4, 4, 12};
    struct span rest = text;

    if (text.len == HASH_LEN)
        return component_is_hex(text) && component_copy(text, uid, WORKLOAD_POD_UID_BYTES);
    for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
        struct span group = span_cut(&rest, '_');

        if (group.len != groups[i] || !component_is_hex(group))
            return false;
    }
    component_copy(text, uid, WORKLOAD_POD_UID_BYTES);
    replace_underscores(uid);
    return true;
}

/* Cuts "-podUID" off; the UID has one of two lengths. */
static bool strip_pod(struct span *slice, char uid[WORKLOAD_POD_UID_BYTES])
{
    static const size_t lengths[] = {UID_LEN, HASH_LEN};

    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
        struct span rest = *slice, text;

        if (rest.len < lengths[i])
            continue;
        rest.len -= lengths[i];
        text = (struct span){rest.data + rest.len, lengths[i]};
        if (span_strip_suffix(&rest, "-pod") && parse_uid(text, uid)) {
            *slice = rest;
            return true;
        }
    }
    return false;
}

/* "kubepods", maybe with a QoS class, after whatever --cgroup-root of the kubelet put before it. */
static bool is_kubepods(struct span slice)
{
    if (!span_strip_suffix(&slice, "-burstable"))
        span_strip_suffix(&slice, "-besteffort");
    return span_strip_suffix(&slice, "kubepods") &&
           (slice.len == 0 || span_strip_suffix(&slice, "-"));
}

/*
 * systemd's driver: "kubepods-burstable-podUID.slice"; and with ":cri-containerd:ID" after it,
 * where a runtime without systemd takes that for a directory. `ret_id` is empty if there is none.
 */
static bool parse_pod_slice(struct span component, char uid[WORKLOAD_POD_UID_BYTES],
                            struct span *ret_id)
{
    struct span id = component, slice = span_cut(&id, ':');
    bool has_id = slice.len < component.len;

    if (!span_strip_suffix(&slice, ".slice") || !strip_pod(&slice, uid) || !is_kubepods(slice) ||
        (has_id && (span_cut(&id, ':').len == 0 || !component_is_container_id(id))))
        return false;
    *ret_id = id;
    return true;
}

static bool has_char(struct span text, char c)
{
    return text.len > 0 && memchr(text.data, c, text.len);
}

/*
 * A static pod may have any text without '_' and '/' as its uid: metadata.uid of its manifest. It
 * counts only where the kubelet alone makes cgroups: right below the slice of all pods, or of a QoS
 * class. systemd's driver writes its '-' as '_'; a '-' would be a slice further down.
 */
static bool parse_static_pod_slice(struct span parent, struct span component,
                                   char uid[WORKLOAD_POD_UID_BYTES])
{
    if (!span_strip_suffix(&parent, ".slice") || !span_strip_suffix(&component, ".slice") ||
        component.len < parent.len || memcmp(component.data, parent.data, parent.len) != 0)
        return false;
    component = (struct span){component.data + parent.len, component.len - parent.len};
    if (!is_kubepods(parent) || !span_strip_prefix(&component, "-pod") ||
        has_char(component, '-') || !component_copy(component, uid, WORKLOAD_POD_UID_BYTES))
        return false;
    replace_underscores(uid);
    return true;
}

/* The cgroupfs driver: "podUID" right below the cgroup of all pods or of a QoS class. */
static bool parse_pod_directory(const struct cgroup_walk *walk, struct span component,
                                char uid[WORKLOAD_POD_UID_BYTES])
{
    bool is_in_class =
        span_equals(walk->parent, "burstable") || span_equals(walk->parent, "besteffort");

    return span_equals(is_in_class ? walk->grandparent : walk->parent, "kubepods") &&
           span_strip_prefix(&component, "pod") && !has_char(component, '_') &&
           component_copy(component, uid, WORKLOAD_POD_UID_BYTES);
}

bool cgroup_walk_match_pod(struct cgroup_walk *walk, struct span component)
{
    struct cgroup_place *place = &walk->place;
    char uid[WORKLOAD_POD_UID_BYTES];
    struct span id = {NULL, 0};

    if (!parse_pod_slice(component, uid, &id) &&
        !parse_static_pod_slice(walk->parent, component, uid) &&
        !parse_pod_directory(walk, component, uid))
        return false;
    cgroup_walk_enter_holder(walk, CGROUP_POD);
    memcpy(place->pod_uid, uid, strlen(uid) + 1);
    place->pod_container_id[0] = '\0';
    set_container_id(place, (struct span){NULL, 0}); /* one that is around the pod is not in it */
    if (id.len > 0)
        enter_container(walk, id);
    return true;
}
