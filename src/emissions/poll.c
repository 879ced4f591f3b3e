#include "emissions/poll.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "emissions/backoff.h"
#include "emissions/credential.h"
#include "emissions/reply_headers.h"

enum {
    URL_BYTES_MAX = 8192,
    MESSAGE_BYTES = 160,
    TRIES = 2, /* with a token: it may have expired just now, but not again at once */
};

static const uint64_t CONNECT_US = 5 * USEC_PER_SEC;

#define BEARER            "Authorization: Bearer "
#define IF_NONE_MATCH     "If-None-Match: "
#define IF_MODIFIED_SINCE "If-Modified-Since: "

struct poll {
    struct poll_options options;
    struct backoff backoff;
    bool was_unauthorized;

    struct buffer credential; /* the header with the key; empty: none */
    char bearer[sizeof(BEARER) + PROVIDER_TOKEN_BYTES];
    uint64_t bearer_until_us; /* 0: there is none */

    /* The last factor, and the header that makes the request conditional ("": none). It holds for
     * the same URL only. */
    struct emission_factor factor;
    char validator[sizeof(IF_MODIFIED_SINCE) + REPLY_VALIDATOR_BYTES];
    struct buffer validated_url;
};

/* One poll, with the login before it. */
struct attempt {
    struct poll *poll;
    const struct provider *provider;
    struct provider_query query;
    uint64_t deadline_us;
    struct buffer url;

    struct http_reply reply; /* the last one */
    struct reply_headers headers;

    /* of a bad status */
    bool is_unauthorized, is_permanent;
    uint64_t wait_us; /* as the service demands */
    struct error *err;
};

static uint64_t now_us(const struct poll *poll)
{
    return poll->options.clock->monotonic_us(poll->options.clock);
}

static struct span body_of(const struct attempt *a)
{
    return (struct span){a->reply.body.data, a->reply.body.len};
}

static int fail_memory(const struct poll_options *options, struct error *err)
{
    return error_set(err, -ENOMEM, "%s: out of memory", options->provider->name);
}

static struct provider_query make_query(const struct poll_options *options)
{
    return (struct provider_query){
        .zone = options->zone,
        .basis = options->basis,
        .now_us = options->clock->realtime_us(options->clock),
        .token = options->provider->key == PROVIDER_KEY_IN_PATH ? options->key : NULL,
    };
}

/* NUL-terminated. The query's path, or that of the login if `query` is NULL. */
static int write_url(const struct poll_options *options, const struct provider_query *query,
                     struct buffer *url, struct error *err)
{
    int r = 0;

    buffer_init(url, URL_BYTES_MAX);
    buffer_str(url, options->url ? options->url : "https://");
    buffer_str(url, options->url ? "" : options->provider->host);
    if (query)
        r = provider_write_path(options->provider, query, url, err);
    else
        buffer_str(url, options->provider->login_path);
    buffer_char(url, '\0');
    return r == 0 && buffer_failed(url) ? fail_memory(options, err) : r;
}

static int send_request(struct attempt *a, const char *url, const char *authorization,
                        const char *validator)
{
    const struct poll_options *options = &a->poll->options;
    const char *name = a->provider->name;
    const char *headers[4] = {a->provider->parse ? "Accept: application/xml, text/xml"
                                                 : "Accept: application/json"};
    size_t count = 1;
    uint64_t now = now_us(a->poll);
    struct http_request request = {
        .url = url,
        .headers = headers,
        .ca_path = options->ca_path,
        .proxy_by_environment = true,
        .timeout_us = a->deadline_us - MIN(now, a->deadline_us),
        .connect_timeout_us = CONNECT_US,
        .max_bytes = a->provider->body_bytes_max,
        .on_header = reply_headers_take,
        .context = &a->headers,
    };
    struct error why = {""};
    int r;

    if (request.timeout_us == 0)
        return error_set(a->err, -ETIMEDOUT, "%s: no complete reply within %u s", name,
                         a->provider->timeout_s);
    if (authorization)
        headers[count++] = authorization;
    if (validator)
        headers[count] = validator;
    a->headers = (struct reply_headers){0};
    r = http_client_do(options->client, &request, &a->reply, &why);
    return r < 0 ? error_set(a->err, r, "%s: %.700s%s", name, why.text,
                             r == -EKEYREJECTED
                                 ? "; if a proxy or mirror presents it, set --emissions.ca-file to "
                                   "a world-readable file with its CA"
                                 : "")
                 : 0;
}

static const char *explain_denial(const struct attempt *a, bool is_login)
{
    if (is_login)
        return ", user or password not accepted";
    if (a->provider->key == PROVIDER_KEY_NONE)
        return ", although it needs no key; is a proxy in between?";
    return a->provider->says_401_when_busy && a->reply.status == 401
               ? ", the key is not accepted, or too many use it at once"
               : ", the key is not accepted, or not for this zone";
}

/* Classifies a bad status, and sets how long it is likely to last. */
static int fail_status(struct attempt *a, bool is_login)
{
    const struct clock *clock = a->poll->options.clock;
    int status = a->reply.status, r = -EREMOTEIO;
    char message[MESSAGE_BYTES];
    const char *what = "";

    provider_error_message(body_of(a), message, sizeof(message));
    if (status == 401 || status == 403) {
        r = -EACCES;
        what = explain_denial(a, is_login);
        a->is_unauthorized = status == 401;
        a->is_permanent =
            !a->is_unauthorized || !a->provider->says_401_when_busy || a->poll->was_unauthorized;
    } else if (status == 400 || status == 404) {
        r = -ENXIO;
    } else if (status == 429) {
        r = -EBUSY;
        what = ", too many requests";
    } else if (status >= 300 && status < 400) {
        struct span location = span_of(a->headers.location);

        what = ", redirects are not followed";
        location.len = strcspn(location.data, "?#"); /* what follows may be a secret */
        provider_copy_printable(location, message, sizeof(message));
    }
    if (status == 429 || status == 503)
        a->wait_us = reply_headers_wait_us(&a->headers, clock->realtime_us(clock));
    return error_set(a->err, r, "%s: the service replies with status %d%s%s%s", a->provider->name,
                     status, what, message[0] ? ": " : "", message);
}

static int check_type(const struct attempt *a)
{
    const char *format = a->provider->parse ? "XML" : "JSON";

    if (reply_headers_allow(&a->headers, format))
        return 0;
    return error_set(a->err, -EBADMSG, "%s: the reply is not %s but %s; is a proxy in between?",
                     a->provider->name, format, a->headers.content_type);
}

/* Unless the token of the last login is still good. */
static int log_in(struct attempt *a)
{
    struct poll *poll = a->poll;
    uint64_t from_us = now_us(poll);
    struct error why = {""};
    struct buffer url;
    int r;

    if (from_us < poll->bearer_until_us)
        return 0;
    r = write_url(&poll->options, NULL, &url, a->err);
    if (r == 0)
        r = send_request(a, url.data, poll->credential.data, NULL);
    if (r == 0)
        r = a->reply.status == 200 ? check_type(a) : fail_status(a, true);
    if (r == 0) {
        r = a->provider->parse_token(body_of(a), poll->bearer + strlen(BEARER),
                                     PROVIDER_TOKEN_BYTES, &why);
        if (r < 0)
            error_format(a->err, "%s: %s", a->provider->name, why.text);
    }
    if (r == 0)
        poll->bearer_until_us = from_us + a->provider->token_s * USEC_PER_SEC;
    buffer_done(&url);
    buffer_wipe(&a->reply.body);
    return r;
}

/* The header that makes the request conditional; NULL: the last reply was for another URL. */
static const char *validator_of(const struct attempt *a)
{
    const struct poll *poll = a->poll;

    return poll->validator[0] && strcmp(a->url.data, poll->validated_url.data) == 0
               ? poll->validator
               : NULL;
}

static int send_query(struct attempt *a)
{
    struct poll *poll = a->poll;

    if (a->provider->key != PROVIDER_KEY_LOGIN)
        return send_request(a, a->url.data, poll->credential.data, validator_of(a));
    for (int tries = 1;; tries++) {
        int r = log_in(a);

        if (r == 0)
            r = send_request(a, a->url.data, poll->bearer, validator_of(a));
        if (r < 0 || a->reply.status != 401)
            return r;
        poll->bearer_until_us = 0;
        if (tries == TRIES)
            return 0;
    }
}

static void keep_factor(struct attempt *a, const struct emission_factor *factor)
{
    struct poll *poll = a->poll;
    const struct reply_headers *headers = &a->headers;
    struct buffer url = poll->validated_url;

    poll->factor = *factor;
    poll->validator[0] = '\0';
    if (headers->etag[0])
        snprintf(poll->validator, sizeof(poll->validator), IF_NONE_MATCH "%s", headers->etag);
    else if (headers->last_modified[0])
        snprintf(poll->validator, sizeof(poll->validator), IF_MODIFIED_SINCE "%s",
                 headers->last_modified);
    poll->validated_url = a->url;
    a->url = url;
}

static int read_reply(struct attempt *a, struct emission_factor *ret_factor)
{
    struct emission_factor factor;
    int r;

    if (a->reply.status == 304 && validator_of(a)) {
        *ret_factor = a->poll->factor;
        return 0;
    }
    if (a->reply.status == 304) {
        a->poll->validator[0] = '\0';
        return error_set(a->err, -EREMOTEIO,
                         "%s: the service replies 'not modified' to an unconditional request",
                         a->provider->name);
    }
    /* ENTSO-E reports "no data" with 200 or 400 and a document of its own. */
    if (a->reply.status == 400 && a->provider->parse &&
        provider_parse(a->provider, body_of(a), &a->query, &factor, a->err) == -ENODATA)
        return -ENODATA;
    if (a->reply.status != 200)
        return fail_status(a, false);
    r = check_type(a);
    if (r == 0)
        r = provider_parse(a->provider, body_of(a), &a->query, &factor, a->err);
    if (r < 0)
        return r;
    keep_factor(a, &factor);
    *ret_factor = factor;
    return 0;
}

/* A service, or a proxy, may repeat what it was sent. */
static void redact_secrets(const struct poll *poll, struct error *err)
{
    if (poll->options.key)
        credential_redact(err, poll->options.key);
    if (poll->options.provider->key != PROVIDER_KEY_LOGIN)
        return;
    credential_redact(err, strrchr(poll->credential.data, ' ') + 1);
    credential_redact(err, poll->bearer + strlen(BEARER));
}

int poll_fetch(struct poll *poll, struct emission_factor *ret_factor, struct error *err)
{
    const struct provider *provider = poll->options.provider;
    struct attempt a = {
        .poll = poll,
        .provider = provider,
        .query = make_query(&poll->options),
        .deadline_us = now_us(poll) + provider->timeout_s * USEC_PER_SEC,
        .err = err,
    };
    int r;

    http_reply_init(&a.reply);
    r = write_url(&poll->options, &a.query, &a.url, err);
    if (r == 0)
        r = send_query(&a);
    if (r == 0)
        r = read_reply(&a, ret_factor);
    poll->was_unauthorized = a.is_unauthorized;
    if (r == 0) {
        backoff_succeed(&poll->backoff, now_us(poll));
    } else {
        redact_secrets(poll, err);
        backoff_fail(&poll->backoff, now_us(poll), a.is_permanent, a.wait_us);
    }
    http_reply_done(&a.reply);
    buffer_wipe(&a.url);
    return r;
}

uint64_t poll_due_us(const struct poll *poll)
{
    return poll->backoff.due_us;
}

static int check_zone(const struct poll_options *options, struct error *err)
{
    struct provider_query query;
    struct buffer url;
    int r;

    if (!options->zone)
        return error_set(err, -EINVAL, "%s: it needs a zone, and none is given",
                         options->provider->name);
    query = make_query(options);
    r = write_url(options, &query, &url, err);
    buffer_wipe(&url);
    return r;
}

int poll_new(const struct poll_options *options, struct poll **ret_poll, struct error *err)
{
    uint64_t interval_us = options->interval_us > 0 ? options->interval_us
                                                    : options->provider->refresh_s * USEC_PER_SEC;
    struct poll *poll;
    int r = credential_check(options->provider, options->user, options->key, err);

    if (r == 0)
        r = check_zone(options, err);
    if (r < 0)
        return r;
    poll = calloc(1, sizeof(*poll));
    if (!poll)
        return fail_memory(options, err);
    poll->options = *options;
    memcpy(poll->bearer, BEARER, sizeof(BEARER));
    buffer_init(&poll->validated_url, URL_BYTES_MAX);
    buffer_init(&poll->credential, CREDENTIAL_BYTES_MAX);
    credential_write(options->provider, options->user, options->key, &poll->credential);
    if (buffer_failed(&poll->credential)) {
        poll_free(poll);
        return fail_memory(options, err);
    }
    backoff_init(&poll->backoff, interval_us, options->draw, options->context, options->is_restart,
                 now_us(poll));
    *ret_poll = poll;
    return 0;
}

void poll_free(struct poll *poll)
{
    if (!poll)
        return;
    buffer_wipe(&poll->credential);
    buffer_wipe(&poll->validated_url);
    explicit_bzero(poll, sizeof(*poll));
    free(poll);
}
