#include "sources/nvml/nvml_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/macros.h"

enum { NAMES_MAX = 2 };

#define SYMBOL(is_required, member, ...)                                                           \
    {offsetof(struct nvml_library, member), {__VA_ARGS__}, is_required},
#define REQUIRED(member, parameters, ...) SYMBOL(true, member, __VA_ARGS__)
#define OPTIONAL(member, parameters, ...) SYMBOL(false, member, __VA_ARGS__)

static const struct {
    size_t offset;
    const char *names[NAMES_MAX];
    bool is_required;
} symbols[] = {NVML_FUNCTIONS(REQUIRED, OPTIONAL, OPTIONAL)
                   SYMBOL(true, error_string, "nvmlErrorString")};

/*
 * The process lists, the newest version first. The plain names are macros in the vendor's header;
 * as symbols they are version 1, with entries of 16 bytes. Branch R530 alone wrote a field more,
 * and only with _v3.
 */
static void resolve_lists(struct nvml_library *library)
{
    static const char *const kinds[SAMPLE_LIST_KINDS] = {
        [SAMPLE_LIST_COMPUTE] = "Compute",
        [SAMPLE_LIST_MPS] = "MPSCompute",
        [SAMPLE_LIST_GRAPHICS] = "Graphics",
    };
    bool is_r530 = dlsym(library->handle, "nvmlDeviceGetConfComputeMemSizeInfo") &&
                   !dlsym(library->handle, "nvmlDeviceGetRunningProcessDetailList");
    const struct {
        const char *suffix;
        size_t entry_bytes;
    } versions[] = {
        {"_v3", is_r530 ? NVML_PROCESS_BYTES_MAX : sizeof(struct nvml_process)},
        {"_v2", sizeof(struct nvml_process)},
        {"", sizeof(struct nvml_process_v1)},
    };

    for (size_t kind = 0; kind < SAMPLE_LIST_KINDS; kind++)
        for (size_t i = 0; i < ARRAY_SIZE(versions) && !library->lists[kind]; i++) {
            char name[64];
            void *address;

            snprintf(name, sizeof(name), "nvmlDeviceGet%sRunningProcesses%s", kinds[kind],
                     versions[i].suffix);
            address = dlsym(library->handle, name);
            memcpy(&library->lists[kind], &address, sizeof(address));
            library->list_entry_bytes[kind] = versions[i].entry_bytes;
        }
}

int nvml_library_open(const char *file, struct nvml_library *ret_library, struct error *err)
{
    struct nvml_library library = {.handle = dlopen(file, RTLD_NOW | RTLD_LOCAL)};

    if (!library.handle)
        return error_set(err, -ENODEV, "%s", dlerror());
    for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
        void *address = NULL;

        for (size_t n = 0; n < NAMES_MAX && symbols[i].names[n] && !address; n++)
            address = dlsym(library.handle, symbols[i].names[n]);
        if (!address && symbols[i].is_required) {
            dlclose(library.handle);
            return error_set(err, -ENOTSUP, "%s has no %s: not NVIDIA's library?", file,
                             symbols[i].names[0]);
        }
        memcpy((char *)&library + symbols[i].offset, &address, sizeof(address));
    }
    resolve_lists(&library);
    *ret_library = library;
    return 0;
}

void nvml_library_close(struct nvml_library *library)
{
    if (library->handle)
        dlclose(library->handle);
    *library = (struct nvml_library){0};
}

const char *nvml_library_error(const struct nvml_library *library, int code)
{
    const char *text = library->error_string(code);

    return text ? text : "unknown error";
}
