#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "collector/emissions.h"
#include "core/clock.h"
#include "core/macros.h"
#include "fetcher/emission_poll.h"
#include "model/report.h"

#define QUERIED_LATER   "none, unless a proxy answered: it is queried again later"
#define CHECK_THE_CLOCK "check the clock, and the mirror if --emissions.url is set"

static const struct check_remedy remedies[] = {
    {-ENOKEY, "set its key, see docs/emissions.md"},
    {-EILSEQ, "correct the key: no line break at its end"},
    {-EINVAL, "correct the value"},
    {-EACCES, "check the key, whether its plan includes this zone, and firewalls"},
    {-EKEYREJECTED, "set --emissions.ca-file to the CA of its certificate; a proxy may present its "
                    "own"},
    {-ENXIO, "check the zone, and --emissions.url if it is set"},
    {-ESTALE, CHECK_THE_CLOCK},
    {-ENODATA, "none: it has no value now, and may have one later"},
    {-EBADMSG, QUERIED_LATER},
    {-ERANGE, QUERIED_LATER},
    {-EREMOTEIO, QUERIED_LATER},
    {-EBUSY, "wait: it was queried too often"},
    {0, "check that this node reaches it, or set https_proxy in its environment"},
};

/* What `serve` would show as stale, or warn about, is reported here first. */
static void report_answer(struct report *report, const char *what, const struct choice_line *line,
                          struct choice_now now)
{
    uint64_t mg = line->factor.ug_per_kwh / 1000;
    bool is_stale = choice_is_stale(line, now), is_unusual = mg > FACTOR_UNUSUAL_MG;

    report_add(report, what, is_stale || is_unusual ? VERDICT_LIMITED : VERDICT_OK,
               is_unusual ? "check the zone"
               : is_stale ? CHECK_THE_CLOCK
                          : NULL,
               "%" PRIu64 ".%03" PRIu64 " g/kWh%s%s%s", mg / 1000, mg % 1000,
               line->is_estimated ? ", preliminary" : "", is_stale ? ", older than usual" : "",
               is_unusual ? ", higher than almost any grid" : "");
}

static void check_provider(struct report *report, struct choice_line *line,
                           const struct emissions_job *job, size_t index,
                           struct http_client *client)
{
    struct emission_factor factor = {0};
    struct poll *poll = NULL;
    struct choice_now now;
    struct error err = {""};
    char what[64];
    int r = emission_poll_open(job, index, /* is_again= */ false, client, &poll, &err);

    if (r == 0)
        r = poll_ask(poll, &factor, &err);
    poll_free(poll);
    snprintf(what, sizeof(what), "emissions: %s", job->polls[index].provider);
    if (r < 0) {
        report_add(report, what, VERDICT_MISSING, check_find_remedy(remedies, r), "%s", err.text);
        return;
    }
    now = (struct choice_now){clock_system.realtime_us(&clock_system),
                              clock_system.monotonic_us(&clock_system)};
    (void)choice_take(line, &factor, now.monotonic_us); /* the first is always taken */
    report_answer(report, what, line, now);
}

static void report_in_force(struct report *report, const struct emissions *emissions)
{
    const struct price_factor *factor = &emissions->in_force;
    const char *primary = emissions->config.choice.lines[0].factor.provider;
    bool is_primary = strcmp(factor->provider, primary) == 0;

    report_add(report, "emissions", is_primary ? VERDICT_OK : VERDICT_LIMITED,
               is_primary ? NULL : "fix the preferred provider, see above, or prefer another",
               "in force: %" PRIu64 ".%03" PRIu64 " g/kWh, %s%s%s, signal %s, basis %s%s%s",
               factor->ug_per_kwh / 1000000, factor->ug_per_kwh / 1000 % 1000, factor->provider,
               factor->zone[0] ? ", zone " : "", factor->zone, price_signal_words[factor->signal],
               price_basis_words[factor->basis], is_primary ? "" : ", in place of ",
               is_primary ? "" : primary);
}

static void check_factors(struct report *report, const struct options *options,
                          struct emissions *emissions, const struct emissions_job *job)
{
    struct choice_line *lines = emissions->config.choice.lines;
    struct http_client *client = NULL;
    int r = job->count > 0 ? http_client_new(&client) : 0;

    if (r < 0)
        report_add(report, "emissions", VERDICT_MISSING, "free some memory", "%s", strerror(-r));
    for (size_t i = 0; i < job->count && r == 0; i++)
        check_provider(report, &lines[emissions->config.inquiries[i].line], job, i, client);
    http_client_free(client);
    (void)emissions_refresh(emissions);
    if (strcmp(lines[0].factor.provider, "global") == 0 &&
        options->emissions_providers.count == 0 && !options->emissions_primary)
        report_add(report, "emissions", VERDICT_LIMITED,
                   "set --emissions.zone, --emissions.factor or --emissions.providers",
                   "the world average, 473.007 g/kWh: no zone is configured");
    else
        report_in_force(report, emissions);
}

void check_emissions(struct report *report, const struct options *options)
{
    const char *remedy = "correct the flag";
    struct emissions emissions;
    struct emissions_job job = {0};
    struct error err = {""};
    int r;

    if (!options->emissions_enabled) {
        report_add(report, "emissions", VERDICT_LIMITED, "remove --emissions-enabled=false",
                   "switched off");
        return;
    }
    r = emissions_init(&emissions, options, &clock_system, &err);
    if (r == 0 && emissions_are_fetched(&emissions)) {
        r = emissions_make_job(&emissions, &job, &err);
        remedy = strncmp(err.text, "--emissions.ca-file", 19) == 0
                     ? "correct the file of --emissions.ca-file"
                     : "correct the file of --emissions.keys-file";
    }
    if (r < 0) {
        report->is_refused = true;
        report_add(report, "emissions", VERDICT_MISSING, remedy, "%s", err.text);
    } else {
        check_factors(report, options, &emissions, &job);
    }
    explicit_bzero(&job, sizeof(job));
}
