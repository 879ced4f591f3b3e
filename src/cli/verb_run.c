/*
 * `wattribute run -- COMMAND`: what a command used in joules, as `perf stat` tells what it used in
 * cycles. The command sees nothing of it; its exit status is ours.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/run_live.h"
#include "cli/run_session.h"
#include "core/fs.h"
#include "core/log.h"
#include "core/macros.h"
#include "run/command.h"
#include "run/run_history.h"
#include "run/run_report.h"
#include "run/watch.h"

/* As env and timeout have it: our own failure, before the command ran. */
enum { EXIT_OWN_FAILURE = 125 };

struct run {
    const struct options *options;
    char *const *argv;
    struct command *commands; /* one for each repetition */
    struct repetition *repetitions;
    size_t wanted, count; /* those that have ended */
    struct run_session session;
    struct run_live live;
    struct watch watch;
    struct error no_cgroup; /* why there is none */
    int output_fd;          /* -1: none */
    int history_fd;         /* -1: none */
    uint64_t began_us;      /* real time */
};

static uint64_t tick(void *context)
{
    struct run *run = context;
    uint64_t due_us = run_session_tick(&run->session);
    const struct repetition *now = run->session.now;

    if (run->session.command_uj > 0)
        run_live_show(&run->live, now->ended_us - now->began_us,
                      (double)run->session.command_uj / 1e6, run->session.watts);
    return due_us;
}

static void pause_for_stop(void *context)
{
    struct run *run = context;

    run_live_clear(&run->live);
}

/* All of them before anything changes that the command could see. */
static int prepare(struct run *run, struct error *err)
{
    int r = 0;

    run->commands = calloc(run->wanted, sizeof(*run->commands));
    run->repetitions = calloc(run->wanted, sizeof(*run->repetitions));
    if (!run->commands || !run->repetitions)
        return error_set(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < run->wanted; i++)
        run->commands[i].fd = -1;
    for (size_t i = 0; i < run->wanted && r == 0; i++)
        r = command_prepare(run->argv, &run->commands[i], err);
    return r;
}

static int open_output(struct run *run, struct error *err)
{
    const char *path = run->options->output_path;

    if (!path)
        return 0;
    /* What is in it stays until there is a report. */
    run->output_fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    return run->output_fd >= 0
               ? 0
               : error_set(err, -errno, "cannot write '%s': %s", path, strerror(errno));
}

static int open_run(struct run *run, const struct cli *cli, struct error *err)
{
    int r = prepare(run, err);

    if (r == 0)
        r = open_output(run, err);
    if (r == 0) {
        r = watch_open_signals();
        run->watch.signal_fd = r;
        if (r < 0)
            return error_set(err, r, "cannot watch for signals: %s", strerror(-r));
    }
    if (r < 0)
        return r;
    if (run->options->remember)
        run->history_fd = run_history_open(secure_getenv("XDG_STATE_HOME"), secure_getenv("HOME"));
    (void)cli_confine(cli, NULL);
    /* Findings are in the report, and the terminal is the command's. */
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    r = run_session_open(&run->session, run->options, err);
    if (r < 0)
        return r;
    run->session.signal_fd = run->watch.signal_fd;
    run->watch.wake_fd = run->session.measurement->wake_fd;
    run->began_us = clock_system.realtime_us(&clock_system);
    run_live_init(&run->live, run->options->live);
    return 0;
}

static void explain_exec(const struct run *run, int error)
{
    struct error err;

    error_format(&err, "cannot run '%.300s': %s", run->argv[0], strerror(-error));
    cli_print_error(&err);
}

/* One that could not be started. */
static int reap_failed(const struct run *run, const struct command *command, int error)
{
    int status = 0;
    pid_t pid;

    do
        pid = waitpid(command->pid, &status, 0);
    while (pid < 0 && errno == EINTR);
    if (pid < 0) { /* with the command before it, which was watched */
        cli_print_error(&(struct error){"the next run was ended before it began"});
        return EXIT_OWN_FAILURE;
    }
    if (error != -ESRCH)
        explain_exec(run, error);
    return command_exit_status(status);
}

/* The exit status; *ret_ran: it ran. */
static int repeat(struct run *run, size_t index, bool *ret_ran)
{
    struct command *command = &run->commands[index];
    struct repetition *repetition = &run->repetitions[index];
    int r;

    r = family_init(&repetition->family);
    if (r < 0) {
        run->no_cgroup = (struct error){"its processes cannot be followed"};
        return EXIT_OWN_FAILURE;
    }
    repetition->family.waiting = run->commands;
    repetition->family.waiting_count = run->wanted;
    repetition->has_cgroup =
        own_cgroup_make(&repetition->cgroup, (unsigned)index, &run->no_cgroup) == 0;
    if (repetition->has_cgroup) {
        r = own_cgroup_enter(&repetition->cgroup, command->pid);
        if (r < 0) {
            error_format(&run->no_cgroup,
                         "the command cannot be moved into a cgroup of its own: %s", strerror(-r));
            (void)own_cgroup_remove(&repetition->cgroup);
            repetition->has_cgroup = false;
        }
    }
    run->watch.command = command;
    run->watch.family = &repetition->family;
    run_session_begin(&run->session, repetition);
    r = command_start(command);
    *ret_ran = r == 0;
    run->watch.interrupted_by = 0;
    if (r == 0)
        repetition->status = command_exit_status(watch_command(&run->watch));
    else
        repetition->status = reap_failed(run, command, r);
    repetition->is_interrupted = run->watch.interrupted_by > 0;
    run_session_end(&run->session);
    run_live_clear(&run->live);
    if (repetition->has_cgroup)
        (void)own_cgroup_remove(&repetition->cgroup);
    return repetition->status;
}

/* Returns the exit status. */
static int repeat_all(struct run *run)
{
    bool has_run = true;
    int status = 0;

    for (size_t i = 0; i < run->wanted && has_run && status == 0; i++) {
        status = repeat(run, i, &has_run);
        run->count += has_run;
        /* A command may take the signal and end well: the series was still ended by it. */
        if (run->wanted > 1 && has_run && status == 0 && run->repetitions[i].is_interrupted)
            status = 128 + run->watch.interrupted_by;
    }
    for (size_t i = 0; i < run->wanted; i++)
        command_cancel(&run->commands[i]);
    return status;
}

static void explain_cgroup(const struct run *run, struct report *findings)
{
    if (!run->repetitions[0].has_cgroup)
        report_add(findings, "cgroup", VERDICT_LIMITED,
                   "run as root, or where a part of the tree is yours: systemd-run --user --scope "
                   "wattribute run ...",
                   "estimated by the CPU time of the command's processes: %s", run->no_cgroup.text);
}

static void read_last(const struct run *run, struct run_summary *ret_last, bool *ret_has_last)
{
    _cleanup_free_ char *data = NULL;
    struct error ignored;
    size_t len;

    *ret_has_last = run->history_fd >= 0 &&
                    run_history_read(run->history_fd, run->argv, &data, &len) == 0 &&
                    compare_read((struct span){data, len}, ret_last, &ignored) == 0;
}

/* The report must not be lost in silence, but the exit status stays the command's. */
static void write_json(const struct run *run, const struct result *last, const struct buffer *json)
{
    struct error err;
    int r;

    if (run->history_fd >= 0 && run->count == run->wanted && compare_is_whole(last))
        (void)run_history_write(run->history_fd, run->argv, (struct span){json->data, json->len});
    if (run->output_fd < 0)
        return;
    (void)!ftruncate(run->output_fd, 0); /* a pipe has no length */
    r = fs_write_all(run->output_fd, json->data, json->len);
    if (r < 0) {
        error_format(&err, "cannot write '%s': %s", run->options->output_path, strerror(-r));
        cli_print_error(&err);
    }
}

static void print_report(const struct run *run, const struct result *results,
                         const struct report *findings)
{
    struct run_summary last;
    struct run_report report = {
        .argv = run->argv,
        .node = run->session.measurement->node,
        .time_us = run->began_us,
        .daemon = run->session.daemon ? daemon_client_address(run->session.daemon) : NULL,
        .has_own_cgroup = run->repetitions[0].has_cgroup,
        .runs = results,
        .count = run->count,
        .wanted = run->wanted,
        .findings = findings,
    };
    struct buffer text, json;
    bool has_last;

    read_last(run, &last, &has_last);
    report.last = has_last ? &last : NULL;
    buffer_init(&json, RUN_REPORT_CAP_BYTES);
    buffer_init(&text, RUN_REPORT_CAP_BYTES);
    run_report_json(&report, &json);
    if (!run->options->json)
        run_report_text(&report, &text);
    if (buffer_failed(&json) || buffer_failed(&text)) {
        cli_print_error(&(struct error){"out of memory: there is no report"});
    } else {
        const struct buffer *shown = run->options->json ? &json : &text;

        (void)fs_write_all(STDERR_FILENO, shown->data, shown->len);
        write_json(run, &results[run->count - 1], &json);
    }
    buffer_done(&text);
    buffer_done(&json);
}

static void make_report(struct run *run)
{
    struct result *results = calloc(run->count, sizeof(*results));
    struct report *findings = calloc(1, sizeof(*findings));
    uint64_t lost_us = 0;

    run_session_settle(&run->session, run->repetitions, run->count);
    for (size_t i = 0; i < run->count; i++)
        lost_us += run->repetitions[i].lost_us;
    for (size_t i = 0; i < run->count && results; i++)
        run_session_result(&run->session, &run->repetitions[i], &results[i]);
    if (results && findings) {
        run_session_explain(&run->session, &results[run->count - 1], findings);
        explain_cgroup(run, findings);
        run_daemon_explain(&run->session, lost_us, findings);
        print_report(run, results, findings);
    }
    free(findings);
    free(results);
}

/* Waits for commands that never ran. */
static bool close_run(struct run *run)
{
    for (size_t i = 0; i < run->wanted && run->commands; i++) {
        command_cancel(&run->commands[i]);
        if (run->commands[i].pid > 0)
            (void)waitpid(run->commands[i].pid, NULL, i < run->count ? WNOHANG : 0);
    }
    for (size_t i = 0; i < run->wanted && run->repetitions; i++)
        family_done(&run->repetitions[i].family);
    free(run->commands);
    free(run->repetitions);
    cleanup_close(&run->output_fd);
    cleanup_close(&run->history_fd);
    cleanup_close(&run->watch.signal_fd);
    return run_session_close(&run->session);
}

int verb_run(const struct cli *cli)
{
    struct run run = {
        .options = &cli->options,
        .argv = cli->rest,
        .wanted = cli->options.repeat,
        .session.host = {.procfs_fd = -1, .sysfs_fd = -1, .rootfs_fd = -1},
        .watch = {.signal_fd = -1, .tick = tick, .pause = pause_for_stop},
        .output_fd = -1,
        .history_fd = -1,
    };
    struct error err = {"out of memory"};
    int status = EXIT_OWN_FAILURE;

    run.watch.context = &run;
    if (open_run(&run, cli, &err) < 0) {
        cli_print_error(&err);
    } else {
        status = repeat_all(&run);
        if (run.count > 0)
            make_report(&run);
    }
    if (!close_run(&run))
        _exit(status); /* a thread hangs in the kernel or a driver: free nothing under it */
    return status;
}
