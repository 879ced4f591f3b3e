#include "top/ncurses.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "core/macros.h"

static const char *const symbols[] = {
#define NCURSES_NAME(name, type, parameters) #name,
    NCURSES_FUNCTIONS(NCURSES_NAME)
#undef NCURSES_NAME
};

int ncurses_load(const char *file, struct ncurses *ret_library, struct error *err)
{
    struct ncurses library;
    void *handle = dlopen(file ? file : "libncursesw.so.6", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

    if (!handle)
        return error_set(err, -ELIBACC,
                         "the screen needs ncurses: install libncursesw6 (Debian, Ubuntu), "
                         "ncurses-libs (Fedora, RHEL) or ncurses (Alpine, Arch), or print a table "
                         "with --once: %s",
                         dlerror());
    for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
        void *address = dlsym(handle, symbols[i]);

        if (!address)
            return error_set(err, -ELIBACC, "this ncurses has no %s; print a table with --once",
                             symbols[i]);
        memcpy((char *)&library + i * sizeof(address), &address, sizeof(address));
    }
    *ret_library = library;
    return 0;
}
