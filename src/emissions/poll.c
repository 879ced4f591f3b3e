#include "emissions/poll.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "emissions/backoff.h"
#include "emissions/credential.h"
#include "emissions/providers/reply.h"
#include "emissions/providers/reply_headers.h"

enum {
    URL_BYTES_MAX = 8192,
    WHY_BYTES = 160,
    TRIES = 2, /* with a token: it may have ended just now, but not again at once */
};

static const uint64_t CONNECT_US = 5 * USEC_PER_SEC;

#define BEARER            "Authorization: Bearer "
#define IF_NONE_MATCH     "If-None-Match: "
#define IF_MODIFIED_SINCE "If-Modified-Since: "

struct poll {
    struct poll_options options;
    struct backoff pace;
    bool was_unauthorized;

    struct buffer credential; /* the header that has the key in it; empty: none has */
    char bearer[sizeof(BEARER) + PROVIDER_TOKEN_BYTES];
    uint64_t bearer_until_us; /* 0: there is none */

    /* What it said last, and the header that asks whether that has changed ("": there is none). It
     * is worth nothing with another URL. */
    struct emission_factor factor;
    char validator[sizeof(IF_MODIFIED_SINCE) + REPLY_VALIDATOR_BYTES];
    struct buffer validated_url;
};

/* One question, with the login before it. */
struct asking {
    struct poll *inquiry;
    struct provider_question question;
    uint64_t deadline_us;
    struct buffer url;

    struct http_reply reply; /* the last one */
    struct reply_headers headers;

    /* of a status that is not good */
    bool is_unauthorized, lasts;
    uint64_t wait_us;
    struct error *err;
};

static uint64_t now_us(const struct poll *inquiry)
{
    return inquiry->options.clock->monotonic_us(inquiry->options.clock);
}

static const struct provider *provider_of(const struct asking *a)
{
    return a->inquiry->options.provider;
}

static struct span body_of(const struct asking *a)
{
    return (struct span){a->reply.body.data, a->reply.body.len};
}

static int fail_memory(const struct poll_options *options, struct error *err)
{
    return error_set(err, -ENOMEM, "%s: out of memory", options->provider->name);
}

static struct provider_question question_of(const struct poll_options *options)
{
    return (struct provider_question){
        .zone = options->zone,
        .basis = options->basis,
        .now_us = options->clock->realtime_us(options->clock),
        .token = options->provider->key == PROVIDER_KEY_IN_PATH ? options->key : NULL,
    };
}

static void write_host(const struct poll_options *options, struct buffer *url)
{
    if (options->url) {
        buffer_str(url, options->url);
        return;
    }
    buffer_str(url, "https://");
    buffer_str(url, options->provider->host);
}

/* Ended by NUL. */
static int write_url(const struct poll_options *options, const struct provider_question *question,
                     struct buffer *url, struct error *err)
{
    int r;

    write_host(options, url);
    r = options->provider->write_path(question, url, err);
    buffer_char(url, '\0');
    return r == 0 && buffer_failed(url) ? fail_memory(options, err) : r;
}

static int send_once(struct asking *a, const char *url, const char *authorization,
                     const char *validator)
{
    const struct poll_options *options = &a->inquiry->options;
    const struct provider *provider = options->provider;
    const char *headers[4] = {provider->parse ? "Accept: application/xml, text/xml"
                                              : "Accept: application/json"};
    size_t count = 1;
    uint64_t now = now_us(a->inquiry);
    struct http_request request = {
        .url = url,
        .headers = headers,
        .ca_path = options->ca_path,
        .proxy_by_environment = true,
        .connect_timeout_us = CONNECT_US,
        .timeout_us = a->deadline_us - MIN(now, a->deadline_us),
        .max_bytes = provider->body_bytes_max,
        .on_header = reply_headers_take,
        .context = &a->headers,
    };
    struct error why = {""};
    int r;

    if (request.timeout_us == 0)
        return error_set(a->err, -ETIMEDOUT, "%s: no complete answer within %u s", provider->name,
                         provider->timeout_s);
    if (authorization)
        headers[count++] = authorization;
    if (validator)
        headers[count] = validator;
    a->headers = (struct reply_headers){0};
    r = http_client_do(options->client, &request, &a->reply, &why);
    return r < 0 ? error_set(a->err, r, "%s: %.700s%s", provider->name, why.text,
                             r == -EKEYREJECTED
                                 ? "; if that is a proxy's or mirror's, give who signed it with "
                                   "--emissions.ca-file, a file that everybody may read"
                                 : "")
                 : 0;
}

static const char *explain_refusal(const struct asking *a, bool is_login)
{
    const struct provider *provider = provider_of(a);

    if (is_login)
        return ", the user or the password is not accepted";
    if (provider->key == PROVIDER_KEY_NONE)
        return ", though it needs no key; is a proxy in between?";
    return provider->says_401_when_busy && a->reply.status == 401
               ? ", the key is not accepted, or too many ask with it at once"
               : ", the key is not accepted, or not for this zone";
}

/* A status that is not good: what it means, and for when. */
static int refuse(struct asking *a, bool is_login)
{
    const struct provider *provider = provider_of(a);
    const struct clock *clock = a->inquiry->options.clock;
    int status = a->reply.status, r = -EREMOTEIO;
    const char *what = "";
    char why[WHY_BYTES];

    reply_refusal(body_of(a), why, sizeof(why));
    if (status == 401 || status == 403) {
        r = -EACCES;
        what = explain_refusal(a, is_login);
        a->is_unauthorized = status == 401;
        a->lasts =
            !a->is_unauthorized || !provider->says_401_when_busy || a->inquiry->was_unauthorized;
    } else if (status == 400 || status == 404) {
        r = -ENXIO;
    } else if (status == 429) {
        r = -EBUSY;
        what = ", it is asked too often";
    } else if (status >= 300 && status < 400) {
        struct span location = span_of(a->headers.location);

        what = ", and redirects are not followed";
        location.len = strcspn(location.data, "?#"); /* what follows may be a secret */
        reply_copy_printable(location, why, sizeof(why));
    }
    if (status == 429 || status == 503)
        a->wait_us = reply_headers_wait_us(&a->headers, clock->realtime_us(clock));
    return error_set(a->err, r, "%s: the service answers with status %d%s%s%s", provider->name,
                     status, what, why[0] ? ": " : "", why);
}

static int check_type(const struct asking *a)
{
    const struct provider *provider = provider_of(a);
    const char *format = provider->parse ? "XML" : "JSON";

    if (reply_headers_allow(&a->headers, format))
        return 0;
    return error_set(a->err, -EBADMSG, "%s: the answer is not %s; is a proxy in between? It is %s",
                     provider->name, format, a->headers.content_type);
}

static int read_token(struct asking *a)
{
    char *token = a->inquiry->bearer + strlen(BEARER);
    int r;

    if (a->reply.status != 200)
        return refuse(a, true);
    r = check_type(a);
    if (r < 0)
        return r;
    return provider_of(a)->login->parse_token(body_of(a), token, PROVIDER_TOKEN_BYTES, a->err);
}

static int log_in(struct asking *a)
{
    struct poll *inquiry = a->inquiry;
    uint64_t from_us = now_us(inquiry);
    struct buffer url;
    int r;

    if (from_us < inquiry->bearer_until_us)
        return 0;
    buffer_init(&url, URL_BYTES_MAX);
    write_host(&inquiry->options, &url);
    buffer_str(&url, provider_of(a)->login->path);
    buffer_char(&url, '\0');
    r = buffer_failed(&url) ? fail_memory(&inquiry->options, a->err)
                            : send_once(a, url.data, inquiry->credential.data, NULL);
    buffer_done(&url);
    if (r == 0)
        r = read_token(a);
    if (r == 0)
        inquiry->bearer_until_us = from_us + provider_of(a)->login->token_s * USEC_PER_SEC;
    buffer_wipe(&a->reply.body);
    return r;
}

/* The header that asks whether what it said last has changed; NULL: it said nothing of this URL. */
static const char *validator_of(const struct asking *a)
{
    const struct poll *inquiry = a->inquiry;

    return inquiry->validator[0] && strcmp(a->url.data, inquiry->validated_url.data) == 0
               ? inquiry->validator
               : NULL;
}

static int send_with_token(struct asking *a)
{
    struct poll *inquiry = a->inquiry;

    for (int tries = 1;; tries++) {
        int r = log_in(a);

        if (r == 0)
            r = send_once(a, a->url.data, inquiry->bearer, validator_of(a));
        if (r < 0 || a->reply.status != 401)
            return r;
        inquiry->bearer_until_us = 0;
        if (tries == TRIES)
            return 0;
    }
}

static void remember(struct asking *a, const struct emission_factor *factor)
{
    struct poll *inquiry = a->inquiry;
    const struct reply_headers *headers = &a->headers;
    struct buffer url = inquiry->validated_url;

    inquiry->factor = *factor;
    inquiry->validator[0] = '\0';
    if (headers->etag[0])
        snprintf(inquiry->validator, sizeof(inquiry->validator), IF_NONE_MATCH "%s", headers->etag);
    else if (headers->last_modified[0])
        snprintf(inquiry->validator, sizeof(inquiry->validator), IF_MODIFIED_SINCE "%s",
                 headers->last_modified);
    inquiry->validated_url = a->url;
    a->url = url;
}

static int read_unchanged(struct asking *a, struct emission_factor *ret_factor)
{
    if (validator_of(a)) {
        *ret_factor = a->inquiry->factor;
        return 0;
    }
    a->inquiry->validator[0] = '\0';
    return error_set(a->err, -EREMOTEIO,
                     "%s: the service says that nothing has changed, but was not asked that",
                     provider_of(a)->name);
}

static int read_answer(struct asking *a, struct emission_factor *ret_factor)
{
    const struct provider *provider = provider_of(a);
    struct emission_factor factor;
    int r;

    if (a->reply.status == 304)
        return read_unchanged(a, ret_factor);
    /* ENTSO-E says with 200 or 400, and a document of its own, that it has nothing. */
    if (a->reply.status == 400 && provider->parse &&
        provider_parse(provider, body_of(a), &a->question, &factor, a->err) == -ENODATA)
        return -ENODATA;
    if (a->reply.status != 200)
        return refuse(a, false);
    r = check_type(a);
    if (r == 0)
        r = provider_parse(provider, body_of(a), &a->question, &factor, a->err);
    if (r < 0)
        return r;
    remember(a, &factor);
    *ret_factor = factor;
    return 0;
}

static int ask(struct asking *a, struct emission_factor *ret_factor)
{
    const struct poll *inquiry = a->inquiry;
    int r = write_url(&inquiry->options, &a->question, &a->url, a->err);

    if (r == 0)
        r = provider_of(a)->key == PROVIDER_KEY_LOGIN
                ? send_with_token(a)
                : send_once(a, a->url.data, inquiry->credential.data, validator_of(a));
    return r < 0 ? r : read_answer(a, ret_factor);
}

/* A service, or who stands before it, may repeat what it was sent. */
static void hide_secrets(const struct poll *inquiry, struct error *err)
{
    if (inquiry->options.key)
        redact_secret(err, inquiry->options.key);
    if (inquiry->options.provider->key != PROVIDER_KEY_LOGIN)
        return;
    redact_secret(err, strrchr(inquiry->credential.data, ' ') + 1);
    redact_secret(err, inquiry->bearer + strlen(BEARER));
}

int poll_ask(struct poll *inquiry, struct emission_factor *ret_factor, struct error *err)
{
    struct asking a = {
        .inquiry = inquiry,
        .question = question_of(&inquiry->options),
        .deadline_us = now_us(inquiry) + inquiry->options.provider->timeout_s * USEC_PER_SEC,
        .err = err,
    };
    int r;

    buffer_init(&a.url, URL_BYTES_MAX);
    http_reply_init(&a.reply);
    r = ask(&a, ret_factor);
    inquiry->was_unauthorized = a.is_unauthorized;
    if (r == 0) {
        backoff_succeed(&inquiry->pace, now_us(inquiry));
    } else {
        hide_secrets(inquiry, err);
        backoff_fail(&inquiry->pace, now_us(inquiry), a.lasts, a.wait_us);
    }
    http_reply_done(&a.reply);
    buffer_wipe(&a.url);
    return r;
}

uint64_t poll_due_us(const struct poll *inquiry)
{
    return inquiry->pace.due_us;
}

static int check_zone(const struct poll_options *options, struct error *err)
{
    struct provider_question question;
    struct buffer url;
    int r;

    if (!options->zone)
        return error_set(err, -EINVAL, "%s: it answers for a zone only, and none is given",
                         options->provider->name);
    question = question_of(options);
    buffer_init(&url, URL_BYTES_MAX);
    r = write_url(options, &question, &url, err);
    buffer_wipe(&url);
    return r;
}

int poll_new(const struct poll_options *options, struct poll **ret_inquiry, struct error *err)
{
    uint64_t interval_us = options->interval_us;
    struct poll *inquiry;
    int r = credential_check(options->provider, options->user, options->key, err);

    if (r == 0)
        r = check_zone(options, err);
    if (r < 0)
        return r;
    inquiry = calloc(1, sizeof(*inquiry));
    if (!inquiry)
        return fail_memory(options, err);
    inquiry->options = *options;
    memcpy(inquiry->bearer, BEARER, sizeof(BEARER));
    buffer_init(&inquiry->validated_url, URL_BYTES_MAX);
    buffer_init(&inquiry->credential, CREDENTIAL_BYTES_MAX);
    credential_write(options->provider, options->user, options->key, &inquiry->credential);
    if (buffer_failed(&inquiry->credential)) {
        poll_free(inquiry);
        return fail_memory(options, err);
    }
    if (interval_us == 0)
        interval_us = options->provider->refresh_s * USEC_PER_SEC;
    backoff_init(&inquiry->pace, interval_us, options->draw, options->context, options->is_again,
                 now_us(inquiry));
    *ret_inquiry = inquiry;
    return 0;
}

void poll_free(struct poll *inquiry)
{
    if (!inquiry)
        return;
    buffer_wipe(&inquiry->credential);
    buffer_wipe(&inquiry->validated_url);
    explicit_bzero(inquiry, sizeof(*inquiry));
    free(inquiry);
}
