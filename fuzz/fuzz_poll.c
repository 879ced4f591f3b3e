/*
 * Replies of a provider of emission factors, or of a proxy, in a row: any statuses, headers and
 * bodies yield a plausible factor, or an error with a text that contains no key, and the next poll
 * is neither too soon nor never.
 *
 * The first byte chooses the provider. Answers follow, each ended by '\x1e': a line with the
 * status, or "-" where there is none and the body is the client's text; the headers by lines; an
 * empty line; the body.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../tests/unit/manual_clock.h"
#include "core/macros.h"
#include "core/parse.h"
#include "emissions/poll.h"

#define KEY   "k3y-S3CRET/+"
#define BASIC "amFuZTprM3ktUzNDUkVULys=" /* jane:KEY */

enum { QUESTIONS_MAX = 16, SENDS_MAX = 4 }; /* of one: login, question, and both once more */

static const uint64_t NOW_US = 1768473600000000, HOUR_US = 3600 * USEC_PER_SEC;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct service {
    struct clock_manual clock;
    struct span answers;
    unsigned sends;
    uint64_t drawn;
};

static void check(bool holds)
{
    if (!holds)
        abort();
}

static uint64_t draw(void *context, uint64_t below)
{
    struct service *service = context;

    check(below > 0);
    service->drawn = service->drawn * 6364136223846793005 + 1442695040888963407;
    return (service->drawn >> 16) % below;
}

/* curl hands over texts, and none with a line break. */
static void pass_header(const struct http_request *request, struct span line)
{
    char text[1024];
    char *colon;

    if (line.len >= sizeof(text) || memchr(line.data, '\0', line.len))
        return;
    memcpy(text, line.data, line.len);
    text[line.len] = '\0';
    colon = strstr(text, ": ");
    if (!colon)
        return;
    *colon = '\0';
    request->on_header(request->context, text, colon + 2);
}

static void check_request(const struct http_request *request)
{
    check(strncmp(request->url, "https://", 8) == 0 && !strpbrk(request->url, "\r\n "));
    check(request->timeout_us > 0 && request->timeout_us <= 30 * USEC_PER_SEC);
    check(request->max_bytes > 0 && request->max_bytes <= 4 << 20);
    for (size_t i = 0; request->headers[i]; i++)
        check(strchr(request->headers[i], ':') && !strpbrk(request->headers[i], "\r\n"));
}

/* In place of the client. */
int http_client_do(struct http_client *client, const struct http_request *request,
                   struct http_reply *ret_reply, struct error *err)
{
    struct service *service = (struct service *)client;
    struct span body = span_cut(&service->answers, '\x1e'), line, first = span_cut(&body, '\n');
    uint64_t status = 0;

    check_request(request);
    service->sends++;
    service->clock.now_us += USEC_PER_SEC;
    ret_reply->status = 0;
    ret_reply->body.len = 0;
    ret_reply->body.cap_bytes = request->max_bytes;
    if (span_equals(first, "-"))
        return error_set(err, -ETIMEDOUT, "request to it failed: %.*s",
                         (int)MIN(body.len, (size_t)900), body.data);
    while ((line = span_cut(&body, '\n')).len > 0)
        pass_header(request, line);
    if (parse_u64_max(first, 999, &status) < 0 || status < 200)
        status = 200;
    ret_reply->status = (int)status;
    buffer_bytes(&ret_reply->body, body.data, body.len);
    check(!buffer_failed(&ret_reply->body));
    return 0;
}

static bool is_known_error(int r)
{
    switch (r) {
    case -EACCES:
    case -EBADMSG:
    case -EBUSY:
    case -ENODATA:
    case -ENXIO:
    case -ERANGE:
    case -EREMOTEIO:
    case -ESTALE:
    case -ETIMEDOUT:
        return true;
    default:
        return false;
    }
}

static void check_failure(const struct provider *provider, int r, const struct error *err)
{
    check(is_known_error(r));
    check(err->text[0] && !strstr(err->text, KEY));
    if (provider->key == PROVIDER_KEY_LOGIN) /* its token may be a letter, which the text has too */
        check(!strstr(err->text, BASIC));
    else
        check(strncmp(err->text, provider->name, strlen(provider->name)) == 0);
}

static void ask(struct service *service, const struct poll_options *options, struct poll *poll)
{
    uint64_t interval_us = options->provider->refresh_s * USEC_PER_SEC, pause_us;
    struct emission_factor factor;
    struct error err = {""};
    int r;

    service->clock.now_us = poll_due_us(poll);
    service->sends = 0;
    r = poll_fetch(poll, &factor, &err);
    check(service->sends > 0 && service->sends <= SENDS_MAX);
    pause_us = poll_due_us(poll) - service->clock.now_us;
    if (r == 0) {
        check(factor.mg_per_kwh <= FACTOR_MAX_MG && price_basis_words[factor.basis]);
        check(pause_us >= interval_us * 9 / 10 && pause_us <= interval_us * 11 / 10);
    } else {
        check_failure(options->provider, r, &err);
        check(pause_us >= 30 * USEC_PER_SEC && pause_us <= 6 * HOUR_US);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct {
        const struct provider *provider;
        const char *zone;
    } questions[] = {
        {&rte_provider, "FR"},
        {&electricity_maps_provider, "FR"},
        {&watttime_provider, "CAISO_NORTH"},
        {&uk_carbon_intensity_provider, "GB"},
        {&entsoe_provider, "FR"},
    };
    struct service service = {.drawn = size};
    struct poll_options options = {.user = "jane",
                                   .key = KEY,
                                   .clock = &service.clock.clock,
                                   .draw = draw,
                                   .context = &service,
                                   .client = (struct http_client *)&service};
    struct poll *poll;

    if (size == 0)
        return 0;
    clock_manual_init(&service.clock, NOW_US);
    options.provider = questions[data[0] % ARRAY_SIZE(questions)].provider;
    options.zone = questions[data[0] % ARRAY_SIZE(questions)].zone;
    service.answers = (struct span){(const char *)data + 1, size - 1};
    check(poll_new(&options, &poll, NULL) == 0);
    for (int i = 0; i < QUESTIONS_MAX && service.answers.len > 0; i++)
        ask(&service, &options, poll);
    poll_free(poll);
    return 0;
}
