#include "fetcher/redfish/redfish_session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/json.h"
#include "core/macros.h"

enum {
    REPLY_MAX = 4 << 20, /* Power with many voltages has hundreds of kilobytes */
    CREDENTIALS_MAX = 4096,
    HEADER_MAX = 8192,
    HOPS_MAX = 3, /* the slash at the end of a path is what BMCs redirect for */
};

static const uint64_t TIMEOUT_US = 5 * USEC_PER_SEC; /* typical answers take 0.1 to 3 s */

/* One question. */
struct question {
    const char *path;
    struct span body;   /* of a POST */
    const char *method; /* as in struct http_request */
    bool is_open_to_all;
    uint64_t timeout_us;
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
    explicit_bzero(session->token, sizeof(session->token));
    explicit_bzero(session->seen_token, sizeof(session->seen_token));
}

static bool is_printable(const char *text)
{
    for (; *text; text++)
        if (*text <= ' ' || *text > '~')
            return false;
    return true;
}

/* What does not fit is no token of a BMC, and a part of one is worth nothing. */
static void take_header(void *context, const char *name, const char *value)
{
    struct redfish_session *session = context;

    if (strcasecmp(name, "X-Auth-Token") == 0 && strlen(value) < sizeof(session->seen_token) &&
        is_printable(value))
        memcpy(session->seen_token, value, strlen(value) + 1);
    if (strcasecmp(name, "Location") == 0 && strlen(value) < sizeof(session->seen_location))
        memcpy(session->seen_location, value, strlen(value) + 1);
}

static void put_authorization(const struct redfish_session *session, struct buffer *out)
{
    struct buffer pair;

    if (session->kind == REDFISH_TOKEN) {
        buffer_str(out, "X-Auth-Token: ");
        buffer_str(out, session->token);
        return;
    }
    buffer_init(&pair, CREDENTIALS_MAX);
    buffer_str(&pair, session->options.user);
    buffer_char(&pair, ':');
    buffer_str(&pair, session->options.password);
    buffer_str(out, "Authorization: Basic ");
    buffer_base64(out, (struct span){pair.data, pair.len});
    buffer_wipe(&pair);
}

static int send_once(struct redfish_session *session, const struct question *question,
                     const char *path, struct error *err)
{
    const char *headers[] = {"Accept: application/json", "OData-Version: 4.0", NULL, NULL, NULL};
    size_t count = 2;
    struct buffer url, authorization;
    struct http_request request = {
        .headers = headers,
        .body = question->body,
        .method = question->method,
        .trust = session->options.trust,
        .resolve = session->options.resolve,
        .timeout_us = question->timeout_us,
        .max_bytes = REPLY_MAX,
        .on_header = take_header,
        .context = session,
    };
    int r = -ENOMEM;

    session->seen_token[0] = session->seen_location[0] = '\0';
    buffer_init(&url, CREDENTIALS_MAX);
    buffer_init(&authorization, HEADER_MAX);
    buffer_str(&url, session->options.url);
    buffer_str(&url, path);
    buffer_char(&url, '\0');
    if (question->body.data)
        headers[count++] = "Content-Type: application/json";
    if (!question->is_open_to_all) {
        put_authorization(session, &authorization);
        buffer_char(&authorization, '\0');
        headers[count] = authorization.data;
    }
    request.url = url.data;
    if (buffer_failed(&url) || buffer_failed(&authorization))
        error_format(err, "out of memory");
    else
        r = session->options.send(session->options.context, &request, &session->reply, err);
    buffer_wipe(&authorization);
    buffer_done(&url);
    return r;
}

/* The path of a Location, which may be a whole URL, but only of the same server. */
static bool read_location(const struct redfish_session *session, struct redfish_path *ret_path)
{
    struct span location = span_of(session->seen_location);

    if (location.len == 0)
        return false;
    span_strip_prefix(&location, session->options.url);
    if (!redfish_is_path(location.data))
        return false;
    memcpy(ret_path->text, location.data, location.len + 1);
    return true;
}

static bool is_redirect(int status)
{
    return status == 301 || status == 302 || status == 307 || status == 308;
}

/* 0: there was an answer, whatever its status. */
static int ask(struct redfish_session *session, const struct question *question, struct error *err)
{
    const char *path = question->path;
    struct redfish_path next;
    int r = 0;

    for (int hop = 0; hop < HOPS_MAX; hop++) {
        r = send_once(session, question, path, err);
        if (r < 0 || !is_redirect(session->reply.status))
            return r;
        if (!read_location(session, &next))
            return error_set(err, -EREMOTEIO,
                             "the BMC sends us from %.200s to elsewhere, which is not followed",
                             path);
        path = next.text;
    }
    return error_set(err, -EREMOTEIO, "the BMC sends us from %.200s round in circles", path);
}

static struct span text_of(const struct redfish_session *session)
{
    return (struct span){session->reply.body.data, session->reply.body.len};
}

static int judge_status(int status)
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

static int fail_status(const struct redfish_session *session, const char *path, struct error *err)
{
    int status = session->reply.status;
    char why[256];

    redfish_parse_refusal(text_of(session), why, sizeof(why));
    return error_set(err, judge_status(status), "the BMC answers for %.200s with status %d%s%s",
                     path, status, why[0] ? ": " : "", why);
}

static int fail_form(int r, const char *path, struct error *err)
{
    return error_set(err, r, "what the BMC says of %.200s cannot be read: %s", path, strerror(-r));
}

static int ask_root(struct redfish_session *session, struct error *err)
{
    static const char path[] = "/redfish/v1/";
    int r = ask(session,
                &(struct question){.path = path, .is_open_to_all = true, .timeout_us = TIMEOUT_US},
                err);

    if (r < 0)
        return r;
    if (judge_status(session->reply.status) < 0)
        return fail_status(session, path, err);
    r = redfish_parse_root(text_of(session), &session->root);
    return r < 0 ? fail_form(r, path, err) : 0;
}

static int post_login(struct redfish_session *session, struct error *err)
{
    struct question question = {
        .path = session->root.sessions.text, .is_open_to_all = true, .timeout_us = TIMEOUT_US};
    struct buffer body;
    int r;

    buffer_init(&body, CREDENTIALS_MAX);
    buffer_str(&body, "{\"UserName\":");
    json_string(&body, session->options.user);
    buffer_str(&body, ",\"Password\":");
    json_string(&body, session->options.password);
    buffer_char(&body, '}');
    question.body = (struct span){body.data, body.len};
    r = buffer_failed(&body) ? error_set(err, -ENOMEM, "out of memory")
                             : ask(session, &question, err);
    buffer_wipe(&body);
    return r;
}

static int log_in(struct redfish_session *session, struct error *err)
{
    int status, r;

    session->kind = REDFISH_BASIC;
    if (session->root.sessions.text[0] == '\0')
        return 0;
    r = post_login(session, err);
    if (r < 0)
        return r;
    session->logins++;
    status = session->reply.status;
    /* iLO says 400 to a wrong password. */
    if (status == 400)
        return error_set(err, -EACCES, "the BMC refuses the user or the password");
    r = judge_status(status);
    if (r == -ENODATA)
        return 0;
    if (r < 0) {
        r = fail_status(session, session->root.sessions.text, err);
        return r == -EPERM ? -EACCES : r;
    }
    if (session->seen_token[0] == '\0')
        return 0;
    session->kind = REDFISH_TOKEN;
    memcpy(session->token, session->seen_token, sizeof(session->token));
    if (!read_location(session, &session->location) &&
        redfish_parse_id(text_of(session), &session->location) < 0)
        session->location.text[0] = '\0';
    return 0;
}

int redfish_session_open(struct redfish_session *session, struct error *err)
{
    int r;

    if (session->kind != REDFISH_CLOSED)
        return 0;
    r = ask_root(session, err);
    if (r == 0)
        r = log_in(session, err);
    if (r < 0)
        session->kind = REDFISH_CLOSED;
    return r;
}

int redfish_session_get(struct redfish_session *session, const char *path, struct span *ret_text,
                        struct error *err)
{
    const struct question question = {.path = path, .timeout_us = TIMEOUT_US};
    int r = redfish_session_open(session, err);

    if (r == 0)
        r = ask(session, &question, err);
    if (r == 0 && session->reply.status == 401 && session->kind == REDFISH_TOKEN) {
        session->kind = REDFISH_CLOSED; /* it has expired, or the BMC was reset */
        r = redfish_session_open(session, err);
        if (r == 0)
            r = ask(session, &question, err);
    }
    if (r < 0)
        return r;
    if (judge_status(session->reply.status) < 0)
        return fail_status(session, path, err);
    *ret_text = text_of(session);
    return 0;
}

void redfish_session_close(struct redfish_session *session, uint64_t timeout_us)
{
    if (session->kind == REDFISH_TOKEN && session->location.text[0])
        (void)ask(session,
                  &(struct question){
                      .path = session->location.text, .method = "DELETE", .timeout_us = timeout_us},
                  NULL);
    session->kind = REDFISH_CLOSED;
}
