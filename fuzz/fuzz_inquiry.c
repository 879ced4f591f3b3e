/*
 * What a service of emission factors, or who stands before it, may answer, again and again: any
 * statuses, headers and bodies are a figure that a grid can have or an error that says why, without
 * a key in it, and the next question is neither too soon nor never.
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
static void tell_header(const struct http_request *request, struct span line)
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

static int send_answer(void *context, const struct http_request *request,
                       struct http_reply *ret_reply, struct error *err)
{
    struct service *service = context;
    struct span body = span_cut(&service->answers, '\x1e'), line, first = span_cut(&body, '\n');
    uint64_t status = 0;

    check_request(request);
    service->sends++;
    service->clock.now_us += USEC_PER_SEC;
    ret_reply->status = 0;
    ret_reply->body.len = 0;
    ret_reply->body.cap_bytes = request->max_bytes;
    if (span_equals(first, "-"))
        return error_set(err, -ETIMEDOUT, "cannot ask it: %.*s", (int)MIN(body.len, (size_t)900),
                         body.data);
    while ((line = span_cut(&body, '\n')).len > 0)
        tell_header(request, line);
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

static void check_factor(const struct poll_options *options, const struct emission_factor *factor)
{
    check(factor_is_plausible(factor));
    check(factor->provider == options->provider->name);
    check(strcmp(factor->zone, options->zone) == 0);
    check(price_signal_words[factor->signal] && price_basis_words[factor->basis]);
}

static void ask(struct service *service, const struct poll_options *options, struct poll *inquiry)
{
    uint64_t interval_us = options->provider->refresh_s * USEC_PER_SEC, pause_us;
    struct emission_factor factor;
    struct error err = {""};
    int r;

    service->clock.now_us = poll_due_us(inquiry);
    service->sends = 0;
    r = poll_ask(inquiry, &factor, &err);
    check(service->sends > 0 && service->sends <= SENDS_MAX);
    pause_us = poll_due_us(inquiry) - service->clock.now_us;
    if (r == 0) {
        check_factor(options, &factor);
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
                                   .send = send_answer,
                                   .context = &service};
    struct poll *inquiry;

    if (size == 0)
        return 0;
    clock_manual_init(&service.clock, NOW_US);
    options.provider = questions[data[0] % ARRAY_SIZE(questions)].provider;
    options.zone = questions[data[0] % ARRAY_SIZE(questions)].zone;
    service.answers = (struct span){(const char *)data + 1, size - 1};
    check(poll_new(&options, &inquiry, NULL) == 0);
    for (int i = 0; i < QUESTIONS_MAX && service.answers.len > 0; i++)
        ask(&service, &options, inquiry);
    poll_free(inquiry);
    return 0;
}
