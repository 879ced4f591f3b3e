/*
 * `wattribute check`: what this node offers, what is missing, and how to enable it. Its exit status
 * is for scripts: 0, there is something to measure; 1, there is nothing; 2, `serve` refuses the
 * flags, or a file that they name.
 */
#include "cli/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/check_emissions.h"
#include "cli/check_identity.h"
#include "cli/check_redfish.h"
#include "cli/check_tariff.h"
#include "config/source_switches.h"
#include "core/macros.h"
#include "host/host.h"
#include "host/proc.h"
#include "model/report.h"
#include "process/descriptors.h"
#include "sources/estimate.h"
#include "sources/redfish.h"
#include "sources/source.h"

enum { TEXT_CAP_BYTES = 1 << 20 };

/* In a PID namespace of its own, the driver hides every process outside it. */
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
                   "pid 1 is this program: the driver shows no process outside of its namespace");
    else
        report_add(
            report, "processes", VERDICT_OK, NULL,
            "pid 1 is %.80s; if that is not the node's init, run in the host's PID namespace",
            init.name);
    if (geteuid() != 0)
        report_add(
            report, "privileges", VERDICT_LIMITED, "run as root, or with CAP_SYS_PTRACE",
            "not root: names of other users' executables cannot be read, only their commands");
    arena_done(&arena);
}

static void report_switched_off(struct report *report, const char *source)
{
    report_add(report, source, VERDICT_LIMITED,
               "to read it, leave out --collector.NAME=false and --no-collector.NAME",
               "switched off by --collector.%s", source);
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
            report_switched_off(report, source->name);
        else if (source == &redfish_source) /* it is not the source that has the network */
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
        print_error(&err);
        return EXIT_USAGE;
    }
    check_sources(report, &host, options);
    check_emissions(report, options);
    check_tariff(report, options);
    check_processes(report, &host);
    check_identity(report, &host, options);
    buffer_init(&text, TEXT_CAP_BYTES);
    if (options->json)
        report_print_json(report, &text);
    else
        report_print_text(report, &text);
    status = verb_print(&text);
    if (status == EXIT_OK && report->is_refused)
        status = EXIT_USAGE;
    else if (status == EXIT_OK && !report_can_measure(report))
        status = EXIT_FAILED;
    buffer_done(&text);
    host_close(&host);
    return status;
}
