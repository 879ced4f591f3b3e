#include "collector/front_process.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/macros.h"
#include "process/channel.h"

/* Each start is a login at the BMC, and a front that died could not log out: one that dies again
 * and again must not use up the BMC's sessions. */
static const uint64_t LOGIN_PAUSE_US = 60 * USEC_PER_SEC;

enum { ARGUMENTS_MAX = 32 };

_Static_assert(1 + OPTIONS_LISTEN_MAX + 2 <= CHILD_FDS_MAX, "descriptors that no child can get");

void front_process_init(struct front_process *front, const struct front_process_options *options)
{
    *front = (struct front_process){
        .options = *options,
        .channel_fd = -1,
        .names_fd = -1,
        .power_fd = -1,
    };
    child_init(&front->child);
}

/* The front's ends of the channels; -1: none. */
struct channel_ends {
    int channel, names, power;
};

/* The descriptors that verb_front expects: the channel, the listeners, and where names and readings
 * go to. */
static size_t list_fds(const struct front_process_options *options, const struct channel_ends *ends,
                       int *fds)
{
    size_t count = 0;

    fds[count++] = ends->channel;
    for (size_t i = 0; i < options->listener_count; i++)
        fds[count++] = options->listener_fds[i];
    if (ends->names >= 0)
        fds[count++] = ends->names;
    if (ends->power >= 0)
        fds[count++] = ends->power;
    return count;
}

/* What of the command line is numbers, as text. */
struct numbers {
    char listeners[16], level[16], format[16], interval[24], delay[24];
};

static void write_numbers(const struct front_process *front, struct numbers *numbers)
{
    const struct front_process_options *options = &front->options;

    snprintf(numbers->listeners, sizeof(numbers->listeners), "%zu", options->listener_count);
    snprintf(numbers->level, sizeof(numbers->level), "%d", (int)options->log_level);
    snprintf(numbers->format, sizeof(numbers->format), "%d", (int)options->log_format);
    if (!options->redfish)
        return;
    snprintf(numbers->interval, sizeof(numbers->interval), "%" PRIu64,
             options->redfish->interval_us);
    snprintf(numbers->delay, sizeof(numbers->delay), "%" PRIu64,
             front->starts > 0 ? LOGIN_PAUSE_US : 0);
}

/* As verb_front reads it. */
static void write_arguments(const struct front_process *front, struct numbers *numbers,
                            char *argv[ARGUMENTS_MAX])
{
    const struct front_process_options *options = &front->options;
    const struct api_config *api = options->api;
    const struct redfish_flags *redfish = options->redfish;
    size_t count = 0;

    argv[count++] = "wattribute";
    argv[count++] = "front";
    argv[count++] = numbers->listeners;
    argv[count++] = (char *)options->metrics_path;
    argv[count++] = options->text_only ? "text" : "negotiate";
    argv[count++] = numbers->level;
    argv[count++] = numbers->format;
    argv[count++] = options->has_web_config ? "web-config" : "plain";
    argv[count++] = child_is_failing(&front->child) ? "failing" : "well";
    if (api) {
        argv[count++] = "api";
        argv[count++] = (char *)api->host;
        argv[count++] = (char *)api->port;
        argv[count++] = (char *)api->node;
        argv[count++] = (char *)api->directory;
    }
    if (redfish) {
        argv[count++] = "redfish";
        argv[count++] = (char *)redfish->url;
        argv[count++] = (char *)redfish->credentials_path;
        argv[count++] = (char *)redfish->ca_path;
        argv[count++] = (char *)redfish->certificate_sha256;
        argv[count++] = redfish->insecure ? "insecure" : "checked";
        argv[count++] = numbers->interval;
        argv[count++] = numbers->delay;
    }
    argv[count] = NULL;
}

/* What else the environment holds is none of its business. */
static int start(struct front_process *front, const struct channel_ends *ends, uint64_t now_us,
                 struct error *err)
{
    struct numbers numbers = {0};
    char *argv[ARGUMENTS_MAX];
    char *const env[] = {child_variable("LD_LIBRARY_PATH"), NULL};
    int fds[CHILD_FDS_MAX];

    write_numbers(front, &numbers);
    write_arguments(front, &numbers, argv);
    return child_start(
        &front->child,
        &(struct child_program){
            .argv = argv, .env = env, .fds = fds, .fd_count = list_fds(&front->options, ends, fds)},
        now_us, &front->restart_us, err);
}

int front_process_start(struct front_process *front, uint64_t now_us, struct error *err)
{
    _cleanup_close_ int ours = -1, theirs = -1, our_names = -1, their_names = -1;
    _cleanup_close_ int our_power = -1, their_power = -1;
    int r = channel_open(&ours, &theirs);

    if (r == 0 && front->options.api)
        r = channel_open(&our_names, &their_names);
    if (r == 0 && front->options.redfish)
        r = channel_open(&our_power, &their_power);
    if (r < 0)
        return child_fail(&front->child, "front", r, now_us, &front->restart_us, err);
    r = start(front, &(struct channel_ends){theirs, their_names, their_power}, now_us, err);
    if (r < 0)
        return r;
    front->channel_fd = TAKE_FD(ours);
    front->names_fd = TAKE_FD(our_names);
    front->power_fd = TAKE_FD(our_power);
    front->starts++;
    return 0;
}

static void close_channels(struct front_process *front)
{
    cleanup_close(&front->channel_fd);
    front->channel_fd = -1;
    front_process_close_names(front);
    front_process_close_power(front);
}

void front_process_close_names(struct front_process *front)
{
    cleanup_close(&front->names_fd);
    front->names_fd = -1;
}

void front_process_close_power(struct front_process *front)
{
    cleanup_close(&front->power_fd);
    front->power_fd = -1;
}

bool front_process_reap(struct front_process *front, uint64_t now_us, int *ret_status)
{
    if (!child_reap(&front->child, now_us, &front->restart_us, ret_status))
        return false;
    close_channels(front);
    return true;
}

void front_process_kill(struct front_process *front)
{
    child_kill(&front->child);
}

void front_process_stop(struct front_process *front, uint64_t wait_us)
{
    close_channels(front);
    child_stop(&front->child, wait_us);
}
