#include "client/http_client.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "client/curl_library.h"
#include "client/http_trust.h"
#include "core/clock.h"
#include "core/macros.h"

enum {
    HEADERS_MAX = 64 << 10, /* bytes, with the trailers and what comes before the final reply */
    CONNECTIONS_KEPT = 4,   /* at most one per runtime is of use */
    WAIT_MAX_MS = 60000,
};

/* CURLE_TOO_LARGE, which headers before 8.6 do not have. */
static const CURLcode too_large = (CURLcode)100;

struct http_client {
    struct curl_library curl;
    struct error no_library; /* why it is missing */
    CURLM *multi; /* keeps connections from one request to the next; NULL: there is no library */
    atomic_bool cancelled;
};

/* One request under way. */
struct transfer {
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
    uint64_t heard_us; /* the peer's last sign of life */
    size_t header_bytes;
    bool header_is_whole; /* its empty line has come */
    int socket_error;     /* of the last socket that could not be had */
    int verdict;          /* not 0: a callback ended the request, with this */
};

static uint64_t now_us(void)
{
    return clock_system.monotonic_us(&clock_system);
}

/* Fills the text and returns `code`. Names the peer without what may be a secret: the query, and
 * the user and password before the host. */
static int PRINTF(3, 4) fail(const struct transfer *t, int code, const char *format, ...)
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
        return error_set(t->err, code, "cannot ask %.256s: %s", path, why);
    at = memrchr(host, '@', strcspn(host, "/?#"));
    if (at)
        shown = at + 1;
    return error_set(t->err, code, "cannot ask %.*s%.*s: %s", (int)(host - url), url,
                     (int)MIN(strcspn(shown, "?#"), (size_t)256), shown, why);
}

static int fail_late(const struct transfer *t)
{
    return fail(t, -ETIMEDOUT, "no complete answer within %.3g s",
                (double)t->request->timeout_us / USEC_PER_SEC);
}

/* 0, or why the request must end now. */
static int must_end(const struct transfer *t, uint64_t now)
{
    uint64_t stall_us = t->request->stall_us;

    if (atomic_load(&t->client->cancelled))
        return fail(t, -ECANCELED, "cancelled");
    if (now >= t->deadline_us)
        return fail_late(t);
    if (stall_us > 0 && now - t->heard_us >= stall_us)
        return fail(t, -ETIMEDOUT, "it was silent for %.3g s", (double)stall_us / USEC_PER_SEC);
    return 0;
}

/* From 8.4 on, curl itself also stops a body that turns out longer than it was announced. */
static int fail_size(const struct transfer *t)
{
    return fail(t, -EFBIG, "its answer is longer than %zu bytes", t->request->max_bytes);
}

static int keep(struct transfer *t, struct span piece)
{
    struct buffer *body = &t->reply->body;

    if (piece.len > t->request->max_bytes - body->len)
        return fail_size(t);
    buffer_bytes(body, piece.data, piece.len);
    return buffer_failed(body) ? fail(t, -ENOMEM, "out of memory") : 0;
}

/* Looks at the clock too: one read can unfold to many pieces, where the peer compresses what it
 * transfers, and curl hands over all of them before it returns. */
static size_t take_body(char *data, size_t size, size_t count, void *context)
{
    struct transfer *t = context;
    const struct http_request *request = t->request;
    struct span piece = {data, size * count};

    t->heard_us = now_us();
    t->verdict = must_end(t, t->heard_us);
    if (t->verdict == 0)
        t->verdict = request->on_data ? request->on_data(request->context, piece) : keep(t, piece);
    return t->verdict == 0 ? piece.len : CURL_WRITEFUNC_ERROR;
}

/* Called with each line of the header, from the status line to the empty line, then the trailers.
 * There can be several headers, as "100 Continue" has one. */
static size_t take_header(char *data, size_t size, size_t count, void *context)
{
    struct transfer *t = context;
    struct span line = {data, size * count};

    if (line.len >= 5 && memcmp(line.data, "HTTP/", 5) == 0)
        t->header_is_whole = false;
    else if (span_equals(line, "\r\n") || span_equals(line, "\n"))
        t->header_is_whole = true;
    t->header_bytes += line.len;
    if (t->header_bytes <= HEADERS_MAX)
        return line.len;
    t->verdict = fail(t, -EPROTO, "its headers are longer than %d bytes", HEADERS_MAX);
    return CURL_WRITEFUNC_ERROR;
}

/* curl's own sockets would be inherited by the processes that we start, and a connection to a
 * runtime is as good as root. */
static curl_socket_t open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct transfer *t = context;
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);

    (void)purpose;
    if (fd < 0)
        t->socket_error = -errno;
    return fd;
}

/* After the handshake and before a byte of the request, for each request. */
static int check_peer(void *context, char *peer_address, char *own_address, int peer_port,
                      int own_port)
{
    struct transfer *t = context;
    struct curl_tlssessioninfo *tls = NULL;
    struct error why = {""};

    (void)peer_address, (void)own_address, (void)peer_port, (void)own_port;
    t->curl->easy_getinfo(t->easy, CURLINFO_TLS_SSL_PTR, &tls);
    if (http_trust_check(t->request->trust,
                         tls && tls->backend == CURLSSLBACKEND_GNUTLS ? tls->internals : NULL,
                         &why) == 0)
        return CURL_PREREQFUNC_OK;
    t->verdict = fail(t, -EKEYREJECTED, "%.400s", why.text);
    return CURL_PREREQFUNC_ABORT;
}

#define SET(t, option, value)                                                                      \
    do {                                                                                           \
        if ((t)->set_up_code == CURLE_OK)                                                          \
            (t)->set_up_code = (t)->curl->easy_setopt((t)->easy, option, value);                   \
    } while (0)

/* With GnuTLS, curl takes authorities from files only, which it opens anew for each connection: so
 * that none is needed, curl checks nothing and we do. */
static void set_trust(struct transfer *t)
{
    SET(t, CURLOPT_PREREQFUNCTION, check_peer);
    SET(t, CURLOPT_PREREQDATA, t);
    SET(t, CURLOPT_SSL_SESSIONID_CACHE, 0L); /* a session that is resumed shows no certificate */
    SET(t, CURLOPT_SSL_VERIFYPEER, 0L);
    SET(t, CURLOPT_SSL_VERIFYHOST, 0L);
    SET(t, CURLOPT_CAINFO, NULL);
    SET(t, CURLOPT_CAPATH, NULL);
}

static void set_peer(struct transfer *t)
{
    const struct http_request *request = t->request;

    SET(t, CURLOPT_URL, request->url);
    SET(t, CURLOPT_PROTOCOLS_STR, "http,https");
    SET(t, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    SET(t, CURLOPT_OPENSOCKETDATA, t);
    if (request->proxy_by_environment)
        SET(t, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L); /* what a proxy says is not the peer's word */
    else
        SET(t, CURLOPT_PROXY, "");
    if (request->socket_path)
        SET(t, CURLOPT_UNIX_SOCKET_PATH, request->socket_path);
    if (request->resolve)
        SET(t, CURLOPT_RESOLVE, t->resolve);
    SET(t, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(t, CURLOPT_SSL_VERIFYPEER, 1L);
    SET(t, CURLOPT_SSL_VERIFYHOST, 2L);
    SET(t, CURLOPT_CA_CACHE_TIMEOUT, 0L); /* from 8.9 on, a new authority would wait for a day */
    if (request->ca_path) {
        SET(t, CURLOPT_CAINFO, request->ca_path);
        SET(t, CURLOPT_CAPATH, NULL); /* else the system's authorities count as well */
        SET(t, CURLOPT_PROXY_CAINFO, request->ca_path);
        SET(t, CURLOPT_PROXY_CAPATH, NULL);
    }
    if (request->trust)
        set_trust(t);
}

/* Redirects, netrc, cookies, HTTP/0.9 and Accept-Encoding are off unless asked for, and stay so. */
static void set_question(struct transfer *t)
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
    /* With curl 7.88 a second HTTP/2 request on a kept connection to a unix socket fails (curl's
     * issue 10634); so would one on a connection that was kept by HTTP/1.1. */
    SET(t, CURLOPT_FRESH_CONNECT, 1L);
    SET(t, CURLOPT_FORBID_REUSE, 1L);
}

/* As curl takes it. */
static long milliseconds(uint64_t limit_us)
{
    return (long)MIN(limit_us / 1000 + 1, (uint64_t)INT_MAX);
}

static void set_limits(struct transfer *t)
{
    uint64_t max_bytes = t->request->on_data ? INT64_MAX : t->request->max_bytes;

    SET(t, CURLOPT_NOSIGNAL, 1L);
    SET(t, CURLOPT_ERRORBUFFER, t->curl_text);
    SET(t, CURLOPT_HEADERFUNCTION, take_header);
    SET(t, CURLOPT_HEADERDATA, t);
    SET(t, CURLOPT_WRITEFUNCTION, take_body);
    SET(t, CURLOPT_WRITEDATA, t);
    /* What says that it is too long is not even begun; take_body() counts what comes. */
    SET(t, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)MIN(MAX(max_bytes, 1), INT64_MAX));
    /* run() keeps the deadline; curl divides the time among a host's addresses by this. */
    SET(t, CURLOPT_TIMEOUT_MS, milliseconds(t->request->timeout_us));
    if (t->request->connect_timeout_us > 0)
        SET(t, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(t->request->connect_timeout_us));
    /* A look-up that hangs is left to its thread instead of waited for. */
    SET(t, CURLOPT_QUICK_EXIT, 1L);
}

static bool append(const struct transfer *t, struct curl_slist **list, const char *text)
{
    struct curl_slist *longer = t->curl->slist_append(*list, text);

    if (longer)
        *list = longer;
    return longer;
}

static int make_lists(struct transfer *t)
{
    const char *const *headers = t->request->headers;
    /* No waiting for "100 Continue", which none of our peers sends. */
    bool ok = append(t, &t->headers, "Expect:");

    for (size_t i = 0; ok && headers && headers[i]; i++) {
        if (strpbrk(headers[i], "\r\n"))
            return fail(t, -EINVAL, "a header of the request has a line break in it");
        ok = append(t, &t->headers, headers[i]);
    }
    if (ok && t->request->resolve)
        ok = append(t, &t->resolve, t->request->resolve);
    return ok ? 0 : fail(t, -ENOMEM, "out of memory");
}

static int check_request(const struct transfer *t)
{
    const char *url = t->request->url, *path = t->request->socket_path;
    size_t path_max = sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1;

    if (strncasecmp(url, "http://", 7) != 0 && strncasecmp(url, "https://", 8) != 0)
        return fail(t, -EINVAL, "not an http or https URL");
    if (path && strlen(path) > path_max)
        return fail(t, -ENAMETOOLONG, "a socket's path has at most %zu bytes, this one has %zu",
                    path_max, strlen(path));
    return 0;
}

static int judge_connect(const struct transfer *t)
{
    long os_errno = 0;

    t->curl->easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &os_errno);
    if (os_errno == 0 && t->socket_error < 0)
        return fail(t, t->socket_error, "no socket: %s", strerror(-t->socket_error));
    switch (os_errno) {
    case ENOENT:
    case ENOTDIR:
        return fail(t, -ENOENT, "there is no such socket");
    case ECONNREFUSED:
        return fail(t, -ECONNREFUSED, "nobody listens there");
    case EACCES:
    case EPERM:
        return fail(t, -EACCES, "not permitted to connect");
    case ETIMEDOUT:
        return fail(t, -ETIMEDOUT, "no connection: %s", strerror(ETIMEDOUT));
    case 0: /* a unix socket whose queue is full, or that hung up before curl looked again */
    case ECONNRESET:
        return fail(t, -EPROTO, "it takes no connection, or closes it at once");
    default:
        return fail(t, -ECONNREFUSED, "no connection: %s", strerror((int)os_errno));
    }
}

static bool is_sent(const struct transfer *t)
{
    curl_off_t sent_us = 0;

    t->curl->easy_getinfo(t->easy, CURLINFO_PRETRANSFER_TIME_T, &sent_us);
    return sent_us > 0;
}

/* Before 8.6, curl also says "out of memory" of a header line beyond its own limit of 100 KB. */
static int judge_memory(const struct transfer *t)
{
    if (is_sent(t))
        return fail(t, -EPROTO, "its headers are longer than curl takes, or memory is short");
    return fail(t, -ENOMEM, "out of memory");
}

/* Whether the environment names a proxy. no_proxy may still except this peer, which curl tells from
 * 8.7 on only. */
static bool has_proxy(const struct transfer *t)
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

/* No connection: it may be the proxy's. */
static int blame_proxy(const struct transfer *t, int code)
{
    struct error why;

    if (!t->err || !has_proxy(t))
        return code;
    why = *t->err;
    return error_set(t->err, code,
                     "%.700s; the environment names a proxy: is it there, and written as "
                     "http://HOST:PORT?",
                     why.text);
}

static int judge_time(const struct transfer *t)
{
    curl_off_t found_us = 0;

    if (t->request->connect_timeout_us == 0 || is_sent(t))
        return fail_late(t);
    t->curl->easy_getinfo(t->easy, CURLINFO_NAMELOOKUP_TIME_T, &found_us);
    return blame_proxy(
        t, fail(t, -ETIMEDOUT,
                found_us == 0 ? "its name could not be looked up within %.3g s; does DNS answer?"
                              : "no connection within %.3g s",
                (double)t->request->connect_timeout_us / USEC_PER_SEC));
}

/* What the proxy said instead of connecting us. */
static int judge_refusal(const struct transfer *t, long status)
{
    if (status == 407)
        return fail(t, -ECONNREFUSED,
                    "the proxy that the environment names wants to know who we are (407); write "
                    "it as http://USER:PASSWORD@HOST:PORT");
    return fail(t, -ECONNREFUSED,
                "the proxy that the environment names answers with %ld; let it connect us, or "
                "except the host in no_proxy",
                status);
}

/* What curl's failure means to our callers. */
static int judge(const struct transfer *t, CURLcode failure)
{
    const char *text = t->curl_text[0] ? t->curl_text : t->curl->easy_strerror(failure);
    long proxy_status = 0;

    t->curl->easy_getinfo(t->easy, CURLINFO_HTTP_CONNECTCODE, &proxy_status);
    if (proxy_status >= 300)
        return judge_refusal(t, proxy_status);
    if (failure == too_large)
        return fail(t, -EPROTO, "its headers are longer, or more, than curl takes");
    switch (failure) {
    case CURLE_COULDNT_CONNECT:
        return blame_proxy(t, judge_connect(t));
    case CURLE_COULDNT_RESOLVE_PROXY: /* curl's text may have its password */
        return blame_proxy(t, fail(t, -ENOENT, "no address of a proxy"));
    case CURLE_PROXY:
        return blame_proxy(t, fail(t, -ECONNREFUSED, "a proxy does not connect us"));
    case CURLE_COULDNT_RESOLVE_HOST:
        return fail(t, -ENOENT, "its name has no address");
    case CURLE_OPERATION_TIMEDOUT:
        return judge_time(t);
    case CURLE_OUT_OF_MEMORY:
        return judge_memory(t);
    case CURLE_FILESIZE_EXCEEDED:
        return fail_size(t);
    case CURLE_URL_MALFORMAT:
    case CURLE_SETOPT_OPTION_SYNTAX: /* of `resolve` */
        return fail(t, -EINVAL, "%s", text);
    case CURLE_PEER_FAILED_VERIFICATION:
        return fail(t, -EKEYREJECTED, "%s", text);
    case CURLE_SSL_CACERT_BADFILE:
        return fail(t, -EKEYREJECTED, "no certificates can be read from %.256s",
                    t->request->ca_path ? t->request->ca_path : "the system's store");
    case CURLE_UNSUPPORTED_PROTOCOL:
        return fail(t, -EPROTO, "it does not speak HTTP");
    case CURLE_GOT_NOTHING:
        return fail(t, -EPROTO, "it closed the connection without an answer");
    default:
        return fail(t, -EPROTO, "%s", text);
    }
}

/* The last one of its name: a trailer is the peer's final word. (Those of HTTP/2 are plain headers
 * to curl 7.88.) */
static void find_header(const struct transfer *t)
{
    const unsigned origins = CURLH_HEADER | CURLH_TRAILER;
    const char *name = t->request->wanted_header;
    struct http_reply *reply = t->reply;
    struct curl_header *header;

    if (!name || t->curl->easy_header(t->easy, name, 0, origins, -1, &header) != CURLHE_OK ||
        t->curl->easy_header(t->easy, name, header->amount - 1, origins, -1, &header) != CURLHE_OK)
        return;
    snprintf(reply->header, sizeof(reply->header), "%s", header->value);
    reply->has_header = true;
}

static void tell_headers(const struct transfer *t)
{
    struct curl_header *header = NULL;

    while ((header = t->curl->easy_nextheader(t->easy, CURLH_HEADER, -1, header)))
        t->request->on_header(t->request->context, header->name, header->value);
}

/* curl takes a header that breaks off for a reply without a body. */
static int read_reply(const struct transfer *t)
{
    long status = 0;

    t->curl->easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    if (!t->header_is_whole || status < 200)
        return fail(t, -EPROTO, "its answer broke off in the header");
    t->reply->status = (int)status;
    find_header(t);
    if (t->request->on_header)
        tell_headers(t);
    return 0;
}

static int wait_ms(const struct transfer *t, uint64_t now)
{
    uint64_t until_us = t->deadline_us;

    if (t->request->stall_us > 0 && t->request->stall_us < until_us - t->heard_us)
        until_us = t->heard_us + t->request->stall_us;
    return until_us <= now ? 0 : (int)MIN((until_us - now + 999) / 1000, (uint64_t)WAIT_MAX_MS);
}

static int run(struct transfer *t)
{
    CURLM *multi = t->client->multi;
    CURLMcode code;
    int running, ready, left, r;
    const CURLMsg *message;

    for (;;) {
        r = must_end(t, now_us());
        if (r < 0)
            return r;
        code = t->curl->multi_perform(multi, &running);
        if (code == CURLM_OK && running == 0)
            break;
        /* http_client_cancel wakes this up, also if it comes just before. */
        if (code == CURLM_OK)
            code = t->curl->multi_poll(multi, NULL, 0, wait_ms(t, now_us()), &ready);
        if (code != CURLM_OK)
            return fail(t, -ENOMEM, "%s", t->curl->multi_strerror(code));
        if (ready > 0)
            t->heard_us = now_us();
    }
    if (t->verdict != 0)
        return t->verdict;
    message = t->curl->multi_info_read(multi, &left);
    if (!message)
        return fail(t, -ENOMEM, "out of memory");
    return message->data.result == CURLE_OK ? read_reply(t) : judge(t, message->data.result);
}

static int set_up(struct transfer *t)
{
    int r = check_request(t);

    if (r == 0)
        r = make_lists(t);
    if (r < 0)
        return r;
    t->easy = t->curl->easy_init();
    if (!t->easy)
        return fail(t, -ENOMEM, "out of memory");
    set_limits(t);
    set_peer(t);
    set_question(t);
    return t->set_up_code == CURLE_OK ? 0 : judge(t, t->set_up_code);
}

static void clean_up(struct transfer *t)
{
    t->curl->easy_cleanup(t->easy);
    t->curl->slist_free_all(t->headers);
    t->curl->slist_free_all(t->resolve);
}

static int perform(struct transfer *t)
{
    CURLMcode code = t->curl->multi_add_handle(t->client->multi, t->easy);
    int r;

    if (code != CURLM_OK)
        return fail(t, -ENOMEM, "%s", t->curl->multi_strerror(code));
    r = run(t);
    t->curl->multi_remove_handle(t->client->multi, t->easy);
    return r;
}

/* Its memory is kept for the next body. */
static void empty_reply(struct http_reply *reply, size_t max_bytes)
{
    reply->status = 0;
    reply->has_header = false;
    reply->header[0] = '\0';
    reply->body.len = 0;
    reply->body.cap_bytes = max_bytes;
    reply->body.failed = false;
}

int http_client_do(struct http_client *client, const struct http_request *request,
                   struct http_reply *ret_reply, struct error *err)
{
    uint64_t now = now_us();
    struct transfer t = {
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
        return fail(&t, -ELIBACC, "%s", client->no_library.text);
    r = set_up(&t);
    if (r == 0)
        r = perform(&t);
    clean_up(&t);
    if (r != 0)
        empty_reply(ret_reply, request->max_bytes);
    return r;
}

int http_client_new(struct http_client **ret_client)
{
    struct http_client *client = calloc(1, sizeof(*client));

    if (!client)
        return -ENOMEM;
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

void http_client_resume(struct http_client *client)
{
    atomic_store(&client->cancelled, false);
}

void http_reply_init(struct http_reply *reply)
{
    *reply = (struct http_reply){0};
}

void http_reply_done(struct http_reply *reply)
{
    buffer_done(&reply->body);
    *reply = (struct http_reply){0};
}
