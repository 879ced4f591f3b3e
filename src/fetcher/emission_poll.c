#include "fetcher/emission_poll.h"

#include <errno.h>
#include <sys/random.h>

#include "core/clock.h"
#include "core/macros.h"

static const uint64_t CONNECT_US = 5 * USEC_PER_SEC;

static const char *or_null(const char *text)
{
    return text[0] ? text : NULL;
}

static uint64_t draw(void *context, uint64_t below)
{
    uint64_t random = 0;

    (void)context;
    (void)!getrandom(&random, sizeof(random), GRND_NONBLOCK);
    return below > 0 ? random % below : 0;
}

static int send_question(void *context, const struct http_request *request,
                         struct http_reply *ret_reply, struct error *err)
{
    struct http_request whole = *request;
    struct error why = {""};
    int r;

    whole.proxy_by_environment = true;
    whole.connect_timeout_us = CONNECT_US;
    r = http_client_do(context, &whole, ret_reply, &why);
    return r < 0 ? error_set(err, r, "%.400s%s", why.text,
                             r == -EKEYREJECTED
                                 ? "; if that is a proxy's or mirror's, give who signed "
                                   "it with --emissions.ca-file, a file that everybody "
                                   "may read"
                                 : "")
                 : 0;
}

int emission_poll_open(const struct emissions_job *job, size_t index, bool is_again,
                       struct http_client *client, struct poll **ret_poll, struct error *err)
{
    const char *name = job->polls[index].provider;
    struct poll_options options = {
        .provider = provider_find(span_of(name)),
        .zone = or_null(job->polls[index].zone),
        .basis = job->basis,
        .url = or_null(job->polls[index].url),
        .ca_path = or_null(job->ca_path),
        .interval_us = job->interval_us,
        .is_again = is_again,
        .clock = &clock_system,
        .draw = draw,
        .send = send_question,
        .context = client,
    };
    int r;

    if (!options.provider)
        return error_set(err, -EINVAL, "no such provider");
    r = emission_keys_find(&job->keys, name, &options.user, &options.key, err);
    return r < 0 ? r : poll_new(&options, ret_poll, err);
}
