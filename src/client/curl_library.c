#include "client/curl_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "core/macros.h"

/* Debian's with GnuTLS, which we have anyway; then what other systems call theirs. */
static const char *const files[] = {"libcurl-gnutls.so.4", "libcurl.so.4"};

static const struct {
    size_t offset;
    const char *name;
} symbols[] = {
#define SYMBOL(name)                                                                               \
    {                                                                                              \
        offsetof(struct curl_library, name), "curl_" #name                                         \
    }
    SYMBOL(global_init),     SYMBOL(slist_append),     SYMBOL(slist_free_all),
    SYMBOL(easy_init),       SYMBOL(easy_cleanup),     SYMBOL(easy_setopt),
    SYMBOL(easy_getinfo),    SYMBOL(easy_header),      SYMBOL(easy_nextheader),
    SYMBOL(easy_strerror),   SYMBOL(multi_init),       SYMBOL(multi_cleanup),
    SYMBOL(multi_setopt),    SYMBOL(multi_add_handle), SYMBOL(multi_remove_handle),
    SYMBOL(multi_perform),   SYMBOL(multi_poll),       SYMBOL(multi_wakeup),
    SYMBOL(multi_info_read), SYMBOL(multi_strerror),
#undef SYMBOL
};
_Static_assert(sizeof(struct curl_library) == ARRAY_SIZE(symbols) * sizeof(void *),
               "a function without a name");

static void *load(void)
{
    void *handle = NULL;

    /* Libraries that it loads do not expect to be unloaded. */
    for (size_t i = 0; i < ARRAY_SIZE(files) && !handle; i++)
        handle = dlopen(files[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    return handle;
}

/* curl's state is the process', hence the lock is too. Not every libcurl guards itself against two
 * threads that are first (CURL_VERSION_THREADSAFE). */
static void make_ready(const struct curl_library *library)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

    pthread_mutex_lock(&lock);
    (void)library->global_init(CURL_GLOBAL_DEFAULT); /* if it fails, so will easy_init */
    pthread_mutex_unlock(&lock);
}

int curl_library_open(struct curl_library *ret_library, struct error *err)
{
    struct curl_library library;
    void *handle = load();

    if (!handle)
        return error_set(err, -ELIBACC, "cannot load libcurl: %s", dlerror());
    for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
        void *address = dlsym(handle, symbols[i].name);

        if (!address)
            return error_set(err, -ELIBACC, "this libcurl is too old: it has no %s",
                             symbols[i].name);
        memcpy((char *)&library + symbols[i].offset, &address, sizeof(address));
    }
    make_ready(&library);
    *ret_library = library;
    return 0;
}
