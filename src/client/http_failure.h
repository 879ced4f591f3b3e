/* Private to http_client: a request in progress, and why it failed. */
#pragma once

#include <stdatomic.h>

#include "client/curl_library.h"
#include "client/http_client.h"

struct http_client {
    struct curl_library curl;
    struct error no_library; /* why curl is missing */
    CURLM *multi;            /* keeps connections; NULL: there is no library */
    atomic_bool cancelled;
    int watched_fd; /* -1: none */
    bool (*attend)(int fd);
};

struct http_transfer {
    struct http_client *client;
    const struct curl_library *curl; /* the client's */
    const struct http_request *request;
    struct http_reply *reply;
    struct error *err;

    CURL *easy;
    struct curl_slist *headers, *resolve;
    char curl_text[CURL_ERROR_SIZE];
    CURLcode set_up_code; /* of the first option that was refused */

    uint64_t deadline_us;
    uint64_t heard_us; /* when the peer last sent something */
    size_t header_bytes;
    bool header_is_complete;
    int socket_error; /* of the last socket that could not be opened */
    int result;       /* not 0: a callback ended the request with this */
};

/* Fills the text and returns `code`. Names the peer without what may be secret: the query, and user
 * and password before the host. */
int http_failure(const struct http_transfer *t, int code, const char *format, ...) PRINTF(3, 4);

int http_failure_late(const struct http_transfer *t);
int http_failure_size(const struct http_transfer *t);
int http_failure_of_curl(const struct http_transfer *t, CURLcode failure);
