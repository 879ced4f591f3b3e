#include "report/server.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/http_client.h"
#include "client/http_loopback.h"
#include "client/http_trust.h"
#include "core/fs.h"
#include "core/macros.h"
#include "core/siphash.h"

enum {
    URL_BYTES = 512,
    REQUEST_BYTES = 64 << 10,
    /* One look at 10,000 nodes: 600,000 rows with their labels. */
    REPLY_MAX_BYTES = 256 << 20,
    KEPT_MAX_BYTES = REPLY_MAX_BYTES + REQUEST_BYTES,
    TOKEN_MAX_BYTES = 16 << 10,
    HEADER_BYTES = 32 << 10,
    SETTLED_S = 3600,
};

static const uint64_t TIMEOUT_US = 300 * USEC_PER_SEC;
static const uint64_t CONNECT_TIMEOUT_US = 20 * USEC_PER_SEC;

struct server {
    char base[URL_BYTES];
    char *ca_path;
    struct buffer login, tenant; /* headers, NUL-terminated; empty: none */
    bool is_insecure;
    int keep_fd; /* -1: none */
    int64_t now_s;
};

struct server_connection {
    const struct server *server;
    struct http_client *http;
    struct http_trust *trust;
    struct http_reply reply;
    size_t unkept;
};

static int bad_url(const char *why, struct error *err)
{
    return error_set(err, -EINVAL, "--server: %s; write http://HOST:PORT or https://HOST[/PATH]",
                     why);
}

static int set_url(struct server *server, const char *url, bool has_secret, struct error *err)
{
    struct span text = span_of(url), rest = text, authority;
    bool is_plain = span_strip_prefix(&rest, "http://");

    if (!is_plain && !span_strip_prefix(&rest, "https://"))
        return bad_url("not the address of a server", err);
    for (size_t i = 0; i < rest.len; i++)
        if (rest.data[i] <= ' ' || rest.data[i] > '~' || strchr("?#@", rest.data[i]))
            return bad_url("it has characters that no address has (passwords belong into a file)",
                           err);
    while (span_strip_suffix(&text, "/"))
        ;
    authority = span_cut(&rest, '/');
    if (authority.len == 0 || text.len >= URL_BYTES)
        return bad_url(authority.len == 0 ? "the host is missing" : "it is too long", err);
    if (is_plain && has_secret && !http_is_loopback(authority))
        return error_set(err, -EINVAL,
                         "--server: plain http exposes the token or password to the network; use "
                         "https");
    snprintf(server->base, sizeof(server->base), "%.*s", (int)text.len, text.data);
    return 0;
}

static int set_token(struct server *server, const char *path, struct error *err)
{
    char *data = NULL;
    struct span token;
    size_t len = 0;
    int r = fs_read_regular(path, TOKEN_MAX_BYTES, &data, &len);

    if (r < 0)
        return error_set(err, r, "--server.token-file: cannot read %.300s: %s", path,
                         fs_strerror(r));
    token = (struct span){data, len};
    while (token.len > 0 && strchr(" \t\r\n", token.data[token.len - 1]))
        token.len--;
    for (size_t i = 0; i < token.len && r == 0; i++)
        if (token.data[i] <= ' ' || token.data[i] > '~')
            r = -EINVAL;
    if (token.len == 0)
        r = -EINVAL;
    buffer_str(&server->login, "Authorization: Bearer ");
    buffer_bytes(&server->login, token.data, token.len);
    buffer_char(&server->login, '\0');
    explicit_bzero(data, len);
    free(data);
    return r == 0 ? 0
                  : error_set(err, r, "--server.token-file: %.300s has no token on its one line",
                              path);
}

static int set_tenant(struct server *server, const char *tenant, struct error *err)
{
    for (const char *c = tenant; *c; c++)
        if (*c < ' ' || *c > '~')
            return error_set(err, -EINVAL, "--server.tenant: only ASCII is possible");
    buffer_str(&server->tenant, "X-Scope-OrgID: ");
    buffer_str(&server->tenant, tenant);
    buffer_char(&server->tenant, '\0');
    return 0;
}

static int set_files(struct server *server, const struct server_options *options, struct error *err)
{
    int fd;

    if (options->ca_path) {
        fd = fs_open_regular(options->ca_path);
        if (fd < 0)
            return error_set(err, fd, "--server.ca-file: cannot open %.300s: %s", options->ca_path,
                             fs_strerror(fd));
        close(fd);
        server->ca_path = strdup(options->ca_path);
        if (!server->ca_path)
            return error_set(err, -ENOMEM, "out of memory");
    }
    if (!options->keep_path)
        return 0;
    if (mkdir(options->keep_path, 0700) < 0 && errno != EEXIST)
        return error_set(err, -errno, "--resume: cannot make %.300s: %s", options->keep_path,
                         strerror(errno));
    server->keep_fd = open(options->keep_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return server->keep_fd >= 0 ? 0
                                : error_set(err, -errno, "--resume: cannot open %.300s: %s",
                                            options->keep_path, strerror(errno));
}

int server_open(const struct server_options *options, struct server **ret_server, struct error *err)
{
    struct server *server = calloc(1, sizeof(*server));
    int r;

    if (!server)
        return error_set(err, -ENOMEM, "out of memory");
    server->keep_fd = -1;
    server->is_insecure = options->is_insecure;
    server->now_s = options->now_s;
    buffer_init(&server->login, HEADER_BYTES);
    buffer_init(&server->tenant, HEADER_BYTES);
    r = set_url(server, options->url, options->token_path || options->user, err);
    if (r == 0)
        r = set_files(server, options, err);
    if (r == 0 && options->token_path)
        r = set_token(server, options->token_path, err);
    else if (r == 0 && options->user)
        http_put_basic(&server->login, options->user, options->password);
    if (r == 0 && options->tenant)
        r = set_tenant(server, options->tenant, err);
    if (r == 0 && (buffer_failed(&server->login) || buffer_failed(&server->tenant)))
        r = error_set(err, -ENOMEM, "out of memory");
    if (r < 0)
        server_close(server);
    else
        *ret_server = server;
    return r;
}

void server_close(struct server *server)
{
    if (!server)
        return;
    cleanup_close(&server->keep_fd);
    buffer_wipe(&server->login);
    buffer_done(&server->tenant);
    free(server->ca_path);
    free(server);
}

const char *server_address(const struct server *server)
{
    return server->base;
}

int server_connect(const struct server *server, struct server_connection **ret, struct error *err)
{
    struct server_connection *connection = calloc(1, sizeof(*connection));
    int r = connection ? http_client_new(&connection->http) : -ENOMEM;

    if (r < 0) {
        free(connection);
        return error_set(err, r, "out of memory");
    }
    connection->server = server;
    http_reply_init(&connection->reply);
    if (server->is_insecure)
        r = http_trust_new(&(struct http_trust_options){.anybody = true}, &connection->trust, err);
    if (r < 0)
        server_disconnect(connection);
    else
        *ret = connection;
    return r;
}

void server_disconnect(struct server_connection *connection)
{
    if (!connection)
        return;
    http_client_free(connection->http);
    http_trust_free(connection->trust);
    http_reply_done(&connection->reply);
    free(connection);
}

size_t server_unkept(const struct server_connection *connection)
{
    return connection ? connection->unkept : 0;
}

void server_cancel(struct server_connection *connection)
{
    http_client_cancel(connection->http);
}

/* What the file of an answer begins with: hashes may collide. */
static void put_request(const struct server *server, const struct server_query *query,
                        struct buffer *url)
{
    char number[32];

    buffer_str(url, server->base);
    buffer_str(url, "/api/v1/query_range");
    http_put_parameter(url, "query", query->text);
    snprintf(number, sizeof(number), "%" PRId64, query->from_s);
    http_put_parameter(url, "start", number);
    snprintf(number, sizeof(number), "%" PRId64, query->to_s);
    http_put_parameter(url, "end", number);
    snprintf(number, sizeof(number), "%" PRId64, query->step_s);
    http_put_parameter(url, "step", number);
    http_put_parameter(url, "timeout", "240s");
    /* VictoriaMetrics otherwise moves the times to multiples of the step. */
    http_put_parameter(url, "nocache", "1");
    /* Thanos: half an answer is none. */
    http_put_parameter(url, "partial_response", "false");
    buffer_char(url, '\0');
}

static bool may_keep(const struct server *server, const struct server_query *query)
{
    return server->keep_fd >= 0 && query->to_s + SETTLED_S < server->now_s;
}

static void name_kept(const struct server *server, const struct buffer *url, char name[32])
{
    struct siphash hash = siphash_begin((const uint64_t[2]){1, 2});

    siphash_add(&hash, (struct span){url->data, url->len});
    siphash_add(&hash,
                (struct span){server->tenant.data ? server->tenant.data : "", server->tenant.len});
    snprintf(name, 32, "%016" PRIx64 ".json", siphash_end(&hash));
}

static bool read_kept(const struct server *server, const struct buffer *url,
                      struct answer **ret_answer)
{
    char name[32], *data = NULL;
    struct error ignored;
    struct span text;
    size_t len = 0;
    bool is_read = false;

    name_kept(server, url, name);
    if (fs_read_all_at(server->keep_fd, name, KEPT_MAX_BYTES, &data, &len) < 0)
        return false;
    text = (struct span){data, len};
    if (text.len > url->len && memcmp(text.data, url->data, url->len) == 0) {
        text = (struct span){text.data + url->len, text.len - url->len};
        is_read = answer_parse(text, ret_answer, &ignored) == 0;
    }
    free(data);
    return is_read;
}

/* Whole or not at all. What cannot be kept is asked again. */
static bool keep(const struct server *server, const struct buffer *url, struct span body)
{
    char name[32], temporary[40];
    int fd;
    bool is_written;

    name_kept(server, url, name);
    snprintf(temporary, sizeof(temporary), "%s.new", name);
    fd = openat(server->keep_fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                0600);
    if (fd < 0)
        return false;
    is_written =
        fs_write_all(fd, url->data, url->len) == 0 && fs_write_all(fd, body.data, body.len) == 0;
    is_written = close(fd) == 0 && is_written;
    if (is_written && renameat(server->keep_fd, temporary, server->keep_fd, name) == 0)
        return true;
    (void)unlinkat(server->keep_fd, temporary, 0);
    return false;
}

int server_status_result(int status)
{
    switch (status) {
    case 200:
        return 0;
    case 413:
    case 422: /* too many samples, or too long a time */
    case 503: /* Prometheus: the query took too long */
    case 504:
        return -E2BIG;
    case 429:
    case 500:
    case 502:
        return -EAGAIN;
    case 401:
    case 403:
        return -EACCES;
    default:
        return -EPROTO;
    }
}

static int explain_failure(int r, const struct error *why, struct error *err)
{
    switch (-r) {
    case EFBIG:
    case ETIMEDOUT:
        return error_set(err, -E2BIG, "%.900s", why->text);
    case ENOENT:
    case ECONNREFUSED:
        return error_set(err, -ECONNREFUSED, "%.700s; name the server with --server", why->text);
    case EPROTO:
        return error_set(err, -EAGAIN, "%.900s", why->text);
    case EKEYREJECTED:
        return error_set(err, r, "%.700s; name the CA of its certificate with --server.ca-file",
                         why->text);
    default:
        return error_set(err, r, "%.900s", why->text);
    }
}

static int explain_status(const struct server_connection *connection, int r, struct error *err)
{
    const struct server *server = connection->server;
    const struct http_reply *reply = &connection->reply;
    struct answer *ignored = NULL;
    struct error why = {""};

    if (r == -EACCES)
        return error_set(err, r, "%.300s: status %d; %s", server->base, reply->status,
                         server->login.len > 0
                             ? "the token, or the user or the password, is wrong"
                             : "name a file with a token by --server.token-file, or with a "
                               "password by --server.credentials-file");
    /* An error of Prometheus has a text. More than 11,000 points are refused as a bad request. */
    if (reply->body.len > 0 &&
        answer_parse((struct span){reply->body.data, reply->body.len}, &ignored, &why) == 0)
        answer_free(ignored);
    if (reply->status == 400 && strstr(why.text, "exceed"))
        r = -E2BIG;
    return error_set(err, r, "%.300s: status %d: %.400s", server->base, reply->status, why.text);
}

int server_ask(struct server_connection *connection, const struct server_query *query,
               struct answer **ret_answer, bool *ret_was_kept, struct error *err)
{
    const struct server *server = connection->server;
    const char *headers[3] = {NULL};
    size_t header_count = 0;
    struct buffer url;
    struct error why = {""};
    struct span body;
    int r;

    *ret_was_kept = false;
    buffer_init(&url, REQUEST_BYTES);
    put_request(server, query, &url);
    if (buffer_failed(&url)) {
        buffer_done(&url);
        return error_set(err, -EINVAL, "--select is too long");
    }
    if (may_keep(server, query) && read_kept(server, &url, ret_answer)) {
        *ret_was_kept = true;
        buffer_done(&url);
        return 0;
    }
    if (server->login.len > 0)
        headers[header_count++] = server->login.data;
    if (server->tenant.len > 0)
        headers[header_count++] = server->tenant.data;
    r = http_client_do(connection->http,
                       &(struct http_request){.url = url.data,
                                              .headers = headers,
                                              .ca_path = server->ca_path,
                                              .trust = connection->trust,
                                              .proxy_by_environment = true,
                                              .timeout_us = TIMEOUT_US,
                                              .connect_timeout_us = CONNECT_TIMEOUT_US,
                                              .max_bytes = REPLY_MAX_BYTES},
                       &connection->reply, &why);
    if (r < 0) {
        r = explain_failure(r, &why, err);
    } else {
        r = server_status_result(connection->reply.status);
        body = (struct span){connection->reply.body.data, connection->reply.body.len};
        if (r < 0)
            r = explain_status(connection, r, err);
        else
            r = answer_parse(body, ret_answer, &why);
        if (r == -EFBIG)
            r = error_set(err, -E2BIG, "%.300s: %.400s", server->base, why.text);
        else if (r == -EBADMSG || r == -ENOMEM)
            r = error_set(err, r, "%.300s: %.400s", server->base, why.text);
        /* A warning may mean that something is missing, and later is not. */
        if (r == 0 && may_keep(server, query) && (*ret_answer)->warning_count == 0)
            connection->unkept += !keep(server, &url, body);
    }
    buffer_done(&url);
    return r;
}
