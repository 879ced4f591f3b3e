#include "client/http_client.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "client/http_failure.h"
#include "client/http_trust.h"
#include "core/clock.h"
#include "core/macros.h"

enum {
    HEADERS_MAX = 64 << 10, /* bytes, with trailers and interim replies */
    CONNECTIONS_KEPT = 4,   /* one per runtime suffices */
    WAIT_MAX_MS = 60000,
};

static uint64_t now_us(void)
{
    return clock_system.monotonic_us(&clock_system);
}

static bool is_cancelled(const struct http_client *client)
{
    struct pollfd watched = {.fd = client->watched_fd, .events = POLLIN};

    return atomic_load(&client->cancelled) ||
           (watched.fd >= 0 && poll(&watched, 1, 0) > 0 && client->attend(watched.fd));
}

/* 0, or why the request must end now. */
static int check_limits(const struct http_transfer *t, uint64_t now)
{
    uint64_t stall_us = t->request->stall_us;

    if (is_cancelled(t->client))
        return http_failure(t, -ECANCELED, "cancelled");
    if (now >= t->deadline_us)
        return http_failure_late(t);
    if (stall_us > 0 && now - t->heard_us >= stall_us)
        return http_failure(t, -ETIMEDOUT, "no data for %.3g s", (double)stall_us / USEC_PER_SEC);
    return 0;
}

static int keep_body(struct http_transfer *t, struct span piece)
{
    struct buffer *body = &t->reply->body;

    if (piece.len > t->request->max_bytes - body->len)
        return http_failure_size(t);
    buffer_bytes(body, piece.data, piece.len);
    return buffer_failed(body) ? http_failure(t, -ENOMEM, "out of memory") : 0;
}

/* Checks the limits too: one read can unfold into many pieces where the transfer is compressed, and
 * curl hands over all of them before it returns. */
static size_t on_body(char *data, size_t size, size_t count, void *context)
{
    struct http_transfer *t = context;
    const struct http_request *request = t->request;
    struct span piece = {data, size * count};

    t->heard_us = now_us();
    t->result = check_limits(t, t->heard_us);
    if (t->result == 0)
        t->result =
            request->on_data ? request->on_data(request->context, piece) : keep_body(t, piece);
    return t->result == 0 ? piece.len : CURL_WRITEFUNC_ERROR;
}

/* Called for each line from the status line to the empty line, then for trailers; several times
 * where interim replies ("100 Continue") come first. */
static size_t on_header_line(char *data, size_t size, size_t count, void *context)
{
    struct http_transfer *t = context;
    struct span line = {data, size * count};

    if (line.len >= 5 && memcmp(line.data, "HTTP/", 5) == 0)
        t->header_is_complete = false;
    else if (span_equals(line, "\r\n") || span_equals(line, "\n"))
        t->header_is_complete = true;
    t->header_bytes += line.len;
    if (t->header_bytes <= HEADERS_MAX)
        return line.len;
    t->result = http_failure(t, -EPROTO, "its headers are longer than %d bytes", HEADERS_MAX);
    return CURL_WRITEFUNC_ERROR;
}

/* curl's own sockets would be inherited by child processes, and a connection to a runtime is as
 * good as root. */
static curl_socket_t open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct http_transfer *t = context;
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);

    (void)purpose;
    if (fd < 0)
        t->socket_error = -errno;
    return fd;
}

/* Called for each request, after the handshake and before the first byte. */
static int check_peer(void *context, char *peer_address, char *own_address, int peer_port,
                      int own_port)
{
    struct http_transfer *t = context;
    struct curl_tlssessioninfo *tls = NULL;
    struct error why = {""};

    (void)peer_address, (void)own_address, (void)peer_port, (void)own_port;
    t->curl->easy_getinfo(t->easy, CURLINFO_TLS_SSL_PTR, &tls);
    if (http_trust_check(t->request->trust,
                         tls && tls->backend == CURLSSLBACKEND_GNUTLS ? tls->internals : NULL,
                         &why) == 0)
        return CURL_PREREQFUNC_OK;
    t->result = http_failure(t, -EKEYREJECTED, "%.400s", why.text);
    return CURL_PREREQFUNC_ABORT;
}

#define SET(t, option, value)                                                                      \
    do {                                                                                           \
        if ((t)->set_up_code == CURLE_OK)                                                          \
            (t)->set_up_code = (t)->curl->easy_setopt((t)->easy, option, value);                   \
    } while (0)

/* With GnuTLS, curl reads CAs from files only, anew for each connection. Here no file may be
 * opened: curl verifies nothing, and check_peer does. */
static void set_trust(struct http_transfer *t)
{
    SET(t, CURLOPT_PREREQFUNCTION, check_peer);
    SET(t, CURLOPT_PREREQDATA, t);
    SET(t, CURLOPT_SSL_SESSIONID_CACHE, 0L); /* a resumed session has no certificate */
    SET(t, CURLOPT_SSL_VERIFYPEER, 0L);
    SET(t, CURLOPT_SSL_VERIFYHOST, 0L);
    SET(t, CURLOPT_CAINFO, NULL);
    SET(t, CURLOPT_CAPATH, NULL);
}

static void set_peer(struct http_transfer *t)
{
    const struct http_request *request = t->request;

    SET(t, CURLOPT_URL, request->url);
    SET(t, CURLOPT_PROTOCOLS_STR, "http,https");
    SET(t, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    SET(t, CURLOPT_OPENSOCKETDATA, t);
    if (request->proxy_by_environment)
        SET(t, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L); /* a proxy's headers are not the peer's */
    else
        SET(t, CURLOPT_PROXY, "");
    if (request->socket_path)
        SET(t, CURLOPT_UNIX_SOCKET_PATH, request->socket_path);
    if (request->resolve && request->resolve[0])
        SET(t, CURLOPT_RESOLVE, t->resolve);
    SET(t, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(t, CURLOPT_SSL_VERIFYPEER, 1L);
    SET(t, CURLOPT_SSL_VERIFYHOST, 2L);
    SET(t, CURLOPT_CA_CACHE_TIMEOUT, 0L); /* curl 8.9 caches CAs for a day */
    if (request->ca_path) {
        SET(t, CURLOPT_CAINFO, request->ca_path);
        SET(t, CURLOPT_CAPATH, NULL); /* else the system's CAs count as well */
        SET(t, CURLOPT_PROXY_CAINFO, request->ca_path);
        SET(t, CURLOPT_PROXY_CAPATH, NULL);
    }
    if (request->trust)
        set_trust(t);
}

/* Redirects, netrc, cookies, HTTP/0.9 and Accept-Encoding are off by default, and stay off. */
static void set_message(struct http_transfer *t)
{
    const struct http_request *request = t->request;

    SET(t, CURLOPT_USERAGENT, "wattribute/" WATTRIBUTE_VERSION);
    SET(t, CURLOPT_HTTPHEADER, t->headers);
    if (request->body.data) {
        SET(t, CURLOPT_POST, 1L);
        SET(t, CURLOPT_POSTFIELDS, request->body.data);
        SET(t, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.len);
    }
    if (request->method)
        SET(t, CURLOPT_CUSTOMREQUEST, request->method);
    if (!request->http2) {
        SET(t, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
        return;
    }
    SET(t, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
    /* curl 7.88 fails a second HTTP/2 request on a kept connection to a unix socket (issue 10634),
     * and one on a connection kept by HTTP/1.1. */
    SET(t, CURLOPT_FRESH_CONNECT, 1L);
    SET(t, CURLOPT_FORBID_REUSE, 1L);
}

static long milliseconds(uint64_t limit_us)
{
    return (long)MIN(limit_us / 1000 + 1, (uint64_t)INT_MAX);
}

static void set_limits(struct http_transfer *t)
{
    uint64_t max_bytes = t->request->on_data ? INT64_MAX : t->request->max_bytes;

    SET(t, CURLOPT_NOSIGNAL, 1L);
    SET(t, CURLOPT_ERRORBUFFER, t->curl_text);
    SET(t, CURLOPT_HEADERFUNCTION, on_header_line);
    SET(t, CURLOPT_HEADERDATA, t);
    SET(t, CURLOPT_WRITEFUNCTION, on_body);
    SET(t, CURLOPT_WRITEDATA, t);
    /* Rejects what is announced to be too long; keep_body() counts what arrives. */
    SET(t, CURLOPT_MAXFILESIZE_LARGE,
        (curl_off_t)MIN(MAX(max_bytes, (size_t)1), (size_t)INT64_MAX));
    /* run() enforces the deadline; curl divides this time among a host's addresses. */
    SET(t, CURLOPT_TIMEOUT_MS, milliseconds(t->request->timeout_us));
    if (t->request->connect_timeout_us > 0)
        SET(t, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(t->request->connect_timeout_us));
    /* Do not wait for the thread of a lookup that hangs. */
    SET(t, CURLOPT_QUICK_EXIT, 1L);
}

static int append(struct http_transfer *t, struct curl_slist **list, const char *text)
{
    struct curl_slist *longer = t->curl->slist_append(*list, text);

    if (!longer)
        return http_failure(t, -ENOMEM, "out of memory");
    *list = longer;
    return 0;
}

static int make_lists(struct http_transfer *t)
{
    const char *const *headers = t->request->headers;
    /* No waiting for "100 Continue", which none of our peers sends. */
    int r = append(t, &t->headers, "Expect:");

    for (size_t i = 0; r == 0 && headers && headers[i]; i++)
        r = strpbrk(headers[i], "\r\n")
                ? http_failure(t, -EINVAL, "a request header contains a line break")
                : append(t, &t->headers, headers[i]);
    if (r == 0 && t->request->resolve && t->request->resolve[0])
        r = append(t, &t->resolve, t->request->resolve);
    return r;
}

static int check_request(const struct http_transfer *t)
{
    const char *url = t->request->url, *path = t->request->socket_path;
    size_t path_max = sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1;

    if (strncasecmp(url, "http://", 7) != 0 && strncasecmp(url, "https://", 8) != 0)
        return http_failure(t, -EINVAL, "not an http or https URL");
    if (path && strlen(path) > path_max)
        return http_failure(t, -ENAMETOOLONG,
                            "a socket path has at most %zu bytes, this one has %zu", path_max,
                            strlen(path));
    return 0;
}

/* To curl, a header that breaks off is a reply without a body. */
static int read_reply(const struct http_transfer *t)
{
    struct curl_header *header = NULL;
    long status = 0;

    t->curl->easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    if (!t->header_is_complete || status < 200)
        return http_failure(t, -EPROTO, "the reply broke off in the header");
    t->reply->status = (int)status;
    while (t->request->on_header &&
           (header = t->curl->easy_nextheader(t->easy, CURLH_HEADER | CURLH_TRAILER, -1, header)))
        /* curl 7.88 shows the end of the line as the value of an empty header. */
        t->request->on_header(t->request->context, header->name,
                              strpbrk(header->value, "\r\n") ? "" : header->value);
    return 0;
}

static int wait_ms(const struct http_transfer *t, uint64_t now)
{
    uint64_t until_us = t->deadline_us;

    if (t->request->stall_us > 0 && t->request->stall_us < until_us - t->heard_us)
        until_us = t->heard_us + t->request->stall_us;
    return until_us <= now ? 0 : (int)MIN((until_us - now + 999) / 1000, (uint64_t)WAIT_MAX_MS);
}

static int run(struct http_transfer *t)
{
    /* Wakes the poll; is_cancelled() attends to it. */
    struct curl_waitfd watched = {.fd = t->client->watched_fd, .events = CURL_WAIT_POLLIN};
    CURLM *multi = t->client->multi;
    CURLMcode code;
    int running, ready, left, r;
    const CURLMsg *message;

    for (;;) {
        r = check_limits(t, now_us());
        if (r < 0)
            return r;
        code = t->curl->multi_perform(multi, &running);
        if (code == CURLM_OK && running == 0)
            break;
        /* http_client_cancel interrupts this, also if it comes just before. */
        watched.revents = 0;
        if (code == CURLM_OK)
            code =
                t->curl->multi_poll(multi, &watched, watched.fd >= 0, wait_ms(t, now_us()), &ready);
        if (code != CURLM_OK)
            return http_failure(t, -ENOMEM, "%s", t->curl->multi_strerror(code));
        if (ready > (watched.revents != 0))
            t->heard_us = now_us();
    }
    if (t->result != 0)
        return t->result;
    message = t->curl->multi_info_read(multi, &left);
    if (!message)
        return http_failure(t, -ENOMEM, "out of memory");
    return message->data.result == CURLE_OK ? read_reply(t)
                                            : http_failure_of_curl(t, message->data.result);
}

static int set_up(struct http_transfer *t)
{
    int r = check_request(t);

    if (r == 0)
        r = make_lists(t);
    if (r < 0)
        return r;
    t->easy = t->curl->easy_init();
    if (!t->easy)
        return http_failure(t, -ENOMEM, "out of memory");
    set_limits(t);
    set_peer(t);
    set_message(t);
    return t->set_up_code == CURLE_OK ? 0 : http_failure_of_curl(t, t->set_up_code);
}

static int perform(struct http_transfer *t)
{
    CURLMcode code = t->curl->multi_add_handle(t->client->multi, t->easy);
    int r;

    if (code != CURLM_OK)
        return http_failure(t, -ENOMEM, "%s", t->curl->multi_strerror(code));
    r = run(t);
    t->curl->multi_remove_handle(t->client->multi, t->easy);
    return r;
}

/* Keeps its memory for the next body. */
static void empty_reply(struct http_reply *reply, size_t max_bytes)
{
    reply->status = 0;
    reply->body.len = 0;
    reply->body.cap_bytes = max_bytes;
    reply->body.failed = false;
}

int http_client_do(struct http_client *client, const struct http_request *request,
                   struct http_reply *ret_reply, struct error *err)
{
    uint64_t now = now_us();
    struct http_transfer t = {
        .client = client,
        .curl = &client->curl,
        .request = request,
        .reply = ret_reply,
        .err = err,
        .deadline_us = now + MIN(request->timeout_us, UINT64_MAX - now),
        .heard_us = now,
    };
    int r;

    empty_reply(ret_reply, request->max_bytes);
    if (!client->multi)
        return http_failure(&t, -ELIBACC, "%s", client->no_library.text);
    r = set_up(&t);
    if (r == 0)
        r = perform(&t);
    t.curl->easy_cleanup(t.easy);
    t.curl->slist_free_all(t.headers);
    t.curl->slist_free_all(t.resolve);
    if (r != 0)
        empty_reply(ret_reply, request->max_bytes);
    return r;
}

int http_client_new(struct http_client **ret_client)
{
    struct http_client *client = calloc(1, sizeof(*client));

    if (!client)
        return -ENOMEM;
    client->watched_fd = -1;
    if (curl_library_open(&client->curl, &client->no_library) == 0) {
        client->multi = client->curl.multi_init();
        if (!client->multi) {
            free(client);
            return -ENOMEM;
        }
        client->curl.multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, (long)CONNECTIONS_KEPT);
    }
    *ret_client = client;
    return 0;
}

void http_client_free(struct http_client *client)
{
    if (!client)
        return;
    if (client->multi)
        client->curl.multi_cleanup(client->multi);
    free(client);
}

void http_client_cancel(struct http_client *client)
{
    atomic_store(&client->cancelled, true);
    if (client->multi)
        client->curl.multi_wakeup(client->multi);
}

void http_client_watch(struct http_client *client, int fd, bool (*attend)(int fd))
{
    client->watched_fd = fd;
    client->attend = attend;
}
