/* client/curl_library: its functions, and requests without it. */
#include "unit.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "client/curl_library.h"
#include "client/http_client.h"

static bool is_missing;

/* In place of glibc's. */
void *dlopen(const char *file, int mode)
{
    void *(*real)(const char *, int);
    void *address = dlsym(RTLD_NEXT, "dlopen");

    memcpy(&real, &address, sizeof(real));
    return real(is_missing && file && strstr(file, "libcurl") ? "libcurl-absent.so" : file, mode);
}

static void every_function_is_found(void **state)
{
    struct curl_library library;
    struct error err;

    (void)state;
    assert_int_equal(curl_library_open(&library, &err), 0);
    assert_non_null(library.easy_init);
    assert_non_null(library.multi_strerror);
}

static void without_libcurl_a_request_fails_and_cancelling_is_harmless(void **state)
{
    const struct http_request request = {
        .url = "http://localhost/", .socket_path = "/absent", .timeout_us = 1000000};
    struct http_client *client;
    struct http_reply reply;
    struct error err;

    (void)state;
    is_missing = true;
    assert_int_equal(http_client_new(&client), 0);
    is_missing = false;
    http_reply_init(&reply);
    assert_int_equal(http_client_do(client, &request, &reply, &err), -ELIBACC);
    assert_non_null(strstr(err.text, "request to /absent failed: cannot load libcurl: "));
    http_client_cancel(client);
    http_reply_done(&reply);
    http_client_free(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_function_is_found),
        cmocka_unit_test(without_libcurl_a_request_fails_and_cancelling_is_harmless),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
