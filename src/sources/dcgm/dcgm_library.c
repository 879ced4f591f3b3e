#include "sources/dcgm/dcgm_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "core/macros.h"

#define SYMBOL(member, parameters, name) {offsetof(struct dcgm_library, member), name},

static const struct {
    size_t offset;
    const char *name;
} symbols[] = {DCGM_FUNCTIONS(SYMBOL){offsetof(struct dcgm_library, error_string), "errorString"}};

static void *load(const char *file)
{
    return dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

int dcgm_library_open(const char *file, struct dcgm_library *ret_library, struct error *err)
{
    static const char *const sonames[] = {"libdcgm.so.4", "libdcgm.so.3"};
    struct dcgm_library library = {.handle = file ? load(file) : NULL};

    for (size_t i = 0; !file && !library.handle && i < ARRAY_SIZE(sonames); i++)
        library.handle = load(sonames[i]);
    if (!library.handle)
        return file ? error_set(err, -ENODEV, "%s", dlerror())
                    : error_set(err, -ENODEV, "neither %s nor %s is here", sonames[0], sonames[1]);
    for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
        void *address = dlsym(library.handle, symbols[i].name);

        if (!address) {
            dlclose(library.handle);
            return error_set(err, -ENOTSUP, "libdcgm has no %s: not a version 3 or 4 of DCGM?",
                             symbols[i].name);
        }
        memcpy((char *)&library + symbols[i].offset, &address, sizeof(address));
    }
    *ret_library = library;
    return 0;
}

void dcgm_library_close(struct dcgm_library *library)
{
    if (library->handle)
        dlclose(library->handle);
    *library = (struct dcgm_library){0};
}

const char *dcgm_library_error(const struct dcgm_library *library, int code)
{
    const char *text = library->error_string(code);

    return text ? text : "unknown error";
}
