/*
 * `wattribute check`: what this node offers, what is missing, and how to enable it. Its exit status
 * is for scripts: 0, there is something to measure; 1, there is nothing; 2, `serve` would reject a
 * flag or a file.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "collector/emissions.h"
#include "collector/tariff_clock.h"
#include "config/node_config.h"
#include "config/redfish_config.h"
#include "core/clock.h"
#include "core/macros.h"
#include "fetcher/fetcher.h"
#include "fetcher/redfish.h"
#include "host/host.h"
#include "host/proc.h"
#include "model/report.h"
#include "process/descriptors.h"
#include "sources/check.h"
#include "sources/gpu_counters.h"
#include "sources/source.h"

enum { TEXT_CAP_BYTES = 1 << 20 };

/* In a PID namespace of our own, the driver hides all processes outside it. */
static void check_processes(struct report *report, const struct host *host)
{
    struct proc_reader proc;
    struct sample_process init;
    struct arena arena;
    int r;

    arena_init(&arena, 1 << 20);
    proc_reader_init(&proc, host);
    r = proc_identify(&proc, 1, &arena, &init);
    if (r < 0)
        report_add(report, "processes", VERDICT_MISSING,
                   "mount the host's /proc and set --path.procfs", "procfs does not show pid 1: %s",
                   strerror(-r));
    else if (getpid() == 1)
        report_add(report, "processes", VERDICT_LIMITED,
                   "run in the host's PID namespace (docker: --pid=host, Kubernetes: hostPID)",
                   "pid 1 is this program: the driver hides all processes outside its namespace");
    else
        report_add(
            report, "processes", VERDICT_OK, NULL,
            "pid 1 is %.80s; if that is not the node's init, run in the host's PID namespace",
            init.name);
    if (geteuid() != 0)
        report_add(report, "privileges", VERDICT_LIMITED, "run as root, or with CAP_SYS_PTRACE",
                   "not root: executables of other users cannot be read, only their command names");
    arena_done(&arena);
}

/* What to do about an error; the last row is {0, the default}. */
struct remedy {
    int error;
    const char *text;
};

static const char *find_remedy(const struct remedy *remedies, int error)
{
    while (remedies->error != 0 && remedies->error != error)
        remedies++;
    return remedies->text;
}

static const struct remedy redfish_remedies[] = {
    {-EKEYREJECTED, "set --redfish.ca-file to the BMC's certificate or its CA, or "
                    "--redfish.certificate-sha256 to the certificate's fingerprint"},
    {-EACCES, "correct the user and password in --redfish.credentials-file; a read-only account of "
              "the BMC is enough"},
    {-EPERM, "grant the account the BMC's privilege Login"},
    {-ENODATA, "none if the BMC does not measure power; otherwise try newer firmware"},
    {-EINVAL, "correct the flag"},
    {-EBUSY, "try again: the BMC is starting, or has no session left"},
    {0, "check that this node reaches the BMC's address and port"},
};

static int redfish_query(const struct redfish_config *config, struct redfish_place *ret_place,
                         uint64_t *ret_power_mw, struct error *err)
{
    const struct http_trust_options trust_options = redfish_config_trust(config);
    struct redfish_session_options options = {
        .url = config->url, .user = config->user, .password = config->password};
    struct http_trust *trust = NULL;
    struct http_client *client = NULL;
    struct redfish_session session;
    char resolve[LOOKUP_TEXT_BYTES];
    int r = lookup_host("the BMC", config->host, config->port, resolve, err);

    if (r == 0)
        r = http_trust_new(&trust_options, &trust, err);
    if (r == 0 && http_client_new(&client) < 0)
        r = error_set(err, -ENOMEM, "out of memory");
    if (r == 0) {
        options.resolve = resolve[0] ? resolve : NULL;
        options.trust = trust;
        options.client = client;
        redfish_session_init(&session, &options);
        r = redfish_find(&session, ret_place, ret_power_mw, err);
        redfish_session_close(&session);
        redfish_session_done(&session);
    }
    http_client_free(client);
    http_trust_free(trust);
    return r;
}

/* Logs in, queries once and logs out. */
static void check_redfish(struct report *report, const void *argument)
{
    const struct options *options = argument;
    struct redfish_config config = {0};
    struct redfish_place place;
    struct error err = {""};
    uint64_t power_mw;
    int r;

    if (!options->redfish_url) {
        report_add(report, "redfish", VERDICT_MISSING,
                   "not needed if IPMI works; otherwise set --redfish.url and "
                   "--redfish.credentials-file",
                   "no BMC is configured");
        return;
    }
    r = redfish_config_load(options, &config, &err);
    report->is_refused |= r < 0;
    if (r == 0)
        r = redfish_query(&config, &place, &power_mw, &err);
    report->meters += r == 0;
    if (r == 0)
        report_add(report, "redfish", config.is_insecure ? VERDICT_LIMITED : VERDICT_OK,
                   config.is_insecure ? "remove --redfish.insecure: anyone could answer" : NULL,
                   "the BMC measures the node's power: %" PRIu64 " W, %s, %.120s", power_mw / 1000,
                   redfish_kind_words[place.kind], place.paths[0].text);
    else
        report_add(report, "redfish", VERDICT_MISSING, find_remedy(redfish_remedies, r), "%s",
                   err.text);
    redfish_config_done(&config);
}

#define QUERIED_LATER   "none, unless a proxy answered: it is queried again later"
#define CHECK_THE_CLOCK "check the clock, and the mirror if --emissions.url is set"

static const struct remedy emission_remedies[] = {
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
static void report_answer(struct report *report, const char *what, const struct choice_entry *line,
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

static void check_provider(struct report *report, struct choice_entry *line,
                           const struct emissions_job *job, size_t index,
                           struct http_client *client)
{
    struct emission_factor factor = {0};
    struct poll *poll = NULL;
    struct choice_now now;
    struct error err = {""};
    char what[64];
    int r = emission_poll_open(job, index, /* is_restart= */ false, client, &poll, &err);

    if (r == 0)
        r = poll_fetch(poll, &factor, &err);
    poll_free(poll);
    snprintf(what, sizeof(what), "emissions: %s", job->polls[index].provider);
    if (r < 0) {
        report_add(report, what, VERDICT_MISSING, find_remedy(emission_remedies, r), "%s",
                   err.text);
        return;
    }
    now = (struct choice_now){clock_system.realtime_us(&clock_system),
                              clock_system.monotonic_us(&clock_system)};
    (void)choice_update(line, &factor, now.monotonic_us); /* the first is always taken */
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
    struct choice_entry *lines = emissions->config.choice.lines;
    struct http_client *client = NULL;
    int r = job->count > 0 ? http_client_new(&client) : 0;

    if (r < 0)
        report_add(report, "emissions", VERDICT_MISSING, "free some memory", "%s", strerror(-r));
    for (size_t i = 0; i < job->count && r == 0; i++)
        check_provider(report, &lines[emissions->config.polls[i].line], job, i, client);
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

static void check_emissions(struct report *report, const struct options *options)
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
    if (r == 0 && emissions.config.poll_count > 0) {
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

/* Sets the time zone of the process to the tariff's. */
static void check_tariff(struct report *report, const char *path)
{
    struct tariff_clock tariff;
    struct error err = {""};
    char price[TARIFF_CLOCK_TEXT_BYTES];

    if (!path)
        return;
    if (tariff_clock_open(&tariff, path, clock_system.realtime_us(&clock_system), &err) < 0) {
        report->is_refused = true;
        report_add(report, "tariff", VERDICT_MISSING,
                   "correct the file of --cost.tariff-file: the exporter does not start with it",
                   "%s", err.text);
        return;
    }
    tariff_clock_describe(&tariff, price);
    report_add(report, "tariff", VERDICT_OK, NULL, "%s", price);
}

/* What a source that hangs goes on to use. */
struct checked {
    struct source_switches switches;
    struct source_estimate model;
    struct gpu_counters counters;
    struct source_context context;
};

/* False: one hangs, so that the program may only end by _exit(). */
static bool check_sources(struct report *report, const struct host *host,
                          const struct options *options)
{
    _cleanup_free_ struct checked *of = calloc(1, sizeof(*of));
    bool is_idle;

    if (!of) {
        report_add(report, "sources", VERDICT_MISSING, "free some memory", "out of memory");
        return true;
    }
    node_config_switches(options, &of->switches);
    node_config_model(options, &of->model);
    gpu_counters_init(&of->counters);
    of->context = (struct source_context){
        .host = host,
        .clock = &clock_system,
        .interval_us = options->sample_interval_us,
        .nvml_library = "libnvidia-ml.so.1",
        .counters = &of->counters,
        .model = &of->model,
        .switches = &of->switches,
    };
    is_idle = sources_check(report, &of->context, check_redfish, options);
    if (!is_idle)
        (void)TAKE_PTR(of);
    return is_idle;
}

int verb_check(const struct cli *cli)
{
    const struct options *options = &cli->options;
    _cleanup_free_ struct report *report = calloc(1, sizeof(*report));
    struct host host = {.procfs_fd = -1, .sysfs_fd = -1, .rootfs_fd = -1};
    struct error err = {"out of memory"};
    struct buffer text;
    bool is_idle;
    int status;

    (void)cli_confine(cli, NULL); /* as `serve`, so that it sees no more */
    if (!report || descriptors_prepare(&err) < 0 ||
        host_open(options->procfs_path, options->sysfs_path, options->rootfs_path, &host, &err) <
            0) {
        cli_print_error(&err);
        return report ? EXIT_USAGE : EXIT_FAILED;
    }
    is_idle = check_sources(report, &host, options);
    is_idle &= check_shared(report, &host, options);
    check_emissions(report, options);
    check_tariff(report, options->cost_tariff_path);
    check_processes(report, &host);
    check_identity(report, &host, options);
    buffer_init(&text, TEXT_CAP_BYTES);
    if (options->json)
        report_print_json(report, &text);
    else
        report_print_text(report, cli_is_in_colour(), &text);
    status = cli_print(&text);
    if (status == EXIT_OK && report->is_refused)
        status = EXIT_USAGE;
    else if (status == EXIT_OK && !report_can_measure(report))
        status = EXIT_FAILED;
    if (!is_idle)
        _exit(status);
    buffer_done(&text);
    host_close(&host);
    return status;
}
