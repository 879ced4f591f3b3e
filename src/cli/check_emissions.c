#include "cli/check_emissions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "collector/emissions.h"
#include "core/clock.h"
#include "core/macros.h"
#include "fetcher/fetcher.h"

#define LOOK_AT_THE_CLOCK "look at the clock, and at the mirror of --emissions.url if it is given"

static const char *remedy_for(int error)
{
    switch (error) {
    case -ENOKEY:
        return "give its key, see docs/emissions.md";
    case -EILSEQ:
        return "correct the key: no line break at its end";
    case -EINVAL:
        return "correct what it names";
    case -EACCES:
        return "look at the key, whether its plan has this zone, and at firewalls";
    case -EKEYREJECTED:
        return "give who signed its certificate with --emissions.ca-file; a proxy may have put in "
               "its own";
    case -ENXIO:
        return "look at the zone, and at --emissions.url if it is given";
    case -ESTALE:
        return LOOK_AT_THE_CLOCK;
    case -ENODATA:
        return "none: it has no value now, and may have one later";
    case -EBADMSG:
    case -ERANGE:
    case -EREMOTEIO:
        return "none here, if it is not a proxy's answer: it is asked again later";
    case -EBUSY:
        return "wait: it was asked too often";
    default:
        return "look whether this node reaches it, or needs https_proxy in its environment";
    }
}

static int ask(const struct emissions_job *job, size_t index, struct http_client *client,
               struct emission_factor *ret_factor, struct error *err)
{
    struct poll *poll = NULL;
    int r = emission_poll_open(job, index, /* is_again= */ false, client, &poll, err);

    if (r == 0)
        r = poll_ask(poll, ret_factor, err);
    poll_free(poll);
    return r;
}

/* What serve would show as stale, or warn about, should be seen here first. */
static void put_answer(struct report *report, const char *what, const struct choice_line *line,
                       struct choice_now now)
{
    uint64_t mg = line->factor.ug_per_kwh / 1000;
    bool is_stale = choice_is_stale(line, now), is_unusual = mg > FACTOR_UNUSUAL_MG;

    report_add(report, what, is_stale || is_unusual ? VERDICT_LIMITED : VERDICT_OK,
               is_unusual ? "look whether the zone is right"
               : is_stale ? LOOK_AT_THE_CLOCK
                          : NULL,
               "it says %" PRIu64 ".%03" PRIu64 " g/kWh%s%s%s", mg / 1000, mg % 1000,
               line->is_estimated ? ", which it may correct" : "",
               is_stale ? ", which is older than usual" : "",
               is_unusual ? ", which is higher than almost any grid's" : "");
}

static void ask_all(struct report *report, struct emissions *emissions,
                    const struct emissions_job *job, struct http_client *client)
{
    for (size_t i = 0; i < job->count; i++) {
        struct choice_line *line =
            &emissions->config.choice.lines[emissions->config.inquiries[i].line];
        struct emission_factor factor = {0};
        struct choice_now now;
        struct error err = {""};
        char what[64];
        int r = ask(job, i, client, &factor, &err);

        snprintf(what, sizeof(what), "emissions: %s", job->polls[i].provider);
        if (r < 0) {
            report_add(report, what, VERDICT_MISSING, remedy_for(r), "%s", err.text);
            continue;
        }
        now = (struct choice_now){clock_system.realtime_us(&clock_system),
                                  clock_system.monotonic_us(&clock_system)};
        (void)choice_take(line, &factor, now.monotonic_us); /* the first is always taken */
        put_answer(report, what, line, now);
    }
}

static void check_providers(struct report *report, struct emissions *emissions,
                            const struct emissions_job *job)
{
    struct http_client *client = NULL;
    int r = http_client_new(&client);

    if (r == 0)
        ask_all(report, emissions, job, client);
    else
        report_add(report, "emissions", VERDICT_MISSING, "free some memory", "%s", strerror(-r));
    http_client_free(client);
}

static void put_in_force(struct report *report, const struct emissions *emissions)
{
    const struct price_factor *factor = &emissions->in_force;
    const char *primary = emissions->config.choice.lines[0].factor.provider;
    bool is_primary = strcmp(factor->provider, primary) == 0;

    report_add(report, "emissions", is_primary ? VERDICT_OK : VERDICT_LIMITED,
               is_primary ? NULL : "do what is said above of who is preferred, or prefer another",
               "in force: %" PRIu64 ".%03" PRIu64 " g/kWh, %s%s%s, signal %s, basis %s%s%s",
               factor->ug_per_kwh / 1000000, factor->ug_per_kwh / 1000 % 1000, factor->provider,
               factor->zone[0] ? ", zone " : "", factor->zone, price_signal_words[factor->signal],
               price_basis_words[factor->basis], is_primary ? "" : ", in place of ",
               is_primary ? "" : primary);
}

/* The last resort, which nobody wanted. */
static bool is_world_by_default(const struct options *options, const struct emissions *emissions)
{
    return strcmp(emissions->config.choice.lines[0].factor.provider, "global") == 0 &&
           options->emissions_providers.count == 0 && !options->emissions_primary;
}

static void check_factors(struct report *report, const struct options *options,
                          struct emissions *emissions, const struct emissions_job *job)
{
    if (job->count > 0)
        check_providers(report, emissions, job);
    (void)emissions_refresh(emissions);
    if (is_world_by_default(options, emissions))
        report_add(report, "emissions", VERDICT_LIMITED,
                   "set --emissions.zone, --emissions.factor or --emissions.providers",
                   "the world average, 473.007 g/kWh: no zone is configured");
    else
        put_in_force(report, emissions);
}

static void refuse(struct report *report, const char *remedy, const struct error *err)
{
    report->is_refused = true;
    report_add(report, "emissions", VERDICT_MISSING, remedy, "%s", err->text);
}

void check_emissions(struct report *report, const struct options *options)
{
    struct emissions emissions;
    struct emissions_job job = {0};
    struct error err = {""};

    if (!options->emissions_enabled) {
        report_add(report, "emissions", VERDICT_LIMITED, "leave out --emissions-enabled=false",
                   "switched off");
        return;
    }
    if (emissions_init(&emissions, options, &clock_system, &err) < 0)
        refuse(report, "correct the flag", &err);
    else if (emissions.config.inquiry_count > 0 && emissions_make_job(&emissions, &job, &err) < 0)
        refuse(report,
               strncmp(err.text, "--emissions.ca-file", 19) == 0
                   ? "correct the file of --emissions.ca-file"
                   : "correct the file of --emissions.keys-file",
               &err);
    else
        check_factors(report, options, &emissions, &job);
    explicit_bzero(&job, sizeof(job));
}
