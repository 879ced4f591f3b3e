#include "client/curl_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "core/macros.h"

/* Debian's with GnuTLS, which we use anyway; then the name on other systems. */
static const char *const files[] = {"libcurl-gnutls.so.4", "libcurl.so.4"};

static const char *const symbols[] = {
#define CURL_NAME(name) "curl_" #name,
    CURL_FUNCTIONS(CURL_NAME)
#undef CURL_NAME
};

int curl_library_open(struct curl_library *ret_library, struct error *err)
{
    /* curl's state is global, hence the lock is. Not every libcurl guards global_init itself
     * (CURL_VERSION_THREADSAFE). */
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct curl_library library;
    void *handle = NULL;

    /* Libraries that it loads do not expect to be unloaded. */
    for (size_t i = 0; i < ARRAY_SIZE(files) && !handle; i++)
        handle = dlopen(files[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle)
        return error_set(err, -ELIBACC, "cannot load libcurl: %s", dlerror());
    for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
        void *address = dlsym(handle, symbols[i]);

        if (!address)
            return error_set(err, -ELIBACC, "this libcurl is too old: it has no %s", symbols[i]);
        memcpy((char *)&library + i * sizeof(address), &address, sizeof(address));
    }
    pthread_mutex_lock(&lock);
    (void)library.global_init(CURL_GLOBAL_DEFAULT); /* if it fails, so does easy_init */
    pthread_mutex_unlock(&lock);
    *ret_library = library;
    return 0;
}
