#include "identity/runtimes/parse.h"

#include <string.h>

#include "core/json_reader.h"
#include "core/macros.h"

static struct span text_of(const struct json *value)
{
    const char *text = json_text(value);

    return text ? span_of(text) : (struct span){NULL, 0};
}

static bool is_any_of(struct span text, const char *const *words)
{
    for (; *words; words++)
        if (span_equals(text, *words))
            return true;
    return false;
}

/* A list of lists: any of the outer one, each with all of its inner one. */
static bool has_capability(const struct json *capabilities, const char *const *wanted)
{
    for (size_t i = 0; i < json_length(capabilities); i++) {
        const struct json *all = json_at(capabilities, i);

        for (size_t k = 0; k < json_length(all); k++)
            if (is_any_of(text_of(json_at(all, k)), wanted))
                return true;
    }
    return false;
}

/* "--gpus" leaves the driver empty and requests a capability; Compose names the driver. AMD's GPUs
 * are numbered by themselves. */
static bool is_gpu_request(const struct json *request)
{
    static const char *const drivers[] = {"nvidia", "nvidia.cdi", "nvidia.runtime-hook", "cdi",
                                          NULL};
    static const char *const gpus[] = {"gpu", "nvidia", NULL}, *const amd[] = {"amd", NULL};
    const struct json *capabilities = json_get(request, "Capabilities");
    struct span driver = text_of(json_get(request, "Driver"));

    if (driver.len > 0)
        return is_any_of(driver, drivers);
    return has_capability(capabilities, gpus) && !has_capability(capabilities, amd);
}

/* Docker passes a count on as the indices 0, 1, ... (daemon/nvidia_linux.go, countToDevices); a
 * negative one is all GPUs. */
static void add_count(const struct json *count, struct gpu_access_list *list)
{
    int64_t number;

    if (!json_int64(count, &number))
        return;
    if (number < 0)
        gpu_access_add(list, &(struct gpu_access){.kind = ALLOCATION_ALL});
    for (uint32_t i = 0; i < GPU_ACCESS_MAX && (int64_t)i < number; i++)
        gpu_access_add(list, &(struct gpu_access){.kind = ALLOCATION_INDEX, .index = i});
}

static void add_request(const struct json *request, struct gpu_access_list *list)
{
    const struct json *ids = json_get(request, "DeviceIDs");

    if (!is_gpu_request(request))
        return;
    if (json_length(ids) == 0)
        add_count(json_get(request, "Count"), list);
    for (size_t i = 0; i < json_length(ids); i++) {
        struct span id = text_of(json_at(ids, i));

        if (id.len > 0 && memchr(id.data, '=', id.len))
            gpu_access_add_cdi(list, id);
        else
            gpu_access_add_visible(list, id);
    }
}

/* CUDA images set the variable for every container: it has an effect only where NVIDIA's runtime
 * reads it. The last one counts, as it does for the reader. */
static void add_environment(const struct json *env, struct gpu_access_list *list)
{
    struct span visible = {NULL, 0};

    for (size_t i = 0; i < json_length(env); i++) {
        struct span entry = text_of(json_at(env, i));

        if (span_strip_prefix(&entry, "NVIDIA_VISIBLE_DEVICES="))
            visible = entry;
    }
    gpu_access_add_visible(list, visible);
}

static bool is_nvidia_runtime(const struct json *inspected)
{
    struct span docker = text_of(json_get(json_get(inspected, "HostConfig"), "Runtime"));
    struct span podman = text_of(json_get(inspected, "OCIRuntime"));

    return span_strip_prefix(&docker, "nvidia") || span_strip_prefix(&podman, "nvidia");
}

static void read_container(const struct json *inspected, struct gpu_access_list *list)
{
    const struct json *host = json_get(inspected, "HostConfig");
    const struct json *requests = json_get(host, "DeviceRequests");
    const struct json *devices = json_get(host, "Devices");

    for (size_t i = 0; i < json_length(requests); i++)
        add_request(json_at(requests, i), list);
    for (size_t i = 0; i < json_length(devices); i++)
        gpu_access_add_path(list, text_of(json_get(json_at(devices, i), "PathOnHost")));
    if (is_nvidia_runtime(inspected))
        add_environment(json_get(json_get(inspected, "Config"), "Env"), list);
    if (json_is_true(json_get(host, "Privileged")))
        gpu_access_add(list, &(struct gpu_access){.kind = ALLOCATION_ALL, .is_privileged = true});
}

/* A device of an OCI runtime's specification. */
static void add_node(const struct json *device, bool is_privileged, struct gpu_access_list *list)
{
    struct gpu_access access = {.is_privileged = is_privileged};
    int64_t major, minor;

    if (!span_equals(text_of(json_get(device, "type")), "c") ||
        !json_int64(json_get(device, "major"), &major) ||
        !json_int64(json_get(device, "minor"), &minor))
        return;
    if (major == GPU_NODE_MAJOR && minor >= 0 && minor < GPU_NODE_MINORS)
        access.kind = ALLOCATION_MINOR;
    else if (major == DRM_NODE_MAJOR && minor >= RENDER_MINOR_FIRST &&
             minor < RENDER_MINOR_FIRST + RENDER_MINORS)
        access.kind = ALLOCATION_RENDER;
    else
        return;
    access.index = (uint32_t)minor;
    gpu_access_add(list, &access);
}

/* By the program that containerd was configured to run. */
static bool is_run_by_nvidia(const struct json *info)
{
    const struct json *options = json_get(info, "runtimeOptions");
    struct span program = text_of(json_get(options, "BinaryName"));

    if (program.len == 0)
        program = text_of(json_get(options, "binary_name"));
    return program.len > 0 && memmem(program.data, program.len, "nvidia-container-runtime",
                                     strlen("nvidia-container-runtime"));
}

/* CRI-O, and containerd. They list all devices of the host for a privileged container. */
static bool is_privileged(const struct json *info)
{
    const struct json *config = json_get(json_get(info, "config"), "linux");

    return json_is_true(json_get(info, "privileged")) ||
           json_is_true(json_get(json_get(config, "security_context"), "privileged"));
}

static void read_cri_info(const struct json *info, struct gpu_access_list *list)
{
    const struct json *spec = json_get(info, "runtimeSpec");
    const struct json *devices = json_get(json_get(spec, "linux"), "devices");
    const struct json *cdi = json_get(json_get(info, "config"), "CDI_devices");
    size_t before;

    for (size_t i = 0; i < json_length(cdi); i++)
        gpu_access_add_cdi(list, text_of(json_get(json_at(cdi, i), "name")));
    for (size_t i = 0; i < json_length(devices); i++)
        add_node(json_at(devices, i), is_privileged(info), list);
    if (!is_run_by_nvidia(info))
        return;
    before = list->count;
    add_environment(json_get(json_get(spec, "process"), "env"), list);
    while (before < list->count) /* whoever wrote the pod may have set it */
        list->items[before++].is_unverified = true;
}

static int read_json(struct span text, void (*read)(const struct json *, struct gpu_access_list *),
                     struct gpu_access_list *list)
{
    struct json *value = NULL;
    int r = json_read(text, &value);

    if (r == 0)
        read(value, list);
    json_free(value);
    return r;
}

int inspect_parse_container(struct span body, struct gpu_access_list *list)
{
    return read_json(body, read_container, list);
}

int inspect_parse_cri_info(struct span text, struct gpu_access_list *list)
{
    return read_json(text, read_cri_info, list);
}
