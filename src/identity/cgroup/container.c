#include "identity/cgroup/container.h"

#include "core/macros.h"
#include "identity/cgroup/component.h"

enum { ID_LEN = 64, HASH_LEN = 32, UID_LEN = 36 };

struct runtime_name {
    const char *name;
    const char *runtime;
};

static const struct runtime_name runtimes[] = {
    {"docker", "docker"},         {"cri-containerd", "containerd"}, {"crio", "cri-o"},
    {"libpod", "podman"},         {"libpod-payload", "podman"},     {"nerdctl", "nerdctl"},
    {"containerd", "containerd"},
};
static const struct runtime_name monitors[] = {
    {"crio-conmon", "cri-o"},
    {"libpod-conmon", "podman"},
};

bool cgroup_container_is_id(struct span component)
{
    return component.len == ID_LEN && component_is_hex(component);
}

bool cgroup_container_is_fargate_id(struct span component)
{
    struct span task = span_cut(&component, '-');

    return task.len == HASH_LEN && component_is_hex(task) && component.len < ID_LEN - HASH_LEN &&
           component_is_decimal(component);
}

/* NAME-ID or NAME-ID.scope. */
static bool parse_named(struct span component, const struct runtime_name *names, size_t count,
                        struct cgroup_container *ret_container)
{
    struct span id;

    span_strip_suffix(&component, ".scope");
    if (component.len < ID_LEN)
        return false;
    component.len -= ID_LEN;
    id = (struct span){component.data + component.len, ID_LEN};
    if (!span_strip_suffix(&component, "-") || !cgroup_container_is_id(id))
        return false;
    for (size_t i = 0; i < count; i++)
        if (span_equals(component, names[i].name)) {
            *ret_container = (struct cgroup_container){names[i].runtime, id};
            return true;
        }
    return false;
}

bool cgroup_container_parse(struct span component, struct cgroup_container *ret_container)
{
    return parse_named(component, runtimes, ARRAY_SIZE(runtimes), ret_container);
}

bool cgroup_container_parse_monitor(struct span component, struct cgroup_container *ret_container)
{
    return parse_named(component, monitors, ARRAY_SIZE(monitors), ret_container);
}

/* 8-4-4-4-12 hex digits, or the 32 of a static pod's hash. */
static bool parse_uid(struct span text, char uid[WORKLOAD_POD_UID_BYTES])
{
    static const size_t groups[] = {8, 4, 4, 4, 12};
    struct span rest = text;

    if (text.len == HASH_LEN)
        return component_is_hex(text) && component_copy(text, uid, WORKLOAD_POD_UID_BYTES);
    if (text.len != UID_LEN)
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
        struct span group = span_cut(&rest, '_');

        if (group.len != groups[i] || !component_is_hex(group))
            return false;
    }
    memcpy(uid, text.data, text.len);
    uid[text.len] = '\0';
    for (char *c = uid; (c = strchr(c, '_'));)
        *c++ = '-';
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

static enum cgroup_qos strip_qos(struct span *slice)
{
    if (span_strip_suffix(slice, "-burstable"))
        return CGROUP_QOS_BURSTABLE;
    if (span_strip_suffix(slice, "-besteffort"))
        return CGROUP_QOS_BESTEFFORT;
    return CGROUP_QOS_GUARANTEED;
}

/* Strips "kubepods" from the end, whatever the kubelet's --cgroup-root put before it. */
static bool strip_kubepods(struct span *slice)
{
    return span_strip_suffix(slice, "kubepods") &&
           (slice->len == 0 || span_strip_suffix(slice, "-"));
}

/* "cri-containerd:ID", as systemd's driver tells it to a runtime that takes it for a directory. */
static bool parse_behind_slice(struct span text, struct cgroup_container *ret_container)
{
    struct span name = span_cut(&text, ':');

    if (name.len == 0 || !cgroup_container_is_id(text))
        return false;
    *ret_container = (struct cgroup_container){"kubernetes", text};
    for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++)
        if (span_equals(name, runtimes[i].name))
            ret_container->runtime = runtimes[i].runtime;
    return true;
}

bool cgroup_container_parse_pod_slice(struct span component, struct cgroup_pod *ret_pod)
{
    struct span rest = component, slice = span_cut(&rest, ':');
    bool alone = slice.len == component.len;
    struct cgroup_pod pod = {0};

    if (!span_strip_suffix(&slice, ".slice") || !strip_pod(&slice, pod.uid))
        return false;
    pod.qos = strip_qos(&slice);
    if (!strip_kubepods(&slice))
        return false;
    if (!alone && !parse_behind_slice(rest, &pod.container))
        return false;
    *ret_pod = pod;
    return true;
}

static bool has_char(struct span text, char c)
{
    return text.len > 0 && memchr(text.data, c, text.len);
}

bool cgroup_container_parse_static_pod_slice(struct span parent, struct span component,
                                             struct cgroup_pod *ret_pod)
{
    struct cgroup_pod pod = {0};
    struct span above = parent;

    if (!span_strip_suffix(&above, ".slice") || !span_strip_suffix(&component, ".slice") ||
        component.len < above.len || memcmp(component.data, above.data, above.len) != 0)
        return false;
    component = (struct span){component.data + above.len, component.len - above.len};
    pod.qos = strip_qos(&above);
    /* A '-' would be a slice further down. */
    if (!strip_kubepods(&above) || !span_strip_prefix(&component, "-pod") ||
        has_char(component, '-') || !component_copy(component, pod.uid, sizeof(pod.uid)))
        return false;
    for (char *c = pod.uid; (c = strchr(c, '_'));)
        *c++ = '-';
    *ret_pod = pod;
    return true;
}

bool cgroup_container_parse_pod_uid(struct span component, char uid[WORKLOAD_POD_UID_BYTES])
{
    return span_strip_prefix(&component, "pod") && !has_char(component, '_') &&
           component_copy(component, uid, WORKLOAD_POD_UID_BYTES);
}
