/*
 * libcurl, loaded when it is first needed: it brings thirty other libraries along and 8 MB of
 * memory, and a node without a container runtime makes no request.
 */
#pragma once

#include <curl/curl.h>

#include "core/error.h"

/* clang-format off */
#define CURL_FUNCTIONS(F)                                                                          \
    F(global_init) F(slist_append) F(slist_free_all)                                               \
    F(easy_init) F(easy_cleanup) F(easy_setopt) F(easy_getinfo) F(easy_header) F(easy_nextheader)  \
    F(easy_strerror)                                                                               \
    F(multi_init) F(multi_cleanup) F(multi_setopt) F(multi_add_handle) F(multi_remove_handle)      \
    F(multi_perform) F(multi_poll) F(multi_wakeup) F(multi_info_read) F(multi_strerror)
/* clang-format on */

struct curl_library {
#define CURL_POINTER(name) __typeof__((curl_##name)) *(name);
    CURL_FUNCTIONS(CURL_POINTER)
#undef CURL_POINTER
};

/* Loads and initialises it, once per process; it is never unloaded. From any thread. 0 or
 * -ELIBACC. */
int curl_library_open(struct curl_library *ret_library, struct error *err);
