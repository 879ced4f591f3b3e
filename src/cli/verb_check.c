/*
 * `wattribute check`: what this node offers, what is missing, and how to enable it. Its exit status
 * is for scripts: 0, there is something to measure; 1, there is nothing; 2, `serve` would reject a
 * flag or a file.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "collector/tariff_clock.h"
#include "config/node_config.h"
#include "config/redfish_config.h"
#include "core/clock.h"
#include "core/macros.h"
#include "fetcher/redfish_finder.h"
#include "host/host.h"
#include "host/proc.h"
#include "model/report.h"
#include "process/descriptors.h"
#include "sources/source.h"

enum { TEXT_CAP_BYTES = 1 << 20 };

static const uint64_t LOGOUT_US = 2 * USEC_PER_SEC;

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

const char *check_find_remedy(const struct check_remedy *remedies, int error)
{
    while (remedies->error != 0 && remedies->error != error)
        remedies++;
    return remedies->text;
}

static const struct check_remedy redfish_remedies[] = {
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

static int send_request(void *context, const struct http_request *request,
                        struct http_reply *ret_reply, struct error *err)
{
    return http_client_do(context, request, ret_reply, err);
}

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
        options.send = send_request;
        options.context = client;
        redfish_session_init(&session, &options);
        r = redfish_find(&session, ret_place, ret_power_mw, err);
        redfish_session_close(&session, LOGOUT_US);
        redfish_session_done(&session);
    }
    http_client_free(client);
    http_trust_free(trust);
    return r;
}

/* Logs in, queries once and logs out. */
static void check_redfish(struct report *report, const struct options *options)
{
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
        report_add(report, "redfish", VERDICT_MISSING, check_find_remedy(redfish_remedies, r), "%s",
                   err.text);
    redfish_config_done(&config);
}

/* Sets the time zone of the process to the tariff's. */
static void check_tariff(struct report *report, const char *path)
{
    struct tariff_clock *tariff = NULL;
    struct error err = {""};
    char price[TARIFF_CLOCK_TEXT_BYTES];

    if (!path)
        return;
    if (tariff_clock_open(path, clock_system.realtime_us(&clock_system), &tariff, &err) < 0) {
        report->is_refused = true;
        report_add(report, "tariff", VERDICT_MISSING,
                   "correct the file of --cost.tariff-file: the exporter does not start with it",
                   "%s", err.text);
        return;
    }
    tariff_clock_describe(tariff, price);
    report_add(report, "tariff", VERDICT_OK, NULL, "%s", price);
    tariff_clock_close(tariff);
}

static void check_sources(struct report *report, const struct host *host,
                          const struct options *options)
{
    struct source_switches switches;
    struct source_estimate model;
    const struct source_context context = {
        .host = host,
        .clock = &clock_system,
        .interval_us = options->sample_interval_us,
        .nvml_library = "libnvidia-ml.so.1",
        .model = &model,
        .switches = &switches,
    };

    source_switches_read(options, &switches);
    source_switches_read_model(options, &model);
    for (size_t i = 0; source_table[i]; i++) {
        const struct source_ops *source = source_table[i];

        if (source_is_off(&switches, source->name))
            report_add(report, source->name, VERDICT_LIMITED,
                       "to read it, remove --collector.NAME=false and --no-collector.NAME",
                       "switched off by --collector.%s", source->name);
        else if (source == &redfish_source) /* sources do not use the network */
            check_redfish(report, options);
        else if (source->check)
            source->check(&context, report);
    }
}

int verb_check(const struct cli *cli)
{
    const struct options *options = &cli->options;
    _cleanup_free_ struct report *report = calloc(1, sizeof(*report));
    struct host host = {-1, -1, -1, NULL};
    struct error err = {"out of memory"};
    struct buffer text;
    int status;

    if (!report || descriptors_prepare(&err) < 0 ||
        host_open(options->procfs_path, options->sysfs_path, options->rootfs_path, &host, &err) <
            0) {
        cli_print_error(&err);
        return EXIT_USAGE;
    }
    check_sources(report, &host, options);
    check_emissions(report, options);
    check_tariff(report, options->cost_tariff_path);
    check_processes(report, &host);
    check_identity(report, &host, options);
    buffer_init(&text, TEXT_CAP_BYTES);
    if (options->json)
        report_print_json(report, &text);
    else
        report_print_text(report, &text);
    status = cli_print(&text);
    if (status == EXIT_OK && report->is_refused)
        status = EXIT_USAGE;
    else if (status == EXIT_OK && !report_can_measure(report))
        status = EXIT_FAILED;
    buffer_done(&text);
    host_close(&host);
    return status;
}
