/*
 * `wattribute replay TRACE...`: books recorded traces one after another and prints their ledgers.
 * What was remembered of programs goes from one to the next, as in a daemon that runs for days;
 * everything else starts anew.
 */
#include <string.h>

#include "attribution/pipeline.h"
#include "cli/cli.h"
#include "config/node_config.h"
#include "identity/recorded_names.h"
#include "sources/trace.h"

/* Reads the whole trace before anything is printed: its last line may be bad. */
static int play(const char *path, struct pipeline *pipeline, struct recorded_names *names,
                struct error *err)
{
    struct trace_reader *reader = NULL;
    struct batch batch;
    int r = trace_reader_open(path, &reader, err);

    if (r < 0)
        return r;
    batch_init(&batch);
    while ((r = trace_reader_next(reader, &batch, err)) > 0) {
        r = pipeline_ingest(pipeline, batch.samples, batch.count);
        if (r == 0 && batch.samples[0].kind == SAMPLE_NAMES)
            r = recorded_names_learn(names, batch.samples[0].names);
        batch_reset(&batch);
        if (r < 0) {
            error_set(err, r, "trace '%s': %s", path, strerror(-r));
            break;
        }
    }
    if (r == 0)
        r = pipeline_finish(pipeline);
    batch_done(&batch);
    trace_reader_close(reader);
    return r;
}

/* Books one trace and prints its ledger. `*before` is the pipeline of the trace before it, or NULL;
 * the new one takes its place. Returns the exit status. */
static int replay_trace(const char *path, struct pipeline_options options, struct pipeline **before)
{
    struct pipeline *pipeline = NULL;
    struct recorded_names *names = NULL;
    struct error err = {"out of memory"};
    int r = recorded_names_new(&names);
    int status;

    options.gpu.find_names = recorded_names_find;
    options.gpu.find_vm = recorded_names_find_vm;
    options.gpu.names_context = names;
    if (r == 0)
        r = pipeline_new(&options, &pipeline);
    if (r == 0 && *before)
        pipeline_hand_over_programs(*before, pipeline);
    pipeline_free(*before);
    *before = pipeline;
    if (r == 0)
        r = play(path, pipeline, names, &err);
    status = r == 0 ? cli_print_ledger(pipeline, names) : cli_exit_status(r);
    if (r < 0)
        cli_print_error(&err);
    recorded_names_free(names);
    return status;
}

int verb_replay(const struct cli *cli)
{
    const struct pipeline_options options = node_config_pipeline(&cli->options, true);
    struct pipeline *pipeline = NULL;
    int status = EXIT_OK;

    (void)cli_confine(cli, NULL);
    for (size_t i = 0; i < cli->argument_count && status == EXIT_OK; i++)
        status = replay_trace(cli->arguments[i], options, &pipeline);
    pipeline_free(pipeline);
    return status;
}
