#include "client/http_failure.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"

/* CURLE_TOO_LARGE, which headers before 8.6 do not have. */
static const CURLcode too_large = (CURLcode)100;

int http_failure(const struct http_transfer *t, int code, const char *format, ...)
{
    const char *path = t->request->socket_path;
    const char *url = t->request->url, *scheme_end = strstr(url, "://");
    const char *host = scheme_end ? scheme_end + 3 : url, *shown = host, *at;
    char why[512];
    va_list args;

    va_start(args, format);
    vsnprintf(why, sizeof(why), format, args);
    va_end(args);
    if (path)
        return error_set(t->err, code, "request to %.256s failed: %s", path, why);
    at = memrchr(host, '@', strcspn(host, "/?#"));
    if (at)
        shown = at + 1;
    return error_set(t->err, code, "request to %.*s%.*s failed: %s", (int)(host - url), url,
                     (int)MIN(strcspn(shown, "?#"), (size_t)256), shown, why);
}

int http_failure_late(const struct http_transfer *t)
{
    return http_failure(t, -ETIMEDOUT, "no complete reply within %.3g s",
                        (double)t->request->timeout_us / USEC_PER_SEC);
}

/* From 8.4 on, curl itself stops a body that turns out longer than announced, too. */
int http_failure_size(const struct http_transfer *t)
{
    return http_failure(t, -EFBIG, "the reply is longer than %zu bytes", t->request->max_bytes);
}

static int explain_connect(const struct http_transfer *t)
{
    long os_errno = 0;

    t->curl->easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &os_errno);
    if (os_errno == 0 && t->socket_error < 0)
        return http_failure(t, t->socket_error, "cannot open a socket: %s",
                            strerror(-t->socket_error));
    switch (os_errno) {
    case ENOENT:
    case ENOTDIR:
        return http_failure(t, -ENOENT, "no such socket");
    case ECONNREFUSED:
        return http_failure(t, -ECONNREFUSED, "connection refused");
    case EACCES:
    case EPERM:
        return http_failure(t, -EACCES, "not permitted to connect");
    case ETIMEDOUT:
        return http_failure(t, -ETIMEDOUT, "no connection: %s", strerror(ETIMEDOUT));
    case 0: /* a unix socket with a full queue, or one that hung up at once */
    case ECONNRESET:
        return http_failure(t, -EPROTO, "it accepts no connection, or closes it at once");
    default:
        return http_failure(t, -ECONNREFUSED, "no connection: %s", strerror((int)os_errno));
    }
}

static bool is_sent(const struct http_transfer *t)
{
    curl_off_t sent_us = 0;

    t->curl->easy_getinfo(t->easy, CURLINFO_PRETRANSFER_TIME_T, &sent_us);
    return sent_us > 0;
}

/* Before 8.6, curl reports a header line beyond its own limit of 100 KB as out of memory. */
static int explain_memory(const struct http_transfer *t)
{
    if (is_sent(t))
        return http_failure(t, -EPROTO, "its headers exceed curl's limit, or memory is short");
    return http_failure(t, -ENOMEM, "out of memory");
}

/* Whether the environment sets a proxy. no_proxy may still exclude this peer, which curl reports
 * from 8.7 on only. */
static bool has_proxy(const struct http_transfer *t)
{
    static const char *const names[] = {"https_proxy", "HTTPS_PROXY", "http_proxy", "all_proxy",
                                        "ALL_PROXY"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const char *value = getenv(names[i]);

        if (value && value[0])
            return t->request->proxy_by_environment;
    }
    return false;
}

/* The failed connection may be that to the proxy. */
static int blame_proxy(const struct http_transfer *t, int code)
{
    struct error why;

    if (!t->err || !has_proxy(t))
        return code;
    why = *t->err;
    return error_set(t->err, code,
                     "%.700s; the environment sets a proxy: is it running, and written as "
                     "http://HOST:PORT?",
                     why.text);
}

static int explain_time(const struct http_transfer *t)
{
    curl_off_t found_us = 0;

    if (t->request->connect_timeout_us == 0 || is_sent(t))
        return http_failure_late(t);
    t->curl->easy_getinfo(t->easy, CURLINFO_NAMELOOKUP_TIME_T, &found_us);
    return blame_proxy(
        t,
        http_failure(t, -ETIMEDOUT,
                     found_us == 0 ? "its name could not be resolved within %.3g s; does DNS work?"
                                   : "no connection within %.3g s",
                     (double)t->request->connect_timeout_us / USEC_PER_SEC));
}

static int explain_refusal(const struct http_transfer *t, long status)
{
    if (status == 407)
        return http_failure(
            t, -ECONNREFUSED,
            "the proxy requires a login (407); write it as http://USER:PASSWORD@HOST:PORT");
    return http_failure(
        t, -ECONNREFUSED,
        "the proxy replies with %ld; allow the connection there, or add the host to no_proxy",
        status);
}

int http_failure_of_curl(const struct http_transfer *t, CURLcode failure)
{
    const char *text = t->curl_text[0] ? t->curl_text : t->curl->easy_strerror(failure);
    long proxy_status = 0;

    t->curl->easy_getinfo(t->easy, CURLINFO_HTTP_CONNECTCODE, &proxy_status);
    if (proxy_status >= 300)
        return explain_refusal(t, proxy_status);
    if (failure == too_large)
        return http_failure(t, -EPROTO, "its headers exceed curl's limit");
    switch (failure) {
    case CURLE_COULDNT_CONNECT:
        return blame_proxy(t, explain_connect(t));
    case CURLE_COULDNT_RESOLVE_PROXY: /* curl's text may contain its password */
        return blame_proxy(t, http_failure(t, -ENOENT, "the proxy's name does not resolve"));
    case CURLE_PROXY:
        return blame_proxy(t, http_failure(t, -ECONNREFUSED, "the proxy does not connect"));
    case CURLE_COULDNT_RESOLVE_HOST:
        return http_failure(t, -ENOENT, "its name does not resolve");
    case CURLE_OPERATION_TIMEDOUT:
        return explain_time(t);
    case CURLE_OUT_OF_MEMORY:
        return explain_memory(t);
    case CURLE_FILESIZE_EXCEEDED:
        return http_failure_size(t);
    case CURLE_URL_MALFORMAT:
    case CURLE_SETOPT_OPTION_SYNTAX: /* of `resolve` */
        return http_failure(t, -EINVAL, "%s", text);
    case CURLE_PEER_FAILED_VERIFICATION:
        return http_failure(t, -EKEYREJECTED, "%s", text);
    case CURLE_SSL_CACERT_BADFILE:
        return http_failure(t, -EKEYREJECTED, "no certificates can be read from %.256s",
                            t->request->ca_path ? t->request->ca_path : "the system's store");
    case CURLE_UNSUPPORTED_PROTOCOL:
        return http_failure(t, -EPROTO, "it does not speak HTTP");
    case CURLE_GOT_NOTHING:
        return http_failure(t, -EPROTO, "it closed the connection without a reply");
    default:
        return http_failure(t, -EPROTO, "%s", text);
    }
}
