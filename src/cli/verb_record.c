/*
 * `wattribute record -o TRACE`: writes all samples in the format that `replay` reads, with the
 * names of workloads. At the end it prints the ledger that it booked meanwhile: `replay` prints the
 * same.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "attribution/pipeline.h"
#include "cli/cli.h"
#include "collector/source_set.h"
#include "config/node_config.h"
#include "config/program_key_file.h"
#include "core/gzip.h"
#include "core/macros.h"
#include "host/host.h"
#include "identity/identity.h"
#include "identity/recorded_names.h"
#include "process/descriptors.h"
#include "process/signals.h"
#include "sources/gpu_counters.h"
#include "sources/trace.h"

/* How long to wait for a first sample before there is nothing to record. */
static const uint64_t FIRST_SAMPLE_US = 5 * USEC_PER_SEC;
static const uint64_t STOP_SOURCE_US = 200000;
/* How often the file is flushed: a full disk is noticed while something can be done. */
static const uint64_t FLUSH_US = 10 * USEC_PER_SEC;
static const uint64_t NAMES_US = 2 * USEC_PER_SEC; /* between two passes for new names */
enum { LINES_CAP_BYTES = 64 << 20 };

struct recording {
    struct gzip_writer *gzip;
    struct pipeline *pipeline;
    struct identity *identity;    /* NULL: names are not recorded */
    struct recorded_names *names; /* already in the trace */
    uint64_t names_due_us;
    struct trace_writer lines;
    struct buffer buffer; /* of one batch */
    bool has_readings;    /* of a meter: without one, usage is of no use */
    int result;
};

/* Writes the buffer out and empties it. */
static void flush_lines(struct recording *recording)
{
    struct buffer *buffer = &recording->buffer;

    if (recording->result == 0)
        recording->result = buffer_failed(buffer)
                                ? -ENOMEM
                                : gzip_writer_write(recording->gzip, buffer->data, buffer->len);
    buffer->len = 0;
}

/* Writes the names of a workload if they are new, and complete or `is_last`. */
static int write_workload_names(struct recording *recording, const struct snapshot_info *info,
                                bool is_last)
{
    struct workload_owner owner = {.kind = info->kind};
    struct workload_names names;
    struct sample_names texts;
    bool is_final, is_empty = true;
    int r;

    snprintf(owner.id, sizeof(owner.id), "%s", info->id);
    snprintf(owner.container_id, sizeof(owner.container_id), "%s", info->container_id);
    snprintf(owner.pod_uid, sizeof(owner.pod_uid), "%s", info->pod_uid);
    is_final = identity_find_names(recording->identity, &owner, &names);
    texts = (struct sample_names){
        .kind = info->kind,
        .id = info->id,
        .texts = {[WORKLOAD_TEXT_NAME] = names.name,
                  [WORKLOAD_TEXT_NAMESPACE] = names.namespace,
                  [WORKLOAD_TEXT_POD] = names.pod,
                  [WORKLOAD_TEXT_CONTAINER] = names.container,
                  [WORKLOAD_TEXT_IMAGE] = info->image,
                  [WORKLOAD_TEXT_USER] = info->user,
                  [WORKLOAD_TEXT_ACCOUNT] = info->account,
                  [WORKLOAD_TEXT_JOB_ID] = info->job_id,
                  [WORKLOAD_TEXT_JOB_NAME] = info->job_name,
                  [WORKLOAD_TEXT_UUID] = info->uuid,
                  [WORKLOAD_TEXT_UNVERIFIED] = info->unverified},
    };
    for (int i = 0; i < WORKLOAD_TEXTS; i++)
        is_empty = is_empty && texts.texts[i][0] == '\0';
    if (is_empty || (!is_final && !is_last))
        return 0;
    r = recorded_names_learn(recording->names, &texts);
    if (r > 0)
        (void)trace_write_sample(&recording->lines,
                                 &(struct sample){.kind = SAMPLE_NAMES,
                                                  .t_us = clock_system.realtime_us(&clock_system),
                                                  .names = &texts},
                                 &recording->buffer, NULL);
    return MIN(r, 0);
}

static void write_names(struct recording *recording, bool is_last)
{
    uint64_t now_us = clock_system.monotonic_us(&clock_system);
    struct snapshot snapshot;
    int r;

    if (!recording->identity || (now_us < recording->names_due_us && !is_last))
        return;
    recording->names_due_us = now_us + NAMES_US;
    snapshot_init(&snapshot);
    r = pipeline_snapshot(recording->pipeline, 0, 0, &snapshot);
    if (r == 0)
        r = identity_describe(recording->identity, &snapshot);
    for (size_t i = 0; i < snapshot.info_count && r == 0; i++)
        r = write_workload_names(recording, &snapshot.infos[i], is_last);
    snapshot_done(&snapshot);
    if (r < 0)
        recording->result = -ENOMEM;
    flush_lines(recording);
}

/* Books what the trace has, and nothing else: so will a replay. */
static void take_batch(void *context, const struct batch *batch)
{
    struct recording *recording = context;

    for (size_t i = 0; i < batch->count; i++) {
        struct workload_owner owner;
        struct sample sample;

        if (!trace_write_sample(&recording->lines, &batch->samples[i], &recording->buffer, &sample))
            continue;
        if (pipeline_ingest(recording->pipeline, &sample, 1) < 0)
            recording->result = -ENOMEM;
        recording->has_readings |= sample.kind != SAMPLE_USAGE;
        if (!recording->identity || sample.kind != SAMPLE_PROCESS)
            continue;
        /* Look up the names of processes on a GPU at once. */
        identity_find_owner(&sample.process, &owner);
        identity_note_process(recording->identity, sample.process.pid, &owner);
    }
    flush_lines(recording);
}

/* Records until a signal, the end of the duration (0: none), or an error. 0, also if there was
 * nothing to record. */
static int record(struct source_set *sources, struct recording *recording, int signal_fd,
                  int wake_fd, uint64_t duration_us)
{
    uint64_t began_us = clock_system.monotonic_us(&clock_system), flush_us = began_us;
    struct pollfd fds[2] = {{.fd = signal_fd, .events = POLLIN}, {.fd = wake_fd, .events = POLLIN}};

    for (;;) {
        uint64_t now_us = clock_system.monotonic_us(&clock_system), ignored;

        if (now_us >= source_set_next_due_us(sources))
            (void)source_set_open_due(sources, now_us, NULL);
        if (duration_us > 0 && now_us - began_us >= duration_us)
            return 0;
        if (!recording->has_readings &&
            (!source_set_has_meter(sources) || now_us - began_us > FIRST_SAMPLE_US))
            return 0;
        poll(fds, ARRAY_SIZE(fds), 100);
        if (fds[0].revents)
            return 0;
        (void)!read(wake_fd, &ignored, sizeof(ignored));
        source_set_read(sources, now_us, take_batch, recording);
        write_names(recording, false);
        if (recording->result == 0 && recording->has_readings && now_us >= flush_us) {
            recording->result = gzip_writer_flush(recording->gzip);
            flush_us = now_us + FLUSH_US;
        }
        if (recording->result < 0)
            return recording->result;
    }
}

/* Names decide whose programs are recalled, so those on a GPU are written before the last windows
 * are settled, as a replay reads them; those that only then use energy, after that. */
static int finish(struct recording *recording)
{
    int r;

    write_names(recording, true);
    r = pipeline_finish(recording->pipeline);
    write_names(recording, true);
    return r < 0 ? r : recording->result;
}

static int open_output(const char *path, struct recording *recording, struct error *err)
{
    _cleanup_close_ int fd = -1;
    int r;

    if (!path)
        return error_set(err, -EINVAL,
                         "'record' needs a file: write wattribute record -o TRACE.gz");
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return error_set(err, -errno, "cannot create '%s': %s%s", path, strerror(errno),
                         errno == EEXIST ? "; choose a file that does not exist" : "");
    r = gzip_writer_open(fd, &recording->gzip);
    if (r < 0)
        return error_set(err, r, "cannot write '%s': %s", path, strerror(-r));
    TAKE_FD(fd);
    trace_write_header(&recording->buffer);
    flush_lines(recording);
    r = recording->result;
    return r < 0 ? error_set(err, r, "cannot write '%s': %s", path, strerror(-r)) : 0;
}

static int open_names(struct recording *recording, const struct options *options,
                      const struct host *host, struct error *err)
{
    return identity_open(
        &(struct identity_options){
            .host = host,
            .rootfs_path = options->rootfs_path,
            .clock = &clock_system,
            .scan_interval_us = options->process_scan_interval_us,
            .kubernetes = options->kubernetes_enabled,
            .runtime_sockets = options->runtime_sockets,
            .pod_resources_socket = options->pod_resources_socket,
        },
        &recording->identity, err);
}

/* Ends the file, and removes it if it has no reading. */
static int close_output(const char *path, struct recording *recording, int result,
                        struct error *err)
{
    int closed = gzip_writer_close(recording->gzip);

    recording->gzip = NULL;
    if (!recording->has_readings)
        unlink(path);
    if (result == 0)
        result = closed;
    if (result < 0)
        return error_set(err, result, "cannot write '%s': %s; %s", path, strerror(-result),
                         recording->has_readings ? "it is incomplete, and 'replay' refuses it"
                                                 : "nothing was recorded");
    return 0;
}

static int nothing_recorded(bool has_meter, const struct source_switches *switches,
                            struct error *err)
{
    char text[256];
    const char *off = node_config_list_off(switches, text, sizeof(text));

    if (has_meter)
        return error_set(err, -ENODEV,
                         "nothing was recorded, no file is written: no meter of this node returned "
                         "a reading; record longer, or see 'wattribute check'");
    return error_set(err, -ENODEV,
                     "nothing to record, no file is written: no energy meter of this node can be "
                     "read (NVIDIA GPUs, RAPL, hwmon, Cray, IPMI%s%s); 'wattribute check' shows "
                     "what is missing",
                     off ? "; switched off: " : "", off ? off : "");
}

static int open_events(int *signal_fd, int *wake_fd, struct error *err)
{
    /* SIGHUP: a closed terminal ends a recording cleanly. */
    static const int signals[] = {SIGINT, SIGTERM, SIGQUIT, SIGHUP};

    *signal_fd = signals_open(signals, ARRAY_SIZE(signals));
    *wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (*signal_fd >= 0 && *wake_fd >= 0)
        return 0;
    return error_set(err, -errno, "cannot watch for signals: %s", strerror(errno));
}

int verb_record(const struct cli *cli)
{
    const struct options *options = &cli->options;
    struct pipeline_options books = node_config_pipeline(options, true);
    struct recording recording = {0};
    struct source_switches switches;
    struct gpu_counters counters;
    struct source_set sources;
    struct host host = {.procfs_fd = -1, .sysfs_fd = -1, .rootfs_fd = -1};
    _cleanup_close_ int wake_fd = -1, signal_fd = -1;
    struct error err = {"out of memory"};
    int r, status = EXIT_FAILED;
    bool is_idle;

    log_configure(options->log_level, options->log_format);
    (void)cli_confine(cli, NULL);
    buffer_init(&recording.buffer, LINES_CAP_BYTES);
    signals_ignore_stray();
    signal(SIGUSR1, SIG_IGN); /* meant for 'serve' */
    r = descriptors_prepare(&err);
    if (r == 0)
        r = open_events(&signal_fd, &wake_fd, &err);
    if (r == 0)
        r = host_open(options->procfs_path, options->sysfs_path, options->rootfs_path, &host, &err);
    if (r == 0 && options->program_key_path)
        r = program_key_file_load(options->program_key_path, &host.program_secret, &err);
    if (r == 0)
        r = recorded_names_new(&recording.names);
    /* The names in the trace, as soon as they are there: so will a replay. */
    books.gpu.find_names = recorded_names_find;
    books.gpu.find_vm = recorded_names_find_vm;
    books.gpu.names_context = recording.names;
    if (r == 0)
        r = pipeline_new(&books, &recording.pipeline);
    if (r == 0)
        r = open_output(options->output_path, &recording, &err);
    if (r == 0 && options->record_names)
        r = open_names(&recording, options, &host, &err);
    node_config_switches(options, &switches);
    gpu_counters_init(&counters);
    source_set_init(&sources,
                    &(struct source_context){
                        .host = &host,
                        .clock = &clock_system,
                        .interval_us = options->sample_interval_us,
                        .nvml_library = "libnvidia-ml.so.1",
                        .counters = &counters,
                        .switches = &switches,
                    },
                    wake_fd, options->process_scan_interval_us);
    if (r == 0)
        r = record(&sources, &recording, signal_fd, wake_fd, options->duration_us);
    if (r == 0 && recording.has_readings)
        r = finish(&recording);
    if (recording.gzip)
        r = close_output(options->output_path, &recording, r, &err);
    if (r == 0 && !recording.has_readings)
        r = nothing_recorded(source_set_has_meter(&sources), &switches, &err);
    is_idle = source_set_stop(&sources, STOP_SOURCE_US);
    if (r < 0)
        cli_print_error(&err);
    if (r == 0)
        status = cli_print_ledger(recording.pipeline, recording.names);
    else if (r != -ENODEV)
        status = cli_exit_status(r);
    if (!is_idle)
        _exit(status); /* a thread hangs in the kernel or a driver: free nothing under it */
    buffer_done(&recording.buffer);
    pipeline_free(recording.pipeline);
    identity_close(recording.identity);
    recorded_names_free(recording.names);
    host_close(&host);
    return status;
}
