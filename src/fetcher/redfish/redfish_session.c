#include "fetcher/redfish.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "core/json.h"
#include "core/macros.h"

enum {
    REPLY_MAX = 4 << 20, /* Power with many voltages takes hundreds of kilobytes */
    CREDENTIALS_MAX = 4096,
    HEADER_MAX = 8192,
    HOPS_MAX = 3, /* BMCs redirect for the slash at the end of a path */
};

static const uint64_t TIMEOUT_US = 5 * USEC_PER_SEC; /* replies usually take 0.1 to 3 s */
static const uint64_t LOGOUT_US = 2 * USEC_PER_SEC;

struct redfish_request {
    const char *path;
    struct span body;   /* of a POST */
    const char *method; /* as in struct http_request */
    bool is_anonymous;
};

void redfish_session_init(struct redfish_session *session,
                          const struct redfish_session_options *options)
{
    *session = (struct redfish_session){.options = *options};
    http_reply_init(&session->reply);
}

void redfish_session_done(struct redfish_session *session)
{
    http_reply_done(&session->reply);
    json_free(session->resource);
    explicit_bzero(session, sizeof(*session));
}

static bool is_printable(const char *text)
{
    for (; *text; text++)
        if (*text <= ' ' || *text > '~')
            return false;
    return true;
}

/* A token that does not fit is dropped: part of one is useless. */
static void keep_header(void *context, const char *name, const char *value)
{
    struct redfish_session *session = context;

    if (strcasecmp(name, "X-Auth-Token") == 0 && strlen(value) < sizeof(session->reply_token) &&
        is_printable(value))
        memcpy(session->reply_token, value, strlen(value) + 1);
    if (strcasecmp(name, "Location") == 0 && strlen(value) < sizeof(session->reply_location))
        memcpy(session->reply_location, value, strlen(value) + 1);
}

static int send_once(struct redfish_session *session, const struct redfish_request *request,
                     const char *path, struct error *err)
{
    const char *headers[] = {"Accept: application/json", "OData-Version: 4.0", NULL, NULL, NULL};
    size_t count = 2;
    struct buffer url, authorization;
    struct http_request http = {
        .headers = headers,
        .body = request->body,
        .method = request->method,
        .trust = session->options.trust,
        .resolve = session->options.resolve,
        .timeout_us = request->method ? LOGOUT_US : TIMEOUT_US,
        .max_bytes = REPLY_MAX,
        .on_header = keep_header,
        .context = session,
    };
    int r;

    session->reply_token[0] = session->reply_location[0] = '\0';
    buffer_init(&url, CREDENTIALS_MAX);
    buffer_init(&authorization, HEADER_MAX);
    buffer_str(&url, session->options.url);
    buffer_str(&url, path);
    buffer_char(&url, '\0');
    if (request->body.data)
        headers[count++] = "Content-Type: application/json";
    if (!request->is_anonymous && session->kind == REDFISH_TOKEN) {
        buffer_str(&authorization, "X-Auth-Token: ");
        buffer_str(&authorization, session->token);
        buffer_char(&authorization, '\0');
    } else if (!request->is_anonymous) {
        http_put_basic(&authorization, session->options.user, session->options.password);
    }
    headers[count] = authorization.data; /* NULL if anonymous */
    http.url = url.data;
    r = buffer_failed(&url) || buffer_failed(&authorization)
            ? error_set(err, -ENOMEM, "out of memory")
            : http_client_do(session->options.client, &http, &session->reply, err);
    buffer_wipe(&authorization);
    buffer_done(&url);
    return r;
}

/* The path of a Location header, which may be a URL, but only of the same server. */
static struct redfish_path parse_location(const struct redfish_session *session)
{
    struct span location = span_of(session->reply_location);
    struct redfish_path path = {""};

    span_strip_prefix(&location, session->options.url);
    if (redfish_is_path(location.data))
        memcpy(path.text, location.data, location.len + 1);
    return path;
}

static bool is_redirect(int status)
{
    return status == 301 || status == 302 || status == 307 || status == 308;
}

/* 0: there was a reply, whatever its status. */
static int send_request(struct redfish_session *session, const struct redfish_request *request,
                        struct error *err)
{
    const char *path = request->path;
    struct redfish_path location, next;

    for (int hop = 0; hop < HOPS_MAX; hop++) {
        int r = send_once(session, request, path, err);

        if (r < 0)
            return r;
        if (!is_redirect(session->reply.status)) {
            json_free(TAKE_PTR(session->resource));
            session->parse_result =
                json_read((struct span){session->reply.body.data, session->reply.body.len},
                          &session->resource);
            return 0;
        }
        location = parse_location(session);
        if (location.text[0] == '\0')
            return error_set(err, -EREMOTEIO,
                             "the BMC redirects from %.200s to another server, which is not "
                             "followed",
                             path);
        next = location;
        path = next.text;
    }
    return error_set(err, -EREMOTEIO, "the BMC redirects in circles from %.200s", path);
}

static int classify_status(int status)
{
    switch (status) {
    case 401:
        return -EACCES;
    case 403:
        return -EPERM;
    case 404:
    case 405:
    case 410:
    case 501:
        return -ENODATA;
    case 429:
    case 503:
        return -EBUSY;
    default:
        return status >= 200 && status < 300 ? 0 : -EREMOTEIO;
    }
}

static int check_status(const struct redfish_session *session, const char *path, struct error *err)
{
    const char *message = redfish_error_message(session->resource);
    int r = classify_status(session->reply.status);

    return r == 0 ? 0
                  : error_set(err, r, "the BMC replies to %.200s with status %d%s%.255s", path,
                              session->reply.status, message[0] ? ": " : "", message);
}

static int check_resource(const struct redfish_session *session, const char *path,
                          struct error *err)
{
    int r = check_status(session, path, err);

    if (r == 0 && session->parse_result < 0)
        r = error_set(err, session->parse_result, "the BMC's reply to %.200s cannot be parsed: %s",
                      path, strerror(-session->parse_result));
    return r;
}

static int read_root(struct redfish_session *session, struct error *err)
{
    const struct redfish_request request = {.path = "/redfish/v1/", .is_anonymous = true};
    int r = send_request(session, &request, err);

    if (r == 0)
        r = check_resource(session, request.path, err);
    if (r < 0)
        return r;
    session->chassis = redfish_link(session->resource, "Chassis");
    session->sessions = redfish_link(json_get(session->resource, "Links"), "Sessions");
    return 0;
}

static int post_login(struct redfish_session *session, struct error *err)
{
    struct redfish_request request = {.path = session->sessions.text, .is_anonymous = true};
    struct buffer body;
    int r;

    buffer_init(&body, CREDENTIALS_MAX);
    buffer_str(&body, "{\"UserName\":");
    json_string(&body, session->options.user);
    buffer_str(&body, ",\"Password\":");
    json_string(&body, session->options.password);
    buffer_char(&body, '}');
    request.body = (struct span){body.data, body.len};
    r = buffer_failed(&body) ? error_set(err, -ENOMEM, "out of memory")
                             : send_request(session, &request, err);
    buffer_wipe(&body);
    return r;
}

static int log_in(struct redfish_session *session, struct error *err)
{
    int r;

    session->kind = REDFISH_BASIC;
    if (session->sessions.text[0] == '\0')
        return 0;
    r = post_login(session, err);
    if (r < 0)
        return r;
    session->logins++;
    /* iLO replies with 400 to a wrong password. */
    if (session->reply.status == 400)
        return error_set(err, -EACCES, "the BMC rejects the user or the password");
    r = check_status(session, session->sessions.text, err);
    if (r < 0 && r != -ENODATA)
        return r == -EPERM ? -EACCES : r;
    if (r < 0 || session->reply_token[0] == '\0')
        return 0;
    session->kind = REDFISH_TOKEN;
    memcpy(session->token, session->reply_token, sizeof(session->token));
    session->location = parse_location(session);
    if (session->location.text[0] == '\0')
        session->location = redfish_id(session->resource);
    return 0;
}

int redfish_session_open(struct redfish_session *session, struct error *err)
{
    int r;

    if (session->kind != REDFISH_CLOSED)
        return 0;
    r = read_root(session, err);
    if (r == 0)
        r = log_in(session, err);
    if (r < 0)
        session->kind = REDFISH_CLOSED;
    return r;
}

int redfish_session_get(struct redfish_session *session, const char *path,
                        const struct json **ret_resource, struct error *err)
{
    const struct redfish_request request = {.path = path};
    int r = redfish_session_open(session, err);

    if (r == 0)
        r = send_request(session, &request, err);
    if (r == 0 && session->reply.status == 401 && session->kind == REDFISH_TOKEN) {
        session->kind = REDFISH_CLOSED; /* it has expired, or the BMC was reset */
        r = redfish_session_open(session, err);
        if (r == 0)
            r = send_request(session, &request, err);
    }
    if (r == 0)
        r = check_resource(session, path, err);
    if (r == 0)
        *ret_resource = session->resource;
    return r;
}

void redfish_session_close(struct redfish_session *session)
{
    const struct redfish_request request = {.path = session->location.text, .method = "DELETE"};

    if (session->kind == REDFISH_TOKEN && session->location.text[0])
        (void)send_request(session, &request, NULL);
    session->kind = REDFISH_CLOSED;
}
