/*
 * libcurl, loaded when it is first needed: it brings thirty other libraries along, 8 MB of memory
 * in the two processes, and a node without a container runtime asks nobody.
 */
#pragma once

#include <curl/curl.h>

#include "core/error.h"

struct curl_library {
    __typeof__(curl_global_init) *global_init;
    __typeof__(curl_slist_append) *slist_append;
    __typeof__(curl_slist_free_all) *slist_free_all;

    __typeof__(curl_easy_init) *easy_init;
    __typeof__(curl_easy_cleanup) *easy_cleanup;
    __typeof__((curl_easy_setopt)) *easy_setopt;
    __typeof__((curl_easy_getinfo)) *easy_getinfo;
    __typeof__(curl_easy_header) *easy_header;
    __typeof__(curl_easy_nextheader) *easy_nextheader;
    __typeof__(curl_easy_strerror) *easy_strerror;

    __typeof__(curl_multi_init) *multi_init;
    __typeof__(curl_multi_cleanup) *multi_cleanup;
    __typeof__((curl_multi_setopt)) *multi_setopt;
    __typeof__(curl_multi_add_handle) *multi_add_handle;
    __typeof__(curl_multi_remove_handle) *multi_remove_handle;
    __typeof__(curl_multi_perform) *multi_perform;
    __typeof__(curl_multi_poll) *multi_poll;
    __typeof__(curl_multi_wakeup) *multi_wakeup;
    __typeof__(curl_multi_info_read) *multi_info_read;
    __typeof__(curl_multi_strerror) *multi_strerror;
};

/* Loads it, or finds it loaded, and makes it ready. It stays for the life of the process. From any
 * thread. 0 or -ELIBACC. */
int curl_library_open(struct curl_library *ret_library, struct error *err);
